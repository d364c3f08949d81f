//! The ring that a rank writes: in memory which outlives a crash of its process for as long as anybody
//! has it open, or its file is there.

use std::path::Path;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::fence;

use crossover_core::call::Split;
use crossover_core::record::{Entry, Event};
use rustix::mm::{MapFlags, ProtFlags};
use xxhash_rust::xxh3::xxh3_64;

use crate::about::About;
use crate::clock::{self, Moment};
use crate::image::Phase;
use crate::layout::{self, BYTES, Memory, SLOTS};
use crate::place::{self, Place};
use crate::sites::{Numbers, write_text};

/// What is recorded that is no call, where ops stand.
pub(crate) mod note {
    pub(crate) const STATE: u8 = 0x80;
    pub(crate) const REPLAY: u8 = 0x81;
    pub(crate) const COMMIT: u8 = 0x82;
    pub(crate) const CLOSE: u8 = 0x83;
}

/// One rank's ring, which it alone writes.
pub struct Ring {
    memory: *mut Memory,
    place: Place,
    sites: Numbers,
    about: About,
}

// SAFETY: what is written after the mapping was made is atomic.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

/// A ring could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RingError {
    /// No memory.
    #[error("no memory for the flight recorder: {0}")]
    Memory(rustix::io::Errno),
    /// The description of group and rank does not fit.
    #[error("the group's description takes {bytes} B, and {} fit", layout::ABOUT_BYTES)]
    About {
        /// What it takes.
        bytes: usize,
    },
}

impl Ring {
    /// Makes one in `folder`, or without a name if there is none or it has no room: then it says why.
    ///
    /// # Errors
    ///
    /// There is no memory at all, or `about` is too long.
    pub fn make(folder: Option<&Path>, about: About) -> Result<(Ring, Option<String>), RingError> {
        let described = postcard::to_stdvec(&about).unwrap_or_default();
        if described.is_empty() || described.len() > layout::ABOUT_BYTES {
            return Err(RingError::About { bytes: described.len() });
        }
        let (place, why) = place::make(folder, &about).map_err(RingError::Memory)?;
        let (access, shared) =
            (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::POPULATE);
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let memory = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), BYTES, access, shared, &place.file, 0)
        };
        let memory = match memory {
            Ok(memory) => memory.cast(),
            Err(e) => {
                place.remove();
                return Err(RingError::Memory(e));
            }
        };
        let ring = Ring { memory, place, sites: Numbers::new(), about };
        ring.describe(&described);
        Ok((ring, why))
    }

    fn describe(&self, described: &[u8]) {
        let memory = self.memory();
        memory.version.store(layout::VERSION, Relaxed);
        memory.about_bytes.store(described.len() as u32, Relaxed);
        for (word, bytes) in memory.about.iter().zip(described.chunks(8)) {
            let mut eight = [0; 8];
            eight[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_ne_bytes(eight), Relaxed);
        }
        let now = Moment::now();
        for line in [&memory.beat.first, &memory.beat.last] {
            for (to, word) in line.iter().zip(now.words()) {
                to.store(word, Relaxed);
            }
        }
        memory.beat.at.store(now.monotonic, Relaxed);
        memory.magic.store(layout::MAGIC, Release);
    }

    /// Whose it is.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// By which other processes of this node can open it.
    pub fn path(&self) -> &Path {
        &self.place.path
    }

    /// Writes a record. One thread at a time.
    #[inline]
    pub fn write(&self, entry: &Entry<'_>) {
        let memory = self.memory();
        let progress = &memory.progress;
        let (what, count, more) = coded(&entry.event);
        if let Event::State { step, .. } = entry.event {
            progress.step.store(u64::from(step), Relaxed);
        }
        let number = progress.issued.load(Relaxed) + 1;
        let fingerprint = fingerprint(what, u64::from(entry.target), count, more);
        let chain = mix(progress.chain.load(Relaxed), fingerprint);
        let site = match progress.named_site.load(Relaxed) {
            0 => u64::from(self.sites.of(entry.site, memory)),
            named => named,
        };
        let slot = &memory.slots[number as usize % SLOTS];
        slot.tag.store(0, Relaxed);
        // A reader that sees any of what follows sees that the tag was taken away.
        fence(Release);
        slot.fingerprint.store(fingerprint, Relaxed);
        slot.chain.store(chain, Relaxed);
        slot.count.store(count, Relaxed);
        slot.ticks.store(clock::ticks(), Relaxed);
        slot.seq.store(entry.seq, Relaxed);
        let step = progress.step.load(Relaxed) & 0xFFFF_FFFF;
        slot.place.store(step << 32 | site << 16 | u64::from(entry.target), Relaxed);
        slot.what.store(what, Relaxed);
        slot.tag.store(number, Release);
        progress.chain.store(chain, Relaxed);
        progress.issued.store(number, Release);
    }

    /// What was written last is done.
    #[inline]
    pub fn finish(&self) {
        let progress = &self.memory().progress;
        progress.finished.store(progress.issued.load(Relaxed), Release);
    }

    /// Names the place of the records to come; empty for their place in the program.
    pub fn name_site(&self, name: &str) {
        let memory = self.memory();
        let number = if name.is_empty() { 0 } else { self.sites.of_name(name, memory) };
        memory.progress.named_site.store(number.into(), Relaxed);
    }

    /// Where the rank is in its group's life from now on.
    pub fn enter(&self, phase: Phase) {
        self.memory().progress.phase.store(phase as u64, Release);
    }

    /// What the device waits for, seen now; `since` is in nanoseconds since 1970.
    pub(crate) fn write_wait(&self, call: u32, awaited: u64, what: &str, since: u64) {
        let line = &self.memory().device;
        line.call.store(call.into(), Relaxed);
        line.awaited.store(awaited, Relaxed);
        line.since.store(since, Relaxed);
        line.what.iter().for_each(|word| word.store(0, Relaxed));
        write_text(&line.what, what);
        line.seen.store(clock::unix(), Release);
    }

    pub(crate) fn phase(&self) -> Phase {
        let number = self.memory().progress.phase.load(Relaxed) as usize;
        Phase::ALL.get(number).copied().unwrap_or_default()
    }

    /// Of what kind the last record is: op, and size by its power of two.
    pub(crate) fn last_kind(&self) -> (u64, u32) {
        let memory = self.memory();
        let slot = &memory.slots[memory.progress.issued.load(Relaxed) as usize % SLOTS];
        let count = slot.count.load(Relaxed);
        (slot.what.load(Relaxed) & 0xFF, u64::BITS - count.leading_zeros())
    }

    /// The sentence that ended the group; the first one stays.
    pub fn write_end(&self, sentence: &str) {
        let end = &self.memory().end;
        if end.bytes.load(Relaxed) == 0 {
            let fits = (0..=sentence.len().min(layout::END_BYTES)).rev();
            let bytes = fits.into_iter().find(|at| sentence.is_char_boundary(*at)).unwrap_or(0);
            write_text(&end.text, &sentence[..bytes]);
            end.bytes.store(bytes as u64, Release);
        }
    }

    /// A sign of life.
    pub fn beat(&self) {
        let (beat, now) = (&self.memory().beat, Moment::now());
        for (to, word) in beat.last.iter().zip(now.words()) {
            to.store(word, Relaxed);
        }
        beat.at.store(now.monotonic, Release);
    }

    /// Takes its name away: it is needed no more.
    pub fn remove(&self) {
        self.place.remove();
    }

    fn memory(&self) -> &Memory {
        // SAFETY: mapped while this lives, page aligned, all of it atomic or never written.
        unsafe { &*self.memory }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: this mapping is ours, and nobody has it any more.
        let unmapped = unsafe { rustix::mm::munmap(self.memory.cast(), BYTES) };
        debug_assert!(unmapped.is_ok());
    }
}

impl Place {
    fn remove(&self) {
        if let Some(path) = &self.named {
            let _ = rustix::fs::unlink(path);
        }
    }
}

/// The word that says what it is, its count, and what else is compared.
#[inline]
fn coded(event: &Event<'_>) -> (u64, u64, u64) {
    match *event {
        Event::Call(call) => {
            // The reduce op means nothing to an op that copies, and may differ.
            let reduce_op = if call.op.reduces() { call.reduce_op as u64 } else { 0 };
            let what = call.op as u64
                | (call.dtype as u64) << 8
                | reduce_op << 16
                | (call.mode as u64) << 24
                | u64::from(call.root) << 32;
            let split = match call.split {
                Split::Even => 0,
                Split::PerRank(counts) => digest(counts),
            };
            (what, call.count as u64, split)
        }
        Event::State { step, digest } => (note::STATE.into(), digest, step.into()),
        Event::Replay { graph } => (note::REPLAY.into(), graph, 0),
        Event::Commit => (note::COMMIT.into(), 0, 0),
        Event::Close => (note::CLOSE.into(), 0, 0),
    }
}

/// Of all that must be equal on every rank.
#[inline]
pub(crate) fn fingerprint(what: u64, target: u64, count: u64, more: u64) -> u64 {
    mix(mix(what, target << 32 ^ more), count)
}

/// Folds the product of 128 bits: every bit of both words reaches every bit of the result.
#[inline]
pub(crate) fn mix(a: u64, b: u64) -> u64 {
    // The constants are wyhash's, odd and with as many ones as zeros.
    let product = u128::from(a ^ 0xA076_1D64_78BD_642F) * u128::from(b ^ 0xE703_7ED1_A0B4_28DB);
    product as u64 ^ (product >> 64) as u64
}

#[cold]
fn digest(counts: &[usize]) -> u64 {
    // SAFETY: numbers have no padding, and any bytes may be read as `u8`.
    let bytes = unsafe { std::slice::from_raw_parts(counts.as_ptr().cast(), size_of_val(counts)) };
    xxh3_64(bytes).max(1)
}
