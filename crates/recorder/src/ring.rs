//! The ring that a rank writes: in memory which outlives a crash of its process for as long as anybody
//! has it open, or its file is there.

use std::path::Path;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::fence;

use crossover_core::call::Split;
use crossover_core::record::{Entry, Event};
use rustix::mm::{MapFlags, ProtFlags};

use crate::about::About;
use crate::clock::{self, Moment};
use crate::coded::{Coded, mix};
use crate::image::Phase;
use crate::layout::{self, BYTES, Memory, Slot};
use crate::place::{self, Place};
use crate::sites::{Numbers, write_text};

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

    /// Writes a record; the end of a capture and a goodbye are phases too. One thread at a time.
    #[inline(always)]
    pub fn write(&self, entry: &Entry<'_>) {
        let progress = &self.memory().progress;
        let site = match progress.named_site.load(Relaxed) {
            0 => self.sites.known(entry.site),
            named => named,
        };
        let coded = match entry.event {
            Event::Call(call) if matches!(call.split, Split::Even) => Coded::call(call, 0),
            Event::State { step, digest } => {
                progress.step.store(step.into(), Relaxed);
                Coded::state(step, digest)
            }
            _ => return self.write_rare(entry),
        };
        if site == 0 {
            return self.write_rare(entry);
        }
        self.put(coded, entry, site);
    }

    /// What is rarely written, or from a place that was not met before: out of the way of all else.
    #[cold]
    #[inline(never)]
    fn write_rare(&self, entry: &Entry<'_>) {
        let memory = self.memory();
        match entry.event {
            Event::Commit => self.enter(Phase::Committing),
            Event::Close => self.enter(Phase::Closing),
            _ => {}
        }
        let site = match memory.progress.named_site.load(Relaxed) {
            0 => u64::from(self.sites.of(entry.site, memory)),
            named => named,
        };
        self.put(Coded::of(&entry.event), entry, site);
    }

    // Reading the counter waits for all that began before it, and all after waits for it: so the time of
    // a record is that of its longest chain of dependent steps, and each word is stored once it is known.
    #[inline(always)]
    fn put(&self, coded: Coded, entry: &Entry<'_>, site: u64) {
        let memory = self.memory();
        let progress = &memory.progress;
        let target = u64::from(entry.target);
        let number = progress.issued.load(Relaxed) + 1;
        let slot = memory.slot(number);
        slot.tag.store(0, Relaxed);
        // A reader that sees any of what follows sees that the tag was taken away.
        fence(Release);
        slot.ticks.store(clock::ticks(), Relaxed);
        slot.what.store(coded.what, Relaxed);
        slot.count.store(coded.count, Relaxed);
        slot.seq.store(entry.seq, Relaxed);
        let step = progress.step.load(Relaxed);
        slot.place.store(step << 32 | site << 16 | target, Relaxed);
        let fingerprint = coded.fingerprint(target);
        slot.fingerprint.store(fingerprint, Relaxed);
        let chain = mix(progress.chain.load(Relaxed), fingerprint);
        slot.chain.store(chain, Relaxed);
        slot.tag.store(number, Release);
        progress.chain.store(chain, Relaxed);
        progress.issued.store(number, Release);
    }

    /// What was written last is done.
    #[inline]
    pub fn finish(&self) {
        let memory = self.memory();
        let issued = memory.progress.issued.load(Relaxed);
        memory.progress.finished.store(issued, Release);
        // The next record's line was last written thousands of records ago, and what a call tells its
        // peers leaves the processor only after its record has.
        prefetch(memory.slot(issued + 1));
    }

    /// Names the place of the records to come; empty for their place in the program.
    pub fn name_site(&self, name: &str) {
        let memory = self.memory();
        let number = if name.is_empty() { 0 } else { self.sites.of_name(name, memory) };
        memory.progress.named_site.store(number.into(), Relaxed);
    }

    /// Where the rank is in its group's life from now on.
    #[inline]
    pub fn enter(&self, phase: Phase) {
        let progress = &self.memory().progress;
        progress.entered.store(clock::unix(), Relaxed);
        progress.phase.store(phase as u64, Release);
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

    #[inline]
    pub(crate) fn phase(&self) -> Phase {
        let number = self.memory().progress.phase.load(Relaxed) as usize;
        Phase::ALL.get(number).copied().unwrap_or_default()
    }

    /// Of what kind the last record is: op, and size by its power of two.
    pub(crate) fn last_kind(&self) -> (u64, u32) {
        let memory = self.memory();
        let slot = memory.slot(memory.progress.issued.load(Relaxed));
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

/// Asks for the line, which will be written.
#[inline(always)]
fn prefetch(slot: &Slot) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it has no effect that a program could see.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_ET0>(std::ptr::from_ref(slot).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = slot;
}
