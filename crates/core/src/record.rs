//! What a communicator tells a flight recorder: every call before it is handed over, every note of
//! the engine, and how the group ends. The core keeps nothing itself, since it opens no file.

use std::panic::Location;

use crate::backend::EnqueueError;
use crate::call::CallSig;

/// Keeps what one rank of one group does. A communicator tells it one thing after the other, never
/// two at a time. Every call goes by [`Recorder::begin`], before its session sees it, and by
/// [`Recorder::end`]: they neither wait nor call a vendor, and together have a budget of 20 ns.
pub trait Recorder: Send + Sync {
    /// This is about to be done. `false` once the group is to end: then [`Recorder::trouble`] says
    /// why, and it is not done.
    fn begin(&self, entry: &Entry<'_>) -> bool;

    /// What began last is done; on a device, enqueued.
    fn end(&self);

    /// Why the group is to end.
    fn trouble(&self, seq: u64) -> EnqueueError;

    /// The group ended badly on this rank; its peers have been told. This may take seconds, for a dump:
    /// no call is made any more.
    fn failed(&self, error: &EnqueueError);

    /// The rank has said goodbye.
    fn closed(&self);

    /// The rank drops the group, closed or not. Its backends have not told its peers yet: who learns of it
    /// from them finds it told here. Others may hold the recorder for longer.
    fn left(&self);

    /// What the engine calls the place of the calls to come; empty for their place in the program.
    fn name_site(&self, name: &str);
}

/// Something that a rank does.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// What.
    pub event: Event<'a>,
    /// The call's number in the group; for what takes none, the last call's.
    pub seq: u64,
    /// What serves a call: its place in [`Communicator::targets`](crate::communicator::Communicator::targets).
    pub target: u16,
    /// Where in the program.
    pub site: &'static Location<'static>,
}

/// What a rank does. All of it is the same on every rank of a group, in the same order.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// It makes a call.
    Call(&'a CallSig<'a>),
    /// The engine says in which state it is.
    State {
        /// The engine's step.
        step: u32,
        /// A digest of what must be equal on all ranks in this step.
        digest: u64,
    },
    /// It replays the graph of this key.
    Replay {
        /// What the engine knows the graph by.
        graph: u64,
    },
    /// It ends a capture.
    Commit,
    /// It says goodbye.
    Close,
}
