//! Sizes on the command line, read as nccl-tests reads them: `8`, `32K`, `16M`, `1G`, binary.

/// Reads a size. `KiB`, `MiB` and `GiB` are as good as `K`, `M` and `G`; `KB` is refused, since
/// it may be meant as 1000 bytes.
pub(super) fn parse(text: &str) -> Result<u64, String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let scale: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10, // size: a unit
        "m" | "mib" => 1 << 20, // size: a unit
        "g" | "gib" => 1 << 30,
        _ => return Err("write a whole number of bytes, or one with K, M or G (binary)".into()),
    };
    let number: u64 = number.parse().map_err(|_| match number {
        "" => "it does not start with a number".to_owned(),
        _ => "it is more than 64 bits hold".to_owned(),
    })?;
    number.checked_mul(scale).ok_or_else(|| "it is more than 64 bits hold".to_owned())
}

/// From `first` to `last`, each `factor` times the one before; 0 is followed by 1.
pub(super) fn steps(first: u64, last: u64, factor: u64) -> Vec<u64> {
    let next = |size: &u64| size.checked_mul(factor).map(|next| next.max(1));
    std::iter::successors(Some(first), next).take_while(|size| *size <= last).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_binary() {
        let read = |text| parse(text).ok();
        assert_eq!(read("0"), Some(0));
        assert_eq!(read("8"), Some(8));
        assert_eq!(read("8B"), Some(8));
        assert_eq!(read("32k"), Some(32 << 10));
        assert_eq!(read("16M"), Some(16 << 20));
        assert_eq!(read("16MiB"), Some(16 << 20));
        assert_eq!(read("3g"), Some(3 << 30));
    }

    #[test]
    fn others_are_refused() {
        for text in ["", "K", "-1", "1.5M", "64KB", "8 M", "99999999999999999999", "18000000000G"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn steps_include_both_ends_and_always_end() {
        assert_eq!(steps(8, 64, 2), [8, 16, 32, 64]);
        assert_eq!(steps(8, 63, 2), [8, 16, 32]);
        assert_eq!(steps(0, 4, 2), [0, 1, 2, 4]);
        assert_eq!(steps(1 << 63, u64::MAX, 2), [1 << 63]);
        assert!(steps(9, 8, 2).is_empty());
    }
}
