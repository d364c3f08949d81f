//! What ranks give in a checked call, and what must come out, bit for bit.
//!
//! Every rank's contribution is a function of the call's number and the rank, so each rank knows
//! what all others gave without being told: the collective under test is not trusted with its own
//! reference.
//!
//! Copies move random bits, NaNs of all kinds included. Reductions get small whole numbers, chosen
//! so that no partial result in any order is rounded: a wrong bit is then a wrong element, not a
//! matter of tolerance.

mod encode;
mod stream;
mod values;

use crossover_core::call::Op;

use super::case::{Case, ROOT};
use stream::Stream;
use values::Values;

/// Elements that are worked on at a time.
const CHUNK: usize = 4096;

/// This rank's input of a call.
pub(super) fn write_input(case: &Case, call: u64, input: &mut [u8]) {
    if !case.op.reduces() {
        return Stream::of(call, case.rank).fill(0, input);
    }
    let values = Values::new(case, call);
    for (at, chunk) in input.chunks_mut(CHUNK * case.dtype.size()).enumerate() {
        values.write_input(case.rank, at * CHUNK, chunk);
    }
}

/// Fills the output with what is wrong in every element, so that one which the call does not write
/// is found.
pub(super) fn poison(case: &Case, call: u64, output: &mut [u8]) {
    let expected = Expected::new(case, call);
    for (at, chunk) in output.chunks_mut(CHUNK * case.dtype.size()).enumerate() {
        expected.write(at * CHUNK, chunk);
        chunk.iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// How many elements of the output are not what they must be.
pub(super) fn count_wrong(case: &Case, call: u64, output: &[u8]) -> u64 {
    let size = case.dtype.size();
    let expected = Expected::new(case, call);
    let mut right = vec![0; CHUNK * size];
    let mut wrong = 0;
    for (at, chunk) in output.chunks(CHUNK * size).enumerate() {
        let right = &mut right[..chunk.len()];
        expected.write(at * CHUNK, right);
        if chunk != right {
            let pairs = chunk.chunks(size).zip(right.chunks(size));
            let is_wrong = |(got, want): &(&[u8], &[u8])| {
                got != want && !(case.flushes && is_zero(got) && is_zero(want))
            };
            wrong += pairs.filter(is_wrong).count() as u64;
        }
    }
    wrong
}

/// Is a floating-point number 0.0 or -0.0?
fn is_zero(element: &[u8]) -> bool {
    let (sign, rest) = element.split_last().unwrap_or((&0, &[]));
    sign & 0x7f == 0 && rest.iter().all(|byte| *byte == 0)
}

/// What must come out on one rank.
struct Expected<'c> {
    case: &'c Case,
    call: u64,
    values: Values,
}

impl Expected<'_> {
    fn new(case: &Case, call: u64) -> Expected<'_> {
        Expected { case, call, values: Values::new(case, call) }
    }

    /// Writes the elements from number `first` of the output on.
    fn write(&self, first: usize, chunk: &mut [u8]) {
        match self.case.op {
            Op::AllReduce => self.values.write_result(first, chunk),
            Op::ReduceScatter => {
                let before = self.case.rank as usize * self.case.output;
                self.values.write_result(before + first, chunk);
            }
            Op::AllGather | Op::AllToAll | Op::Broadcast => self.write_copies(first, chunk),
        }
    }

    fn write_copies(&self, mut first: usize, mut chunk: &mut [u8]) {
        let size = self.case.dtype.size();
        while !chunk.is_empty() {
            let Run { sender, from, elements } = self.origin(first);
            let elements = elements.min(chunk.len() / size);
            let (run, rest) = chunk.split_at_mut(elements * size);
            Stream::of(self.call, sender).fill((from * size) as u64, run);
            first += elements;
            chunk = rest;
        }
    }

    /// Where an element of the output comes from.
    fn origin(&self, element: usize) -> Run {
        let Case { rank, world, input, .. } = *self.case;
        let part = match self.case.op {
            Op::AllToAll => input / world as usize,
            _ => input,
        };
        let (sender, within) = (element / part, element % part);
        let elements = part - within;
        match self.case.op {
            Op::AllToAll => {
                Run { sender: sender as u32, from: rank as usize * part + within, elements }
            }
            Op::Broadcast => Run { sender: ROOT, from: within, elements },
            _ => Run { sender: sender as u32, from: within, elements },
        }
    }
}

/// A run of elements that one rank sent.
struct Run {
    sender: u32,
    /// The first of them in the sender's input.
    from: usize,
    elements: usize,
}

#[cfg(test)]
mod tests;
