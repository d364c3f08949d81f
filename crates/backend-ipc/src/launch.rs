//! From a call to launches: which kernel, which piece of the tensors, how many blocks. What a
//! launch depends on is the same on every rank, but for addresses.

use crossover_core::backend::EnqueueError;
use crossover_core::call::{CallBuffers, CallSig, Mode, Op, Split};
use crossover_device::driver::Vendor;
use crossover_device::error::DeviceError;
use crossover_device::module::Shape;
use crossover_kernel_abi::{AllReduceArgs, Common, MAX_THREADS, MAX_WORLD, PartsArgs, is_short};

use crate::eligibility::index;
use crate::kernels::{Copying, Entry, Reduction};
use crate::parts::Parts;
use crate::session::Group;

/// What a policy set of an algorithm, in the descriptor's order.
struct Knobs {
    blocks: u64,
    threads: u64,
    early: bool,
    push: u64,
}

impl Knobs {
    fn of(params: &[u64]) -> Knobs {
        let of = |nth: usize| params.get(nth).copied().unwrap_or(0);
        Knobs { blocks: of(0), threads: of(1), early: of(2) != 0, push: of(3) }
    }
}

/// One call on its way to the device.
pub(crate) struct Enqueue<'a> {
    pub(crate) group: &'a Group,
    pub(crate) call: &'a CallSig<'a>,
    pub(crate) buffers: &'a CallBuffers,
    pub(crate) seq: u64,
}

/// # Safety
///
/// As for `Session::enqueue`.
pub(crate) unsafe fn run(
    enqueue: &Enqueue<'_>,
    algorithm: usize,
    params: &[u64],
) -> Result<(), EnqueueError> {
    let knobs = Knobs::of(params);
    if enqueue.call.count == 0 {
        return Ok(());
    }
    // SAFETY: passed on as it is.
    unsafe {
        match enqueue.call.op {
            Op::AllReduce => enqueue.all_reduce(algorithm, &knobs),
            _ => enqueue.parts(algorithm, &knobs),
        }
    }
}

impl Enqueue<'_> {
    /// # Safety
    ///
    /// As for [`run`].
    unsafe fn all_reduce(&self, algorithm: usize, knobs: &Knobs) -> Result<(), EnqueueError> {
        let Group { own, world, .. } = self.group;
        let (layout, world) = (&own.layout, u64::from(*world));
        let room = layout.room;
        // `unit` bytes are a thread's work at a time, on `share` of the tensor.
        let (family, most, region, place, second, second_place, unit, share) = match algorithm {
            index::ONE_SHOT_PUSH => {
                (Reduction::OneShotPush, room.push, layout.push, room.push, 0, 0, 8, 1)
            }
            index::TWO_SHOT_PUSH => {
                let (push, shares) = (layout.push, layout.shares);
                (
                    Reduction::TwoShotPush,
                    room.push * world,
                    push,
                    room.push,
                    shares,
                    room.push,
                    8,
                    world,
                )
            }
            index::ONE_SHOT_PULL => {
                (Reduction::OneShotPull, room.stage, layout.stage, room.stage, 0, 0, 16, 1)
            }
            index::TWO_SHOT_PULL => {
                let (stage, results) = (layout.stage, layout.results);
                (
                    Reduction::TwoShotPull,
                    room.stage,
                    stage,
                    room.stage,
                    results,
                    room.stage,
                    16,
                    world,
                )
            }
            index::LAMPORT => {
                (Reduction::Lamport, room.lamport, layout.lamport, room.lamport, 0, 0, 16, 1)
            }
            _ => unreachable!("the plan calls algorithms that take the op"),
        };
        let kernel = self.group.kernels.reduction(family, self.call.dtype, self.call.reduce_op);
        let total = self.call.bytes();
        let mut from = 0;
        while from < total {
            let bytes = (total - from).min(most);
            let (input, output) =
                (self.buffers.input as u64 + from, self.buffers.output as u64 + from);
            let (row, output_row) = match (self.call.mode, family) {
                // It writes its output while peers may read its input.
                (Mode::Graph, Reduction::OneShotPull) => {
                    (self.group.rows().take(input, bytes, input == output), 0)
                }
                (Mode::Graph, Reduction::TwoShotPull) => {
                    let mut rows = self.group.rows();
                    // On AMD peers may write within a kernel to uncached memory alone.
                    let must_stage = own.device.driver().vendor() == Vendor::Hip;
                    (rows.take(input, bytes, false), rows.take(output, bytes, must_stage))
                }
                _ => (0, 0),
            };
            let work = bytes.div_ceil(unit).div_ceil(share);
            let (shape, early) = shape(knobs, work, kernel.blocks, self.place());
            let is_short = is_short(input | output | bytes, bytes, unit, threads(shape) * share);
            let args = AllReduceArgs {
                common: self.common(early),
                input,
                output,
                bytes,
                region,
                place,
                second,
                second_place,
                barrier: layout.barrier,
                row,
                output_row,
            };
            // SAFETY: passed on as it is; the kernel takes these arguments, and is told the truth of them.
            unsafe { self.launch(kernel, shape, is_short, args.as_bytes())? };
            from += bytes;
        }
        Ok(())
    }

    /// # Safety
    ///
    /// As for [`run`].
    unsafe fn parts(&self, algorithm: usize, knobs: &Knobs) -> Result<(), EnqueueError> {
        let Group { own, world, .. } = self.group;
        let (layout, room) = (&own.layout, own.layout.room);
        let whole = match self.call.op {
            // The root's part for everybody is everything.
            Op::Broadcast => Parts {
                at: [0; MAX_WORLD],
                bytes: [self.call.bytes(); MAX_WORLD],
                world: *world as usize,
            },
            _ => Parts::of(self.call, *world),
        };
        let largest = whole.largest();
        let is_pushed = largest <= knobs.push;
        // Several parts lie beside one another in a stage.
        let staged = (room.stage / u64::from(*world)) & !15;
        let (way, most, region, place) = match (algorithm, self.call.op, is_pushed) {
            (index::LAMPORT_ALL_GATHER, ..) => {
                let copying = match self.call.dtype.size() {
                    4 => Copying::LamportF32,
                    _ => Copying::LamportHalf,
                };
                (Way::Copy(copying), room.lamport, layout.lamport, room.lamport)
            }
            (_, Op::ReduceScatter, true) => {
                (Way::Reduce(Reduction::ScatterPush), room.push, layout.push, room.push)
            }
            (_, Op::ReduceScatter, false) => {
                (Way::Reduce(Reduction::ScatterPull), staged, layout.stage, room.stage)
            }
            (_, Op::AllGather, true) if whole.are_even() => {
                (Way::Copy(Copying::GatherPush), room.push, layout.push, room.push)
            }
            (_, _, true) => (Way::Copy(Copying::PartsPush), room.push, layout.push, room.push),
            (_, Op::AllGather | Op::Broadcast, false) => {
                (Way::Copy(Copying::GatherPull), room.stage, layout.stage, room.stage)
            }
            (_, _, false) => (Way::Copy(Copying::PartsPull), staged, layout.stage, room.stage),
        };
        // Lamport's parts must not be empty, so where they differ the exact way serves.
        let (way, most, region, place) = match way {
            Way::Copy(Copying::LamportF32 | Copying::LamportHalf) if !whole.are_even() => {
                (Way::Copy(Copying::PartsPush), room.push, layout.push, room.push)
            }
            way => (way, most, region, place),
        };
        let kernel = match way {
            Way::Reduce(family) => {
                self.group.kernels.reduction(family, self.call.dtype, self.call.reduce_op)
            }
            Way::Copy(which) => self.group.kernels.copying(which),
        };
        // What is pulled is one launch, which stages it piece by piece where it must be staged.
        let is_pulled = region == layout.stage;
        let step = if is_pulled { largest } else { most };
        let mut from = 0;
        while from < largest {
            let piece = whole.piece(from, step);
            let unit = if region == layout.push { 8 } else { 16 };
            let work = piece.largest().div_ceil(unit);
            let (shape, early) = shape(knobs, work, kernel.blocks, self.place());
            let mut args = self.parts_args(&whole, &piece, from, early, region, place);
            if is_pulled {
                args.row = self.row_of_parts(&whole);
                (args.piece, args.pieces) = (most, largest.div_ceil(most));
            }
            let (bits, longest) = tensors(&args);
            let is_short = is_short(bits, longest, unit, threads(shape));
            // SAFETY: passed on as it is; the kernel takes these arguments, and is told the truth of them.
            unsafe { self.launch(kernel, shape, is_short, args.as_bytes())? };
            from += step;
        }
        Ok(())
    }

    /// The row of a captured call whose parts are pulled.
    fn row_of_parts(&self, whole: &Parts) -> u64 {
        if self.call.mode != Mode::Graph {
            return 0;
        }
        let Group { rank, .. } = self.group;
        let is_in_place = self.buffers.input == self.buffers.output.cast_const();
        let (bytes, must_stage) = match self.call.op {
            Op::AllGather => (whole.bytes[*rank as usize], false),
            Op::Broadcast if *rank == self.call.root => (self.call.bytes(), false),
            Op::Broadcast => (0, false),
            // It would write where peers still read. A reduce_scatter writes the part that it keeps.
            Op::AllToAll => (self.call.bytes(), is_in_place),
            _ => (self.call.bytes(), false),
        };
        self.group.rows().take(self.buffers.input as u64, bytes, must_stage)
    }

    /// `piece` of every part of `whole` starts `from` bytes into it.
    fn parts_args(
        &self,
        whole: &Parts,
        piece: &Parts,
        from: u64,
        early: bool,
        region: u64,
        place: u64,
    ) -> PartsArgs {
        let Group { own, world, rank, .. } = self.group;
        let (world, rank) = (*world as usize, *rank as usize);
        let stage = (own.layout.room.stage / world as u64) & !15;
        let mut args = PartsArgs {
            common: self.common(early),
            input: self.buffers.input as u64,
            output: self.buffers.output as u64,
            region,
            place,
            barrier: own.layout.barrier,
            ..PartsArgs::ZERO
        };
        let into = |peer: usize| piece.at[peer] - whole.at[peer];
        for peer in 0..world {
            let (send, receive, stage_at, fetch_at) = match self.call.op {
                // The input is this rank's part alone, and starts with it.
                Op::AllGather => {
                    ((into(rank), piece.bytes[rank]), (piece.at[peer], piece.bytes[peer]), 0, 0)
                }
                // The output is this rank's part alone.
                Op::ReduceScatter => (
                    (piece.at[peer], piece.bytes[peer]),
                    (into(rank), piece.bytes[rank]),
                    stage * peer as u64,
                    stage * rank as u64,
                ),
                Op::Broadcast => {
                    let root = self.call.root as usize;
                    let (all, none) = ((from, piece.bytes[root]), (from, 0));
                    let send = if rank == root { all } else { none };
                    let receive = if peer == root { all } else { none };
                    (send, receive, 0, 0)
                }
                _ => (
                    (piece.at[peer], piece.bytes[peer]),
                    (piece.at[peer], piece.bytes[peer]),
                    stage * peer as u64,
                    stage * rank as u64,
                ),
            };
            (args.send_at[peer], args.send_bytes[peer]) = send;
            (args.receive_at[peer], args.receive_bytes[peer]) = receive;
            args.stage_at[peer] = stage_at;
            args.fetch_at[peer] = fetch_at;
        }
        if self.call.op == Op::ReduceScatter {
            // The kernel writes from the start of its output.
            args.output += into(rank);
        }
        let is_uneven = matches!(self.call.split, Split::PerRank(_)) && !piece.are_even();
        args.tokens = u64::from(self.call.op == Op::Broadcast || is_uneven);
        args
    }

    fn place(&self) -> Place {
        Place { ahead: self.group.ahead, world: self.group.world }
    }

    fn common(&self, early: bool) -> Common {
        Common {
            early: u32::from(early),
            reduce_op: self.call.reduce_op as u32,
            ..self.group.common
        }
    }

    /// # Safety
    ///
    /// The kernel takes these arguments, what they point at is valid until it ends, and the call is
    /// short if it is said to be.
    unsafe fn launch(
        &self,
        entry: &Entry,
        shape: Shape,
        is_short: bool,
        args: &[u8],
    ) -> Result<(), EnqueueError> {
        let kernel = entry.short.as_ref().filter(|_| is_short).unwrap_or(&entry.kernel);
        // SAFETY: the caller's promise.
        unsafe { kernel.launch(shape, args, self.buffers.stream) }
            .map_err(|e| vendor("launch a kernel", self.seq, e))
    }
}

/// All threads of a launch.
fn threads(shape: Shape) -> u64 {
    u64::from(shape.blocks) * u64::from(shape.threads)
}

/// The bits of all addresses and lengths of a rank's tensors, and the longest.
fn tensors(args: &PartsArgs) -> (u64, u64) {
    let lengths = || args.send_bytes.iter().chain(&args.receive_bytes);
    let places = args.send_at.iter().chain(&args.receive_at).chain(lengths());
    (
        places.fold(args.input | args.output, |bits, at| bits | at),
        lengths().copied().fold(0, u64::max),
    )
}

enum Way {
    Reduce(Reduction),
    Copy(Copying),
}

/// May the kernel behind be put on the device early?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ahead {
    /// If a launch takes half of its limit at most.
    IfHalf,
    /// The limit leaves room for two launches of every rank.
    Always,
    /// It does not, and ranks share the device.
    Never,
}

/// Where launches are made.
#[derive(Clone, Copy)]
struct Place {
    ahead: Ahead,
    world: u32,
}

/// How many blocks and threads for so many units of work, where a launch has at most `limit` blocks;
/// and whether the kernel behind may be put on the device early.
///
/// What waits on a device must leave room for what it waits for, and that may be a late kernel of
/// another rank there, or of another group whose calls overlap.
fn shape(knobs: &Knobs, work: u64, limit: u64, place: Place) -> (Shape, bool) {
    let threads = match knobs.threads {
        0 => usual_threads(work, limit, place),
        asked => asked.next_multiple_of(32).min(MAX_THREADS as u64),
    };
    let wanted = if knobs.blocks == 0 { work.div_ceil(threads) } else { knobs.blocks };
    let blocks = wanted.clamp(1, limit);
    // Several small blocks fit into the place of a large one, of the waves that hardware has; but not beside
    // other ranks', which may lie where somebody's large one has to be.
    let in_one = MAX_THREADS as u64 / threads.next_multiple_of(64);
    // With more it does not even come early.
    let programmatic = match place.ahead {
        Ahead::IfHalf => blocks * 2 <= limit * in_one,
        Ahead::Always => true,
        Ahead::Never => false,
    };
    let shape = Shape { blocks: blocks as u32, threads: threads as u32, programmatic };
    (shape, knobs.early && programmatic)
}

/// Few threads are on the device sooner, and blocks of them on more multiprocessors; many have more
/// bytes on their way: measured on an H200, docs/measurements. Where blocks are scarce they are
/// larger, so that a thread has one unit of work and not two. Few ranks with few units have fewer and
/// larger blocks.
fn usual_threads(work: u64, limit: u64, Place { world, .. }: Place) -> u64 {
    let usual = match work {
        129.. if work * u64::from(world) <= 1024 => 256,
        0..=8192 => 128,
        8193..=32768 => 256,
        _ => MAX_THREADS as u64,
    };
    let suffices = |threads: &u64| *threads >= usual && work <= threads * limit;
    [128, 256].into_iter().find(suffices).unwrap_or(MAX_THREADS as u64)
}

/// A vendor's failure during `step`.
pub(crate) fn vendor(step: &str, seq: u64, e: DeviceError) -> EnqueueError {
    let (call, text) = match e {
        DeviceError::Call { call, code, text } => (call, format!("{text} ({code})")),
        other => ("the driver", other.to_string()),
    };
    EnqueueError::Vendor { step: step.to_owned(), seq, call, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: Place = Place { ahead: Ahead::IfHalf, world: 2 };
    const USUAL: Knobs = Knobs { blocks: 0, threads: 0, early: true, push: 0 };

    #[test]
    fn launches_keep_within_their_limit() {
        let limits = [1, 7, 16, 132, 264];
        let places = [Ahead::IfHalf, Ahead::Always, Ahead::Never];
        for (limit, ahead) in limits.into_iter().flat_map(|l| places.map(|ahead| (l, ahead))) {
            for work in [1, 128, 129, 2048, 8192, 100_000, u64::from(u32::MAX)] {
                let (Shape { blocks, threads, programmatic }, early) =
                    shape(&USUAL, work, limit, Place { ahead, world: 4 });
                let (blocks, threads) = (u64::from(blocks), u64::from(threads));
                assert!((128..=MAX_THREADS as u64).contains(&threads) && threads % 32 == 0);
                assert!((1..=limit).contains(&blocks), "{work} in {limit}");
                assert_eq!(programmatic, early, "{work} in {limit}");
                // What comes early, or lets another, leaves room for others.
                let room = limit * MAX_THREADS as u64;
                let leaves_room = match ahead {
                    Ahead::IfHalf => blocks * threads * 2 <= room,
                    Ahead::Always => true,
                    Ahead::Never => false,
                };
                assert_eq!(early, leaves_room, "{work} in {limit}");
                // Nobody has two units while there is room for another thread.
                assert!(blocks * threads >= work || blocks * threads == room, "{work} in {limit}");
            }
        }
    }

    #[test]
    fn a_policy_says_how_a_launch_is_shaped() {
        let knobs = Knobs { blocks: 4, threads: 100, early: false, push: 0 };
        let (Shape { blocks, threads, .. }, early) = shape(&knobs, 1, 132, ALONE);
        assert_eq!((blocks, threads, early), (4, 128, false));
        let knobs = Knobs { blocks: 9, ..knobs };
        assert_eq!(shape(&knobs, 1, 2, ALONE).0.blocks, 2);
    }
}
