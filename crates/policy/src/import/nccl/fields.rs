//! A line's fields. They have no quotes and no escapes.

use std::ops::Range;

use crate::import::findings::{Findings, short};

/// The columns, in their fixed order. The last two may be absent.
pub(super) const COLUMNS: [&str; 10] = [
    "collective_type",
    "min_bytes",
    "max_bytes",
    "algorithm",
    "protocol",
    "channels",
    "nNodes",
    "nRanks",
    "numPipeOps",
    "regBuff",
];

/// How many must be there.
pub(super) const REQUIRED: usize = 8;

/// Without the blanks around it.
pub(super) struct Field<'t> {
    pub(super) text: &'t str,
    pub(super) span: Range<usize>,
}

/// The fields of a line that starts at this byte; at least one.
pub(super) fn fields(start: usize, line: &str) -> Vec<Field<'_>> {
    let mut at = start;
    line.split(',')
        .map(|whole| {
            let text = whole.trim();
            let from = at + (whole.len() - whole.trim_start().len());
            at += whole.len() + 1;
            Field { text, span: from..from + text.len() }
        })
        .collect()
}

impl Field<'_> {
    /// A size in bytes. The plug-in takes plain numbers, and whatever precedes something else.
    pub(super) fn size(&self, findings: &mut Findings<'_>, column: &str) -> Option<u64> {
        let digits = !self.text.is_empty() && self.text.bytes().all(|b| b.is_ascii_digit());
        match self.text.parse() {
            Ok(size) if digits => Some(size),
            _ => {
                let message =
                    format!("`{column}` is a number of bytes, not `{}`", short(self.text));
                let help = "write it out, such as 65536; NCCL's plug-in would take the digits in \
                            front alone";
                findings.error(self.span.clone(), message, help);
                None
            }
        }
    }

    /// A number from `least` to `greatest`; `None` within if it is -1.
    pub(super) fn count(
        &self,
        findings: &mut Findings<'_>,
        column: &str,
        least: u32,
        greatest: u32,
    ) -> Option<Option<u32>> {
        match self.text.parse::<i64>() {
            Ok(-1) => return Some(None),
            Ok(count) if (i64::from(least)..=i64::from(greatest)).contains(&count) => {
                return u32::try_from(count).ok().map(Some);
            }
            _ => {}
        }
        let most = if greatest == u32::MAX { String::new() } else { format!(" to {greatest}") };
        let text = short(self.text);
        let message = format!("`{column}` is a number from {least}{most}, or -1, not `{text}`");
        let help =
            "-1 is any; NCCL's plug-in would take the digits in front alone, and 0 for a word";
        findings.error(self.span.clone(), message, help);
        None
    }
}
