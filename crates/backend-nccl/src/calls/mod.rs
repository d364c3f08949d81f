//! Which of the library's calls make one of ours.

mod detour;
mod put;

use crossover_core::backend::EnqueueError;
use crossover_core::call::{CallBuffers, CallSig, Dtype, Op, ReduceOp, Split};
use crossover_device::device::Device;
use crossover_device::error::DeviceError;
use crossover_device::memory::Buffer;
use crossover_nccl_sys::Library;
use crossover_nccl_sys::layout::{self, CollConfig, DataType, RedOp, Status};

use crate::calls::detour::Detours;
use crate::calls::put::{Ends, Put, Sum};
use crate::comm::{Comm, Failed};

/// What calls are made with.
pub(crate) struct Maker {
    pub(crate) device: Device,
    pub(crate) rank: u32,
    pub(crate) world: u32,
    /// Through which an `all_to_all` goes that works in place.
    scratch: Buffer,
    /// Through which reductions go of tensors that the library cannot read.
    detours: Detours,
}

/// One call, and where it is.
pub(crate) struct Made<'a> {
    pub(crate) call: &'a CallSig<'a>,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) stream: u64,
    pub(crate) pins: Option<&'a CollConfig>,
}

/// What did not work.
pub(crate) enum Trouble {
    Library(Failed),
    Device(DeviceError),
}

impl Trouble {
    pub(crate) fn at(self, step: &str, seq: u64) -> EnqueueError {
        match self {
            Trouble::Library(failed) => failed.at(step, seq),
            Trouble::Device(error) => of_device(error, step, seq),
        }
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trouble::Library(failed) => failed.fmt(f),
            Trouble::Device(error) => error.fmt(f),
        }
    }
}

impl From<Failed> for Trouble {
    fn from(failed: Failed) -> Self {
        Trouble::Library(failed)
    }
}

impl From<DeviceError> for Trouble {
    fn from(error: DeviceError) -> Self {
        Trouble::Device(error)
    }
}

pub(crate) fn of_device(error: DeviceError, step: &str, seq: u64) -> EnqueueError {
    let (call, text) = match error {
        DeviceError::Call { call, code, text } => (call, format!("{text} ({code})")),
        other => ("the driver", other.to_string()),
    };
    EnqueueError::Vendor { step: step.to_owned(), seq, call, text }
}

impl<'a> Made<'a> {
    pub(crate) fn new(call: &'a CallSig<'a>, buffers: &CallBuffers) -> Made<'a> {
        let (from, to) = (buffers.input as u64, buffers.output as u64);
        Made { call, from, to, stream: buffers.stream, pins: None }
    }
}

impl Maker {
    /// Bytes of the scratch: pieces of 64 KiB for each of 16 ranks.
    const SCRATCH: usize = 16 * 64 * 1024; // size: of no policy's concern, any is right

    pub(crate) fn new(device: Device, rank: u32, world: u32) -> Result<Maker, DeviceError> {
        // A piece of each rank's part has at least some bytes.
        let bytes = Self::SCRATCH.max(world as usize * 4096); // size: a page for each rank
        let scratch = Buffer::new(&device, bytes)?;
        Ok(Maker { device, rank, world, scratch, detours: Detours::default() })
    }

    /// Enqueues a call. Where nothing moves, the library is not asked: a group of calls without any
    /// is none.
    ///
    /// # Safety
    ///
    /// As for [`Session::enqueue`](crossover_core::backend::Session::enqueue).
    pub(crate) unsafe fn make(&self, comm: &Comm, made: &Made<'_>) -> Result<(), Trouble> {
        if made.call.count == 0 {
            return Ok(());
        }
        let Some(way) = self.detours.of(made, &self.device, self.rank, self.world)? else {
            // SAFETY: the caller's promise.
            return unsafe { self.straight(comm, made) };
        };
        // SAFETY: the caller's promise about its tensors; the memory of the detour has room for
        // each, lives as long as the session, and is this call's until its stream goes on.
        unsafe {
            if way.input > 0 {
                self.device.copy(way.from, made.from, way.input, made.stream)?;
            }
            self.straight(comm, &Made { from: way.from, to: way.to, ..*made })?;
            if way.output > 0 {
                self.device.copy(made.to, way.to, way.output, made.stream)?;
            }
        }
        Ok(())
    }

    /// Reductions find their tensors at multiples of their element's size.
    unsafe fn straight(&self, comm: &Comm, made: &Made<'_>) -> Result<(), Trouble> {
        let call = made.call;
        let size = call.dtype.size();
        let sum = Sum { kind: kind(call.dtype), op: op(call.reduce_op) };
        let ends = |count| Ends { from: made.from, to: made.to, count };
        // SAFETY: in all of them the caller's promise is passed on as it is.
        unsafe {
            match (call.op, call.split) {
                (Op::AllReduce, _) => {
                    let put = |put: Put<'_>| put.all_reduce(ends(call.count), sum);
                    self.one(comm, made, "ncclAllReduce", put)
                }
                (Op::AllGather, Split::Even) => {
                    let put = |put: Put<'_>| put.all_gather(ends(call.count * size));
                    self.one(comm, made, "ncclAllGather", put)
                }
                (Op::AllGather, Split::PerRank(counts)) => match made.pins {
                    None => self.gather_parts(comm, made, counts),
                    Some(_) => self.broadcast_parts(comm, made, counts),
                },
                (Op::ReduceScatter, Split::Even) => {
                    let part = call.count / self.world as usize;
                    let put = |put: Put<'_>| put.reduce_scatter(ends(part), sum);
                    self.one(comm, made, "ncclReduceScatter", put)
                }
                (Op::ReduceScatter, Split::PerRank(counts)) => {
                    self.reduce_parts(comm, made, counts, sum)
                }
                (Op::Broadcast, _) => {
                    let put = |put: Put<'_>| put.broadcast(ends(call.count * size), call.root);
                    self.one(comm, made, "ncclBroadcast", put)
                }
                (Op::AllToAll, _) => self.exchange(comm, made),
            }
        }
    }

    fn one(
        &self,
        comm: &Comm,
        made: &Made<'_>,
        name: &'static str,
        put: impl FnOnce(Put<'_>) -> Result<Status, Failed>,
    ) -> Result<(), Trouble> {
        self.device.make_current()?;
        Ok(comm.enqueue(name, |library, raw| put(made.put(library, raw)))?)
    }

    /// Calls that go together, as one. What is put notes its own failures.
    fn group(
        &self,
        comm: &Comm,
        made: &Made<'_>,
        name: &'static str,
        put: impl FnOnce(Put<'_>) -> Result<(), Failed>,
    ) -> Result<(), Trouble> {
        self.one(comm, made, name, |one| {
            // SAFETY: no argument; it is ended below, whatever happens between.
            comm.begun("ncclGroupStart", unsafe { (one.library.calls.group_start)() })?;
            let noted = put(one);
            // SAFETY: it was begun above.
            let ended = unsafe { (one.library.calls.group_end)() };
            noted.map(|()| ended)
        })
    }

    /// Each rank sends its part to all others. So they travel at the same time, where broadcasts,
    /// one for each rank, would follow one another, and an empty part costs nothing.
    unsafe fn gather_parts(
        &self,
        comm: &Comm,
        made: &Made<'_>,
        counts: &[usize],
    ) -> Result<(), Trouble> {
        let size = made.call.dtype.size();
        let mine = counts[self.rank as usize] * size;
        let at =
            |rank: u32| made.to + (counts[..rank as usize].iter().sum::<usize>() * size) as u64;
        let own = at(self.rank);
        if mine > 0 && own != made.from {
            // SAFETY: the caller's promise: the part fits there, and overlaps only in place.
            unsafe { self.device.copy(own, made.from, mine, made.stream) }?;
        }
        let peers = || (0..self.world).filter(|peer| *peer != self.rank);
        if peers().all(|peer| mine == 0 && counts[peer as usize] == 0) {
            return Ok(());
        }
        self.group(comm, made, "ncclGroupEnd", |put| {
            for peer in peers() {
                let theirs = counts[peer as usize] * size;
                if mine > 0 {
                    // SAFETY: the caller's promise.
                    comm.begun("ncclSend", unsafe { put.send(made.from, mine, peer) })?;
                }
                if theirs > 0 {
                    // SAFETY: the caller's promise.
                    comm.begun("ncclRecv", unsafe { put.receive(at(peer), theirs, peer) })?;
                }
            }
            Ok(())
        })
    }

    /// What is pinned is pinned of broadcasts, which sends and receives have no pins for.
    unsafe fn broadcast_parts(
        &self,
        comm: &Comm,
        made: &Made<'_>,
        counts: &[usize],
    ) -> Result<(), Trouble> {
        let size = made.call.dtype.size();
        self.group(comm, made, "ncclGroupEnd", |put| {
            let mut to = made.to;
            for (root, count) in (0..).zip(counts).filter(|(_, count)| **count > 0) {
                let from = if root == self.rank { made.from } else { to };
                let ends = Ends { from, to, count: count * size };
                // SAFETY: the caller's promise.
                comm.begun("ncclBroadcast", unsafe { put.broadcast(ends, root) }?)?;
                to += (count * size) as u64;
            }
            Ok(())
        })
    }

    /// The library scatters equal parts alone; of others, each is a reduction to its rank.
    unsafe fn reduce_parts(
        &self,
        comm: &Comm,
        made: &Made<'_>,
        counts: &[usize],
        sum: Sum,
    ) -> Result<(), Trouble> {
        let size = made.call.dtype.size() as u64;
        self.group(comm, made, "ncclGroupEnd", |put| {
            let mut from = made.from;
            for (root, &count) in (0..).zip(counts).filter(|(_, count)| **count > 0) {
                // Only the root writes.
                let to = if root == self.rank { made.to } else { from };
                // SAFETY: the caller's promise.
                let status = unsafe { put.reduce(Ends { from, to, count }, sum, root) };
                comm.begun("ncclReduce", status)?;
                from += count as u64 * size;
            }
            Ok(())
        })
    }

    /// Sends and receives. In place, a part would be received where another is still being sent
    /// from, so pieces of all parts are set aside first.
    unsafe fn exchange(&self, comm: &Comm, made: &Made<'_>) -> Result<(), Trouble> {
        let world = self.world as usize;
        let part = made.call.count / world * made.call.dtype.size();
        let at = |base: u64, rank: u32, stride: usize| base + (rank as usize * stride) as u64;
        let piece = match made.from == made.to {
            false => part,
            true => part.min(self.scratch.bytes() / world),
        };
        let mut done = 0;
        while done < part {
            let bytes = piece.min(part - done);
            let (from, stride) = match made.from == made.to {
                false => (made.from, part),
                true => {
                    for rank in 0..self.world {
                        let to = at(self.scratch.address(), rank, piece);
                        let from = at(made.from + done as u64, rank, part);
                        // SAFETY: within the scratch, and within the caller's tensor.
                        unsafe { self.device.copy(to, from, bytes, made.stream) }?;
                    }
                    (self.scratch.address(), piece)
                }
            };
            self.group(comm, made, "ncclGroupEnd", |put| {
                for peer in 0..self.world {
                    let to = at(made.to + done as u64, peer, part);
                    // SAFETY: the caller's promise.
                    let sent = unsafe { put.send(at(from, peer, stride), bytes, peer) };
                    comm.begun("ncclSend", sent)?;
                    // SAFETY: the caller's promise.
                    comm.begun("ncclRecv", unsafe { put.receive(to, bytes, peer) })?;
                }
                Ok(())
            })?;
            done += bytes;
        }
        Ok(())
    }
}

impl Made<'_> {
    fn put<'a>(&'a self, library: &'a Library, comm: layout::Comm) -> Put<'a> {
        Put { library, comm, stream: self.stream, pins: self.pins }
    }
}

fn kind(dtype: Dtype) -> DataType {
    match dtype {
        Dtype::F32 => DataType::F32,
        Dtype::F16 => DataType::F16,
        Dtype::Bf16 => DataType::BF16,
        Dtype::F64 => DataType::F64,
        Dtype::I8 => DataType::I8,
        Dtype::U8 => DataType::U8,
        Dtype::I32 => DataType::I32,
        Dtype::U32 => DataType::U32,
        Dtype::I64 => DataType::I64,
        Dtype::U64 => DataType::U64,
        Dtype::F8E4M3 => DataType::F8E4M3,
        Dtype::F8E5M2 => DataType::F8E5M2,
    }
}

fn op(reduce_op: ReduceOp) -> RedOp {
    match reduce_op {
        ReduceOp::Sum => RedOp::SUM,
        ReduceOp::Prod => RedOp::PROD,
        ReduceOp::Min => RedOp::MIN,
        ReduceOp::Max => RedOp::MAX,
        ReduceOp::Avg => RedOp::AVG,
    }
}
