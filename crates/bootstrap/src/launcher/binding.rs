//! Which processors the ranks of a job may run on.

use std::path::Path;

use rustix::thread::{CpuSet, sched_setaffinity};

use crate::binding::{Claim, Machine, allowed, share};

/// How a job's ranks are spread over the processors that this process may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Bind {
    /// Each rank may use all of them.
    Nowhere,
    /// Each rank gets its [`share`]; where ranks outnumber processors, they take turns.
    #[default]
    Spread,
}

/// The set of each rank's process; `None` for one that is left as it is.
pub(super) fn sets(bind: Bind, ranks: u32, threads: u32) -> Vec<Option<CpuSet>> {
    let allowed = allowed();
    if bind == Bind::Nowhere || allowed.is_empty() {
        return vec![None; ranks as usize];
    }
    let machine = Machine::read(Path::new("/sys"), &allowed);
    let (ranks, threads) = (ranks as usize, threads as usize);
    let set = |rank| {
        let mut set = CpuSet::new();
        let share = share(&allowed, &machine, Claim { rank, ranks, threads });
        share.into_iter().for_each(|processor| set.set(processor));
        Some(set)
    };
    (0..ranks).map(set).collect()
}

/// Binds this thread, and what it starts. A system call and no more: fit to be run after a fork.
pub(super) fn bind(set: &CpuSet) -> std::io::Result<()> {
    Ok(sched_setaffinity(None, set)?)
}

#[cfg(test)]
mod tests {
    use crate::binding::{Claim, Machine, allowed, list, share};
    use crate::launcher::{Bind, Job};

    /// What the kernel lets a job's ranks run on, as a rank's shell sees it.
    fn ranks_on(bind: Bind, ranks: u32) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let script = format!(
            "sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status \
             > {}/$CROSSOVER_RANK",
            dir.path().display()
        );
        let outcome = Job::new(ranks, "sh", ["-c", &script]).bind(bind).run().unwrap();
        assert_eq!(outcome.code, 0);
        let line = |rank| std::fs::read_to_string(dir.path().join(format!("{rank}"))).unwrap();
        (0..ranks).map(|rank| line(rank).trim_end().to_owned()).collect()
    }

    #[test]
    fn ranks_run_on_their_shares() {
        let allowed = allowed();
        let machine = Machine::read("/sys".as_ref(), &allowed);
        let of = |rank| share(&allowed, &machine, Claim { rank, ranks: 3, threads: 1 });
        let shares: Vec<String> = (0..3).map(|rank| list(&of(rank))).collect();
        assert_eq!(ranks_on(Bind::Spread, 3), shares);
        assert_eq!(ranks_on(Bind::Nowhere, 2), [list(&allowed), list(&allowed)]);
    }
}
