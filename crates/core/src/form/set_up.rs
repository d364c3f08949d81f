//! One backend comes up: its set-up is run on every rank, and the outcome is voted on.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::{Deserialize, Serialize};

use crate::agreement::{Found, SetupError, SetupFailure, StepFailed, gather, with_setup};
use crate::backend::{Descriptor, Session};
use crate::bootstrap::Bootstrap;
use crate::eligibility::{Clause, Refusal};
use crate::facts::GroupFacts;
use crate::form::FormError;
use crate::plan::OfferState;
use crate::registry::Registration;
use crate::settings::GroupSettings;

/// Why a rank has not set a backend up: its vote.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
enum NotSetUp {
    /// The backend cannot be had.
    Failed(String),
    /// It is wrongly set.
    Misset(StepFailed),
}

/// Sets a backend up, everywhere or nowhere.
pub(super) fn set_up(
    boot: &dyn Bootstrap,
    entry: &Registration,
    facts: &GroupFacts,
    settings: &GroupSettings,
) -> Result<(OfferState, Option<Box<dyn Session>>), FormError> {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        with_setup(boot, &settings.backends, |setup| {
            let ready = (entry.make)().set_up(setup, facts)?;
            let room = Room { capacity: ready.capacity.into_inner(), found: setup.take_found() };
            Ok((room, ready.session.into_inner()))
        })
    }));
    let mine = match outcome {
        Ok(Ok(ready)) => Ok(ready),
        Ok(Err(SetupError(SetupFailure::Voted(failed)))) => {
            Err(NotSetUp::Failed(failed.to_string()))
        }
        Ok(Err(SetupError(SetupFailure::Misset(failed)))) => Err(NotSetUp::Misset(failed)),
        Ok(Err(SetupError(SetupFailure::ControlPlane(e)))) => return Err(e.into()),
        Err(_) => Err(NotSetUp::Failed(format!("rank {} panicked between two steps", boot.rank()))),
    };
    // A backend that swallowed an error, or panicked after its last step, is caught here.
    let vote = mine.as_ref().map(|(room, _)| room.clone()).map_err(Clone::clone);
    let id = entry.descriptor.id;
    let all = gather(boot, &format!("finish setting up `{id}`"), &vote)?;
    match all.iter().find_map(|vote| vote.as_ref().err()) {
        Some(NotSetUp::Failed(got)) => {
            return Ok((OfferState::Unavailable(refused(got)), None));
        }
        Some(NotSetUp::Misset(failed)) => return Err(FormError::Misset(failed.clone())),
        None => {}
    }
    if let Some(odd) = all.iter().position(|vote| *vote != all[0]) {
        return Err(FormError::Diverged { what: difference(id, &all, odd) });
    }
    match mine {
        Ok((room, session)) => match room.state(entry.descriptor) {
            none @ OfferState::Unavailable(_) => Ok((none, None)),
            state => Ok((state, Some(session))),
        },
        Err(_) => unreachable!("this rank's own refusal is among the votes"),
    }
}

/// What set-up found room for: a rank's vote.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct Room {
    capacity: u64,
    /// By name of the algorithm, where it is not like the others.
    found: Vec<(String, Found)>,
}

impl Room {
    fn state(self, descriptor: &Descriptor) -> OfferState {
        if self.found.is_empty() {
            return OfferState::Open { capacity: self.capacity };
        }
        let rooms: Vec<_> = descriptor.algorithms.iter().map(|a| self.of(a.name)).collect();
        match rooms.first() {
            // A backend without any algorithm is none.
            Some(Err(first)) if rooms.iter().all(Result::is_err) => {
                OfferState::Unavailable(first.clone())
            }
            _ => OfferState::Mixed(rooms),
        }
    }

    /// For how much one of the algorithms has room.
    fn of(&self, algorithm: &str) -> Result<u64, Refusal> {
        let mut room = self.capacity;
        for (_, found) in self.found.iter().filter(|(name, _)| name == algorithm) {
            match found {
                Found::Room(bytes) => room = room.min(*bytes),
                Found::Without(why) => return Err(refused(why)),
            }
        }
        Ok(room)
    }
}

fn refused(why: &str) -> Refusal {
    let want = "set-up on every rank".to_owned();
    Refusal { clause: Clause::Setup, want, got: why.to_owned() }
}

fn difference(id: &str, all: &[Result<Room, NotSetUp>], odd: usize) -> String {
    let bytes = |rank: usize| all[rank].as_ref().map_or(0, |room| room.capacity);
    match (bytes(0), bytes(odd)) {
        (zero, theirs) if zero != theirs => {
            format!("the capacity of `{id}`: rank 0 has {zero} B, rank {odd} has {theirs} B")
        }
        _ => format!("the algorithms of `{id}`: rank {odd} has others than rank 0"),
    }
}
