//! The memory that MPI may touch. An engine's own never is in MPI's hands: an operation that was
//! given up cannot be taken back, and may still read and write when the engine has long freed its
//! tensors. Such an operation keeps this memory for ever instead.

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

use crate::comm::Shares;
use crate::keeper;
use crate::library::layout::Request;

/// Most bytes that travel with a call's header, so that a small call takes one message from rank to
/// rank; below what libraries send without asking the receiver for room.
pub(crate) const INLINE: usize = 4096; // size: of a message, as the comment says
/// Of a header.
pub(crate) const HEADER: usize = 32;
/// Room for a header and what travels with it.
pub(crate) const BLOCK: usize = HEADER + INLINE;

/// Buffers, and whether an operation is using them.
pub(crate) struct Staging {
    memory: ManuallyDrop<Box<Memory>>,
    under_way: bool,
}

/// What operations read and write.
#[derive(Default)]
pub(crate) struct Memory {
    /// What this rank gives.
    pub(crate) given: Vec<u8>,
    /// What it receives.
    pub(crate) come: Vec<u8>,
    /// A block for each rank: what is sent to it in a call's first step.
    pub(crate) told: Vec<u8>,
    /// A block of each rank.
    pub(crate) heard: Vec<u8>,
    /// Of [`Memory::given`].
    pub(crate) mine: Shares,
    /// Of [`Memory::come`].
    pub(crate) theirs: Shares,
    /// Messages to and from each rank.
    pub(crate) sent: Vec<Request>,
    pub(crate) received: Vec<Request>,
}

impl Staging {
    pub(crate) fn new(world: u32) -> Self {
        let blocks = || vec![0; world as usize * BLOCK];
        let memory = Memory {
            told: blocks(),
            heard: blocks(),
            sent: vec![Request::NULL; world as usize],
            received: vec![Request::NULL; world as usize],
            ..Memory::default()
        };
        Staging { memory: ManuallyDrop::new(Box::new(memory)), under_way: false }
    }

    /// An operation begins. Until [`Staging::done`] nothing may be changed or moved.
    pub(crate) fn begin(&mut self) {
        self.under_way = true;
    }

    /// All operations have completed.
    pub(crate) fn done(&mut self) {
        self.under_way = false;
    }

    /// Makes room, where it is lacking.
    pub(crate) fn room(&mut self, given: usize, come: usize) {
        let grow = |buffer: &mut Vec<u8>, len| {
            if buffer.len() < len {
                buffer.resize(len, 0);
            }
        };
        grow(&mut self.memory.given, given);
        grow(&mut self.memory.come, come);
    }
}

impl Deref for Staging {
    type Target = Memory;

    fn deref(&self) -> &Memory {
        &self.memory
    }
}

impl DerefMut for Staging {
    fn deref_mut(&mut self) -> &mut Memory {
        &mut self.memory
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if self.under_way {
            keeper::abandon();
            return;
        }
        // SAFETY: it is not used again, and nothing of MPI's uses it.
        unsafe { ManuallyDrop::drop(&mut self.memory) };
    }
}
