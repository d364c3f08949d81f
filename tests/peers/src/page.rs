//! Memory that all ranks of a measurement share: the loop's own barrier and maxima, which are the
//! same for every contender, lines whose way is timed, and a share of bytes for each rank, for what runs without a library.

use std::fs::{self, OpenOptions};
use std::os::fd::AsFd;
use std::path::Path;
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use anyhow::{Context as _, Result, ensure};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::wait::Wait;

/// The most ranks of a measurement.
pub(crate) const MOST_RANKS: usize = 16;
/// Of each rank's share. The file is sparse: what is not touched takes no memory.
pub(crate) const SHARE: usize = 80 << 20;

/// A value of one writer, on a pair of cache lines of its own: processors fetch lines in pairs.
#[repr(C, align(128))]
pub(crate) struct Line(pub(crate) AtomicU64);

#[repr(C)]
struct Control {
    arrived: [Line; MOST_RANKS],
    value: [Line; MOST_RANKS],
    /// Thrown to and fro between the ranks 0 and 1.
    thrown: [Line; 2],
}

/// The mapping.
pub(crate) struct Page {
    start: *mut u8,
}

const CONTROL: usize = size_of::<Control>().next_multiple_of(4096);
const BYTES: usize = CONTROL + MOST_RANKS * SHARE;

// SAFETY: the control words are atomics; whoever uses the shares orders its accesses by such.
unsafe impl Send for Page {}
// SAFETY: as above.
unsafe impl Sync for Page {}

impl Page {
    /// Maps the file, which all ranks of one measurement name and no earlier one has left.
    pub(crate) fn open(path: &Path) -> Result<Page> {
        let open = || -> Result<Page> {
            let mut options = OpenOptions::new();
            let file = options.read(true).write(true).create(true).truncate(false).open(path)?;
            file.set_len(BYTES as u64)?;
            let access = ProtFlags::READ | ProtFlags::WRITE;
            // SAFETY: a new mapping, of the file's size.
            let start =
                unsafe { mmap(ptr::null_mut(), BYTES, access, MapFlags::SHARED, file.as_fd(), 0)? };
            Ok(Page { start: start.cast() })
        };
        open().with_context(|| format!("{}: cannot be shared by the ranks", path.display()))
    }

    /// A page of this process, for ranks that are threads.
    #[cfg(test)]
    pub(crate) fn anonymous() -> Page {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping.
        let start =
            unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), BYTES, access, MapFlags::SHARED) };
        Page { start: start.expect("address space").cast() }
    }

    /// The first byte of a rank's share, which starts a page and holds [`SHARE`] bytes.
    pub(crate) fn share(&self, rank: usize) -> *mut u8 {
        assert!(rank < MOST_RANKS, "rank {rank}");
        // SAFETY: within the mapping.
        unsafe { self.start.add(CONTROL + rank * SHARE) }
    }

    /// A line of rank 0's and one of rank 1's, whose ways are timed.
    pub(crate) fn lines(&self) -> [&AtomicU64; 2] {
        self.control().thrown.each_ref().map(|line| &line.0)
    }

    fn control(&self) -> &Control {
        // SAFETY: the mapping starts with it; it is aligned, and zero is valid.
        unsafe { &*self.start.cast::<Control>() }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own.
        let _ = unsafe { munmap(self.start.cast(), BYTES) };
    }
}

/// One rank at the page.
pub(crate) struct Seat<'p> {
    pub(crate) page: &'p Page,
    pub(crate) rank: usize,
    pub(crate) world: usize,
    pub(crate) wait: Wait,
    met: u64,
}

impl<'p> Seat<'p> {
    pub(crate) fn new(page: &'p Page, rank: usize, world: usize, wait: Wait) -> Result<Seat<'p>> {
        ensure!(
            world <= MOST_RANKS,
            "{world} ranks are more than the {MOST_RANKS} there is room for"
        );
        Ok(Seat { page, rank, world, wait, met: 0 })
    }

    /// Takes the file's name away once every rank has mapped it: nothing is left behind.
    pub(crate) fn settle(&mut self, path: &Path) -> Result<()> {
        self.barrier();
        if self.rank == 0 {
            fs::remove_file(path).with_context(|| format!("{}", path.display()))?;
        }
        Ok(())
    }

    /// Returns once every rank has entered.
    pub(crate) fn barrier(&mut self) {
        self.met += 1;
        let arrived = &self.page.control().arrived;
        arrived[self.rank].0.store(self.met, Release);
        for line in &arrived[..self.world] {
            self.wait.until(|| line.0.load(Acquire) >= self.met);
        }
    }

    /// The greatest of all ranks' values.
    pub(crate) fn max(&mut self, value: f64) -> f64 {
        let values = &self.page.control().value;
        values[self.rank].0.store(value.to_bits(), Relaxed);
        self.barrier();
        let of = |line: &Line| f64::from_bits(line.0.load(Relaxed));
        let greatest = values[..self.world].iter().map(of).fold(f64::MIN, f64::max);
        self.barrier(); // before anyone writes the next value
        greatest
    }
}
