//! A text that is written once, by whoever comes first, and read by all.

use super::Word;

const EMPTY: u64 = 0;
const CLAIMED: u64 = 1;
const WRITTEN: u64 = 2;

/// The state of the text, kept in one shared word that starts at 0.
#[derive(Debug)]
pub struct Once<'a, W: Word>(pub &'a W);

/// What became of an attempt to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posted {
    /// This one was the first: the text is there.
    Ours,
    /// Another was first; its text is there, or soon will be.
    Theirs,
}

impl<W: Word> Once<'_, W> {
    /// Runs `write`, unless another was first. Never waits.
    pub fn post(&self, write: impl FnOnce()) -> Posted {
        if !self.0.compare_exchange(EMPTY, CLAIMED) {
            return Posted::Theirs;
        }
        write();
        self.0.store_release(WRITTEN);
        Posted::Ours
    }

    /// May the text be read?
    #[inline]
    pub fn is_written(&self) -> bool {
        self.0.load_acquire() == WRITTEN
    }
}
