//! The plug-in seam: the page that the author of a backend reads.
//!
//! A backend is a [`Descriptor`] (a `const`: its algorithms and what each can take), a
//! [`Backend`] (how to set it up for a group) and a [`Session`] (how to run a call).
//!
//! Who does what:
//! - *The core judges.* A backend never decides whether a call suits it: it states an
//!   [`Eligibility`], and the core compares calls with it. Before a call is handed over, the core
//!   has validated it (counts, root, group size), so a session need not.
//! - *Set-up is everywhere or nowhere.* [`Backend::set_up`] is written against [`Setup`], whose
//!   every step ends in a vote. It is tried once in a group's life.
//! - *After selection nothing may refuse.* An error from [`Session::enqueue`] poisons the
//!   communicator on this rank; it is never a reason to try the next backend.
//! - *Nothing waits for ever.* A session bounds every wait by
//!   [`BackendSettings::call_deadline`](crate::settings::BackendSettings), and heeds its [`Abort`].

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::agreement::{Agreed, Local, Setup, SetupError};
use crate::bootstrap::ranks_in_words;
use crate::bytes::size_text;
use crate::call::{CallBuffers, CallSig};
use crate::eligibility::Eligibility;
use crate::facts::GroupFacts;
use crate::verdict::Verdict;

/// What a backend is, as data: its name, version and algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Descriptor {
    /// Name in policies, logs and counters, such as `host`.
    pub id: &'static str,
    /// Version of the crate that registers it.
    pub version: &'static str,
    /// Its algorithms, in its own order of preference.
    pub algorithms: &'static [Algorithm],
    /// The names of the settings that it reads, such as `chunk` for `host.chunk`. Any other is
    /// refused where settings are read.
    pub settings: &'static [&'static str],
}

impl Descriptor {
    /// An algorithm's name as policies and reports write it: `host/one_shot`; the bare backend's
    /// for an algorithm without a name.
    pub fn target(&self, algorithm: &Algorithm) -> String {
        match algorithm.name {
            "" => self.id.to_owned(),
            name => format!("{}/{name}", self.id),
        }
    }
}

/// One algorithm of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Algorithm {
    /// Name after the slash, such as `one_shot`. Empty for a library that chooses by itself, and
    /// goes by the backend's name alone (`nccl`).
    pub name: &'static str,
    /// What it can ever take.
    pub eligibility: Eligibility,
    /// What a policy can set of it.
    pub params: &'static [Param],
}

/// Something of an algorithm that a policy's `params` can set, such as a number of blocks. It is
/// the same on every rank, as the policy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Param {
    /// Its key in `params`.
    pub name: &'static str,
    /// What it can be.
    pub values: Values,
    /// Its value where no policy sets it, as [`Session::enqueue`] receives it.
    pub default: u64,
}

impl Param {
    /// A value, as a session receives it, in the words of a policy.
    pub fn in_words(&self, value: u64) -> String {
        match self.values {
            Values::Count { .. } => value.to_string(),
            Values::Bytes { .. } if value == u64::MAX => "none".to_owned(),
            Values::Bytes { .. } => size_text(value),
            Values::Words(words) => words.get(value as usize).unwrap_or(&"?").to_string(),
            Values::Flag => (value != 0).to_string(),
        }
    }
}

/// The values of a [`Param`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Values {
    /// A number from `min` to `max`; a policy can also write it as `"128/world"`, a share that
    /// rounds down. As itself.
    Count {
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// Bytes from `min` to `max`, such as `"64KiB"`; a policy can also write them as a share of a
    /// cache of the group's processors, `"l2"`, `"llc/4"` or `"llc/4/world"`, which rounds down
    /// to a value that can be, and leaves the default where the cache is not known. As itself.
    Bytes {
        /// The least.
        min: u64,
        /// The most; `u64::MAX` stands for no limit, which a policy writes as `"none"`.
        max: u64,
    },
    /// One of these words. As its index.
    Words(&'static [&'static str]),
    /// `true` or `false`. As 1 or 0.
    Flag,
}

/// A way to run collectives, before it is bound to a group.
pub trait Backend: Send + Sync {
    /// Allocates, exchanges handles and maps peers, for one group. Collective.
    ///
    /// The core calls it on every rank or on none, at most once for a group.
    ///
    /// # Errors
    ///
    /// Whatever a step of `setup` returned; a backend cannot make an error of its own.
    fn set_up<'g>(
        &self,
        setup: &mut Setup<'g>,
        facts: &GroupFacts,
    ) -> Result<Ready<'g>, SetupError>;
}

/// A backend that is set up on every rank of the group `'g`.
pub struct Ready<'g> {
    /// This rank's session.
    pub session: Local<Box<dyn Session>>,
    /// Most input bytes per rank that every algorithm has room for; `u64::MAX` if any.
    pub capacity: Agreed<'g, u64>,
}

/// A backend bound to one group, ready to run calls.
pub trait Session: Send {
    /// Runs a call, or enqueues it on the engine's stream. `algorithm` is an index into the
    /// descriptor's list, `params` are the values of that algorithm's [`Param`]s in its own order,
    /// `seq` counts the group's calls from 1.
    ///
    /// When it returns (host), or in stream order (devices), the input may be overwritten and the
    /// output is complete.
    ///
    /// # Errors
    ///
    /// A peer was lost or is late, ranks made different calls, the group was aborted, or a vendor
    /// call failed.
    ///
    /// # Safety
    ///
    /// The buffers hold what `call` says, are valid until the work completes, and overlap only as
    /// [`CallBuffers`] allows.
    unsafe fn enqueue(
        &mut self,
        algorithm: usize,
        params: &[u64],
        seq: u64,
        call: &CallSig<'_>,
        buffers: &CallBuffers,
    ) -> Result<(), EnqueueError>;

    /// Makes ready what a captured call of this kind needs and cannot be made ready while a stream
    /// is captured: loads code, allocates. The arguments are those of [`Session::enqueue`]. A rank
    /// does it by itself.
    ///
    /// # Errors
    ///
    /// A vendor call failed, or there is no code for this device.
    fn prepare(
        &mut self,
        algorithm: usize,
        params: &[u64],
        call: &CallSig<'_>,
    ) -> Result<(), EnqueueError> {
        let _ = (algorithm, params, call);
        Ok(())
    }

    /// Ends a capture: exchanges what the calls of [`Mode::Graph`](crate::call::Mode) have
    /// registered since the last time. Collective; the core has compared those calls between ranks.
    ///
    /// # Errors
    ///
    /// Whatever a step of `setup` returned.
    fn commit<'g>(&mut self, setup: &mut Setup<'g>) -> Result<(), SetupError> {
        let _ = setup;
        Ok(())
    }

    /// Forgets what was registered since the last [`Session::commit`]: the capture failed. Neither
    /// waits nor communicates.
    fn discard(&mut self) {}

    /// The engine is about to replay the graph that it knows by `graph`, as call `seq`: peers that
    /// replay another one are to learn so before kernels meet. Neither waits nor communicates but by
    /// memory.
    ///
    /// # Errors
    ///
    /// Ranks replay different graphs, or one makes a call instead; or the group has ended.
    fn replay(&mut self, graph: u64, seq: u64) -> Result<(), EnqueueError> {
        let _ = (graph, seq);
        Ok(())
    }

    /// The engine is about to destroy a stream in which it made calls: from now on nothing of it is
    /// touched, and calls in other streams still come after those that were made in it.
    ///
    /// # Errors
    ///
    /// A vendor call failed.
    fn leave_stream(&mut self, stream: u64, seq: u64) -> Result<(), EnqueueError> {
        let _ = (stream, seq);
        Ok(())
    }

    /// Has work that was enqueued failed since, or the group ended? Where calls return before their
    /// work is done, only this or the next call tells. `seq` is the last call's number. Never waits.
    ///
    /// # Errors
    ///
    /// As for [`Session::enqueue`].
    fn check(&mut self, seq: u64) -> Result<(), EnqueueError> {
        let _ = seq;
        Ok(())
    }

    /// What a watchdog can look at while calls run, if there is anything.
    fn watch(&self) -> Option<Arc<dyn Watch>> {
        None
    }

    /// A handle that ends this session's waits, on every rank, from any thread.
    fn abort_handle(&self) -> Arc<dyn Abort>;

    /// Says goodbye to the peers, within the deadline. Dropping a session without it is legal:
    /// `Drop` frees what is local and never waits.
    ///
    /// # Errors
    ///
    /// A peer was lost or is late.
    fn close(&mut self, seq: u64) -> Result<(), EnqueueError>;
}

/// What memory tells of a rank's work on its device, from any thread, without a vendor's call.
pub trait Watch: Send + Sync {
    /// What the device says that it has been awaiting for long; the same as at the last look if it
    /// does so no more.
    fn waits(&self) -> Option<DeviceWait>;
}

/// What a kernel waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceWait {
    /// The call, as the device counts: replays of graphs count too. The low 32 bits.
    pub call: u32,
    /// The awaited rank.
    pub awaited: u32,
    /// What for.
    pub what: &'static str,
    /// Moves for as long as it waits.
    pub moment: u16,
}

/// Ends the waits of a session, on every rank that can be reached.
pub trait Abort: Send + Sync {
    /// Calls that wait, and all later ones, fail with this verdict, on every rank the same; but for a
    /// group that has ended before, whose verdict stays. Idempotent; never blocks.
    fn abort(&self, verdict: &Verdict);
}

impl EnqueueError {
    /// Is the cause a peer that is gone, late or gave up, rather than a mistake or a vendor?
    pub fn is_loss(&self) -> bool {
        matches!(self.kind(), Self::Aborted { .. } | Self::Late { .. } | Self::Lost { .. })
    }

    /// The error itself, without who found it and in which group.
    pub fn kind(&self) -> &EnqueueError {
        match self {
            Self::Whole(error) | Self::Found(error) => error.kind(),
            error => error,
        }
    }

    /// Of one whose text is a whole sentence, that.
    fn sentence(&self) -> String {
        match self {
            Self::Aborted { reason: text, .. }
            | Self::Late { step: text, .. }
            | Self::Lost { how: text, .. } => text.clone(),
            Self::Mismatch { what, .. } => format!("ranks made different calls: {what}"),
            other => other.to_string(),
        }
    }
}

/// A call could not be completed; the communicator is no longer usable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnqueueError {
    /// Some rank aborted the group.
    #[error("{step}, call {seq}: rank {rank} aborted the group: {reason}")]
    Aborted {
        /// During what.
        step: String,
        /// Of which call.
        seq: u64,
        /// By whom.
        rank: u32,
        /// Why.
        reason: String,
    },
    /// A peer did not come in time; its process is alive.
    #[error("{step}, call {seq}: still waiting for {} after {waited:.1?}", ranks_in_words(ranks))]
    Late {
        /// During what.
        step: String,
        /// Of which call.
        seq: u64,
        /// The ranks that did not come.
        ranks: Vec<u32>,
        /// For how long.
        waited: Duration,
    },
    /// A peer's process is gone.
    #[error("{step}, call {seq}: rank {rank} was lost: {how}")]
    Lost {
        /// During what.
        step: String,
        /// Of which call.
        seq: u64,
        /// Who.
        rank: u32,
        /// What was seen.
        how: String,
    },
    /// The memory of this group of one is on a device, and nobody said how to copy it.
    #[error(
        "call {seq}: this group of one is on {arch}, whose memory the core cannot copy: give the \
         group a copier by with_copier()"
    )]
    NoCopier {
        /// Of which call.
        seq: u64,
        /// The architecture.
        arch: String,
    },
    /// A graph was replayed that holds calls of which peers know nothing yet.
    #[error(
        "call {seq}: a graph was replayed before commit(): call commit() on every rank when a \
         capture has ended"
    )]
    NotCommitted {
        /// The captured call.
        seq: u64,
    },
    /// A captured call needs what cannot be made ready while a stream is captured.
    #[error("call {seq}: {what} while a stream is captured: call prepare() with this call before")]
    NotPrepared {
        /// Of which call.
        seq: u64,
        /// What is missing, as in "the kernel `x` cannot be loaded".
        what: String,
    },
    /// A capture could not be committed: ranks hold graphs that do not belong together.
    #[error("a capture could not be committed: {why}")]
    Uncommitted {
        /// Why not.
        why: String,
    },
    /// Ranks made different calls. The same sentence on every rank.
    #[error("call {seq}: ranks made different calls: {what}")]
    Mismatch {
        /// Which call.
        seq: u64,
        /// Which ranks, which field, which values.
        what: String,
    },
    /// A vendor's function failed.
    #[error("{step}, call {seq}: {call} failed: {text}")]
    Vendor {
        /// During what.
        step: String,
        /// Of which call.
        seq: u64,
        /// The function.
        call: &'static str,
        /// Its status, in words.
        text: String,
    },
    /// The group that this one is a part of has ended: its error, by its own ranks and calls.
    #[error("{0}")]
    Whole(Box<EnqueueError>),
    /// What the watchdog found: the text within, of a late rank the step, is a whole sentence, which names
    /// group, ranks and call.
    #[error("the watchdog: {}", .0.sentence())]
    Found(Box<EnqueueError>),
}
