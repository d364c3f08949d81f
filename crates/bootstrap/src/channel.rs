//! The control plane of ranks that met by [`connect`](crate::connect).

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossover_core::bootstrap::{Bootstrap, BootstrapError};

use crate::descriptors;
use crate::error::Failure;
use crate::exchange::{Call, Link, Parcel};
use crate::frame::MAX_DESCRIPTORS;
use crate::identity::Identity;
use crate::split::{self, Whole};

/// A star through rank 0 over Unix or TCP sockets. After a failure every call returns it.
/// Dropping it closes its sockets, which never blocks.
pub(crate) struct Channel {
    rank: u32,
    deadline: Duration,
    identities: Vec<Identity>,
    carries_descriptors: bool,
    state: Mutex<State>,
}

struct State {
    link: Link,
    next: u64,
    broken: Option<Failure>,
}

impl Channel {
    /// `carries_descriptors` where the link's sockets are Unix sockets.
    pub(crate) fn new(
        rank: u32,
        deadline: Duration,
        identities: Vec<Identity>,
        carries_descriptors: bool,
        link: Link,
    ) -> Self {
        let state = Mutex::new(State { link, next: 1, broken: None });
        Channel { rank, deadline, identities, carries_descriptors, state }
    }

    fn exchange(
        &self,
        step: &str,
        mine: Result<Parcel, Failure>,
        ended: &dyn Fn() -> Option<String>,
    ) -> Result<Vec<Parcel>, BootstrapError> {
        let until = Instant::now() + self.deadline;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(broken) = &state.broken {
            return Err(broken.clone().into());
        }
        let call = Call { seq: state.next, step, deadline: self.deadline, until, ended };
        state.next += 1;
        let all = match mine {
            Ok(mine) => state.link.exchange(&call, mine),
            Err(failure) => {
                state.link.tell(&failure);
                Err(failure)
            }
        };
        match all {
            Ok(all) if all.len() == self.identities.len() => Ok(all),
            Ok(all) => {
                let what = format!("{} parts for {} ranks", all.len(), self.identities.len());
                let failure = Failure::Garbled { rank: 0, step: step.to_owned(), what };
                Err(state.broken.insert(failure).clone().into())
            }
            Err(failure) => Err(state.broken.insert(failure).clone().into()),
        }
    }

    fn duplicate(&self, step: &str, mine: &[BorrowedFd<'_>]) -> Result<Vec<OwnedFd>, Failure> {
        let no = |why| Failure::NoDescriptors { step: step.to_owned(), why };
        if mine.len() > MAX_DESCRIPTORS {
            let rank = self.rank;
            return Err(no(format!(
                "rank {rank} gives {}, the most is {MAX_DESCRIPTORS}",
                mine.len()
            )));
        }
        let own: Result<_, _> = mine.iter().map(BorrowedFd::try_clone_to_owned).collect();
        own.map_err(|e| no(format!("rank {} cannot duplicate one: {e}", self.rank)))
    }
}

impl Bootstrap for Channel {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn world(&self) -> u32 {
        self.identities.len() as u32
    }

    fn deadline(&self) -> Duration {
        self.deadline
    }

    fn all_gather(&self, step: &str, mine: &[u8]) -> Result<Vec<Vec<u8>>, BootstrapError> {
        self.all_gather_unless(step, mine, &|| None)
    }

    fn all_gather_unless(
        &self,
        step: &str,
        mine: &[u8],
        ended: &dyn Fn() -> Option<String>,
    ) -> Result<Vec<Vec<u8>>, BootstrapError> {
        let mine = Parcel { body: mine.to_vec(), descriptors: Vec::new() };
        let all = self.exchange(step, Ok(mine), ended)?;
        Ok(all.into_iter().map(|parcel| parcel.body).collect())
    }

    fn all_gather_fds(
        &self,
        step: &str,
        mine: &[BorrowedFd<'_>],
    ) -> Result<Vec<Vec<OwnedFd>>, BootstrapError> {
        if !self.carries_descriptors {
            return descriptors::all_gather(self, &self.identities, step, mine);
        }
        let own = self.duplicate(step, mine);
        let mine = own.map(|descriptors| Parcel { body: Vec::new(), descriptors });
        let all = self.exchange(step, mine, &|| None)?;
        Ok(all.into_iter().map(|parcel| parcel.descriptors).collect())
    }

    fn split(&self, step: &str, color: u32) -> Result<Box<dyn Bootstrap>, BootstrapError> {
        let (reached, folder) = {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            (state.link.reached(), state.link.folder())
        };
        let (identities, local) = (&self.identities[..], self.carries_descriptors);
        split::split(Whole { boot: self, identities, local, folder, reached }, step, color)
    }
}
