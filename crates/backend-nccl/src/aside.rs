//! What may never return is run on a thread of its own, and awaited for so long and no longer.
//!
//! The library can be told not to block instead: every call would then go through a thread that
//! the library starts for it, and the caller would have to ask until it is enqueued. That costs
//! every call of the group's life, where a thread here costs one call of its beginning or end.

use std::sync::mpsc;
use std::time::Duration;

use crossover_core::agreement::StepError;
use serde::{Deserialize, Serialize};

use crate::parting;

/// How a rank fared with something that ranks do together: what it tells the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Fared {
    /// It is done.
    Well,
    /// It failed here.
    Failed(String),
    /// It has not returned: most likely it waits for a rank that failed, or never came.
    Late(String),
}

impl From<StepError> for Fared {
    fn from(why: StepError) -> Self {
        Fared::Failed(why.0)
    }
}

impl From<Fared> for StepError {
    fn from(fared: Fared) -> Self {
        match fared {
            Fared::Well => StepError::new("nothing is wrong"),
            Fared::Failed(why) | Fared::Late(why) => StepError(why),
        }
    }
}

/// Runs `work` on another thread. If it is not done within the deadline it is left behind: when it
/// returns after all, what it made is dropped.
///
/// # Errors
///
/// There is no thread to be had, or `work` panicked or was left behind.
pub(crate) fn within<T: Send + 'static>(
    deadline: Duration,
    what: &'static str,
    work: impl FnOnce() -> Result<T, Fared> + Send + 'static,
) -> Result<T, Fared> {
    Aside::begin(what, work)?.wait(deadline)
}

/// Work on another thread. It is left behind when this is dropped.
pub(crate) struct Aside<T> {
    what: &'static str,
    thread: parting::Thread,
    outcome: mpsc::Receiver<Result<T, Fared>>,
}

impl<T: Send + 'static> Aside<T> {
    /// # Errors
    ///
    /// There is no thread to be had.
    pub(crate) fn begin(
        what: &'static str,
        work: impl FnOnce() -> Result<T, Fared> + Send + 'static,
    ) -> Result<Aside<T>, Fared> {
        let (done, outcome) = mpsc::sync_channel(1);
        let started = parting::spawn(what, move || {
            // Nobody may listen any more: then what was made is dropped here.
            if let Err(mpsc::SendError(Err(Fared::Failed(why)))) = done.send(work()) {
                tracing::warn!("{what}, for which nobody waits any more: {why}");
            }
        });
        match started {
            Ok(thread) => Ok(Aside { what, thread, outcome }),
            Err(e) => Err(Fared::Failed(format!("no thread for {what}: {e}"))),
        }
    }

    /// The end of the process does not wait for what holds it up.
    pub(crate) fn leave(&self) {
        self.thread.leave();
    }

    /// What became of it, or [`Fared::Late`]: then it may be asked again.
    ///
    /// # Errors
    ///
    /// The work's, or it panicked or is not done within the deadline.
    pub(crate) fn wait(&self, deadline: Duration) -> Result<T, Fared> {
        let what = self.what;
        match self.outcome.recv_timeout(deadline) {
            Ok(fared) => fared,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                Err(Fared::Late(format!("{what} has not returned after {deadline:.1?}")))
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                Err(Fared::Failed(format!("{what} panicked")))
            }
        }
    }
}

/// The rank that is to blame, and why: one where it failed, rather than one that waited for it.
pub(crate) fn blamed(all: &[Fared]) -> Option<(u32, String)> {
    let failed = (0..).zip(all).find_map(|(rank, fared)| match fared {
        Fared::Failed(why) => Some((rank, why.clone())),
        _ => None,
    });
    let late = || {
        (0..).zip(all).find_map(|(rank, fared)| match fared {
            Fared::Late(why) => Some((rank, why.clone())),
            _ => None,
        })
    };
    failed.or_else(late)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_return_is_left_behind_and_its_work_dropped() {
        struct Told(mpsc::Sender<()>);
        impl Drop for Told {
            fn drop(&mut self) {
                let _ = self.0.send(());
            }
        }
        let (tell, told) = mpsc::channel();
        let (go, gone) = mpsc::channel::<()>();
        let late = within(Duration::from_millis(20), "a nap", move || {
            let _ = gone.recv();
            Ok(Told(tell))
        });
        let Err(Fared::Late(why)) = late else { panic!("it cannot be done") };
        assert_eq!(why, "a nap has not returned after 20.0ms");
        drop(go);
        told.recv_timeout(Duration::from_secs(10)).expect("it is dropped");
        let panicked =
            within(Duration::from_secs(10), "a leap", || -> Result<(), _> { panic!("too far") });
        assert_eq!(panicked.err(), Some(Fared::Failed("a leap panicked".to_owned())));
    }

    #[test]
    fn who_failed_is_blamed_before_who_waited_for_it() {
        let late = Fared::Late("late".to_owned());
        let failed = Fared::Failed("broken".to_owned());
        assert_eq!(blamed(&[Fared::Well, Fared::Well]), None);
        assert_eq!(blamed(&[late.clone(), failed, Fared::Well]), Some((1, "broken".to_owned())));
        assert_eq!(blamed(&[Fared::Well, late]), Some((1, "late".to_owned())));
    }
}
