//! Ranges of sizes and of ranks as UCC writes them.

use crossover_core::policy::ByteRange;

use super::{pieces, span};
use crate::import::findings::{Findings, short};
use crate::import::ranges::{Counts, inclusive};

/// `0-4k,8k-inf`: sizes, both ends inside; `None` if it is wrong, which is told.
pub(super) fn sizes(findings: &mut Findings<'_>, text: &str, at: usize) -> Option<Vec<ByteRange>> {
    let mut ranges = Vec::new();
    for (at, text) in pieces(text, at, ',') {
        if findings.is_too_much(ranges.len(), &span(at, text)) {
            return None;
        }
        let bounds = text.split_once('-').and_then(|(low, high)| Some((size(low)?, size(high)?)));
        let Some((low, high)) = bounds else {
            let message = format!("`{}` is no range of sizes", short(text));
            let help = "write `0-4k` or `1m-inf`; the units are b, k, m, g and t, of 1024 each";
            findings.error(span(at, text), message, help);
            return None;
        };
        if low >= high {
            let message = format!("`{}` does not end after its start", short(text));
            findings.error(
                span(at, text),
                message,
                "UCC refuses the whole string, in its log alone",
            );
            return None;
        }
        if text.contains(|c: char| c.is_ascii_alphabetic()) && !text.ends_with("-inf") {
            let message = "a unit is a power of 1024, as UCC has it: 4k are 4KiB";
            findings.note_once(span(at, text), message);
        }
        ranges.push(inclusive(low, high));
    }
    Some(ranges)
}

/// A size: digits and perhaps a unit; `inf` is beyond all.
fn size(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    if text == "inf" {
        return Some(u64::MAX);
    }
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let shift = match unit {
        "" | "b" => 0,
        "k" | "kb" => 10,
        "m" | "mb" => 20,
        "g" | "gb" => 30,
        "t" | "tb" => 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// `[2-8,16]`: numbers of ranks, both ends inside; `None` if it is wrong, which is told.
pub(super) fn teams(findings: &mut Findings<'_>, text: &str, at: usize) -> Option<Vec<Counts>> {
    let inner = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
    let mut teams: Vec<Counts> = Vec::new();
    for (at, text) in pieces(inner.unwrap_or(""), at + 1, ',') {
        if findings.is_too_much(teams.len(), &span(at, text)) {
            return None;
        }
        let count = |text: &str| match text {
            _ if text.eq_ignore_ascii_case("inf") => Some(u32::MAX),
            _ if text.bytes().all(|b| b.is_ascii_digit()) => text.parse().ok(),
            _ => None,
        };
        let (low, high) = text.split_once('-').unwrap_or((text, text));
        match (count(low), count(high)) {
            (Some(low), Some(high)) if low <= high && high >= 1 => {
                // Each number once: an entry is for a team or it is not.
                let mut parts = vec![Counts { low: low.max(1), high }];
                for before in &teams {
                    parts = parts.iter().flat_map(|part| part.split(*before).1).collect();
                }
                teams.extend(parts);
            }
            _ => {
                let message = format!("`{}` is no number of ranks", short(text));
                findings.error(span(at, text), message, "write `[8]`, `[2-8]` or `[2-4,16-inf]`");
                return None;
            }
        }
    }
    Some(teams)
}
