//! The control plane: small, blocking, host-side exchanges between the ranks of one group.
//!
//! Engines may bring their own. Everything else that ranks agree on (votes, minima, equality) is
//! built on [`Bootstrap::all_gather`] by [`agreement`](crate::agreement).

use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

/// A channel that one group's ranks meet over.
///
/// Every method is a collective: all ranks call it in the same order with the same `step`. No
/// method may wait longer than [`Bootstrap::deadline`], and a quarter of it more to be told who is
/// missing; an implementation that cannot promise that must not be used.
pub trait Bootstrap: Send + Sync {
    /// This rank.
    fn rank(&self) -> u32;

    /// Number of ranks.
    fn world(&self) -> u32;

    /// How long one exchange may take before it fails, naming who is awaited; no peer is given up before.
    fn deadline(&self) -> Duration;

    /// Everyone's bytes, in rank order.
    ///
    /// `step` says what the exchange is for; it travels with the bytes, so that ranks that are at
    /// different steps learn so instead of exchanging one thing for another.
    ///
    /// # Errors
    ///
    /// A peer is gone, is late, or is at another step.
    fn all_gather(&self, step: &str, mine: &[u8]) -> Result<Vec<Vec<u8>>, BootstrapError>;

    /// [`Bootstrap::all_gather`], given up once `ended` says why the ranks have no more to exchange,
    /// which is that their group has ended: it is asked from time to time, by a rank that waits. A channel
    /// that cannot give up waits as ever.
    ///
    /// # Errors
    ///
    /// As for [`Bootstrap::all_gather`]; and where it has ended, on every rank, that a rank which was told so
    /// was lost, and what it was told.
    fn all_gather_unless(
        &self,
        step: &str,
        mine: &[u8],
        ended: &dyn Fn() -> Option<String>,
    ) -> Result<Vec<Vec<u8>>, BootstrapError> {
        let _ = ended;
        self.all_gather(step, mine)
    }

    /// Everyone's file descriptors, in rank order; the own ones are duplicated. A rank may give
    /// none.
    ///
    /// # Errors
    ///
    /// As for [`Bootstrap::all_gather`], or [`BootstrapError::NoDescriptors`] if this channel
    /// cannot carry them; then it fails on every rank.
    fn all_gather_fds(
        &self,
        step: &str,
        mine: &[BorrowedFd<'_>],
    ) -> Result<Vec<Vec<OwnedFd>>, BootstrapError>;

    /// A control plane for the ranks of equal `color` among themselves, in the order that they have
    /// here: its rank 0 is the lowest of them. It fails on its own and lives on its own. An exchange
    /// over it has half of this one's deadline: what a part waited for in vain it tells the whole
    /// before the whole has waited for the part. A channel that has no such parts need not have any.
    ///
    /// # Errors
    ///
    /// As for [`Bootstrap::all_gather`], or [`BootstrapError::NoSplit`] if some part cannot meet;
    /// then it fails on every rank of every part.
    fn split(&self, step: &str, color: u32) -> Result<Box<dyn Bootstrap>, BootstrapError> {
        let _ = color;
        // The same sentence on every rank.
        let (rank, step) = (0, step.to_owned());
        let why = "this control plane makes none".to_owned();
        Err(BootstrapError::NoSplit { rank, step, why })
    }
}

/// An exchange failed. The sentence says who, at which step, and after how long.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BootstrapError {
    /// Ranks are at different steps: they do not run the same sequence of calls.
    #[error(
        "rank {rank} is at step `{theirs}` while rank {me} is at step `{mine}`: every rank must form the same groups in the same order"
    )]
    DifferentSteps {
        /// The rank that speaks.
        me: u32,
        /// Its step.
        mine: String,
        /// The other rank.
        rank: u32,
        /// The other's step.
        theirs: String,
    },
    /// A peer closed its connection, or its process is gone.
    #[error("rank {rank} was lost at step `{step}`: {how}")]
    Lost {
        /// Who.
        rank: u32,
        /// During what.
        step: String,
        /// What was seen, such as `connection closed`.
        how: String,
    },
    /// A peer did not come in time.
    #[error("step `{step}`: still waiting for {} after {waited:.1?}", ranks_in_words(ranks))]
    Missing {
        /// The ranks that did not come.
        ranks: Vec<u32>,
        /// During what.
        step: String,
        /// For how long.
        waited: Duration,
    },
    /// This channel cannot carry file descriptors.
    #[error("step `{step}`: this control plane cannot pass file descriptors: {why}")]
    NoDescriptors {
        /// During what.
        step: String,
        /// Why not.
        why: String,
    },
    /// This channel cannot make a channel for each part of its ranks.
    #[error("step `{step}`: rank {rank} has no control plane for its part of the ranks: {why}")]
    NoSplit {
        /// The lowest rank that has none.
        rank: u32,
        /// During what.
        step: String,
        /// Why not.
        why: String,
    },
    /// A frame that no peer of this program would send.
    #[error("step `{step}`: rank {rank} sent {what}")]
    Garbled {
        /// Who.
        rank: u32,
        /// During what.
        step: String,
        /// What came.
        what: String,
    },
}

/// Of more ranks than this, the rest is counted: a sentence stays one that can be read.
const NAMED: usize = 16;

/// "rank 3", "ranks 1 and 3", "ranks 1, 2 and 3"; of many, the first and how many more.
pub fn ranks_in_words(ranks: &[u32]) -> String {
    let named = &ranks[..ranks.len().min(NAMED)];
    let words: Vec<String> = named.iter().map(u32::to_string).collect();
    if ranks.len() > NAMED {
        return format!("ranks {} and {} more", words.join(", "), ranks.len() - NAMED);
    }
    match words.as_slice() {
        [] => "no rank".to_owned(),
        [one] => format!("rank {one}"),
        [head @ .., last] => format!("ranks {} and {last}", head.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::ranks_in_words;

    #[test]
    fn many_ranks_are_counted_not_listed() {
        let told = |world: u32| ranks_in_words(&(1..world).collect::<Vec<_>>());
        assert_eq!(told(1), "no rank");
        assert_eq!(told(2), "rank 1");
        assert_eq!(told(4), "ranks 1, 2 and 3");
        assert!(told(17).ends_with(", 15 and 16"), "{}", told(17));
        let many = told(65_536);
        assert!(many.starts_with("ranks 1, 2, 3, "), "{many}");
        assert!(many.ends_with(", 16 and 65519 more"), "{many}");
    }
}
