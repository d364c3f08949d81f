//! Sizes and ranges: what is written is what is read, to the byte.

use crossover_core::policy::ByteRange;
use crossover_policy::bytes::{parse_range, parse_size, range_text, size_text};
use proptest::prelude::*;

#[test]
fn ranges_mean_what_rust_ranges_mean() {
    let cases: &[(&str, u64, Option<u64>)] = &[
        ("any", 0, None),
        ("0B", 0, Some(1)),
        ("64KiB", 65_536, Some(65_537)),
        ("64KiB..128KiB", 65_536, Some(131_072)),
        ("64KiB..=128KiB", 65_536, Some(131_073)),
        ("..64KiB", 0, Some(65_536)),
        ("..=64KiB", 0, Some(65_537)),
        ("0B..=0B", 0, Some(1)),
        ("1MiB..", 1_048_576, None),
        ("1B..=1GiB", 1, Some(1_073_741_825)),
        ("..=18446744073709551615B", 0, None),
        ("..18446744073709551615B", 0, Some(u64::MAX)),
        ("18446744073709551615B", u64::MAX, None),
        ("17179869183GiB..", 17_179_869_183 << 30, None),
    ];
    for (text, low, high) in cases {
        let range = parse_range(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(range, ByteRange { low: *low, high: *high }, "{text}");
    }
}

#[test]
fn ranges_are_printed_as_people_write_them() {
    for text in ["any", "64KiB", "..64KiB", "..=64KiB", "64KiB..=1MiB", "1B..2MiB", "3GiB..", "0B"]
    {
        assert_eq!(range_text(parse_range(text).unwrap()), text);
    }
    assert_eq!(size_text(1 << 20), "1MiB");
    assert_eq!(size_text(1280 << 10), "1280KiB");
    assert_eq!(size_text(65_537), "65537B");
}

/// Sizes near those at which something may go wrong: units, their multiples, the ends of `u64`.
fn sizes() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0..5000u64,
        (0..4096u64, 0..40u32).prop_map(|(n, shift)| n << shift),
        (0..64u32, -1..=1i64).prop_map(|(shift, by)| (1u64 << shift).saturating_add_signed(by)),
        (0..3u64).prop_map(|n| u64::MAX - n),
    ]
}

proptest! {
    #[test]
    fn printed_sizes_are_read_as_themselves(size in sizes()) {
        prop_assert_eq!(parse_size(&size_text(size)), Ok(size));
    }

    #[test]
    fn printed_ranges_are_read_as_themselves(a in sizes(), b in sizes(), bounded: bool) {
        let range = ByteRange { low: a.min(b), high: bounded.then_some(a.max(b)) };
        prop_assume!(range.high != Some(range.low)); // empty: it cannot be written
        prop_assert_eq!(parse_range(&range_text(range)), Ok(range));
    }

    #[test]
    fn a_range_contains_what_its_text_says(a in sizes(), b in sizes(), kind in 0..6) {
        let (low, high) = (a.min(b), a.max(b));
        let (l, h) = (size_text(low), size_text(high));
        let (text, says): (String, Box<dyn Fn(u64) -> bool>) = match kind {
            0 => (format!("{l}..{h}"), Box::new(|n| (low..high).contains(&n))),
            1 => (format!("{l}..={h}"), Box::new(|n| (low..=high).contains(&n))),
            2 => (format!("..{h}"), Box::new(|n| n < high)),
            3 => (format!("..={h}"), Box::new(|n| n <= high)),
            4 => (format!("{l}.."), Box::new(|n| n >= low)),
            _ => (l, Box::new(|n| n == low)),
        };
        let probes = [low, high].into_iter().flat_map(|n| {
            [n.checked_sub(1), Some(n), n.checked_add(1)]
        });
        let probes: Vec<u64> = probes.flatten().chain([0, u64::MAX]).collect();
        match parse_range(&text) {
            Ok(range) => for n in probes {
                prop_assert_eq!(range.contains(n), says(n), "{} at {}", &text, n);
            },
            Err(e) => prop_assert!(!probes.into_iter().any(says), "{}: {}", text, e),
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[0-9.=BKMGikb -]{0,24}|\\PC{0,12}") {
        if let Ok(range) = parse_range(&text) {
            prop_assert_eq!(parse_range(&range_text(range)), Ok(range));
        }
    }
}
