//! One call of a group: its data, its launch on every rank, and what must be found after it.

use std::mem::offset_of;

use crossover_core::call::{CallSig, Dtype, Mode, Op, ReduceOp, Split};
use crossover_core::contract::Contract;
use crossover_kernel_abi::{AllReduceArgs, Common, PartsArgs, is_short};
use crossover_kernel_emulation::scenario::{Address, Launch, Place};
use crossover_tests::data::{Rng, Values, fill};
use crossover_tests::reference;

use crate::group::{Group, ROOM, start};

/// How it gets there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    OneShotPull,
    /// Inputs are read where they are.
    OneShotPullRow,
    OneShotPush,
    TwoShotPull,
    TwoShotPullRow,
    /// Outputs are written where they are, too.
    TwoShotPullRows,
    TwoShotPush,
    Lamport,
    /// The copies and reduce_scatter.
    Pull,
    PullRow,
    Push,
}

impl Way {
    /// Are inputs read where they are?
    pub(crate) fn reads_row(self) -> bool {
        matches!(
            self,
            Way::OneShotPullRow | Way::TwoShotPullRow | Way::TwoShotPullRows | Way::PullRow
        )
    }
}

/// Bytes of a part that a call that pulls stages at a time.
pub(crate) fn piece(op: Op, world: usize) -> u64 {
    match op {
        Op::AllGather | Op::Broadcast => ROOM.stage,
        _ => (ROOM.stage / world as u64) & !15,
    }
}

/// A call. Even parts have `count` elements; ragged ones have fewer, down to none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) op: Op,
    pub(crate) way: Way,
    pub(crate) dtype: Dtype,
    pub(crate) reduce_op: ReduceOp,
    /// Elements of the tensor (all_reduce, broadcast) or of a rank's part.
    pub(crate) count: usize,
    pub(crate) ragged: bool,
    pub(crate) in_place: bool,
    /// Bytes that tensors are off their alignment.
    pub(crate) offset: u64,
    /// The kernel for any number of ranks even where one for exactly this many exists.
    pub(crate) any: bool,
    /// The kernel for all calls even where one for short ones takes it.
    pub(crate) plain: bool,
    /// May it start before the call ahead has ended?
    pub(crate) early: bool,
    /// Of a launch: at most as many as have a state.
    pub(crate) blocks: u32,
    pub(crate) values: Values,
}

/// Bytes before and behind a tensor that must stay as they are.
const MARGIN: u64 = 64;

impl Call {
    /// Adds it, the `number`th: the host loads inputs, and afterwards looks.
    pub(crate) fn add(&self, group: &mut Group, number: u64) {
        let prepared = Prepared::new(self, group, number);
        prepared.enqueue(group);
        prepared.overwrite_inputs(group);
        prepared.check(group);
    }
}

/// The value of bytes that nobody may write.
const MARK: u8 = 0x5c;

/// Calls that follow each other without the host between them.
pub(crate) fn add_back_to_back(calls: &[Call], group: &mut Group) {
    let prepared: Vec<Prepared> =
        (calls.iter().zip(0..)).map(|(call, number)| Prepared::new(call, group, number)).collect();
    prepared.iter().for_each(|call| call.enqueue(group));
    prepared.iter().for_each(|call| call.check(group));
}

/// A call that rank 0 alone makes and gives up, since its group was ended: what its peers have is as it was.
pub(crate) fn add_given_up(call: &Call, group: &mut Group) {
    let prepared = Prepared::new(call, group, 0);
    group.end(0);
    prepared.enqueue_on(0, group);
    for rank in 1..group.setup.world {
        let Place { buffer, offset } = prepared.outputs[rank];
        let margins = vec![MARK; (offset + prepared.expected[rank].len() as u64) as usize];
        group.scenario.meet();
        group.scenario.check(rank, start(buffer), &margins);
    }
}

/// A call whose inputs are loaded.
struct Prepared {
    call: Call,
    root: usize,
    /// Elements of each rank's part.
    parts: Vec<usize>,
    inputs: Vec<Place>,
    outputs: Vec<Place>,
    row: Option<usize>,
    output_row: Option<usize>,
    expected: Vec<Vec<u8>>,
}

impl Prepared {
    fn new(call: &Call, group: &mut Group, number: u64) -> Prepared {
        let world = group.setup.world;
        let mut rng = Rng::new(group.setup.seed ^ number << 20, 99);
        let parts: Vec<usize> = (0..world)
            .map(|_| match call.ragged {
                true => [0, call.count, rng.below(call.count as u64 + 1) as usize]
                    [rng.below(3) as usize],
                false => call.count,
            })
            .collect();
        let total: usize = parts.iter().sum();
        let size = call.dtype.size();
        let elements = |rank: usize| match call.op {
            Op::AllReduce | Op::Broadcast => call.count,
            Op::AllGather => parts[rank],
            Op::ReduceScatter => total,
            Op::AllToAll => call.count * world,
        };
        let data: Vec<Vec<u8>> = (0..world)
            .map(|rank| {
                let mut rng = Rng::new(group.setup.seed ^ number << 8, rank as u32);
                fill(call.values, call.dtype, call.reduce_op, &mut rng, elements(rank))
            })
            .collect();
        let sig = CallSig {
            op: call.op,
            dtype: call.dtype,
            reduce_op: call.reduce_op,
            count: match call.op {
                Op::AllGather => call.count,
                Op::ReduceScatter => total,
                Op::AllToAll => call.count * world,
                _ => call.count,
            },
            mode: Mode::Eager,
            root: (number % world as u64) as u32,
            split: if call.ragged { Split::PerRank(&parts) } else { Split::Even },
            contract: Contract::DEFAULT,
        };
        let told: Vec<Vec<u8>> = match call.way {
            Way::Lamport => data.iter().map(|bytes| flushed(call.dtype, bytes)).collect(),
            _ => data.clone(),
        };
        let expected: Vec<Vec<u8>> =
            (0..world).map(|rank| canonical(call, reference::output(&sig, rank, &told))).collect();

        let mut prepared = Prepared {
            call: *call,
            root: (number % world as u64) as usize,
            inputs: Vec::new(),
            outputs: Vec::new(),
            row: None,
            output_row: None,
            expected,
            parts,
        };
        let scenario = &mut group.scenario;
        for (rank, data) in data.iter().enumerate() {
            // A part of the output is the input of a gather in place, and of a reduce_scatter the other
            // way round.
            let before: usize = prepared.parts[..rank].iter().sum::<usize>() * size;
            let bytes = data.len().max(prepared.expected[rank].len()) as u64;
            let at = MARGIN + call.offset;
            let output = scenario.buffer(bytes + 2 * MARGIN + 16);
            let margins = vec![MARK; (bytes + 2 * MARGIN + 16) as usize];
            scenario.load(rank, start(output), &margins, &[]);
            let mut output = Place { buffer: output, offset: at };
            let input = match (call.in_place, call.op) {
                (false, _) => {
                    let input = scenario.buffer(bytes + MARGIN + 16);
                    Place { buffer: input, offset: call.offset }
                }
                (true, Op::AllGather) => Place { offset: at + before as u64, ..output },
                (true, Op::ReduceScatter) => {
                    let whole = output;
                    output.offset += before as u64;
                    whole
                }
                (true, _) => output,
            };
            scenario.load(rank, input, data, &[]);
            prepared.inputs.push(input);
            prepared.outputs.push(output);
        }
        if call.way.reads_row() {
            let row = scenario.buffer(16 * 8);
            // Where a rank gives nothing there is no address.
            let addresses: Vec<Address> = (prepared.inputs.iter().enumerate())
                .filter(|(peer, _)| !data[*peer].is_empty())
                .filter(|(peer, _)| call.op != Op::Broadcast || *peer == prepared.root)
                .map(|(peer, input)| Address { at: peer * 8, of: *input })
                .collect();
            scenario.load(0, start(row), &[0xff; 16 * 8], &addresses);
            prepared.row = Some(row);
            if call.way == Way::TwoShotPullRows {
                let outputs = (prepared.outputs.iter().enumerate())
                    .map(|(peer, output)| Address { at: peer * 8, of: *output });
                let row = scenario.buffer(16 * 8);
                scenario.load(0, start(row), &[0xff; 16 * 8], &outputs.collect::<Vec<_>>());
                prepared.output_row = Some(row);
            }
            scenario.meet();
        }
        prepared
    }

    fn enqueue(&self, group: &mut Group) {
        (0..group.setup.world).for_each(|rank| self.enqueue_on(rank, group));
    }

    fn enqueue_on(&self, rank: usize, group: &mut Group) {
        let op = ReduceOp::ALL.iter().position(|op| *op == self.call.reduce_op);
        let op = op.expect("every op is listed") as u32;
        let (common, mut addresses) = group.common(rank, op, self.call.early);
        let (parameter, bits, longest) = match self.call.op {
            Op::AllReduce => self.all_reduce(group, common, rank, &mut addresses),
            _ => self.parts(group, common, rank, &mut addresses),
        };
        let mut kernel = self.kernel(group.setup.world);
        let tensors = self.inputs[rank].offset | self.outputs[rank].offset | bits;
        if self.takes_short(group, tensors, longest) {
            kernel += "_short";
        }
        group.scenario.launch(
            rank,
            &Launch {
                kernel: &kernel,
                blocks: self.call.blocks,
                threads: group.setup.threads,
                programmatic: self.call.early,
                parameter: &parameter,
                addresses: &addresses,
            },
        );
    }

    /// An input may be overwritten as soon as the call has ended on its rank, wherever the others are.
    fn overwrite_inputs(&self, group: &mut Group) {
        for rank in 0..group.setup.world {
            if !self.call.in_place {
                group.scenario.load(rank, self.inputs[rank], &[!MARK; 16], &[]);
            }
        }
    }

    fn check(&self, group: &mut Group) {
        for rank in 0..group.setup.world {
            let output = self.outputs[rank];
            if self.call.in_place && self.call.op == Op::ReduceScatter {
                // Around it are the parts of others, which may be anything.
                group.scenario.check(rank, output, &self.expected[rank]);
                continue;
            }
            let mut all = vec![MARK; 32];
            all.extend(&self.expected[rank]);
            all.extend([MARK; 32]);
            let before = Place { offset: output.offset - 32, ..output };
            group.scenario.check(rank, before, &all);
        }
    }

    /// Of tensors with these bits in addresses and lengths.
    fn takes_short(&self, group: &Group, bits: u64, longest: u64) -> bool {
        let (unit, shares) = match self.call.way {
            Way::Lamport => (16, 1),
            Way::TwoShotPush => (8, group.setup.world as u64),
            Way::OneShotPush | Way::Push => (8, 1),
            _ => return false,
        };
        let threads = u64::from(self.call.blocks) * u64::from(group.setup.threads);
        let is_rare =
            self.call.op.reduces() && !matches!(self.call.reduce_op, ReduceOp::Sum | ReduceOp::Avg);
        !self.call.plain && !is_rare && is_short(bits, longest, unit, threads * shares)
    }

    fn kernel(&self, world: usize) -> String {
        let call = &self.call;
        let exact = matches!(world, 2 | 4 | 8) && !call.any;
        let n = if exact { world.to_string() } else { "any".to_owned() };
        let dtype = call.dtype.name();
        let reduction = |name: &str| match call.reduce_op {
            // An average is a sum that is divided at the end.
            ReduceOp::Sum | ReduceOp::Avg => format!("{name}_{dtype}_sum_{n}"),
            _ => format!("{name}_{dtype}_other_any"),
        };
        let half = if call.dtype == Dtype::F32 { "f32" } else { "half" };
        match (call.op, call.way) {
            (Op::AllReduce, Way::OneShotPull | Way::OneShotPullRow) => reduction("one_shot_pull"),
            (Op::AllReduce, Way::TwoShotPull | Way::TwoShotPullRow | Way::TwoShotPullRows) => {
                reduction("two_shot_pull")
            }
            (Op::AllReduce, Way::OneShotPush) => reduction("one_shot_push"),
            (Op::AllReduce, Way::TwoShotPush) => reduction("two_shot_push"),
            (Op::AllReduce, _) => reduction("lamport"),
            (Op::ReduceScatter, Way::Pull | Way::PullRow) => reduction("reduce_scatter_pull"),
            (Op::ReduceScatter, _) => reduction("reduce_scatter_push"),
            (Op::AllGather, Way::Lamport) => format!("gather_lamport_{half}_{n}"),
            (Op::AllGather | Op::Broadcast, Way::Pull | Way::PullRow) => "gather_pull".to_owned(),
            (Op::AllGather, _) if !call.ragged => format!("gather_push_{n}"),
            (_, Way::Pull | Way::PullRow) => "parts_pull".to_owned(),
            _ => "parts_push".to_owned(),
        }
    }

    /// The kernel's parameter, the bits of what tensors add to their addresses, and the longest length; likewise in [`Self::parts`].
    fn all_reduce(
        &self,
        group: &Group,
        common: Common,
        rank: usize,
        addresses: &mut Vec<Address>,
    ) -> (Vec<u8>, u64, u64) {
        let arena = &group.arena;
        let (region, place, second) = match self.call.way {
            Way::OneShotPush | Way::TwoShotPush => (arena.push, arena.room.push, arena.shares),
            Way::Lamport => (arena.lamport, arena.room.lamport, 0),
            _ => (arena.stage, arena.room.stage, arena.results),
        };
        addresses.push(Address { at: offset_of!(AllReduceArgs, input), of: self.inputs[rank] });
        addresses.push(Address { at: offset_of!(AllReduceArgs, output), of: self.outputs[rank] });
        if let Some(row) = self.row {
            addresses.push(Address { at: offset_of!(AllReduceArgs, row), of: start(row) });
        }
        if let Some(row) = self.output_row {
            addresses.push(Address { at: offset_of!(AllReduceArgs, output_row), of: start(row) });
        }
        let args = AllReduceArgs {
            common,
            bytes: (self.call.count * self.call.dtype.size()) as u64,
            region,
            place,
            second,
            second_place: place,
            barrier: arena.barrier,
            ..AllReduceArgs::ZERO
        };
        (args.as_bytes().to_vec(), args.bytes, args.bytes)
    }

    fn parts(
        &self,
        group: &Group,
        common: Common,
        rank: usize,
        addresses: &mut Vec<Address>,
    ) -> (Vec<u8>, u64, u64) {
        let arena = &group.arena;
        let world = group.setup.world;
        let (region, place) = match self.call.way {
            Way::Lamport => (arena.lamport, arena.room.lamport),
            Way::Pull | Way::PullRow => (arena.stage, arena.room.stage),
            _ => (arena.push, arena.room.push),
        };
        let mut args =
            PartsArgs { common, region, place, barrier: arena.barrier, ..PartsArgs::ZERO };
        let size = self.call.dtype.size() as u64;
        let whole = self.call.count as u64 * size;
        let bytes: Vec<u64> = self.parts.iter().map(|count| *count as u64 * size).collect();
        let before = |peer: usize| bytes[..peer].iter().sum::<u64>();
        // The bytes that a rank has for another, and where it stages them.
        let sent = |from: usize, to: usize| match self.call.op {
            Op::AllGather => bytes[from],
            Op::ReduceScatter => bytes[to],
            Op::Broadcast if from == self.root => whole,
            Op::Broadcast => 0,
            _ => whole,
        };
        args.piece = piece(self.call.op, world);
        let staged = |to: usize| match self.call.op {
            Op::AllGather | Op::Broadcast => 0,
            _ => args.piece * to as u64,
        };
        for peer in 0..world {
            args.send_bytes[peer] = sent(rank, peer);
            args.receive_bytes[peer] = sent(peer, rank);
            args.send_at[peer] = match self.call.op {
                Op::ReduceScatter => before(peer),
                Op::AllToAll => whole * peer as u64,
                _ => 0,
            };
            args.receive_at[peer] = match self.call.op {
                Op::AllGather => before(peer),
                Op::AllToAll => whole * peer as u64,
                _ => 0,
            };
            args.stage_at[peer] = staged(peer);
            args.fetch_at[peer] = staged(rank);
        }
        let largest = bytes.iter().copied().max().unwrap_or(0);
        args.pieces = match self.call.op {
            Op::AllGather | Op::ReduceScatter => largest.div_ceil(args.piece),
            _ => whole.div_ceil(args.piece),
        };
        let some_empty =
            (0..world).any(|from| (0..world).any(|to| from != to && sent(from, to) == 0));
        args.tokens = some_empty.into();
        if let Some(row) = self.row {
            addresses.push(Address { at: offset_of!(PartsArgs, row), of: start(row) });
        }
        addresses.push(Address { at: offset_of!(PartsArgs, input), of: self.inputs[rank] });
        addresses.push(Address { at: offset_of!(PartsArgs, output), of: self.outputs[rank] });
        let lengths = || args.send_bytes.iter().chain(&args.receive_bytes);
        let places = args.send_at.iter().chain(&args.receive_at).chain(lengths());
        let (bits, longest) = (places.fold(0, |bits, at| bits | at), lengths().max());
        (args.as_bytes().to_vec(), bits, longest.copied().unwrap_or(0))
    }
}

/// What Lamport's protocol makes of a tensor: every -0.0 is +0.0.
fn flushed(dtype: Dtype, bytes: &[u8]) -> Vec<u8> {
    let negative_zero: &[u8] = if dtype == Dtype::F32 { &[0, 0, 0, 0x80] } else { &[0, 0x80] };
    let mut flushed = bytes.to_vec();
    for element in flushed.chunks_exact_mut(negative_zero.len()) {
        if *element == *negative_zero {
            element.fill(0);
        }
    }
    flushed
}

/// A reduction's NaN is the type's canonical one, whichever payload the processor would have kept.
fn canonical(call: &Call, mut bytes: Vec<u8>) -> Vec<u8> {
    let (size, infinity, nan) = match call.dtype {
        Dtype::F32 => (4, 0x7f80_0000, 0x7fc0_0000u32),
        Dtype::F16 => (2, 0x7c00, 0x7e00),
        Dtype::Bf16 => (2, 0x7f80, 0x7fc0),
        _ => return bytes,
    };
    if call.op.reduces() {
        for element in bytes.chunks_exact_mut(size) {
            let mut word = [0; 4];
            word[..size].copy_from_slice(element);
            let magnitude = u32::from_le_bytes(word) & (infinity | (infinity - 1));
            if magnitude > infinity {
                element.copy_from_slice(&nan.to_le_bytes()[..size]);
            }
        }
    }
    bytes
}
