//! One call: its data, its buffers, and the comparison of its result.

use crossover_core::call::{CallBuffers, CallSig, Dtype, Mode, Op, ReduceOp, Split};
use crossover_core::communicator::{CallError, Communicator};
use crossover_core::contract::Contract;

use crate::data::{Rng, Values, fill};
use crate::reference;

/// One call of the suite.
#[derive(Clone, Copy)]
pub struct Case<'a> {
    /// The call.
    pub call: CallSig<'a>,
    /// Its data.
    pub values: Values,
    /// Makes the data of this call its own.
    pub seed: u64,
    /// Bytes by which both buffers are off a 64-byte boundary.
    pub offset: usize,
    /// Input and output share memory, as far as the op allows.
    pub in_place: bool,
}

impl<'a> Case<'a> {
    /// An even, aligned, out-of-place sum over exact values.
    pub fn new(op: Op, dtype: Dtype, count: usize, seed: u64) -> Self {
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
        Case { call, values: Values::Exact, seed, offset: 0, in_place: false }
    }

    /// Runs it and compares the result.
    ///
    /// # Panics
    ///
    /// If the call fails or its result differs from the reference in a bit.
    #[track_caller]
    pub fn check(&self, comm: &Communicator) {
        let (rank, world) = (comm.rank() as usize, comm.world() as usize);
        let call = self.sized_for(world);
        let inputs: Vec<Vec<u8>> = (0..world).map(|r| input_of(self, &call, r)).collect();
        let want = reference::output(&call, rank, &inputs);
        let got = self.run(comm, &call, &inputs[rank], want.len()).expect("the call succeeds");
        if let Some(at) = got.iter().zip(&want).position(|(a, b)| a != b) {
            let element = at / call.dtype.size();
            panic!("rank {rank} of {world}, {call:?}, {self}: element {element} is wrong");
        }
        assert_eq!(got.len(), want.len());
    }

    /// Ops that split a tensor need a count that divides.
    fn sized_for(&self, world: usize) -> CallSig<'a> {
        let even = matches!(self.call.split, Split::Even);
        let count = match self.call.op {
            Op::ReduceScatter | Op::AllToAll if even => self.call.count.next_multiple_of(world),
            _ => self.call.count,
        };
        CallSig { count, root: self.call.root % world as u32, ..self.call }
    }

    fn run(
        &self,
        comm: &Communicator,
        call: &CallSig<'_>,
        input: &[u8],
        out_len: usize,
    ) -> Result<Vec<u8>, CallError> {
        const POISON: u8 = 0xa5;
        let own = match (call.op, call.split) {
            (Op::AllGather | Op::ReduceScatter, Split::PerRank(counts)) => {
                counts[..comm.rank() as usize].iter().sum::<usize>() * call.dtype.size()
            }
            (Op::AllGather, Split::Even) => comm.rank() as usize * input.len(),
            (Op::ReduceScatter, Split::Even) => comm.rank() as usize * out_len,
            _ => 0,
        };
        let mut a = Aligned::poisoned(input.len().max(out_len), self.offset, POISON);
        let mut b = Aligned::poisoned(out_len, self.offset, POISON);
        let (input_at, output_at) = match (self.in_place, call.op) {
            (false, _) => (a.start(), b.start()),
            // The input is this rank's part of the output.
            (true, Op::AllGather) => (a.start().wrapping_add(own), a.start()),
            // The output is this rank's part of the input.
            (true, Op::ReduceScatter) => (a.start(), a.start().wrapping_add(own)),
            (true, _) => (a.start(), a.start()),
        };
        let buffers = CallBuffers { input: input_at, output: output_at, stream: 0 };
        // SAFETY: both places lie within `a` or `b`, which hold the larger of input and output.
        let output = unsafe {
            std::ptr::copy_nonoverlapping(input.as_ptr(), input_at, input.len());
            comm.run(call, &buffers)?;
            let output = std::slice::from_raw_parts(output_at, out_len).to_vec();
            // The input may be overwritten as soon as the call has returned.
            std::ptr::write_bytes(input_at, !POISON, input.len());
            output
        };
        a.check_borders(POISON);
        b.check_borders(POISON);
        Ok(output)
    }
}

impl std::fmt::Display for Case<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Case { values, seed, offset, in_place, .. } = self;
        write!(f, "{values:?} seed {seed} offset {offset} in_place {in_place}")
    }
}

/// Bytes of one rank's input.
fn input_of(case: &Case<'_>, call: &CallSig<'_>, rank: usize) -> Vec<u8> {
    let count = match (call.op, call.split) {
        (Op::AllGather, Split::PerRank(counts)) => counts[rank],
        _ => call.count,
    };
    fill(case.values, call.dtype, call.reduce_op, &mut Rng::new(case.seed, rank as u32), count)
}

/// A buffer at a chosen distance from a 64-byte boundary, with poisoned borders.
struct Aligned {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Aligned {
    const BORDER: usize = 64;

    fn poisoned(len: usize, offset: usize, poison: u8) -> Self {
        let memory = vec![poison; len + offset + 3 * Self::BORDER];
        let start = memory.as_ptr().align_offset(64) + Self::BORDER + offset;
        Aligned { memory, start, len }
    }

    fn start(&mut self) -> *mut u8 {
        self.memory[self.start..].as_mut_ptr()
    }

    fn check_borders(&self, poison: u8) {
        let before = &self.memory[..self.start];
        let after = &self.memory[self.start + self.len..];
        assert!(before.iter().chain(after).all(|b| *b == poison), "a write outside the buffer");
    }
}
