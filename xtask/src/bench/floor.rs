//! The least time of a cell, from what the machine was seen to do.
//!
//! N ranks on P processors, S bytes of input a rank. Whatever the protocol, a processor must
//!
//! - wait for a cache line of another (`alpha`), and, where ranks take turns, pass itself on at least
//!   once for each rank but one (`switch`);
//! - *read* what another has written. To gather, everything of the ranks elsewhere: (N - N/P) S. To
//!   broadcast, S, on all processors but one. To reduce, each element needs P - 1 messages between
//!   processors until one has the sum, and as many until all have: a fraction of (P - 1)/P of S a
//!   processor to scatter, and twice that for all;
//! - *write* its ranks' outputs: N/P times as many bytes as an output has (a broadcast's root writes
//!   none, the other processors do);
//! - *add*: N - 1 sums of each element, shared by P processors.
//!
//! A processor may do all of these at once, so that the least time is the longest of them and not their
//! sum; and rates are the best that were seen at this size or a smaller one, since a protocol may go by
//! chunks. Real protocols also copy their input to where others can read it.

use super::record::{Record, Term};
use super::report::median;

/// Terms of a number of ranks; medians over the rounds.
pub(super) struct Floor<'r> {
    terms: Vec<&'r Term>,
    processors: u32,
    ranks: u32,
}

impl<'r> Floor<'r> {
    pub(super) fn new(record: &'r Record, ranks: u32) -> Floor<'r> {
        let processors = record.processors.min(ranks);
        let terms = record.terms.iter().filter(|term| term.ranks == processors).collect();
        Floor { terms, processors, ranks }
    }

    /// Microseconds; `None` where the terms were not measured.
    pub(super) fn least(&self, op: &str, bytes: u64) -> Option<f64> {
        let (n, p, s) = (f64::from(self.ranks), f64::from(self.processors), bytes as f64);
        let (read, write, add) = match op {
            "all_reduce" => (2.0 * (p - 1.0) / p * s, n / p * s, (n - 1.0) / p * s),
            "reduce_scatter" => ((p - 1.0) / p * s, s / p, (n - 1.0) / p * s),
            "all_gather" => ((n - n / p) * s, n / p * n * s, 0.0),
            "broadcast" => (s, n / p * s, 0.0),
            _ => return None,
        };
        let switches = (n / p).ceil() - 1.0;
        let longest = [
            self.constant("alpha")?,
            self.time("read", bytes, read),
            self.time("write", bytes, write),
            self.time("add", bytes, add),
        ];
        let longest = longest.into_iter().fold(0.0, f64::max);
        Some((longest + switches * self.constant("switch")?) / 1e3)
    }

    /// Nanoseconds.
    pub(super) fn constant(&self, name: &str) -> Option<f64> {
        self.of(name, 0)
    }

    /// Nanoseconds for so many bytes of work in a call of this size; none where no rate was seen.
    fn time(&self, name: &str, size: u64, bytes: f64) -> f64 {
        let sizes = self.terms.iter().filter(|term| term.name == name && term.bytes <= size);
        let rates = sizes.filter_map(|term| self.of(name, term.bytes));
        let best = rates.fold(0.0, f64::max);
        if best > 0.0 { bytes / best } else { 0.0 }
    }

    /// GB/s at a size.
    pub(super) fn of(&self, name: &str, bytes: u64) -> Option<f64> {
        let terms = self.terms.iter().filter(|term| term.name == name && term.bytes == bytes);
        median(terms.map(|term| term.value).collect())
    }
}
