//! What a rank's result rests on is told with it. A kernel that gave up, and a library call that was
//! aborted, end as others do in their stream, and what comes behind would take their outputs for
//! right: the groups inside and across know nothing of one another's ends until a host tells them.
//! So behind the parts, in the same stream, goes a word.
//!
//! - Inside its node each rank gathers the word, and keeps what came as its own. A kernel of this
//!   rank that gave up before has left the others nothing to do, and the place stays zero.
//! - Across nodes those are added. The sum is the word times the number of nodes only if every node
//!   reduced its part and the library came to its end.
//! - Inside its node each rank gathers sum and word into a page of its host. They travel in the
//!   kernels' whole unit, which is stored at once, and are read at once: the host may look while
//!   calls are in flight, and what belongs to two of them would look like a rank that gave up.
//!
//! The word is another one for each call, so that no buffer of a call before can pass for it: a ring
//! of numbers turns on the device, with replays as with calls.

use std::sync::atomic::Ordering::Acquire;
use std::sync::atomic::{AtomicBool, AtomicU64};

use crossover_core::agreement::StepError;
use crossover_device::device::Device;
use crossover_device::error::DeviceError;
use crossover_device::memory::{Buffer, HostPages};
use crossover_device::stream::Stream;

use crate::layout::MOST;

/// Numbers of the ring: a prime, so that no power of two of calls comes round.
const RING: usize = 61;
const WORD: usize = size_of::<u32>();
/// Words that a rank tells: the sum, the word, and as many as make them 16 bytes. Kernels store
/// less than that byte by byte.
pub(crate) const TELLS: usize = 4;
/// Words of a rank's memory: the ring, its copy, what came inside, then what it tells.
const COPY: usize = RING;
const CAME: usize = 2 * RING;
const SUM: usize = (CAME + MOST).next_multiple_of(TELLS);
const WORDS: usize = SUM + TELLS;
/// So many looks that see the same are believed, and so many are made at most.
const EQUAL: usize = 64;
const LOOKS: usize = 1024;

/// A rank's words.
pub(crate) struct Health {
    words: Option<Buffer>,
    page: Option<Page>,
    /// Ranks of the node.
    inside: usize,
    /// This rank among them.
    number: usize,
    nodes: u32,
    /// May nothing of it be in use any more?
    over: AtomicBool,
}

/// The page that this rank's kernels write and its host reads.
struct Page {
    // First: it is unlocked before it is unmapped.
    device: HostPages,
    own: Mapping,
}

struct Mapping {
    at: *mut u8,
    bytes: usize,
}

// SAFETY: it is read by atomics alone.
unsafe impl Send for Mapping {}
// SAFETY: likewise.
unsafe impl Sync for Mapping {}

/// Where the calls for the word have their tensors, as addresses on the device.
pub(crate) struct Places {
    /// The word of this call.
    pub(crate) word: u64,
    /// The words of the node's ranks.
    pub(crate) came: u64,
    /// The own one of them.
    pub(crate) kept: u64,
    /// The sum; the word is beside it, and what fills up [`TELLS`].
    pub(crate) sum: u64,
    /// What the node's ranks tell, in the host's page.
    pub(crate) told: u64,
}

impl Health {
    pub(crate) fn new(
        device: &Device,
        inside: usize,
        number: usize,
        nodes: u32,
    ) -> Result<Health, StepError> {
        let made = || -> Result<Buffer, DeviceError> {
            let stream = Stream::new(device)?;
            let words = Buffer::new(device, WORDS * WORD)?;
            let ring: Vec<u8> = (1..=RING as u32).flat_map(u32::to_ne_bytes).collect();
            words.upload(0, &ring, &stream)?;
            Ok(words)
        };
        let words = Some(made().map_err(StepError::new)?);
        let page = Some(Page::new(device)?);
        Ok(Health { words, page, inside, number, nodes, over: AtomicBool::new(false) })
    }

    /// Turns the ring and clears what came of the call before, in stream order. The calls for the
    /// word come behind.
    ///
    /// # Safety
    ///
    /// The stream's work is done before this is dropped, or [`Health::release`] is never called.
    pub(crate) unsafe fn begin(&self, stream: u64) -> Result<Places, DeviceError> {
        let (Some(words), Some(page)) = (&self.words, &self.page) else {
            return Err(DeviceError::Invalid("its words were given back".to_owned()));
        };
        let at = |word: usize| words.address() + (word * WORD) as u64;
        let device = words.device();
        // SAFETY: all ranges are within the buffer, which lives as the caller promises, and no two of
        // one copy overlap.
        unsafe {
            device.copy(at(COPY), at(0), RING * WORD, stream)?;
            device.copy(at(0), at(COPY + 1), (RING - 1) * WORD, stream)?;
            device.copy(at(RING - 1), at(COPY), WORD, stream)?;
            device.fill(at(CAME), 0, WORDS - CAME, stream)?;
            device.copy(at(SUM + 1), at(COPY), WORD, stream)?;
        }
        Ok(Places {
            word: at(COPY),
            came: at(CAME),
            kept: at(CAME + self.number),
            sum: at(SUM),
            told: page.device.address(),
        })
    }

    /// The rank of this node, by its number there, whose part was not right in the call whose words
    /// are the last to have come to this host, whether or not later ones are in flight. A rank's
    /// words stay until those of the next call come. Zeros, before the first, are right.
    pub(crate) fn wrong(&self) -> Option<usize> {
        let page = self.page.as_ref()?;
        (0..self.inside).find(|rank| is_wrong(|| page.own.pair(*rank), self.nodes))
    }

    /// Nothing in any stream uses it any more: it may be given back.
    pub(crate) fn release(&self) {
        self.over.store(true, std::sync::atomic::Ordering::Release);
    }
}

/// Is what a rank tells wrong, sum and word? A device that stores both halves of a pair one after
/// the other is given the time to do so: only what stays is believed.
fn is_wrong(look: impl Fn() -> (u32, u32), nodes: u32) -> bool {
    let is_right = |(sum, word): (u32, u32)| sum == word.wrapping_mul(nodes);
    let (mut last, mut equal) = (look(), 1);
    for _ in 0..LOOKS {
        if is_right(last) {
            return false;
        }
        if equal == EQUAL {
            return true;
        }
        std::hint::spin_loop();
        let now = look();
        equal = if now == last { equal + 1 } else { 1 };
        last = now;
    }
    // It changes all the time: calls are in flight, and a look at rest will see.
    false
}

impl Drop for Health {
    /// What kernels may still write is not given back: it goes with the process.
    fn drop(&mut self) {
        if !self.over.load(Acquire) {
            std::mem::forget(self.words.take());
            std::mem::forget(self.page.take());
        }
    }
}

impl Page {
    fn new(device: &Device) -> Result<Page, StepError> {
        use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
        let bytes = rustix::param::page_size();
        let (access, how) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let at = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, access, how) };
        let at = at.map_err(|e| StepError(format!("no page for what kernels tell: {e}")))?;
        let own = Mapping { at: at.cast(), bytes };
        // SAFETY: they stay mapped for as long as the mapping beside lives, which is dropped later.
        let device = unsafe { HostPages::register(device, own.at, bytes) };
        Ok(Page { device: device.map_err(StepError::new)?, own })
    }
}

impl Mapping {
    /// A rank's sum and word, as they were at one moment.
    fn pair(&self, rank: usize) -> (u32, u32) {
        let at = rank * TELLS * WORD;
        assert!(at + size_of::<u64>() <= self.bytes);
        // SAFETY: it is within the mapping, aligned, and read and written as a whole.
        let pair = unsafe { AtomicU64::from_ptr(self.at.add(at).cast()) }.load(Acquire);
        let [a, b, c, d, e, f, g, h] = pair.to_ne_bytes();
        (u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h]))
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this mapping is ours, and nobody has it any more.
        let unmapped = unsafe { rustix::mm::munmap(self.at.cast(), self.bytes) };
        debug_assert!(unmapped.is_ok());
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::{EQUAL, is_wrong};

    /// Looks that see these, and the last one from then on.
    fn seeing(pairs: &[(u32, u32)]) -> bool {
        let next = Cell::new(0);
        let look = || {
            let nth = next.replace(next.get() + 1);
            pairs[nth.min(pairs.len() - 1)]
        };
        is_wrong(look, 2)
    }

    #[test]
    fn what_stays_is_believed_and_what_changes_is_not() {
        assert!(!seeing(&[(0, 0)]));
        assert!(!seeing(&[(14, 7)]));
        assert!(seeing(&[(7, 7)]));
        assert!(seeing(&[(14, 8)]), "the sum of a call before is none");
        // Halves of two calls, for a while.
        let torn = [(16, 7); EQUAL - 1];
        assert!(!seeing(&[&torn[..], &[(16, 8)]].concat()));
        assert!(seeing(&[&torn[..], &[(8, 8)]].concat()));
        let next = Cell::new(1);
        let other = || (0, next.replace(next.get() + 1));
        assert!(!is_wrong(other, 2));
    }
}
