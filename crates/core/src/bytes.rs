//! Sizes as policies and reports write them. A policy's text is read by `crossover-policy`.

use crate::policy::ByteRange;

/// The units, greatest first. Only those whose value nobody disputes.
pub const UNITS: [(&str, u64); 4] = [("GiB", GIB), ("MiB", MIB), ("KiB", KIB), ("B", 1)];
const KIB: u64 = 1 << 10; // size: a unit
const MIB: u64 = 1 << 20; // size: a unit
const GIB: u64 = 1 << 30; // size: a unit

/// Writes a size: in the greatest unit of which it is a whole number.
pub fn size_text(bytes: u64) -> String {
    let whole = |(_, scale): &&(&str, u64)| bytes != 0 && bytes.is_multiple_of(*scale);
    match UNITS.iter().find(whole) {
        Some((unit, scale)) => format!("{}{unit}", bytes / scale),
        None => "0B".to_owned(),
    }
}

/// Writes a range such that a policy reads the same one; `..=` where its end is the rounder
/// number.
pub fn range_text(range: ByteRange) -> String {
    let low = if range.low == 0 { String::new() } else { size_text(range.low) };
    match range.high {
        None if range.low == 0 => "any".to_owned(),
        None => format!("{low}.."),
        Some(high) if range.low.checked_add(1) == Some(high) => size_text(range.low),
        Some(high) if is_round(high.saturating_sub(1)) && !is_round(high) => {
            format!("{low}..={}", size_text(high - 1))
        }
        Some(high) => format!("{low}..{}", size_text(high)),
    }
}

/// Is it written with a unit greater than a byte?
pub(crate) fn is_round(bytes: u64) -> bool {
    bytes != 0 && bytes.is_multiple_of(KIB)
}

/// Bytes that a setting of a backend says: digits and one of the [`UNITS`], as in `256KiB`. `None` if
/// it is anything else, or more than 64 bits hold.
pub fn setting_bytes(text: &str) -> Option<u64> {
    let (digits, scale) = UNITS.iter().find_map(|(unit, n)| Some((text.strip_suffix(unit)?, n)))?;
    let digits = digits.trim_end();
    // `parse` would take a sign.
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse::<u64>().ok().filter(|_| is_plain)?.checked_mul(*scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_has_plain_digits_and_a_unit() {
        for (text, bytes) in [("0B", 0), ("64 KiB", 64 * KIB), ("3MiB", 3 * MIB), ("2GiB", 2 * GIB)]
        {
            assert_eq!(setting_bytes(text), Some(bytes), "{text}");
        }
        let too_many = format!("{}GiB", u64::MAX);
        for wrong in ["", "B", "64", "64KB", "64K", "+64KiB", "-1B", "1.5MiB", "0x10B", &too_many] {
            assert_eq!(setting_bytes(wrong), None, "{wrong}");
        }
    }
}
