//! On which processors a rank runs, as a function of what is allowed and how the machine is built.
//!
//! Ranks that wait for one another with short pauses never sleep, and a scheduler leaves two that
//! started on one processor there: then a call takes a hundred times as long as it must, though
//! another processor idles. And a rank that runs far from its memory is slow in everything. So
//! each rank gets processors of its own, by these rules, the stronger first:
//!
//! 1. never a processor outside of those that are allowed;
//! 2. ranks share no processor, unless they outnumber them; then they take turns, evenly;
//! 3. ranks share no core, unless they outnumber the cores;
//! 4. a rank's processors are of one NUMA node, unless its threads need more than any node has
//!    and there are nodes to spare;
//! 5. ranks are spread evenly over the nodes, as far as each has room for their threads;
//! 6. ranks of one node get cores of each kind alike (those with two threads, and those with one).
//!
//! [`allowed`] and [`Machine::read`] tell the facts, [`share`] decides.

mod list;
mod machine;
mod spread;

use rustix::thread::{CpuSet, sched_getaffinity};

pub use self::list::list;
pub use self::machine::{Machine, Seat};
use self::spread::Place;

/// A rank of this node, and what it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Which of the node's ranks it is, from 0.
    pub rank: usize,
    /// How many ranks the node has.
    pub ranks: usize,
    /// How many threads each of them keeps busy; at least 1. It decides only which NUMA nodes
    /// have room for a rank: a share is never kept smaller than it can be.
    pub threads: usize,
}

/// The numbers of the processors that the calling thread may use, ascending; none where the kernel
/// does not tell.
pub fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|processor| set.is_set(*processor)).collect()
}

/// The processors of one rank, ascending, out of `allowed`. Equal arguments give equal shares, so
/// that each rank may work out its own.
///
/// ```
/// use crossover_bootstrap::binding::{Claim, Machine, Seat, share};
///
/// // Two cores of two threads each.
/// let machine: Machine = (0..4).map(|n| (n, Seat { node: 0, core: n % 2 })).collect();
/// let claim = Claim { rank: 1, ranks: 2, threads: 1 };
/// assert_eq!(share(&[0, 1, 2, 3], &machine, claim), [1, 3]);
/// ```
///
/// # Panics
///
/// If `allowed` is empty, `claim.rank` is not below `claim.ranks`, or `claim.threads` is 0.
pub fn share(allowed: &[usize], machine: &Machine, claim: Claim) -> Vec<usize> {
    let Claim { rank, ranks, threads } = claim;
    assert!(rank < ranks && threads > 0 && !allowed.is_empty(), "{claim:?} on {allowed:?}");
    let nodes = machine.nodes(allowed);
    let mut share = match spread::over(&nodes, ranks, threads) {
        Place::Turns => vec![spread::turn(&nodes, rank)],
        Place::Several => spread::several(&nodes, rank, ranks),
        Place::Within(counts) => spread::within(&nodes, &counts, rank),
    };
    share.sort_unstable();
    share
}

#[cfg(test)]
mod tests;
