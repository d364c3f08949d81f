//! A rank's memory that peers write and read, and theirs as it is seen here.

use std::sync::Arc;

use crossover_core::agreement::StepError;
use crossover_device::device::Device;
use crossover_device::driver::IpcHandle;
use crossover_device::error::DeviceError;
use crossover_device::memory::{Buffer, HostPages};
use crossover_device::sharing::{Mapping, Share};
use crossover_device::stream::Stream;
use crossover_kernel_abi::{Arena, LAMPORT_EMPTY, MAX_BLOCKS, MAX_WORLD, State};
use serde::{Deserialize, Serialize};

use crate::board::{self, Board};

/// Allocations are of whole units of this: a handle maps whole ones.
const UNIT: u64 = 2 << 20; // size: what CUDA's driver maps at a time

/// Bytes of the barrier's table that a probe writes: the words of two blocks.
const PROBED: usize = 2 * MAX_WORLD * size_of::<u64>();

/// This rank's own memory.
pub(crate) struct Own {
    pub(crate) device: Device,
    pub(crate) layout: Arena,
    arena: Buffer,
    states: Buffer,
    /// The board, as the device sees it. Let go before the board is unmapped.
    pages: HostPages,
    /// For what set-up does on the device, and nothing else.
    pub(crate) stream: Stream,
    pub(crate) board: Arc<Board>,
}

/// Where a rank's arena is, for its peers.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Offer {
    /// The process, by a number that it drew: equal exactly where ranks are threads of one.
    process: u64,
    address: u64,
    bytes: u64,
    #[serde(with = "serde_bytes_64")]
    handle: IpcHandle,
    unit: String,
}

/// A peer's allocation, reachable from here.
pub(crate) enum Reached {
    /// In this process: its own address.
    Here(u64),
    /// Another process's, mapped.
    Mapped(Mapping),
}

impl Reached {
    pub(crate) fn address(&self) -> u64 {
        match self {
            Reached::Here(address) => *address,
            Reached::Mapped(mapping) => mapping.address(),
        }
    }
}

impl Own {
    /// Allocates and fills it: zeros, marks of emptiness, the first call's number.
    pub(crate) fn new(device: Device, layout: Arena, board: Arc<Board>) -> Result<Own, StepError> {
        let make = || -> Result<Own, DeviceError> {
            let stream = Stream::new(&device)?;
            let arena = Buffer::new(&device, layout.bytes.next_multiple_of(UNIT) as usize)?;
            let first = State::FIRST.as_bytes().repeat(MAX_BLOCKS);
            let states = Buffer::new(&device, first.len())?;
            arena.fill(0, &stream)?;
            let words = (layout.lamport_end() - layout.lamport) / 4;
            // SAFETY: inside the arena; waited for below.
            unsafe {
                let from = arena.address() + layout.lamport;
                device.fill(from, LAMPORT_EMPTY, words as usize, stream.raw())?;
            }
            stream.synchronize()?;
            states.upload(0, &first, &stream)?;
            // SAFETY: mapped for as long as the board lives, which this keeps.
            let pages = unsafe { HostPages::register(&device, board.address(), board::BYTES)? };
            Ok(Own { device: device.clone(), layout, arena, states, pages, stream, board })
        };
        make().map_err(|e| {
            StepError(format!(
                "{e}; its arena has {} B (ipc.push, ipc.lamport, ipc.stage)",
                layout.bytes
            ))
        })
    }

    /// What peers need to reach the arena.
    pub(crate) fn offer(&self) -> Result<Offer, StepError> {
        let handle = match self.arena.share().map_err(StepError::new)? {
            Share::Handle(handle) => handle,
            Share::Descriptor(_) => {
                return Err(StepError::new("its arena can be shared by descriptor alone"));
            }
        };
        Ok(Offer {
            process: process(),
            address: self.arena.address(),
            bytes: self.arena.bytes() as u64,
            handle,
            unit: self.device.description().uuid.clone(),
        })
    }

    /// Maps a peer's arena.
    pub(crate) fn reach(&self, offer: &Offer) -> Result<Reached, DeviceError> {
        if offer.process == process() {
            self.befriend(&offer.unit)?;
            return Ok(Reached::Here(offer.address));
        }
        Mapping::by_handle(&self.device, &offer.handle, offer.bytes as usize).map(Reached::Mapped)
    }

    /// Lets this device reach another of the same process.
    fn befriend(&self, unit: &str) -> Result<(), DeviceError> {
        if unit == self.device.description().uuid {
            return Ok(());
        }
        let driver = self.device.driver();
        let peer = driver.devices()?.into_iter().find(|d| d.uuid == unit);
        let peer =
            peer.ok_or_else(|| DeviceError::Invalid(format!("device {unit} is not visible here")))?;
        self.device.make_current()?;
        driver.enable_peer(peer.ordinal)
    }

    pub(crate) fn arena(&self) -> u64 {
        self.arena.address()
    }

    pub(crate) fn states(&self) -> u64 {
        self.states.address()
    }

    /// The word that ends all waits, as kernels see it.
    pub(crate) fn abort(&self) -> u64 {
        self.pages.address() + Board::abort_at()
    }

    /// Where kernels of this rank report, as they see it.
    pub(crate) fn failure(&self, rank: u32) -> u64 {
        self.pages.address() + Board::failure_at(rank)
    }

    /// The words of blocks 0 and 1 in the barrier's table, which a probe has written.
    pub(crate) fn probed(&self) -> Result<[[u64; MAX_WORLD]; 2], DeviceError> {
        let mut bytes = [0; PROBED];
        self.arena.download(self.layout.barrier as usize, &mut bytes, &self.stream)?;
        let mut words = [[0; MAX_WORLD]; 2];
        for (word, bytes) in words.as_flattened_mut().iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
        }
        Ok(words)
    }

    /// Wipes them.
    pub(crate) fn wipe_probed(&self) -> Result<(), DeviceError> {
        self.arena.upload(self.layout.barrier as usize, &[0; PROBED], &self.stream)
    }
}

/// A number that no other process of this node has, and that a forked child shares with nobody it
/// talks to.
pub(crate) fn process() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    use std::sync::OnceLock;
    static NUMBER: OnceLock<u64> = OnceLock::new();
    let drawn = *NUMBER.get_or_init(|| std::hash::RandomState::new().build_hasher().finish());
    drawn ^ u64::from(std::process::id())
}

/// Serde knows arrays of up to 32.
mod serde_bytes_64 {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8; 64], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(bytes)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<[u8; 64], D::Error> {
        let bytes = Vec::<u8>::deserialize(from)?;
        bytes.try_into().map_err(|_| D::Error::custom("a handle has 64 bytes"))
    }
}
