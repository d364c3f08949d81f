//! Ranges of sizes, in order of precedence, to bands.

use crate::plan::table::{Band, Pick, Table};

/// A candidate, and the sizes that it serves where they are multiples of what it wants.
pub(super) struct Run {
    pub(super) low: u64,
    /// First size beyond; `None` is no bound.
    pub(super) high: Option<u64>,
    pub(super) pick: Pick,
}

/// Who serves which sizes. Earlier runs go first.
///
/// The bounds of all runs cut the sizes into intervals that no run ends inside. Each run adds
/// itself to the intervals that it covers, except where an earlier one serves every size that it
/// could: one that wants the same multiple, or a smaller one (multiples are powers of two). So an
/// interval gets at most one pick of each multiple, and since the intervals that are closed to a
/// multiple are skipped in one go, the work follows the runs and not what they overlap.
pub(super) fn paint(runs: &[Run]) -> Table {
    let mut starts: Vec<u64> = vec![0];
    starts.extend(runs.iter().flat_map(|run| [Some(run.low), run.high]).flatten());
    starts.sort_unstable();
    starts.dedup();
    let interval_at = |size: u64| starts.partition_point(|start| *start < size);
    let mut multiples: Vec<u8> = runs.iter().map(|run| run.pick.zeros).collect();
    multiples.sort_unstable();
    multiples.dedup();

    let mut open: Vec<Open> = multiples.iter().map(|_| Open::all(starts.len())).collect();
    let mut picks: Vec<(u32, Pick)> = Vec::new();
    for run in runs {
        let end = run.high.map_or(starts.len(), interval_at);
        let level = multiples.partition_point(|zeros| *zeros < run.pick.zeros);
        let mut at = open[level].first_from(interval_at(run.low));
        while at < end {
            picks.push((at as u32, run.pick));
            open[level..].iter_mut().for_each(|coarser| coarser.close(at));
            at = open[level].first_from(at + 1);
        }
    }
    picks.sort_by_key(|(interval, _)| *interval); // stable: precedence stays
    Table::new(&bands(&starts, &picks))
}

/// The intervals with their picks, those that are served alike in one.
fn bands<'a>(starts: &[u64], picks: &'a [(u32, Pick)]) -> Vec<Band<'a>> {
    let mut bands: Vec<Band<'_>> = Vec::new();
    let mut rest = picks;
    for (interval, &from) in (0..).zip(starts) {
        let own = rest.iter().take_while(|(at, _)| *at == interval).count();
        let (here, after) = rest.split_at(own);
        rest = after;
        let alike = |last: &Band<'_>| last.picks.iter().map(|p| p.1).eq(here.iter().map(|p| p.1));
        if !bands.last().is_some_and(alike) {
            bands.push(Band { from, picks: here });
        }
    }
    bands
}

/// Which intervals a run of some multiple can still add itself to: from each interval, a way to
/// the next open one, that gets shorter where it is walked (a disjoint-set forest).
struct Open {
    /// Itself, if open; one past the last where none is left.
    next: Vec<u32>,
}

impl Open {
    fn all(intervals: usize) -> Self {
        Open { next: (0..=intervals as u32).collect() }
    }

    fn first_from(&mut self, mut at: usize) -> usize {
        while self.next[at] as usize != at {
            let next = self.next[at] as usize;
            self.next[at] = self.next[next];
            at = next;
        }
        at
    }

    fn close(&mut self, at: usize) {
        if self.next[at] as usize == at {
            self.next[at] = at as u32 + 1;
        }
    }
}
