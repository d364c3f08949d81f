//! Who serves which sizes, of one kind of call: the part of a plan that a call walks.

use crate::plan::Choice;
use crate::plan::index::Index;

/// Bands of sizes that are decided alike, ascending from 0.
///
/// Rows, one for each pick of each band. Those of one band stand side by side, so that they are
/// read from memory together; the last is tried first, since that is where a search ends.
pub(super) struct Table {
    /// Where each row's band starts.
    starts: Index,
    rows: Vec<Row>,
}

/// Serves sizes that are multiples of a power of two: those with so many zeros at their end. A
/// division would cost as much as the rest of a decision.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Pick {
    pub(super) candidate: u32,
    pub(super) offer: u16,
    pub(super) algorithm: u16,
    pub(super) zeros: u8,
}

/// From this size on, these picks, in this order.
pub(super) struct Band<'a> {
    pub(super) from: u64,
    /// The number before each is not looked at.
    pub(super) picks: &'a [(u32, Pick)],
}

/// A pick, flat: a row takes no more memory than it must.
struct Row {
    candidate: u32,
    offer: u16,
    algorithm: u16,
    zeros: u8,
    /// Is the row before it of the same band?
    more: bool,
}

/// The pick of a band that nobody serves: no size has so many zeros.
const NOBODY: Pick = Pick { candidate: 0, offer: 0, algorithm: 0, zeros: u8::MAX };

impl Table {
    /// The first band starts at 0.
    pub(super) fn new(bands: &[Band<'_>]) -> Self {
        let mut starts = Vec::new();
        let mut rows = Vec::new();
        for band in bands {
            let picks = if band.picks.is_empty() { &[(0, NOBODY)] } else { band.picks };
            for (at, (_, pick)) in picks.iter().rev().enumerate() {
                let Pick { candidate, offer, algorithm, zeros } = *pick;
                starts.push(band.from);
                rows.push(Row { candidate, offer, algorithm, zeros, more: at > 0 });
            }
        }
        Table { starts: Index::new(starts), rows }
    }

    /// Who serves this size. Allocates nothing.
    pub(super) fn serve(&self, bytes: u64) -> Option<Choice> {
        self.try_from(self.starts.find(bytes), bytes)
    }

    /// The bands: from which size on, who serves sizes that meet the multiples which `like` meets.
    pub(super) fn bands(&self, like: u64) -> impl Iterator<Item = (u64, Option<Choice>)> {
        let tried_first = |row: &usize| self.rows.get(row + 1).is_none_or(|after| !after.more);
        let starts = self.starts.sizes();
        (0..starts.len())
            .filter(tried_first)
            .map(move |row| (starts[row], self.try_from(row, like)))
    }

    fn try_from(&self, row: usize, bytes: u64) -> Option<Choice> {
        let zeros = bytes.trailing_zeros();
        let refuses = |row: &Row| u32::from(row.zeros) > zeros;
        // Most bands have one pick or two; which of two it is no processor can predict.
        let first = &self.rows[row];
        let mut at = row - usize::from(refuses(first) & first.more);
        while refuses(&self.rows[at]) {
            if !self.rows[at].more {
                return None;
            }
            at -= 1;
        }
        let Row { candidate, offer, algorithm, .. } = self.rows[at];
        Some(Choice::Serve { offer, algorithm, candidate })
    }
}
