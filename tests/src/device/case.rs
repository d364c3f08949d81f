//! One call on a device: its data, its place, and the comparison of its result.

use crossover_core::call::{CallBuffers, CallSig, Dtype, Mode, Op, ReduceOp, Split};
use crossover_core::communicator::CallError;
use crossover_core::contract::Contract;

use super::{Rank, Room, Target};
use crate::data::{Rng, Values, fill};
use crate::reference;

/// What nobody wrote, and what an input holds behind its call.
const POISON: u8 = 0xa5;
const SPOILED: u8 = 0x5a;
/// Bytes before and behind a tensor that must stay poisoned.
const MARGIN: usize = 64;

/// One call of the suite.
#[derive(Clone, Copy)]
pub struct Case<'a> {
    /// The algorithm that serves it.
    pub target: &'a Target,
    /// The call.
    pub call: CallSig<'a>,
    /// Its data.
    pub values: Values,
    /// Makes the data of this call its own.
    pub seed: u64,
    /// Bytes by which both tensors are off a multiple of 64.
    pub offset: usize,
    /// Input and output share memory, as far as the op allows.
    pub in_place: bool,
}

/// Where a call's tensors are, and what must come out.
pub struct Prepared<'a> {
    case: Case<'a>,
    input: Place,
    output: Place,
    want: Vec<u8>,
}

/// A tensor in a block of its own, or within the other tensor's.
#[derive(Clone, Copy)]
struct Place {
    block: u64,
    block_bytes: usize,
    at: u64,
    bytes: usize,
}

impl<'a> Case<'a> {
    /// An even, aligned, out-of-place sum over exact values.
    pub fn new(target: &'a Target, op: Op, dtype: Dtype, count: usize, seed: u64) -> Self {
        let call = CallSig {
            op,
            dtype,
            reduce_op: ReduceOp::Sum,
            count,
            mode: Mode::Eager,
            root: 0,
            split: Split::Even,
            contract: Contract::DEFAULT,
        };
        Case { target, call, values: Values::Exact, seed, offset: 0, in_place: false }
    }

    /// Runs it and compares the result.
    ///
    /// # Panics
    ///
    /// If the call fails or its result differs from the reference in a bit.
    #[track_caller]
    pub fn check(&self, rank: &Rank<'_>) {
        rank.room.clear();
        let prepared = self.prepare(rank, &rank.room);
        prepared.enqueue(rank).expect("the call can be made");
        prepared.spoil(rank);
        rank.finish().expect("the call succeeds");
        prepared.check(rank);
    }

    /// Places its tensors and loads its input.
    pub fn prepare(&self, rank: &Rank<'_>, room: &Room) -> Prepared<'a> {
        let (me, world) = (rank.number(), rank.world());
        let call = self.sized_for(rank);
        let size = call.dtype.size();
        let part = |r: usize| match (call.op, call.split) {
            (Op::AllGather, Split::Even) => call.count,
            (_, Split::Even) => call.count / world,
            (_, Split::PerRank(counts)) => counts[r],
        };
        let before = (0..me).map(part).sum::<usize>() * size;
        let total = (0..world).map(part).sum::<usize>() * size;
        let (input_bytes, output_bytes) = match call.op {
            Op::AllGather => (part(me) * size, total),
            Op::ReduceScatter => (total, part(me) * size),
            _ => (call.count * size, call.count * size),
        };
        let place = |bytes: usize| {
            let block_bytes = (bytes + self.offset + 2 * MARGIN).next_multiple_of(256);
            let block = room.take(block_bytes);
            Place { block, block_bytes, at: block + (MARGIN + self.offset) as u64, bytes }
        };
        let within =
            |whole: Place, bytes: usize| Place { at: whole.at + before as u64, bytes, ..whole };
        let (input, output) = match (self.in_place, call.op) {
            (false, _) => (place(input_bytes), place(output_bytes)),
            // The input is this rank's part of the output.
            (true, Op::AllGather) => {
                let output = place(output_bytes);
                (within(output, input_bytes), output)
            }
            // The output is this rank's part of the input.
            (true, Op::ReduceScatter) => {
                let input = place(input_bytes);
                (input, within(input, output_bytes))
            }
            (true, _) => {
                let both = place(input_bytes);
                (both, both)
            }
        };
        let case = Case { call, ..*self };
        let mut prepared = Prepared { case, input, output, want: Vec::new() };
        prepared.load(rank, self.seed);
        prepared
    }

    /// Ops that split a tensor need a count that divides; the contract is the group's.
    fn sized_for(&self, rank: &Rank<'_>) -> CallSig<'a> {
        let world = rank.world();
        let even = matches!(self.call.split, Split::Even);
        let count = match self.call.op {
            Op::ReduceScatter | Op::AllToAll if even => self.call.count.next_multiple_of(world),
            _ => self.call.count,
        };
        let root = match self.call.op {
            Op::Broadcast => self.call.root % world as u32,
            _ => 0,
        };
        CallSig { count, root, contract: rank.comm().plan().contract(), ..self.call }
    }
}

impl Prepared<'_> {
    /// The call that will be made.
    pub fn call(&self) -> &CallSig<'_> {
        &self.case.call
    }

    /// Where its output is, and what must come out.
    pub fn output(&self) -> (u64, &[u8]) {
        (self.output.at, &self.want)
    }

    /// New data at the same place, and a poisoned output. The stream is idle when this returns.
    pub fn load(&mut self, rank: &Rank<'_>, seed: u64) {
        self.case.seed = seed;
        let Case { target, call, values, .. } = self.case;
        let inputs: Vec<Vec<u8>> = (0..rank.world())
            .map(|r| {
                let count = match (call.op, call.split) {
                    (Op::AllGather, Split::PerRank(counts)) => counts[r],
                    _ => call.count,
                };
                let mut rng = Rng::new(seed, r as u32);
                fill(values, call.dtype, call.reduce_op, &mut rng, count)
            })
            .collect();
        rank.fill(self.output.block, POISON, self.output.block_bytes);
        rank.fill(self.input.block, POISON, self.input.block_bytes);
        rank.upload(self.input.at, &inputs[rank.number()]);
        let told = match target.flushes(&call) {
            true => inputs.iter().map(|input| flushed(call.dtype, input)).collect(),
            false => inputs,
        };
        self.want = canonical(&call, reference::output(&call, rank.number(), &told));
    }

    /// Makes the call.
    ///
    /// # Errors
    ///
    /// As for [`Communicator::run`](crossover_core::communicator::Communicator::run).
    pub fn enqueue(&self, rank: &Rank<'_>) -> Result<(), CallError> {
        let buffers = CallBuffers {
            input: self.input.at as *const u8,
            output: self.output.at as *mut u8,
            stream: rank.stream.raw(),
        };
        // SAFETY: both places lie within the room, which outlives the stream's work, and overlap as
        // the op allows.
        unsafe { rank.comm().run(&self.case.call, &buffers) }
    }

    /// Overwrites the input in stream order, unless the output is there.
    pub fn spoil(&self, rank: &Rank<'_>) {
        if !self.case.in_place {
            rank.fill(self.input.block, SPOILED, self.input.block_bytes);
        }
    }

    /// Compares the output, and what lies around it.
    ///
    /// # Panics
    ///
    /// If a bit differs.
    #[track_caller]
    pub fn check(&self, rank: &Rank<'_>) {
        let Case { call, values, seed, offset, in_place, target } = self.case;
        let told = || {
            let (number, world) = (rank.number(), rank.world());
            let how = if target.pulled { " pulled" } else { "" };
            format!(
                "rank {number} of {world}, {}{how}, {call:?}, {values:?} seed {seed} offset {offset} \
                 in_place {in_place}",
                target.name
            )
        };
        let Place { block, block_bytes, at, bytes } = self.output;
        assert_eq!(bytes, self.want.len(), "{}", told());
        let all = rank.download(block, block_bytes);
        let start = (at - block) as usize;
        let got = &all[start..start + bytes];
        if let Some(wrong) = got.iter().zip(&self.want).position(|(a, b)| a != b) {
            let element = wrong / call.dtype.size();
            let range = element * call.dtype.size()..(element + 1) * call.dtype.size();
            let many = got.iter().zip(&self.want).filter(|(a, b)| a != b).count();
            panic!(
                "{}: element {element} is {:02x?}, not {:02x?}; {many} bytes of {bytes} are wrong",
                told(),
                &got[range.clone()],
                &self.want[range],
            );
        }
        // Around an output that is part of the input are the inputs of others.
        if !(in_place && call.op == Op::ReduceScatter) {
            let around = all[..start].iter().chain(&all[start + bytes..]);
            assert!(around.clone().all(|b| *b == POISON), "a write outside: {}", told());
        }
    }
}

/// What Lamport's protocol makes of a tensor: every -0.0 is +0.0.
fn flushed(dtype: Dtype, bytes: &[u8]) -> Vec<u8> {
    let size = dtype.size();
    let mut flushed = bytes.to_vec();
    for element in flushed.chunks_exact_mut(size) {
        let (last, rest) = element.split_last().expect("an element has bytes");
        if *last == 0x80 && rest.iter().all(|byte| *byte == 0) {
            element.fill(0);
        }
    }
    flushed
}

/// A reduction's NaN is the type's canonical one, whichever payload the processor would have kept.
fn canonical(call: &CallSig<'_>, mut bytes: Vec<u8>) -> Vec<u8> {
    let (infinity, nan) = match call.dtype {
        Dtype::F32 => (0x7f80_0000, 0x7fc0_0000u32),
        Dtype::F16 => (0x7c00, 0x7e00),
        Dtype::Bf16 => (0x7f80, 0x7fc0),
        _ => return bytes,
    };
    let size = call.dtype.size();
    let sign = 1u32 << (8 * size - 1);
    if call.op.reduces() {
        for element in bytes.chunks_exact_mut(size) {
            let mut word = [0; 4];
            word[..size].copy_from_slice(element);
            if u32::from_le_bytes(word) & !sign > infinity {
                element.copy_from_slice(&nan.to_le_bytes()[..size]);
            }
        }
    }
    bytes
}
