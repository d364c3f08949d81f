//! Sizes and ranges as policies write them: `64KiB`, `..64KiB` (below), `..=64KiB` (up to and
//! with), `1B..=64KiB`, `1MiB..`, `any`.
//!
//! A unit must be written, and only those whose value nobody disputes: one engine's `KB` is 1000
//! bytes and the next one's is 1024.

use crossover_core::bytes::UNITS;
pub use crossover_core::bytes::{range_text, size_text};
use crossover_core::policy::ByteRange;

use crate::diagnostic::Code;

/// A text that is no size, or no range of sizes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BytesError {
    /// `64K`, `64KB`: 1000 or 1024?
    #[error("the unit of `{written}` may mean a power of 1000 or of 1024: write `{fix}`")]
    Ambiguous {
        /// What was written.
        written: String,
        /// What to write.
        fix: String,
    },
    /// No unit.
    #[error("`{written}` has no unit: write `{fix}`")]
    Bare {
        /// What was written.
        written: String,
        /// What to write.
        fix: String,
    },
    /// No size is inside.
    #[error("no size is inside `{written}`: {why}")]
    Empty {
        /// What was written.
        written: String,
        /// Why not.
        why: &'static str,
    },
    /// Not as this language writes it, but clear.
    #[error("`{written}` is not how it is written: write `{fix}`")]
    Otherwise {
        /// What was written.
        written: String,
        /// What to write.
        fix: String,
    },
    /// Not a size at all.
    #[error("`{written}` is no size: {why}")]
    Malformed {
        /// What was written.
        written: String,
        /// What is expected.
        why: &'static str,
    },
    /// More than 64 bits hold.
    #[error("`{written}` is more than 64 bits hold")]
    Overflow {
        /// What was written.
        written: String,
    },
}

impl BytesError {
    /// The code of a diagnostic about it.
    pub fn code(&self) -> Code {
        match self {
            BytesError::Empty { .. } => Code::EmptyRange,
            _ => Code::Size,
        }
    }
}

/// Reads a range of sizes.
///
/// # Errors
///
/// It is none, a size in it is none, or no size is inside.
pub fn parse_range(text: &str) -> Result<ByteRange, BytesError> {
    if text == "any" {
        return Ok(ByteRange::ANY);
    }
    if let Some(fix) = as_range(text).filter(|fix| parse_range(fix).is_ok()) {
        return Err(BytesError::Otherwise { written: text.to_owned(), fix });
    }
    let Some((low, high)) = text.split_once("..") else {
        let low = parse_size(text)?;
        // The greatest size has none beyond it.
        return Ok(ByteRange { low, high: low.checked_add(1) });
    };
    let malformed = |why| Err(BytesError::Malformed { written: text.to_owned(), why });
    let empty = |why| Err(BytesError::Empty { written: text.to_owned(), why });
    let (inclusive, high) = match high.strip_prefix('=') {
        Some(high) => (true, high),
        None => (false, high),
    };
    if high.is_empty() && (inclusive || low.is_empty()) {
        return malformed("write a bound, or `any`");
    }
    let low = if low.is_empty() { 0 } else { parse_size(low)? };
    if high.is_empty() {
        return Ok(ByteRange { low, high: None });
    }
    match (parse_size(high)?, inclusive) {
        (high, false) if low == high => empty("`..` excludes its end; `..=` includes it"),
        (high, _) if low > high => empty("its end lies before its start"),
        (high, true) => Ok(ByteRange { low, high: high.checked_add(1) }),
        (high, false) => Ok(ByteRange { low, high: Some(high) }),
    }
}

/// Reads a size.
///
/// # Errors
///
/// It is none.
pub fn parse_size(text: &str) -> Result<u64, BytesError> {
    let written = || text.to_owned();
    let malformed = |why| Err(BytesError::Malformed { written: written(), why });
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    if number.is_empty() {
        return malformed("a size is a whole number and a unit, such as `64KiB`");
    }
    let Ok(number) = number.parse::<u64>() else {
        return Err(BytesError::Overflow { written: written() });
    };
    if let Some((_, scale)) = UNITS.iter().find(|(name, _)| *name == unit) {
        return number
            .checked_mul(*scale)
            .ok_or_else(|| BytesError::Overflow { written: written() });
    }
    match unit.to_ascii_uppercase().as_str() {
        "" => Err(BytesError::Bare { written: written(), fix: size_text(number) }),
        "K" | "KB" => ambiguous(text, number, "KiB"),
        "M" | "MB" => ambiguous(text, number, "MiB"),
        "G" | "GB" => ambiguous(text, number, "GiB"),
        fraction if fraction.starts_with('.') => {
            malformed("it has a fraction; write it in a smaller unit")
        }
        _ => match UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit.trim())) {
            Some((unit, _)) => {
                Err(BytesError::Otherwise { written: written(), fix: format!("{number}{unit}") })
            }
            None => malformed("the units are `B`, `KiB`, `MiB` and `GiB`, right behind the number"),
        },
    }
}

/// What one who writes `<=64KiB`, `0-64KiB` or `>=1MiB` means, of sizes or counts; it may be
/// none. A range from nothing has no start.
pub(crate) fn as_range(text: &str) -> Option<String> {
    let text = text.trim();
    for (sign, before, behind) in [("<=", "..=", ""), (">=", "", ".."), ("<", "..", "")] {
        if let Some(bound) = text.strip_prefix(sign) {
            return Some(format!("{before}{}{behind}", bound.trim()));
        }
    }
    let (low, high) = text.split_once('-').filter(|(low, _)| !low.is_empty())?;
    let low = if matches!(low.trim(), "0" | "0B") { "" } else { low.trim() };
    Some(format!("{low}..={}", high.trim()))
}

fn ambiguous(text: &str, number: u64, unit: &str) -> Result<u64, BytesError> {
    Err(BytesError::Ambiguous { written: text.to_owned(), fix: format!("{number}{unit}") })
}
