//! One call of the soak: its buffers, poisoned, and every byte of them compared afterwards.

use crossover_core::call::{CallBuffers, CallSig, Op, Split};
use crossover_core::communicator::Communicator;

use super::shape::Shape;
use super::values::{expected, input};

/// What a rank does wrong on purpose, to show that it is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It gives what belonged to the call before.
    GivesStaleData,
    /// It expects what belongs to the next call.
    ExpectsTheNext,
}

/// Makes the call with the data of `seed`, in buffers `offset` bytes off a border of 64, and looks
/// at every byte that it may have written.
///
/// # Errors
///
/// The call failed, or a byte is wrong: in words.
pub fn check(
    comm: &Communicator,
    shape: &Shape,
    seed: u64,
    offset: usize,
    fault: Option<Fault>,
) -> Result<(), String> {
    let (rank, world) = (comm.rank() as usize, comm.world() as usize);
    let call = shape.call();
    let given = input(&call, seed ^ u64::from(fault == Some(Fault::GivesStaleData)), rank, world);
    let want = expected(&call, seed ^ u64::from(fault == Some(Fault::ExpectsTheNext)), rank, world);

    let part = own_part(&call, rank, given.len(), want.len());
    let room = if shape.in_place { given.len().max(want.len()) } else { want.len() };
    let mut output = Memory::new(room, offset);
    let mut separate = Memory::new(given.len(), offset ^ 8);
    let (from, to) = match (shape.in_place, call.op) {
        (false, _) => (separate.start(), output.start()),
        // The input is this rank's part of the output.
        (true, Op::AllGather) => (output.start().wrapping_add(part), output.start()),
        // The output is this rank's part of the input.
        (true, Op::ReduceScatter) => (output.start(), output.start().wrapping_add(part)),
        (true, _) => (output.start(), output.start()),
    };
    // SAFETY: `from` has room for the input in either memory, `to` for the output.
    let got = unsafe {
        from.copy_from_nonoverlapping(given.as_ptr(), given.len());
        let buffers = CallBuffers { input: from, output: to, stream: 0 };
        comm.run(&call, &buffers).map_err(|e| e.to_string())?;
        std::slice::from_raw_parts(to, want.len()).to_vec()
    };
    if let Some(at) = got.iter().zip(&want).position(|(got, want)| got != want) {
        let element = at / call.dtype.size();
        return Err(format!("rank {rank} of {world}: element {element} is wrong in {call:?}"));
    }
    if !output.is_untouched_outside() || !separate.is_untouched_outside() {
        return Err(format!("rank {rank} of {world}: a write beside a buffer in {call:?}"));
    }
    // From now on it may hold anything: a peer that still reads it gets something wrong.
    // SAFETY: as above.
    unsafe { from.write_bytes(!POISON, given.len()) };
    Ok(())
}

/// Bytes from the beginning of the larger buffer to this rank's part, where the op has one.
fn own_part(call: &CallSig<'_>, rank: usize, given: usize, wanted: usize) -> usize {
    match (call.op, call.split) {
        (Op::AllGather | Op::ReduceScatter, Split::PerRank(counts)) => {
            counts[..rank].iter().sum::<usize>() * call.dtype.size()
        }
        (Op::AllGather, Split::Even) => rank * given,
        (Op::ReduceScatter, Split::Even) => rank * wanted,
        _ => 0,
    }
}

const POISON: u8 = 0xa5;
const BORDER: usize = 64;

/// Poisoned memory of which a part is used.
struct Memory {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Memory {
    fn new(len: usize, offset: usize) -> Self {
        let bytes = vec![POISON; len + offset + 3 * BORDER];
        let start = bytes.as_ptr().align_offset(BORDER) + BORDER + offset;
        Memory { bytes, start, len }
    }

    fn start(&mut self) -> *mut u8 {
        self.bytes[self.start..].as_mut_ptr()
    }

    fn is_untouched_outside(&self) -> bool {
        let (before, after) = (&self.bytes[..self.start], &self.bytes[self.start + self.len..]);
        before.iter().chain(after).all(|byte| *byte == POISON)
    }
}
