//! Who is where, and which elements are whose: the same on every rank.

use crossover_core::backend::EnqueueError;
use crossover_core::bootstrap::ranks_in_words;
use crossover_core::call::Split;
use crossover_core::facts::GroupFacts;

/// Ranks by node, as many on each, in the order of ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    nodes: Vec<Vec<u32>>,
}

impl Layout {
    /// Of a group.
    ///
    /// # Errors
    ///
    /// In a sentence: nothing is across, or inside, or the nodes are not of one size.
    pub(crate) fn of(facts: &GroupFacts) -> Result<Layout, String> {
        Layout::new(facts.nodes().into_iter().map(|(_, ranks)| ranks).collect())
    }

    fn new(nodes: Vec<Vec<u32>>) -> Result<Layout, String> {
        let Some(first) = nodes.first().filter(|_| nodes.len() > 1) else {
            return Err("all ranks are on one node: nothing is across".to_owned());
        };
        if let Some(odd) = nodes.iter().find(|node| node.len() != first.len()) {
            return Err(format!(
                "the node of {} has {} and the node of {} has {}: nodes must have equally many",
                ranks_in_words(&first[..1]),
                first.len(),
                ranks_in_words(&odd[..1]),
                odd.len()
            ));
        }
        if first.len() == 1 {
            return Err("every node has one rank: nothing is inside".to_owned());
        }
        Ok(Layout { nodes })
    }

    /// The number of a rank's node, and its own number there.
    pub(crate) fn place(&self, rank: u32) -> (u32, u32) {
        let of_node = |(nth, node): (u32, &Vec<u32>)| {
            let at = node.iter().position(|one| *one == rank)?;
            Some((nth, at as u32))
        };
        (0..).zip(&self.nodes).find_map(of_node).unwrap_or_default()
    }

    /// The ranks of a rank's node, itself among them.
    pub(crate) fn inside(&self, rank: u32) -> Vec<u32> {
        self.nodes[self.place(rank).0 as usize].clone()
    }

    /// The ranks that have its number on their nodes, itself among them.
    pub(crate) fn across(&self, rank: u32) -> Vec<u32> {
        let at = self.place(rank).1 as usize;
        self.nodes.iter().map(|node| node[at]).collect()
    }
}

/// The most ranks of a node.
pub(crate) const MOST: usize = 16;

/// A tensor's elements over the ranks of a node, as evenly as they go: the first have one more.
pub(crate) struct Parts {
    counts: [usize; MOST],
    ranks: usize,
}

impl Parts {
    /// Of `count` elements over so many ranks, [`MOST`] at most.
    pub(crate) fn new(count: usize, ranks: usize) -> Parts {
        let (share, rest) = (count / ranks, count % ranks);
        let mut counts = [0; MOST];
        for (nth, part) in counts[..ranks].iter_mut().enumerate() {
            *part = share + usize::from(nth < rest);
        }
        Parts { counts, ranks }
    }

    /// How a call says so.
    pub(crate) fn split(&self) -> Split<'_> {
        let counts = &self.counts[..self.ranks];
        if counts[0] == counts[self.ranks - 1] { Split::Even } else { Split::PerRank(counts) }
    }

    /// The largest part.
    pub(crate) fn largest(&self) -> usize {
        self.counts[0]
    }

    /// Where a rank's part begins, and its elements.
    pub(crate) fn of(&self, nth: usize) -> (usize, usize) {
        (self.counts[..nth].iter().sum(), self.counts[nth])
    }
}

/// An error of a group within the group, as one of the group: by the group's own ranks and its call
/// `seq`, and saying where. `ranks` are those of the group within, in its order.
pub(crate) fn told(error: EnqueueError, place: &str, ranks: &[u32], seq: u64) -> EnqueueError {
    let whole = |rank: u32| ranks.get(rank as usize).copied().unwrap_or(rank);
    let named = |step: String, theirs: u64| format!("{place}, {step}, call {theirs} there");
    match error {
        EnqueueError::Aborted { step, seq: theirs, rank, reason } => {
            EnqueueError::Aborted { step: named(step, theirs), seq, rank: whole(rank), reason }
        }
        // It speaks of the whole group's ranks and calls already; but where an abort was heard of is
        // said by who heard of it.
        EnqueueError::Whole(error) => match *error {
            EnqueueError::Aborted { step, seq: theirs, rank, reason } => {
                EnqueueError::Aborted { step: named(step, theirs), seq, rank, reason }
            }
            error => error,
        },
        EnqueueError::Late { step, seq: theirs, ranks: late, waited } => {
            let ranks = late.into_iter().map(whole).collect();
            EnqueueError::Late { step: named(step, theirs), seq, ranks, waited }
        }
        EnqueueError::Lost { step, seq: theirs, rank, how } => {
            EnqueueError::Lost { step: named(step, theirs), seq, rank: whole(rank), how }
        }
        EnqueueError::Vendor { step, seq: theirs, call, text } => {
            EnqueueError::Vendor { step: named(step, theirs), seq, call, text }
        }
        EnqueueError::Mismatch { what, .. } => {
            let who = ranks_in_words(ranks);
            EnqueueError::Mismatch {
                seq,
                what: format!("{place} ({who}, numbered from 0): {what}"),
            }
        }
        EnqueueError::NotCommitted { .. } => EnqueueError::NotCommitted { seq },
        EnqueueError::NotPrepared { what, .. } => EnqueueError::NotPrepared { seq, what },
        EnqueueError::Uncommitted { why } => {
            EnqueueError::Uncommitted { why: format!("{place}: {why}") }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crossover_core::verdict::Verdict;

    use super::*;

    #[test]
    fn ranks_of_a_node_and_of_a_number_are_found_in_any_order() {
        let layout = Layout::new(vec![vec![0, 2, 5], vec![1, 3, 4]]).expect("three each");
        assert_eq!((layout.place(5), layout.place(3)), ((0, 2), (1, 1)));
        assert_eq!(layout.inside(4), [1, 3, 4]);
        assert_eq!(layout.across(4), [5, 4]);
        assert_eq!(layout.across(2), [2, 3]);
    }

    #[test]
    fn what_cannot_be_laid_out_is_said_with_its_numbers() {
        let why = |nodes: Vec<Vec<u32>>| Layout::new(nodes).expect_err("it cannot");
        assert!(why(vec![vec![0, 1]]).contains("one node: nothing is across"));
        assert!(why(vec![vec![0], vec![1]]).contains("one rank: nothing is inside"));
        let uneven = why(vec![vec![0, 2], vec![1, 3, 4]]);
        let words = "the node of rank 0 has 2 and the node of rank 1 has 3: nodes must have equally \
                     many";
        assert_eq!(uneven, words);
    }

    #[test]
    fn parts_are_as_even_as_they_go_and_cover_the_tensor() {
        for ranks in 1..=MOST {
            for count in [0, 1, ranks - 1, ranks, 1000, 1003] {
                let parts = Parts::new(count, ranks);
                let mut end = 0;
                for nth in 0..ranks {
                    let (at, own) = parts.of(nth);
                    assert_eq!(at, end);
                    assert!(own <= parts.largest() && own + 1 >= parts.largest());
                    end = at + own;
                }
                assert_eq!(end, count);
                assert_eq!(parts.split() == Split::Even, count % ranks == 0, "{count} {ranks}");
            }
        }
    }

    #[test]
    fn errors_name_ranks_of_the_whole_group_and_the_place() {
        let (step, waited) = ("all_gather".to_owned(), Duration::from_secs(2));
        let late = EnqueueError::Late { step, seq: 8, ranks: vec![0, 2], waited };
        let text = told(late, "inside its node", &[1, 3, 4], 5).to_string();
        let words = "inside its node, all_gather, call 8 there, call 5: still waiting for ranks 1 \
                     and 4 after 2.0s";
        assert_eq!(text, words);
        let mismatch = EnqueueError::Mismatch { seq: 1, what: "rank 1 has 3".to_owned() };
        let text = told(mismatch, "across nodes", &[2, 3], 5).to_string();
        let words = "call 5: ranks made different calls: across nodes (ranks 2 and 3, numbered from \
                     0): rank 1 has 3";
        assert_eq!(text, words);
    }

    #[test]
    fn what_the_whole_group_ended_with_is_not_counted_anew() {
        let within = |verdict: Verdict| {
            let error = verdict.of_the_whole().into_error("all_gather", 8);
            told(error, "across nodes", &[2, 3], 5)
        };
        let mismatch = Verdict::Mismatch { seq: 5, what: "rank 1 has 3".to_owned() };
        assert_eq!(within(mismatch.clone()), mismatch.into_error("", 0));
        let (step, how) = ("the watchdog".to_owned(), "gone".to_owned());
        let lost = Verdict::Lost { step, seq: 4, rank: 1, how };
        assert_eq!(within(lost.clone()), lost.into_error("", 0));
        let text = within(Verdict::aborted(1, "enough")).to_string();
        let words =
            "across nodes, all_gather, call 8 there, call 5: rank 1 aborted the group: enough";
        assert_eq!(text, words);
    }
}
