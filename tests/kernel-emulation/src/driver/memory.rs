//! Memory. Each allocation is a file without a name, so that other processes can map it too.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::process;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crossover_device::driver::{IpcHandle, Provenance, Sharing};
use crossover_device::error::DeviceError;
use rustix::fs::{MemfdFlags, fstat, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

use super::{failed, lock};

/// How what is allocated can be given to other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Allocations {
    /// By a handle, as the driver's plain allocations.
    Legacy,
    /// Not at all, as the segments of an engine's growing pool.
    Expandable,
}

const PAGE: usize = 4096;
/// What memory holds before anybody writes.
const POISON: u8 = 0xa5;
/// The first bytes of a handle.
const MAGIC: &[u8; 8] = b"emulated";

struct Range {
    bytes: usize,
    /// With the page behind it.
    reserved: usize,
    ordinal: u32,
    sharing: Sharing,
    id: u64,
    /// Who mapped it: itself, and imports within the process.
    uses: u32,
    origin: Origin,
    file: OwnedFd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Allocated,
    Virtual,
    Imported,
}

thread_local! {
    /// What this thread's memory is allocated as, if it was told.
    pub(super) static KIND: Cell<Option<Allocations>> = const { Cell::new(None) };
}

pub(super) struct Memory {
    /// Of threads that were told nothing else.
    kind: Allocations,
    ranges: Mutex<BTreeMap<u64, Range>>,
    /// Registered pages of the host, by their address.
    pages: Mutex<BTreeMap<u64, usize>>,
    ids: AtomicU64,
}

impl Memory {
    pub(super) fn new(kind: Allocations) -> Memory {
        Memory { kind, ranges: Mutex::default(), pages: Mutex::default(), ids: AtomicU64::new(1) }
    }

    pub(super) fn alloc(&self, ordinal: u32, bytes: usize) -> Result<u64, DeviceError> {
        let sharing = match KIND.get().unwrap_or(self.kind) {
            Allocations::Legacy => Sharing::LegacyIpc,
            Allocations::Expandable => Sharing::None,
        };
        self.make(ordinal, bytes, sharing, Origin::Allocated)
    }

    pub(super) fn alloc_virtual(
        &self,
        ordinal: u32,
        bytes: usize,
    ) -> Result<(u64, usize), DeviceError> {
        let bytes = bytes.next_multiple_of(PAGE);
        Ok((self.make(ordinal, bytes, Sharing::PosixFd, Origin::Virtual)?, bytes))
    }

    fn make(
        &self,
        ordinal: u32,
        bytes: usize,
        sharing: Sharing,
        origin: Origin,
    ) -> Result<u64, DeviceError> {
        if bytes == 0 {
            return Err(failed("alloc", 1, "nothing was asked for"));
        }
        let whole = bytes.next_multiple_of(PAGE);
        let file = memfd_create("emulated-memory", MemfdFlags::CLOEXEC)
            .and_then(|file| ftruncate(&file, whole as u64).map(|()| file))
            .map_err(|error| failed("alloc", 2, error.to_string()))?;
        let base = self.map(ordinal, bytes, sharing, origin, file)?;
        // SAFETY: just mapped, and nobody knows of it.
        unsafe { ptr::write_bytes(base as *mut u8, POISON, whole) };
        Ok(base)
    }

    fn map(
        &self,
        ordinal: u32,
        bytes: usize,
        sharing: Sharing,
        origin: Origin,
        file: OwnedFd,
    ) -> Result<u64, DeviceError> {
        let told = |error: rustix::io::Errno| failed("map", 2, error.to_string());
        let whole = bytes.next_multiple_of(PAGE);
        let reserved = whole + PAGE;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new range, whose first pages become the file's.
        let base = unsafe {
            let base =
                mmap_anonymous(ptr::null_mut(), reserved, ProtFlags::empty(), MapFlags::PRIVATE)
                    .map_err(told)?;
            mmap(base, whole, access, MapFlags::SHARED | MapFlags::FIXED, &file, 0)
                .map_err(told)?;
            base as u64
        };
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let range = Range { bytes, reserved, ordinal, sharing, id, uses: 1, origin, file };
        lock(&self.ranges).insert(base, range);
        Ok(base)
    }

    pub(super) fn free(&self, base: u64) -> Result<(), DeviceError> {
        self.unmap(base, Origin::Allocated, "free")
    }

    pub(super) fn free_virtual(&self, base: u64) -> Result<(), DeviceError> {
        self.unmap(base, Origin::Virtual, "free_virtual")
    }

    /// An import of what this process allocated itself is that allocation, used once more.
    pub(super) fn unimport(&self, base: u64) -> Result<(), DeviceError> {
        {
            let mut ranges = lock(&self.ranges);
            if let Some(range) = ranges.get_mut(&base)
                && range.uses > 1
            {
                range.uses -= 1;
                return Ok(());
            }
        }
        self.unmap(base, Origin::Imported, "unimport")
    }

    fn unmap(&self, base: u64, origin: Origin, call: &'static str) -> Result<(), DeviceError> {
        let mut ranges = lock(&self.ranges);
        let Some(range) = ranges.get(&base).filter(|range| range.origin == origin) else {
            return Err(failed(call, 1, format!("nothing of the kind starts at {base:#x}")));
        };
        // SAFETY: the range is this table's, and leaves it here. Who still uses it is at fault, and
        // told so by the processor.
        unsafe { munmap(base as *mut _, range.reserved) }
            .map_err(|error| failed(call, 1, error.to_string()))?;
        ranges.remove(&base);
        Ok(())
    }

    pub(super) fn provenance(&self, pointer: u64) -> Provenance {
        let ranges = lock(&self.ranges);
        match holder(&ranges, pointer) {
            Some((base, range)) => Provenance {
                base,
                bytes: range.bytes as u64,
                ordinal: range.ordinal,
                sharing: if range.origin == Origin::Imported {
                    Sharing::None
                } else {
                    range.sharing
                },
                id: range.id,
            },
            None => {
                Provenance { base: pointer, bytes: 0, ordinal: 0, sharing: Sharing::None, id: 0 }
            }
        }
    }

    pub(super) fn export(&self, base: u64) -> Result<IpcHandle, DeviceError> {
        let ranges = lock(&self.ranges);
        let shared = ranges.get(&base).filter(|range| range.sharing == Sharing::LegacyIpc);
        let Some(range) = shared else {
            return Err(failed("export", 1, format!("{base:#x} cannot be exported by a handle")));
        };
        let mut handle = [0; 64];
        let fields: [u64; 6] = [
            u64::from_le_bytes(*MAGIC),
            process::id().into(),
            range.file.as_raw_fd() as u64,
            inode(&range.file)?,
            range.bytes as u64,
            base,
        ];
        for (at, field) in fields.iter().enumerate() {
            handle[at * 8..at * 8 + 8].copy_from_slice(&field.to_le_bytes());
        }
        Ok(handle)
    }

    pub(super) fn import(&self, ordinal: u32, handle: &IpcHandle) -> Result<u64, DeviceError> {
        let refused = |why: &str| failed("import", 1, why);
        let field =
            |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| handle[at * 8 + byte]));
        if handle[..8] != *MAGIC {
            return Err(refused("this is no handle of an emulated device"));
        }
        let [pid, number, node, bytes, base] = [1, 2, 3, 4, 5].map(field);
        if pid == u64::from(process::id()) {
            let mut ranges = lock(&self.ranges);
            let range = ranges.get_mut(&base).ok_or_else(|| refused("it was freed"))?;
            range.uses += 1;
            return Ok(base);
        }
        let file = File::options().read(true).write(true).open(format!("/proc/{pid}/fd/{number}"));
        let file = OwnedFd::from(file.map_err(|error| refused(&error.to_string()))?);
        if inode(&file)? != node {
            return Err(refused("it was freed"));
        }
        self.map(ordinal, bytes as usize, Sharing::None, Origin::Imported, file)
    }

    pub(super) fn export_fd(&self, pointer: u64) -> Result<OwnedFd, DeviceError> {
        let ranges = lock(&self.ranges);
        match holder(&ranges, pointer) {
            Some((_, range)) if range.sharing == Sharing::PosixFd => {
                range.file.try_clone().map_err(|error| failed("export_fd", 1, error.to_string()))
            }
            _ => Err(failed("export_fd", 1, format!("{pointer:#x} is not exportable memory"))),
        }
    }

    pub(super) fn import_fd(
        &self,
        ordinal: u32,
        fd: BorrowedFd<'_>,
        bytes: usize,
    ) -> Result<u64, DeviceError> {
        let file =
            fd.try_clone_to_owned().map_err(|error| failed("import_fd", 1, error.to_string()))?;
        self.map(ordinal, bytes, Sharing::None, Origin::Imported, file)
    }

    pub(super) fn register_host(&self, pages: u64, bytes: usize) -> Result<u64, DeviceError> {
        if lock(&self.pages).insert(pages, bytes).is_some() {
            return Err(failed("register_host", 712, "these pages are registered already"));
        }
        Ok(pages)
    }

    pub(super) fn unregister_host(&self, pages: u64) -> Result<(), DeviceError> {
        match lock(&self.pages).remove(&pages) {
            Some(_) => Ok(()),
            None => Err(failed("unregister_host", 713, "these pages are not registered")),
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        for (base, range) in std::mem::take(&mut *lock(&self.ranges)) {
            // SAFETY: the range is this table's; the driver is gone, and with it every stream.
            let _ = unsafe { munmap(base as *mut _, range.reserved) };
        }
    }
}

fn holder(ranges: &BTreeMap<u64, Range>, pointer: u64) -> Option<(u64, &Range)> {
    let (base, range) = ranges.range(..=pointer).next_back()?;
    (pointer - base < range.bytes as u64).then_some((*base, range))
}

fn inode(file: impl AsFd) -> Result<u64, DeviceError> {
    fstat(file).map(|about| about.st_ino).map_err(|error| failed("fstat", 1, error.to_string()))
}
