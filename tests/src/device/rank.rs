//! A rank of a group, with a stream and room for tensors.

use std::time::Duration;

use crossover_core::bootstrap::Bootstrap;
use crossover_core::communicator::{CallError, Communicator};
use crossover_device::device::Device;
use crossover_device::stream::Stream;

use super::{Room, Stand};
use crate::groups::Plan;

/// One rank of a group whose tensors are on a device.
pub struct Rank<'a> {
    comm: Option<Communicator>,
    /// The control plane.
    pub boot: &'a dyn Bootstrap,
    /// Where all this is.
    pub stand: &'a Stand,
    /// The rank's device.
    pub device: Device,
    /// Its stream.
    pub stream: Stream,
    /// Room for its tensors.
    pub room: Room,
}

impl<'a> Rank<'a> {
    /// Forms the group. Collective.
    ///
    /// # Panics
    ///
    /// If the group does not come about, or the room is not there.
    pub fn form(stand: &'a Stand, boot: &'a dyn Bootstrap, plan: &Plan) -> Rank<'a> {
        let device = stand.open();
        let stream = Stream::new(&device).expect("a stream");
        let room = Room::new(&device, stand.scale(8 << 20, 256 << 20)).expect("room");
        let report = plan.placed(boot.rank(), stand.report());
        let formed = Communicator::form(boot, &plan.registry, &plan.policy, report, &plan.settings);
        let comm = formed.unwrap_or_else(|e| panic!("rank {}: {e}", boot.rank()));
        Rank { comm: Some(comm), boot, stand, device, stream, room }
    }

    /// The group.
    ///
    /// # Panics
    ///
    /// If it was dropped.
    pub fn comm(&self) -> &Communicator {
        self.comm.as_ref().expect("it was not dropped")
    }

    /// Drops the group without closing it.
    pub fn drop_group(&mut self) {
        self.comm = None;
    }

    /// Its number.
    pub fn number(&self) -> usize {
        self.boot.rank() as usize
    }

    /// How many there are.
    pub fn world(&self) -> usize {
        self.boot.world() as usize
    }

    /// Waits until all ranks are here; returns what each says, in rank order.
    ///
    /// # Panics
    ///
    /// If a rank does not come.
    pub fn meet(&self, says: &str) -> Vec<String> {
        let all = self.boot.all_gather("meet", says.as_bytes()).expect("all ranks come");
        all.into_iter().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect()
    }

    /// Waits for the stream; then says whether what it holds is right.
    ///
    /// # Errors
    ///
    /// A kernel gave up.
    ///
    /// # Panics
    ///
    /// If the device itself fails.
    pub fn finish(&self) -> Result<(), CallError> {
        self.stream.synchronize().expect("kernels end by themselves");
        self.comm().check()
    }

    /// Kernels of this rank oversleep from now on, where they are emulated.
    ///
    /// # Panics
    ///
    /// If the driver does not know the stream.
    pub fn oversleep(&self, longest: Duration) {
        if let Some(driver) = &self.stand.emulated {
            driver.delay(self.stream.raw(), longest).expect("the stream lives");
        }
    }

    /// Writes bytes to the device, in stream order, and waits until they are there.
    ///
    /// # Panics
    ///
    /// If the device fails.
    pub fn upload(&self, to: u64, bytes: &[u8]) {
        // SAFETY: callers pass addresses within their room, and it is waited for.
        unsafe { self.device.copy(to, bytes.as_ptr() as u64, bytes.len(), self.stream.raw()) }
            .and_then(|()| self.stream.synchronize())
            .expect("bytes can be written");
    }

    /// Reads bytes from the device. The stream's work is waited for first: a copy that waits for a
    /// kernel in the driver would keep other ranks of this process from launching theirs.
    ///
    /// # Panics
    ///
    /// If the device fails.
    pub fn download(&self, from: u64, bytes: usize) -> Vec<u8> {
        self.stream.synchronize().expect("kernels end by themselves");
        let mut read = vec![0u8; bytes];
        // SAFETY: callers pass addresses within their room, and it is waited for.
        unsafe { self.device.copy(read.as_mut_ptr() as u64, from, bytes, self.stream.raw()) }
            .and_then(|()| self.stream.synchronize())
            .expect("bytes can be read");
        read
    }

    /// Sets bytes in stream order, to the next multiple of four.
    ///
    /// # Panics
    ///
    /// If the device fails.
    pub fn fill(&self, to: u64, byte: u8, bytes: usize) {
        let word = u32::from_ne_bytes([byte; 4]);
        // SAFETY: callers pass blocks of their room, whose ends are multiples of 256.
        unsafe { self.device.fill(to, word, bytes.div_ceil(4), self.stream.raw()) }
            .expect("bytes can be set");
    }

    /// Leaves, together with all others; closes the group if it is well.
    ///
    /// # Panics
    ///
    /// If the stream's work fails or a group that is well cannot be closed.
    pub fn part(self) {
        self.stream.synchronize().expect("kernels end by themselves");
        let is_well = self.comm.as_ref().is_some_and(|comm| comm.check().is_ok());
        let all = self.meet(if is_well { "well" } else { "ended" });
        if all.iter().all(|one| one == "well") {
            self.comm().close().expect("all ranks close");
        }
        // Not before all have let go of its memory.
        let _ = self.boot.all_gather("leave", &[]);
    }
}
