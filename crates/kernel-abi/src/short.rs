//! Kernels whose names end in `_short`.

/// May a kernel take the call whose name ends in `_short`? It believes that every unit of a tensor is
/// whole and lies where one access takes it, and that none of its threads has two.
///
/// `bits` are those of all addresses and lengths of tensors, one beside the other, in bytes; `longest` is the greatest
/// length, `unit` the bytes that a thread takes at a time, a power of two, and `threads` are those of the
/// launch, as often as they each take a unit.
///
/// Ranks need not be of one mind: what peers see of a call is the same either way.
#[must_use]
pub fn is_short(bits: u64, longest: u64, unit: u64, threads: u64) -> bool {
    bits.is_multiple_of(unit) && longest <= threads.saturating_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::is_short;

    #[test]
    fn a_call_is_short_if_units_are_whole_and_threads_have_one() {
        assert!(is_short(0x100 | 64, 64, 16, 4));
        assert!(!is_short(0x100 | 64, 64, 16, 3), "a thread has two units");
        assert!(!is_short(0x100 | 0x1008 | 64, 64, 16, 4), "a tensor does not lie well");
        assert!(is_short(0x100 | 0x1008 | 64, 64, 8, 8), "well enough for units of 8 bytes");
        assert!(!is_short(0x100 | 60, 60, 16, 4), "its last unit is not whole");
        assert!(is_short(0, 0, 8, 0));
        assert!(is_short(0, !7, 8, u64::MAX));
    }
}
