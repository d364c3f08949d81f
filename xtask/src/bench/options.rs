//! What `bench peers` can be asked for. A wrong wish is refused before anything is built or written.

use std::ops::RangeInclusive;

use anyhow::{Context as _, Result, ensure};
use clap::builder::PossibleValuesParser;

use super::peer;

/// As the loop has them: `Op` and `Dtype` in `tests/peers/src/call.rs`.
pub(super) const OPS: [&str; 4] = ["all_reduce", "all_gather", "reduce_scatter", "broadcast"];
pub(super) const DTYPES: [&str; 2] = ["f32", "bf16"];

/// As the loop has them: `SIZES` in `tests/peers/src/main.rs`, which are 8, and powers of 4 from 64.
const LEAST: u64 = 8;
const GREATEST: u64 = 64 << 20;

pub(super) fn contenders() -> PossibleValuesParser {
    peer::contenders().iter().map(|contender| contender.name).collect::<Vec<_>>().into()
}

/// Reads `8..65536`; the loop is given the text.
pub(super) fn sizes(text: &str) -> Result<String> {
    let bounds = text
        .split_once("..")
        .and_then(|(min, max)| Some((min.parse::<u64>().ok()?, max.parse::<u64>().ok()?)));
    let (min, max) = bounds.context("write MIN..MAX in bytes, such as 8..65536")?;
    ensure!(min <= max, "{min} is greater than {max}: the smallest size comes first");
    let is_measured = |bytes: &u64| (min..=max).contains(bytes);
    ensure!(
        measured().any(|bytes| is_measured(&bytes)),
        "no size from {min} to {max} is measured; there are 8, 64, 256, 1024 and so on, times 4, up to \
         {GREATEST}"
    );
    Ok(text.to_owned())
}

fn measured() -> impl Iterator<Item = u64> {
    let powers = std::iter::successors(Some(64), |bytes| Some(bytes * 4));
    [LEAST].into_iter().chain(powers.take_while(|bytes| *bytes <= GREATEST))
}

/// Reads `0..100`, nanoseconds.
pub(super) fn way(text: &str) -> Result<RangeInclusive<f64>> {
    let bounds =
        text.split_once("..").and_then(|(min, max)| Some((min.parse().ok()?, max.parse().ok()?)));
    let (min, max): (u32, u32) = bounds.context("write MIN..MAX in nanoseconds, such as 0..100")?;
    ensure!(min <= max, "{min} is greater than {max}: the shortest way comes first");
    Ok(f64::from(min)..=f64::from(max))
}

pub(super) fn milliseconds(text: &str) -> Result<f64> {
    let time = text.parse::<f64>().ok().filter(|time| time.is_finite() && *time > 0.0);
    time.context("write milliseconds, more than 0")
}

pub(super) fn at_least_one(text: &str) -> Result<u32> {
    let number = text.parse().context("write a whole number")?;
    ensure!(number >= 1, "it must be 1 at least");
    Ok(number)
}

pub(super) fn ranks(text: &str) -> Result<u32> {
    let ranks = text.parse().context("write a whole number")?;
    ensure!(ranks >= 2, "it takes 2 ranks at least: one alone has nobody to exchange with");
    Ok(ranks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_are_none_are_refused_with_the_reason() {
        let why = |text: &str| sizes(text).unwrap_err().to_string();
        assert_eq!(why("65536..8"), "65536 is greater than 8: the smallest size comes first");
        for text in ["", "8", "8..", "8KiB..64KiB", "-8..8"] {
            assert_eq!(why(text), "write MIN..MAX in bytes, such as 8..65536", "{text}");
        }
        // Between two sizes, below the least and beyond the greatest.
        for text in ["9..63", "0..7", "65..255", "67108865..99999999"] {
            assert!(why(text).starts_with("no size from "), "{text}");
        }
        for text in ["8..8", "64..64", "0..8", "67108864..67108864", "8..67108864"] {
            assert_eq!(sizes(text).unwrap(), text);
        }
    }

    #[test]
    fn a_way_is_a_range_of_nanoseconds() {
        assert_eq!(way("0..100").unwrap(), 0.0..=100.0);
        for text in ["", "100", "..100", "9..1", "-1..5"] {
            assert!(way(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_that_measure_nothing_are_refused() {
        for text in ["0", "-1", "x", "nan", "inf", ""] {
            assert!(milliseconds(text).is_err(), "{text}");
            assert!(at_least_one(text).is_err(), "{text}");
        }
        assert_eq!(milliseconds("0.5").unwrap(), 0.5);
        assert_eq!(at_least_one("1").unwrap(), 1);
        assert!(ranks("1").is_err());
        assert_eq!(ranks("2").unwrap(), 2);
    }
}
