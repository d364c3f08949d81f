//! Values that differ between ranks, values that are proven equal, and the only ways from the
//! first to the second.
//!
//! [`Local`] has no way out but a collective; [`Agreed`] carries the brand of the group that
//! agreed, so that one group's agreement cannot be used for another. A backend's set-up is written
//! against [`Setup`], whose every step ends in a vote: a failure on one rank cannot make that rank
//! alone leave, or stay.

mod settings;

use std::marker::PhantomData;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::bootstrap::{Bootstrap, BootstrapError};
use crate::settings::BackendSettings;

/// A value that may differ between ranks. No `Deref`, no comparison, no `Debug`.
pub struct Local<T>(T);

impl<T> Local<T> {
    /// Marks a value as this rank's own.
    pub fn new(value: T) -> Self {
        Local(value)
    }

    /// Changes it, locally. What `f` captures it owns, so that nothing gets out by a reference.
    pub fn map<U>(self, f: impl FnOnce(T) -> U + 'static) -> Local<U> {
        Local(f(self.0))
    }

    /// Puts two together.
    pub fn zip<U>(self, other: Local<U>) -> Local<(T, U)> {
        Local((self.0, other.0))
    }

    /// Only the core may look, where a vote has just been taken.
    pub(crate) fn into_inner(self) -> T {
        self.0
    }
}

impl<T, U> Local<(T, U)> {
    /// Takes two apart: both remain this rank's own.
    pub fn unzip(self) -> (Local<T>, Local<U>) {
        (Local(self.0.0), Local(self.0.1))
    }
}

/// A value that is proven equal on every rank of the group `'g`.
#[derive(Clone, Copy, Debug)]
pub struct Agreed<'g, T>(T, Brand<'g>);

/// Invariant in `'g`: no group's brand converts to another's.
type Brand<'g> = PhantomData<fn(&'g ()) -> &'g ()>;

impl<'g, T> Agreed<'g, T> {
    /// The value.
    pub fn get(&self) -> &T {
        &self.0
    }

    /// The value, by itself.
    pub fn into_inner(self) -> T {
        self.0
    }

    /// A pure function of it: a `fn` pointer captures nothing.
    pub fn map<U>(self, f: fn(T) -> U) -> Agreed<'g, U> {
        Agreed(f(self.0), PhantomData)
    }
}

/// What a step of a set-up may know of its own rank. Steps are local work: no exchange is
/// reachable from inside one.
pub struct Here<'a> {
    rank: u32,
    world: u32,
    patience: Duration,
    settings: &'a BackendSettings,
}

impl Here<'_> {
    /// This rank.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Number of ranks.
    pub fn world(&self) -> u32 {
        self.world
    }

    /// How long peers wait for this rank's vote once they have voted. Work that may take its time,
    /// and theirs not, ends well before, or the group does not form at all.
    pub fn patience(&self) -> Duration {
        self.patience
    }

    /// What the engine or the operator set for backends.
    pub fn settings(&self) -> &BackendSettings {
        self.settings
    }
}

/// Why one rank could not do a step, in one sentence without a full stop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StepError(pub String);

impl StepError {
    /// From anything that can be printed.
    pub fn new(why: impl ToString) -> Self {
        StepError(why.to_string())
    }
}

/// A set-up ended: a rank could not do a step (then every rank holds this same sentence), or the
/// control plane failed. Backends receive and return it; only [`Setup`] makes one.
#[derive(Debug)]
pub struct SetupError(pub(crate) SetupFailure);

#[derive(Debug)]
pub(crate) enum SetupFailure {
    Voted(StepFailed),
    /// A setting has a value that the backend does not take.
    Misset(StepFailed),
    ControlPlane(BootstrapError),
}

/// The outcome of a vote in which at least one rank said no; the same on every rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("rank {rank} could not {step}: {why}")]
pub struct StepFailed {
    /// The lowest rank that said no.
    pub rank: u32,
    /// What it was to do, as a verb phrase.
    pub step: String,
    /// Why it could not.
    pub why: String,
}

/// Shares the outcome of local work that every rank has done by itself, such as reading files:
/// either every rank keeps its value, or every rank learns of the lowest rank's failure.
///
/// # Errors
///
/// Some rank failed, or the control plane did.
pub fn all_or_none<T>(
    boot: &dyn Bootstrap,
    what: &str,
    mine: Result<T, StepError>,
) -> Result<T, AllOrNoneError> {
    let vote = mine.as_ref().map(|_| ()).map_err(|e| e.0.clone());
    let all: Vec<Ballot<()>> = gather(boot, what, &vote)?;
    match (mine, (0..).zip(all).find_map(|(rank, vote)| Some((rank, vote.err()?)))) {
        (Ok(value), None) => Ok(value),
        (mine, failed) => {
            let own = (boot.rank(), mine.err().map(|e| e.0).unwrap_or_default());
            let (rank, why) = failed.unwrap_or(own);
            Err(StepFailed { rank, step: what.to_owned(), why }.into())
        }
    }
}

/// What ranks did by themselves did not succeed everywhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AllOrNoneError {
    /// The control plane failed.
    #[error(transparent)]
    ControlPlane(#[from] BootstrapError),
    /// A rank failed.
    #[error(transparent)]
    Failed(#[from] StepFailed),
}

/// The ranks of group `'g` while they set something up together.
pub struct Setup<'g> {
    boot: &'g dyn Bootstrap,
    settings: &'g BackendSettings,
    brand: Brand<'g>,
    found: Vec<(String, Found)>,
}

/// What a set-up found out about one of its algorithms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Found {
    /// It cannot be had, and why.
    Without(String),
    /// It has room for so many input bytes per rank.
    Room(u64),
}

/// Runs `f` with a fresh group brand. Inside, exchanges are possible; what `f` returns cannot
/// carry the brand.
pub fn with_setup<R>(
    boot: &dyn Bootstrap,
    settings: &BackendSettings,
    f: impl for<'g> FnOnce(&mut Setup<'g>) -> R,
) -> R {
    f(&mut Setup { boot, settings, brand: PhantomData, found: Vec::new() })
}

impl<'g> Setup<'g> {
    /// Number of ranks.
    pub fn world(&self) -> u32 {
        self.boot.world()
    }

    /// This rank, which only a [`step`](Setup::step) can look at.
    pub fn rank(&self) -> Local<u32> {
        Local(self.boot.rank())
    }

    /// Does local work on every rank, then votes: either every rank has a result, or every rank
    /// has the same error. `what` is a verb phrase, as in "rank 2 could not `map the segment`".
    /// A panic in `work` counts as a failure. What it captures it owns, so that the rank does not
    /// get out by a reference.
    ///
    /// # Errors
    ///
    /// Some rank failed, or the control plane did.
    pub fn step<T, U>(
        &mut self,
        what: &str,
        input: Local<T>,
        work: impl FnOnce(&Here<'_>, T) -> Result<U, StepError> + 'static,
    ) -> Result<Local<U>, SetupError> {
        let result = self.attempt(input, work);
        let vote = result.as_ref().map(|_| ()).map_err(Clone::clone);
        self.gather::<()>(what, vote)?;
        match result {
            Ok(value) => Ok(Local(value)),
            Err(_) => unreachable!("the vote passed although this rank voted no"),
        }
    }

    /// Reads settings on every rank, then votes, as [`Setup::step`] does. A backend that is wrongly
    /// set is no backend that cannot be had: no other one replaces it, and the group does not form.
    ///
    /// # Errors
    ///
    /// Some rank has a value that `read` refuses, or the control plane failed.
    pub fn read<U: 'static>(
        &mut self,
        what: &str,
        read: fn(&BackendSettings) -> Result<U, StepError>,
    ) -> Result<Local<U>, SetupError> {
        self.step(what, Local(()), move |here, ()| read(here.settings())).map_err(|e| match e.0 {
            SetupFailure::Voted(failed) => SetupError(SetupFailure::Misset(failed)),
            other => SetupError(other),
        })
    }

    /// Does local work on every rank and exchanges its results; tagged, so that a failed rank's
    /// missing result is never mistaken for one.
    ///
    /// # Errors
    ///
    /// Some rank failed, or the control plane did.
    pub fn exchange<T, U: Serialize + DeserializeOwned>(
        &mut self,
        what: &str,
        input: Local<T>,
        work: impl FnOnce(&Here<'_>, T) -> Result<U, StepError> + 'static,
    ) -> Result<Agreed<'g, Vec<U>>, SetupError> {
        let result = self.attempt(input, work);
        Ok(Agreed(self.gather(what, result)?, PhantomData))
    }

    /// Passes each rank's descriptors to every rank.
    ///
    /// # Errors
    ///
    /// The control plane failed, or cannot carry descriptors; then the set-up fails by vote.
    pub fn exchange_fds(
        &mut self,
        what: &str,
        mine: Local<Vec<OwnedFd>>,
    ) -> Result<Local<Vec<Vec<OwnedFd>>>, SetupError> {
        let borrowed: Vec<BorrowedFd<'_>> = mine.0.iter().map(std::os::fd::AsFd::as_fd).collect();
        match self.boot.all_gather_fds(what, &borrowed) {
            Ok(all) => Ok(Local(all)),
            Err(BootstrapError::NoDescriptors { why, .. }) => {
                Err(SetupError(SetupFailure::Voted(StepFailed {
                    rank: 0,
                    step: what.to_owned(),
                    why,
                })))
            }
            Err(e) => Err(SetupError(SetupFailure::ControlPlane(e))),
        }
    }

    /// A control plane for the ranks of equal color among themselves, in their order: for groups
    /// within the group, which a [`step`](Setup::step) then forms.
    ///
    /// # Errors
    ///
    /// The control plane failed, or some part cannot meet; then the set-up fails by vote.
    pub fn split(
        &mut self,
        what: &str,
        color: Local<u32>,
    ) -> Result<Local<Box<dyn Bootstrap>>, SetupError> {
        match self.boot.split(what, color.0) {
            Ok(part) => Ok(Local(part)),
            Err(BootstrapError::NoSplit { rank, why, .. }) => {
                let step = what.to_owned();
                Err(SetupError(SetupFailure::Voted(StepFailed { rank, step, why })))
            }
            Err(e) => Err(SetupError(SetupFailure::ControlPlane(e))),
        }
    }

    /// Is it true on every rank?
    ///
    /// # Errors
    ///
    /// The control plane failed.
    pub fn all(&mut self, what: &str, mine: Local<bool>) -> Result<Agreed<'g, bool>, SetupError> {
        let all = self.gather(what, Ok(mine.0))?;
        Ok(Agreed(all.into_iter().all(|yes| yes), PhantomData))
    }

    /// The least of all ranks' values.
    ///
    /// # Errors
    ///
    /// The control plane failed.
    pub fn min(&mut self, what: &str, mine: Local<u64>) -> Result<Agreed<'g, u64>, SetupError> {
        let all = self.gather(what, Ok(mine.0))?;
        Ok(Agreed(all.into_iter().min().unwrap_or(0), PhantomData))
    }

    /// The value, if it is the same on every rank; else the set-up fails on every rank, naming
    /// the first rank that differs from rank 0 and both values.
    ///
    /// # Errors
    ///
    /// Ranks differ, or the control plane failed.
    pub fn equal<T>(&mut self, what: &str, mine: Local<T>) -> Result<Agreed<'g, T>, SetupError>
    where
        T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
    {
        let mut all = self.gather(what, Ok(mine.0))?;
        match all.iter().position(|v| *v != all[0]) {
            None => Ok(Agreed(all.swap_remove(0), PhantomData)),
            Some(odd) => Err(SetupError(SetupFailure::Voted(StepFailed {
                rank: odd as u32,
                step: what.to_owned(),
                why: format!("it has {:?} where rank 0 has {:?}", all[odd], all[0]),
            }))),
        }
    }

    /// Says, during [`Backend::set_up`], that this group cannot have one of the backend's
    /// algorithms: a library is too old for it, say. The others are not lost. `why` is one sentence
    /// without a full stop.
    ///
    /// [`Backend::set_up`]: crate::backend::Backend::set_up
    pub fn without(&mut self, algorithm: &str, why: Agreed<'g, String>) {
        self.found.push((algorithm.to_owned(), Found::Without(why.0)));
    }

    /// Says, during [`Backend::set_up`], for how many input bytes per rank one of the backend's
    /// algorithms has room, where that is less than [`Ready::capacity`].
    ///
    /// [`Backend::set_up`]: crate::backend::Backend::set_up
    /// [`Ready::capacity`]: crate::backend::Ready::capacity
    pub fn limit(&mut self, algorithm: &str, bytes: Agreed<'g, u64>) {
        self.found.push((algorithm.to_owned(), Found::Room(bytes.0)));
    }

    /// What was said of algorithms.
    pub(crate) fn take_found(&mut self) -> Vec<(String, Found)> {
        std::mem::take(&mut self.found)
    }

    fn attempt<T, U>(
        &self,
        input: Local<T>,
        work: impl FnOnce(&Here<'_>, T) -> Result<U, StepError>,
    ) -> Result<U, StepError> {
        let here = Here {
            rank: self.boot.rank(),
            world: self.boot.world(),
            patience: self.boot.deadline(),
            settings: self.settings,
        };
        catch_unwind(AssertUnwindSafe(|| work(&here, input.0))).unwrap_or_else(|panic| {
            let text = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("no message");
            Err(StepError(format!("it panicked: {text}")))
        })
    }

    fn gather<U: Serialize + DeserializeOwned>(
        &self,
        what: &str,
        mine: Result<U, StepError>,
    ) -> Result<Vec<U>, SetupError> {
        let ballots = gather::<Ballot<U>>(self.boot, what, &mine.map_err(|e| e.0))
            .map_err(|e| SetupError(SetupFailure::ControlPlane(e)))?;
        let mut values = Vec::with_capacity(ballots.len());
        for (rank, ballot) in ballots.into_iter().enumerate() {
            match ballot {
                Ok(value) => values.push(value),
                Err(why) => {
                    let failed = StepFailed { rank: rank as u32, step: what.to_owned(), why };
                    return Err(SetupError(SetupFailure::Voted(failed)));
                }
            }
        }
        Ok(values)
    }
}

/// A rank's result, or why it has none: what travels.
type Ballot<U> = Result<U, String>;

/// Exchanges a serialisable value: what every rank gave, in rank order. Collective. What comes back is the
/// same on every rank; that it is used alike is up to the caller.
///
/// # Errors
///
/// A peer is lost or late, is in another step, or sent what cannot be read.
pub fn gather<T: Serialize + for<'d> Deserialize<'d>>(
    boot: &dyn Bootstrap,
    step: &str,
    mine: &T,
) -> Result<Vec<T>, BootstrapError> {
    gather_by(boot, step, mine, |bytes| boot.all_gather(step, bytes))
}

/// [`gather`], by [`Bootstrap::all_gather_unless`].
///
/// # Errors
///
/// As for [`gather`], or the group has ended.
pub fn gather_unless<T: Serialize + for<'d> Deserialize<'d>>(
    boot: &dyn Bootstrap,
    step: &str,
    mine: &T,
    ended: &dyn Fn() -> Option<String>,
) -> Result<Vec<T>, BootstrapError> {
    gather_by(boot, step, mine, |bytes| boot.all_gather_unless(step, bytes, ended))
}

fn gather_by<T: Serialize + for<'d> Deserialize<'d>>(
    boot: &dyn Bootstrap,
    step: &str,
    mine: &T,
    exchange: impl FnOnce(&[u8]) -> Result<Vec<Vec<u8>>, BootstrapError>,
) -> Result<Vec<T>, BootstrapError> {
    let bytes = postcard::to_stdvec(mine).map_err(|e| BootstrapError::Garbled {
        rank: boot.rank(),
        step: step.to_owned(),
        what: format!("a value that cannot be written: {e}"),
    })?;
    let all = exchange(&bytes)?;
    if all.len() != boot.world() as usize {
        return Err(BootstrapError::Garbled {
            rank: boot.rank(),
            step: step.to_owned(),
            what: format!("{} values for {} ranks", all.len(), boot.world()),
        });
    }
    all.iter()
        .enumerate()
        .map(|(rank, bytes)| {
            postcard::from_bytes(bytes).map_err(|e| BootstrapError::Garbled {
                rank: rank as u32,
                step: step.to_owned(),
                what: format!("{} bytes that are no such value ({e})", bytes.len()),
            })
        })
        .collect()
}
