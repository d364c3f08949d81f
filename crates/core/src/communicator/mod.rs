//! What an engine holds: one per group.

mod captures;
mod checking;
mod copying;
mod ends;
mod recording;

use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use crate::ablation::{Guarantee, is_off};
use crate::backend::{EnqueueError, Session, Watch};
use crate::bootstrap::Bootstrap;
use crate::call::{CallBuffers, CallKind, CallSig, Mode, Ops, Split};
use crate::counters::{Count, Counters};
use crate::explain::Explanation;
use crate::facts::{GroupFacts, RankReport};
use crate::form::{FormError, bands_in_words, form};
use crate::plan::{Choice, Plan};
use crate::policy::Policy;
use crate::record::{Entry, Event, Recorder};
use crate::registry::Registry;
use crate::settings::{BackendSettings, Check, GroupSettings};
use crate::verdict::Verdict;

use captures::Captured;
pub use captures::CommitError;
pub use copying::Copier;
use copying::Copying;
pub use ends::AbortHandle;
use ends::AbortIfPanicking;

/// A group's communicator on one rank.
///
/// Every rank makes the same calls in the same order. Calls from several threads are run one after
/// the other, in whatever order they get in; ranks whose threads get in differently would pair
/// calls that do not belong together. So threads that call at the same time need a group each, or
/// an order of their own.
///
/// Dropping it frees what is local and never waits; [`Communicator::close`] says goodbye.
pub struct Communicator {
    rank: u32,
    facts: GroupFacts,
    plan: Plan,
    counters: Counters,
    /// Of which ops this rank tells what is decided.
    told: Ops,
    aborts: AbortHandle,
    watches: Vec<Arc<dyn Watch>>,
    /// What a group of one copies with.
    copying: Copying,
    /// What backends read at the end of a capture.
    settings: BackendSettings,
    /// What ranks compare before each call.
    check: Check,
    /// The control plane, where it is kept.
    channel: Option<Arc<dyn Bootstrap>>,
    recorder: Option<Arc<dyn Recorder>>,
    inner: Mutex<Inner>,
}

struct Inner {
    /// Calls that were handed over, so far.
    seq: u64,
    sessions: Vec<Option<Box<dyn Session>>>,
    state: State,
    recent: Option<Decided>,
    captured: Captured,
}

/// The last call, and what was decided. Engines repeat themselves: a decode step makes one call over
/// and over.
#[derive(Clone, Copy)]
struct Decided {
    kind: CallKind,
    count: usize,
    root: u32,
    /// Every rank gives as much, so that another call of these is decided alike.
    is_even: bool,
    choice: Choice,
    /// Where it is counted.
    cell: usize,
    /// What runs it, by its place in [`Communicator::targets`].
    target: u16,
}

impl Decided {
    /// Is `call` decided by this?
    #[inline(always)]
    fn is_for(&self, call: &CallSig<'_>) -> bool {
        let is_same = || {
            self.kind == call.kind()
                && (self.count, self.root) == (call.count, call.root)
                && matches!(call.split, Split::Even)
        };
        self.is_even && (is_off(Guarantee::Decision) || is_same())
    }
}

enum State {
    Open,
    /// A call failed: peers may be anywhere.
    Poisoned(EnqueueError),
    Closed,
}

/// A call could not be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The communicator was closed.
    #[error("the group is closed")]
    Closed,
    /// The call started and failed; the communicator is poisoned.
    #[error(transparent)]
    Failed(EnqueueError),
    /// The call makes no sense. Nothing was started.
    #[error("{op} cannot be run: {what}")]
    Invalid {
        /// Which collective.
        op: crate::call::Op,
        /// What is wrong.
        what: String,
    },
    /// No backend takes the call; it is so on every rank. Nothing was started.
    #[error("nothing serves {call}: {why}")]
    NothingEligible {
        /// The call, in words.
        call: String,
        /// Each candidate's reason.
        why: String,
    },
    /// An earlier call failed.
    #[error("the group is no longer usable since a call failed: {0}")]
    Poisoned(EnqueueError),
    /// What a call needs could not be made ready. Nothing was started, and the group is as usable
    /// as before.
    #[error("{call} could not be prepared: {error}")]
    Unprepared {
        /// The call, in words.
        call: String,
        /// Why not.
        error: EnqueueError,
    },
}

impl Communicator {
    /// Forms the group. Collective: it succeeds on every rank or fails on every rank.
    ///
    /// # Errors
    ///
    /// A peer is missing or lost, ranks hold different policies or backends, a forced backend
    /// cannot be had, or none can.
    pub fn form(
        boot: &dyn Bootstrap,
        registry: &Registry,
        policy: &Policy,
        report: RankReport,
        settings: &GroupSettings,
    ) -> Result<Self, FormError> {
        let formed = form(boot, registry, policy, report, settings)?;
        let rank = boot.rank();
        // What is the same on every rank is told once.
        let told = if rank == 0 { settings.explain } else { Ops::NONE };
        if rank == 0 {
            let profile = formed.facts.profile();
            let (tag, world, topology) = (&profile.tag, profile.world, profile.topology.name());
            let policy = formed.plan.policy_digest();
            tracing::info!(target: "crossover::form", tag, world, topology, %policy, "group formed");
        }
        for line in told.iter().flat_map(|op| bands_in_words(&formed.plan, op)) {
            tracing::info!(target: "crossover::explain", "`{}`: {line}", settings.tag);
        }
        let open = || formed.sessions.iter().flatten();
        Ok(Communicator {
            rank,
            counters: Counters::new(formed.plan.offers()),
            told,
            aborts: AbortHandle::new(rank, open().map(|s| s.abort_handle()).collect()),
            watches: open().filter_map(|s| s.watch()).collect(),
            copying: Copying::of(&formed.facts),
            settings: settings.backends.clone(),
            check: settings.check,
            channel: None,
            recorder: None,
            facts: formed.facts,
            plan: formed.plan,
            inner: Mutex::new(Inner {
                seq: 0,
                sessions: formed.sessions,
                state: State::Open,
                recent: None,
                captured: Captured::default(),
            }),
        })
    }

    /// Keeps the control plane that the group was formed over, for [`Communicator::commit`] and
    /// [`Check::Args`].
    #[must_use]
    pub fn with_channel(mut self, channel: Arc<dyn Bootstrap>) -> Self {
        self.channel = Some(channel);
        self
    }

    /// What a group of one copies with; a group whose memory is on a device needs it.
    #[must_use]
    pub fn with_copier(mut self, copier: Arc<dyn Copier>) -> Self {
        self.copying = Copying::By(copier);
        self
    }

    /// This rank.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Number of ranks.
    pub fn world(&self) -> u32 {
        self.facts.profile().world
    }

    /// What the ranks agreed about this group.
    pub fn facts(&self) -> &GroupFacts {
        &self.facts
    }

    /// The policy in force, compiled for this group.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Who would run this call, and why the others would not. The same path that runs it.
    pub fn explain(&self, call: &CallSig<'_>) -> Explanation {
        self.plan.explain(call)
    }

    /// What really ran so far. Never waits for a running call.
    pub fn counters(&self) -> Vec<Count> {
        self.counters.snapshot()
    }

    /// A handle to end this group's waits from another thread.
    pub fn abort_handle(&self) -> AbortHandle {
        self.aborts.clone()
    }

    /// Runs a call.
    ///
    /// # Errors
    ///
    /// [`CallError::Invalid`] and [`CallError::NothingEligible`] start nothing and leave the
    /// group usable; every other error is the end of the group on this rank.
    ///
    /// # Safety
    ///
    /// The buffers hold what `call` says, are valid until the work completes (when this returns,
    /// on host memory), and overlap only as [`CallBuffers`] allows. The stream lives until the
    /// group's next eager call in another one, [`Communicator::leave_stream`] or
    /// [`Communicator::close`]: calls of a group keep their order over streams.
    #[track_caller]
    pub unsafe fn run(&self, call: &CallSig<'_>, buffers: &CallBuffers) -> Result<(), CallError> {
        let site = Location::caller();
        let mut inner = self.lock();
        let decided = match &inner.recent {
            Some(recent) if recent.is_for(call) => Ok(()),
            _ => self.decide(call).map(|decided| inner.recent = Some(decided)),
        };
        let is_compared = self.compares();
        match is_compared {
            true => self.compare_first(&mut inner, call, buffers, decided, site)?,
            false => decided?,
        }
        inner.usable()?;
        inner.seq += 1;
        // What peers wait for follows from these: they are read where they are, once.
        let Some(Decided { choice, cell, target, .. }) = inner.recent else {
            unreachable!("the call has just been decided")
        };
        let seq = inner.seq;
        if !is_compared {
            self.begin(&mut inner, Entry { event: Event::Call(call), seq, target, site })?;
        }
        if call.mode == Mode::Graph {
            inner.captured.note(call);
        }
        let counted = !is_off(Guarantee::Counters);
        if counted && self.counters.count(cell, call.bytes()) {
            self.tell(call, choice);
        }
        let (offer, algorithm) = match choice {
            Choice::Copy => {
                // SAFETY: with one rank, input and output are of equal size for every op; the
                // caller vouches for both.
                let copied = unsafe { self.copying.run(seq, buffers, call.bytes()) };
                copied.map_err(|e| self.poison(&mut inner, e))?;
                self.done();
                return Ok(());
            }
            Choice::Serve { offer, algorithm, .. } => (offer as usize, algorithm as usize),
        };
        let session = inner.sessions[offer].as_mut().expect("an open offer has a session");
        let panicking = AbortIfPanicking::new(&self.aborts);
        // SAFETY: the caller upholds the same contract, and the call is valid.
        unsafe { session.enqueue(algorithm, self.plan.params_of(choice), seq, call, buffers) }
            .map_err(|e| self.poison(&mut inner, e))?;
        drop(panicking);
        self.done();
        Ok(())
    }

    /// A call failed: the group is no longer usable, here or anywhere.
    #[cold]
    fn poison(&self, inner: &mut Inner, error: EnqueueError) -> CallError {
        inner.state = State::Poisoned(error.clone());
        self.aborts.end(&Verdict::of(&error, self.rank));
        if let Some(recorder) = &self.recorder {
            recorder.failed(&error);
        }
        CallError::Failed(error)
    }

    /// Has anything failed that was enqueued on a device? What a stream holds after it was
    /// synchronised is right only if this says so. Never waits for work.
    ///
    /// # Errors
    ///
    /// As for [`Communicator::run`]; the group is poisoned then.
    pub fn check(&self) -> Result<(), CallError> {
        let mut inner = self.lock();
        inner.usable()?;
        match inner.ended() {
            None => Ok(()),
            Some(e) => Err(self.poison(&mut inner, e)),
        }
    }

    /// Who runs this call, if it is valid.
    fn decide(&self, call: &CallSig<'_>) -> Result<Decided, CallError> {
        crate::validate::validate(call, self.world())?;
        let choice = self.plan.select(call).ok_or_else(|| self.nothing_serves(call))?;
        let cell = self.counters.cell(call.op, choice, call.bytes());
        Ok(Decided {
            kind: call.kind(),
            count: call.count,
            root: call.root,
            is_even: matches!(call.split, Split::Even),
            choice,
            cell,
            target: self.counters.row(choice) as u16,
        })
    }

    /// Says goodbye to the peers, within the deadline. Later calls fail; a second close, or one
    /// after a failure, does nothing.
    ///
    /// # Errors
    ///
    /// A peer was lost or is late; local resources are freed all the same.
    #[track_caller]
    pub fn close(&self) -> Result<(), CallError> {
        let site = Location::caller();
        let mut inner = self.lock();
        let open = matches!(inner.state, State::Open);
        let seq = inner.seq;
        let mut first_error = None;
        if open {
            let entry = Entry { event: Event::Close, seq, target: 0, site };
            match self.begin(&mut inner, entry) {
                Err(CallError::Failed(e)) => first_error = Some(e),
                _ => inner.state = State::Closed,
            }
        }
        let open = open && first_error.is_none();
        for mut session in std::mem::take(&mut inner.sessions).into_iter().flatten() {
            if open && let Err(e) = session.close(seq) {
                first_error.get_or_insert(e);
            }
        }
        if let Some(recorder) = self.recorder.as_ref().filter(|_| open) {
            match &first_error {
                None => recorder.closed(),
                Some(e) => recorder.failed(e),
            }
        }
        first_error.map_or(Ok(()), |e| Err(CallError::Failed(e)))
    }

    /// The first time that a target serves an op in a bucket of sizes, says so.
    #[cold]
    fn tell(&self, call: &CallSig<'_>, choice: Choice) {
        let decision = || {
            let tag = &self.facts.profile().tag;
            let (call, bytes) = (in_words(call), call.bytes());
            let target = self.plan.name_of(choice);
            let by = self.plan.rule_of(choice).map(|rule| {
                format!(" by rule `{}` of layer {} at {}", rule.id, rule.layer, rule.origin)
            });
            format!("`{tag}`: {call}, {bytes} B: {target}{}", by.unwrap_or_default())
        };
        match self.told.contains(call.op) {
            true => tracing::info!(target: "crossover::explain", "{}", decision()),
            false => tracing::debug!(target: "crossover::explain", "{}", decision()),
        }
    }

    /// A session that panicked in the middle of a call may be anywhere: the group is poisoned.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|panicked| {
            let mut inner = panicked.into_inner();
            if matches!(inner.state, State::Open) {
                inner.state = State::Poisoned(EnqueueError::Aborted {
                    step: "run".to_owned(),
                    seq: inner.seq,
                    rank: self.rank,
                    reason: "a backend panicked".to_owned(),
                });
            }
            inner
        })
    }

    fn nothing_serves(&self, call: &CallSig<'_>) -> CallError {
        let considered = self.plan.explain(call).considered;
        let reasons: Vec<String> = considered
            .iter()
            .filter(|c| !c.reason.is_empty())
            .map(|c| format!("{} (rule {}): {}", c.target, c.rule, c.reason))
            .collect();
        let why = match reasons.is_empty() {
            true => "the policy has no rule".to_owned(),
            false => reasons.join("; "),
        };
        CallError::NothingEligible { call: in_words(call), why }
    }
}

impl Inner {
    fn usable(&self) -> Result<(), CallError> {
        match &self.state {
            State::Open => Ok(()),
            State::Poisoned(e) => Err(CallError::Poisoned(e.clone())),
            State::Closed => Err(CallError::Closed),
        }
    }

    /// Why the group has ended, if backends know. Never waits.
    fn ended(&mut self) -> Option<EnqueueError> {
        let seq = self.seq;
        self.sessions.iter_mut().flatten().find_map(|session| session.check(seq).err())
    }
}

impl std::fmt::Debug for Communicator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = match self.inner.try_lock() {
            Ok(inner) => match inner.state {
                State::Open => "open",
                State::Poisoned(_) => "poisoned",
                State::Closed => "closed",
            },
            Err(TryLockError::WouldBlock) => "in a call",
            Err(TryLockError::Poisoned(_)) => "panicked",
        };
        f.debug_struct("Communicator")
            .field("rank", &self.rank)
            .field("group", self.facts.profile())
            .field("state", &state)
            .finish_non_exhaustive()
    }
}

fn in_words(call: &CallSig<'_>) -> String {
    let reduce = if call.op.reduces() { format!(" {}", call.reduce_op) } else { String::new() };
    format!("{}{reduce} of {} x {} ({})", call.op, call.count, call.dtype, call.mode)
}
