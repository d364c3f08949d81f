//! Device graphs: what must be done before calls are captured, and when a capture ends.
//!
//! The engine says which calls it captures ([`Mode::Graph`]); nobody asks a stream. Before it,
//! [`Communicator::prepare`] loads what cannot be loaded meanwhile; after it, on every rank,
//! [`Communicator::commit`] compares what was captured and lets backends exchange what they have
//! registered. A capture that failed is forgotten by [`Communicator::discard`], which waits for
//! nobody: the error that ended it is the one that is seen.
//!
//! [`Mode::Graph`]: crate::call::Mode::Graph

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};

use super::{CallError, Communicator, Inner, State, in_words};
use crate::agreement::{SetupFailure, StepFailed, gather, gather_unless, with_setup};
use crate::backend::{EnqueueError, Session};
use crate::bootstrap::{Bootstrap, BootstrapError};
use crate::call::{CallSig, Split};
use crate::digest::{Digest, digest};
use crate::plan::Choice;
use crate::record::{Entry, Event};

/// A capture could not be completed: its graphs must not be replayed. The group is no longer
/// usable, but for [`CommitError::NoChannel`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// A peer was lost, is late, or does something else.
    #[error(transparent)]
    ControlPlane(#[from] BootstrapError),
    /// Ranks captured different calls. The same sentence on every rank.
    #[error("ranks captured different calls: {what}")]
    Diverged {
        /// Which ranks, how many calls, the first that differs.
        what: String,
    },
    /// The group ended before the capture did.
    #[error(transparent)]
    Ended(EnqueueError),
    /// A rank could not exchange what it registered. The same sentence on every rank.
    #[error(transparent)]
    Failed(#[from] StepFailed),
    /// This group has not kept the control plane that it was formed over.
    #[error(
        "this group keeps no control plane: give it one by with_channel(), or call commit_over()"
    )]
    NoChannel,
}

impl CommitError {
    /// Is the cause a peer that is gone or late?
    pub fn is_loss(&self) -> bool {
        match self {
            Self::ControlPlane(_) => true,
            Self::Ended(e) => e.is_loss(),
            _ => false,
        }
    }
}

/// The calls that were captured since the last commit, in words.
#[derive(Default)]
pub(super) struct Captured(Vec<String>);

impl Captured {
    #[cold]
    pub(super) fn note(&mut self, call: &CallSig<'_>) {
        let root = if call.root == 0 { String::new() } else { format!(" from rank {}", call.root) };
        let parts = match call.split {
            Split::Even => String::new(),
            Split::PerRank(counts) => format!(" in parts of {counts:?}"),
        };
        self.0.push(format!("{}{root}{parts}", in_words(call)));
    }
}

/// What a rank comes to a commit with; `Err` says why it cannot.
type Vote = Result<(u64, Digest), String>;

impl Communicator {
    /// Makes ready what these calls need and what cannot be made ready while a stream is captured:
    /// code is loaded, memory allocated. Every rank prepares the calls that it will capture; none
    /// waits for another.
    ///
    /// # Errors
    ///
    /// [`CallError::Invalid`] and [`CallError::NothingEligible`] as for [`Communicator::run`], and
    /// [`CallError::Unprepared`]; none of them is the end of the group.
    pub fn prepare(&self, calls: &[CallSig<'_>]) -> Result<(), CallError> {
        let mut inner = self.lock();
        inner.usable()?;
        for call in calls {
            crate::validate::validate(call, self.world())?;
            let choice = self.decide(call)?.choice;
            let Choice::Serve { offer, algorithm, .. } = choice else { continue };
            let session = inner.sessions[offer as usize].as_mut();
            session
                .expect("an open offer has a session")
                .prepare(algorithm as usize, self.plan.params_of(choice), call)
                .map_err(|error| CallError::Unprepared { call: in_words(call), error })?;
        }
        Ok(())
    }

    /// Ends a capture, or several: compares what ranks have captured since the last time, then lets
    /// every backend exchange what the captured calls have registered. Collective, over the channel
    /// that the group keeps. Graphs are not replayed before. Peers may read inputs and write outputs of
    /// captured calls where they are: both stay allocated until no rank replays its graph any more.
    ///
    /// # Errors
    ///
    /// As for [`Communicator::commit_over`], or the group keeps no channel.
    #[track_caller]
    pub fn commit(&self) -> Result<(), CommitError> {
        match &self.channel {
            Some(channel) => self.commit_over(&**channel),
            None if self.world() == 1 => {
                self.lock().captured = Captured::default();
                Ok(())
            }
            None => Err(CommitError::NoChannel),
        }
    }

    /// [`Communicator::commit`], over the caller's own control plane.
    ///
    /// # Errors
    ///
    /// A rank has captured other calls, or more or fewer; a backend's exchange failed; or a peer is
    /// lost or late. It is so on every rank, and the end of the group.
    #[track_caller]
    pub fn commit_over(&self, boot: &dyn Bootstrap) -> Result<(), CommitError> {
        let site = Location::caller();
        let mut inner = self.lock();
        let captured = std::mem::take(&mut inner.captured);
        let entry = Entry { event: Event::Commit, seq: inner.seq, target: 0, site };
        // A group that has ended begins nothing. If it is to end: it still comes to the comparison, to
        // say so.
        let _ = inner.usable().and_then(|()| self.begin(&mut inner, entry));
        let committed = self.commit_all(&mut inner, boot, &captured.0);
        let committed = committed.map_err(|e| self.ended_by(&mut inner, e));
        if committed.is_ok() {
            self.done();
        }
        if let Err(e) = &committed
            && matches!(inner.state, State::Open)
        {
            self.poison(
                &mut inner,
                match e {
                    CommitError::Ended(e) => e.clone(),
                    e => EnqueueError::Uncommitted { why: e.to_string() },
                },
            );
        }
        committed
    }

    /// Forgets what has been captured since the last commit: the capture failed. Waits for nobody.
    /// Peers that have captured the same calls must forget them too, or the next commit fails.
    pub fn discard(&self) {
        let mut inner = self.lock();
        inner.captured = Captured::default();
        for session in inner.sessions.iter_mut().flatten() {
            session.discard();
        }
    }

    /// To be called before a stream is destroyed in which calls were made, unless calls in another
    /// one have been made since or the group is closed first. A stream that saw no call may be left too.
    ///
    /// # Errors
    ///
    /// The group has ended on this rank, or a vendor call failed.
    pub fn leave_stream(&self, stream: u64) -> Result<(), CallError> {
        let mut inner = self.lock();
        inner.usable()?;
        let seq = inner.seq;
        for session in inner.sessions.iter_mut().flatten() {
            session.leave_stream(stream, seq).map_err(CallError::Failed)?;
        }
        Ok(())
    }

    fn commit_all(
        &self,
        inner: &mut Inner,
        boot: &dyn Bootstrap,
        captured: &[String],
    ) -> Result<(), CommitError> {
        // A rank that cannot go on still comes, to say so: else its peers would wait for it.
        let usable = inner.usable().map_err(|e| e.to_string());
        let mine = usable.map(|()| (captured.len() as u64, digest(captured)));
        compare(boot, &mine, captured, inner)?;
        for (offer, session) in self.plan.offers().iter().zip(&mut inner.sessions) {
            if let Some(session) = session {
                self.commit_one(boot, offer.descriptor.id, &mut **session)?;
            }
        }
        Ok(())
    }

    /// A peer that does not come to a commit has a reason that backends may know by now.
    fn ended_by(&self, inner: &mut Inner, error: CommitError) -> CommitError {
        let CommitError::ControlPlane(lost) = error else { return error };
        inner.ended().map_or(CommitError::ControlPlane(lost), CommitError::Ended)
    }

    /// Everywhere or nowhere.
    fn commit_one(
        &self,
        boot: &dyn Bootstrap,
        id: &str,
        session: &mut dyn Session,
    ) -> Result<(), CommitError> {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            with_setup(boot, &self.settings, |setup| session.commit(setup))
        }));
        let mine = match outcome {
            Ok(Ok(())) => None,
            Ok(Err(e)) => match e.0 {
                SetupFailure::Voted(failed) | SetupFailure::Misset(failed) => Some(failed),
                SetupFailure::ControlPlane(e) => return Err(e.into()),
            },
            Err(_) => Some(StepFailed {
                rank: self.rank,
                step: "exchange what it registered".to_owned(),
                why: "it panicked between two steps".to_owned(),
            }),
        };
        // A backend that swallowed an error, or panicked after its last step, is caught here.
        let all: Vec<Option<StepFailed>> =
            gather(boot, &format!("finish committing `{id}`"), &mine)?;
        all.into_iter().flatten().next().map_or(Ok(()), |failed| Err(failed.into()))
    }
}

/// Have all ranks captured the same? Whoever has ended the group does not come any more.
fn compare(
    boot: &dyn Bootstrap,
    mine: &Vote,
    captured: &[String],
    inner: &mut Inner,
) -> Result<(), CommitError> {
    let inner = RefCell::new(inner);
    let ended = || inner.borrow_mut().ended().map(|error| error.to_string());
    let all: Vec<Vote> = gather_unless(boot, "compare captured calls", mine, &ended)?;
    let mut agreed = Vec::with_capacity(all.len());
    for (rank, vote) in (0..).zip(all) {
        agreed.push(vote.map_err(|why| {
            CommitError::Failed(StepFailed { rank, step: "end its capture".to_owned(), why })
        })?);
    }
    let Some(odd) = agreed.iter().position(|theirs| *theirs != agreed[0]) else { return Ok(()) };
    let first = first_difference(boot, captured, odd)?;
    let (zero, odd_count) = (agreed[0].0, agreed[odd].0);
    let what = match zero == odd_count {
        true => format!("rank 0 and rank {odd} captured {zero} each, and {first}"),
        false => format!("rank 0 captured {zero}, rank {odd} captured {odd_count}; {first}"),
    };
    Err(CommitError::Diverged { what })
}

/// The first captured call in which `odd` differs from rank 0, in words. Only digests travel, and
/// then two calls.
fn first_difference(
    boot: &dyn Bootstrap,
    captured: &[String],
    odd: usize,
) -> Result<String, BootstrapError> {
    let digests: Vec<Digest> = captured.iter().map(digest).collect();
    let all: Vec<Vec<Digest>> = gather(boot, "find the captured call that differs", &digests)?;
    let (zero, odd_calls) = (&all[0], &all[odd]);
    let at = zero.iter().zip(odd_calls).take_while(|(a, b)| a == b).count();
    let mine = captured.get(at).map_or("none", String::as_str).to_owned();
    let calls: Vec<String> = gather(boot, "name the captured call that differs", &mine)?;
    let (zero, theirs, at) = (&calls[0], &calls[odd], at + 1);
    Ok(format!("captured call {at} is {zero} on rank 0 and {theirs} on rank {odd}"))
}
