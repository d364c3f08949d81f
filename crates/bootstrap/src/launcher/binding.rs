//! Which processors a rank may run on. Ranks that wait for one another with short pauses never sleep,
//! and a scheduler leaves two that started on one processor there: then a call takes a hundred times
//! as long as it must, though another processor idles.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// How a job's ranks are spread over the processors that this process may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Bind {
    /// Each rank may use all of them.
    Nowhere,
    /// Each rank gets a share of its own; where ranks outnumber processors, they take turns.
    #[default]
    Spread,
}

/// The share of one rank out of `allowed`, in ascending order. Shares differ by at most one
/// processor and never leave `allowed`; with more ranks than processors, rank r shares processor
/// r modulo their number.
///
/// # Panics
///
/// If `allowed` is empty or `rank` is not below `ranks`.
pub fn share(allowed: &[usize], rank: usize, ranks: usize) -> &[usize] {
    assert!(rank < ranks && !allowed.is_empty(), "rank {rank} of {ranks} on {allowed:?}");
    if ranks > allowed.len() {
        let at = rank % allowed.len();
        return &allowed[at..=at];
    }
    &allowed[rank * allowed.len() / ranks..(rank + 1) * allowed.len() / ranks]
}

/// The set for a rank's process; `None` if it is left as it is.
pub(super) fn processors(bind: Bind, rank: u32, ranks: u32) -> Option<CpuSet> {
    if bind == Bind::Nowhere {
        return None;
    }
    let mine = sched_getaffinity(None).ok()?;
    let allowed: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| mine.is_set(*cpu)).collect();
    if allowed.is_empty() {
        return None;
    }
    let mut set = CpuSet::new();
    share(&allowed, rank as usize, ranks as usize).iter().for_each(|cpu| set.set(*cpu));
    Some(set)
}

/// Binds this thread, and what it starts. A system call and no more: fit to be run after a fork.
pub(super) fn bind(set: &CpuSet) -> std::io::Result<()> {
    Ok(sched_setaffinity(None, set)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cover_what_is_allowed_once() {
        // A container's mask, as in a thread of ours: two runs of processors.
        let allowed: Vec<usize> = (60..120).chain(180..240).collect();
        for ranks in 1..=allowed.len() {
            let shares: Vec<&[usize]> = (0..ranks).map(|r| share(&allowed, r, ranks)).collect();
            assert_eq!(shares.concat(), allowed, "{ranks} ranks");
            let sizes = shares.iter().map(|s| s.len());
            let (least, most) = (sizes.clone().min().unwrap(), sizes.max().unwrap());
            assert!(most - least <= 1, "{ranks} ranks");
        }
        assert_eq!(share(&[60, 61, 180, 181], 1, 2), [180, 181]);
    }

    #[test]
    fn ranks_that_outnumber_processors_take_turns() {
        let shares: Vec<&[usize]> = (0..5).map(|rank| share(&[3, 7], rank, 5)).collect();
        assert_eq!(shares, [[3], [7], [3], [7], [3]]);
    }
}
