//! A world of one rank: no socket, no file, no thread.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use crossover_core::bootstrap::{Bootstrap, BootstrapError};

/// The only rank of its group.
#[derive(Clone, Debug)]
pub struct Solo {
    deadline: Duration,
}

impl Solo {
    /// `deadline` is only reported: nothing here waits.
    pub fn new(deadline: Duration) -> Self {
        Solo { deadline }
    }
}

impl Bootstrap for Solo {
    fn rank(&self) -> u32 {
        0
    }

    fn world(&self) -> u32 {
        1
    }

    fn deadline(&self) -> Duration {
        self.deadline
    }

    fn all_gather(&self, _: &str, mine: &[u8]) -> Result<Vec<Vec<u8>>, BootstrapError> {
        Ok(vec![mine.to_vec()])
    }

    fn all_gather_fds(
        &self,
        step: &str,
        mine: &[BorrowedFd<'_>],
    ) -> Result<Vec<Vec<OwnedFd>>, BootstrapError> {
        let own: Result<_, _> = mine.iter().map(BorrowedFd::try_clone_to_owned).collect();
        let own = own.map_err(|e| BootstrapError::NoDescriptors {
            step: step.to_owned(),
            why: format!("rank 0 cannot duplicate its own: {e}"),
        })?;
        Ok(vec![own])
    }

    fn split(&self, _: &str, _: u32) -> Result<Box<dyn Bootstrap>, BootstrapError> {
        Ok(Box::new(Solo::new(self.deadline / 2)))
    }
}
