//! Waiting for another rank, and on which processors the ranks run.

use anyhow::{Context as _, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, sched_yield};

/// Looks before a rank that shares its processor gives it away.
const LOOKS: u32 = 100;
/// Looks before one that does not pauses between them: a pause takes as long as a line takes to come.
const EAGER: u32 = 2000;

/// How a rank waits: it spins where each has a processor of its own; else it soon lets others run.
#[derive(Clone, Copy)]
pub(crate) struct Wait {
    pub(crate) crowded: bool,
}

impl Wait {
    #[inline(always)]
    pub(crate) fn until(self, arrived: impl Fn() -> bool) {
        let mut looks = 0;
        while !arrived() {
            looks += 1;
            if self.crowded && looks >= LOOKS {
                sched_yield();
                looks = 0;
            } else if looks >= EAGER {
                std::hint::spin_loop();
            }
        }
    }
}

/// The processors that this process may use, ascending.
pub(crate) fn allowed() -> Result<Vec<usize>> {
    let set = sched_getaffinity(None).context("the kernel does not tell which processors")?;
    Ok((0..CpuSet::MAX_CPU).filter(|processor| set.is_set(*processor)).collect())
}

/// Binds this thread to the processor of a rank.
pub(crate) fn bind(rank: usize, allowed: &[usize]) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(allowed[rank % allowed.len()]);
    sched_setaffinity(None, &set).with_context(|| format!("rank {rank} cannot be bound"))
}
