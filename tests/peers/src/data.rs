//! Data whose sums are exact in bf16: small whole numbers that differ by element, rank and call.

use crate::call::{Cell, Dtype, Op};

/// What a wrong or missing result leaves behind: no value of ours has this byte twice.
pub(crate) const POISON: u8 = 0xFF;

/// The input of `rank` in call number `call`, at element `at`: at most 15 + 14.
fn value(at: usize, rank: usize, call: usize) -> u32 {
    varying(at) + offset(rank, call)
}

/// Differs between neighbours and does not repeat at any chunk's length.
#[inline(always)]
fn varying(at: usize) -> u32 {
    let at = at as u32;
    (at ^ (at >> 4) ^ (at >> 9) ^ (at >> 13) ^ (at >> 19)) & 15
}

fn offset(rank: usize, call: usize) -> u32 {
    ((rank * 5 + call * 3) % 15) as u32
}

/// Writes the input of this rank.
pub(crate) fn fill(dtype: Dtype, rank: usize, call: usize, input: &mut [u8]) {
    let offset = offset(rank, call);
    match dtype {
        Dtype::F32 => {
            for (at, element) in input.chunks_exact_mut(4).enumerate() {
                element.copy_from_slice(&((varying(at) + offset) as f32).to_ne_bytes());
            }
        }
        Dtype::Bf16 => {
            for (at, element) in input.chunks_exact_mut(2).enumerate() {
                element.copy_from_slice(&bf16((varying(at) + offset) as f32));
            }
        }
    }
}

/// What `rank` must hold at element `at` of its output.
pub(crate) fn expected(cell: &Cell, rank: usize, call: usize, at: usize) -> f32 {
    let sum = |at| (0..cell.world).map(|rank| value(at, rank, call)).sum::<u32>();
    let exact = match cell.op {
        Op::AllReduce => sum(at),
        Op::ReduceScatter => sum(rank * cell.output() + at),
        Op::AllGather => value(at % cell.input(), at / cell.input(), call),
        Op::Broadcast => value(at, 0, call),
    };
    exact as f32
}

/// Element `at` of an output.
pub(crate) fn read(dtype: Dtype, output: &[u8], at: usize) -> f32 {
    match dtype {
        Dtype::F32 => {
            let bytes = &output[at * 4..at * 4 + 4];
            f32::from_ne_bytes(bytes.try_into().expect("four bytes"))
        }
        Dtype::Bf16 => {
            let bytes = &output[at * 2..at * 2 + 2];
            let bits = u16::from_ne_bytes(bytes.try_into().expect("two bytes"));
            f32::from_bits(u32::from(bits) << 16)
        }
    }
}

/// Is every element of the output right?
pub(crate) fn is_right(cell: &Cell, rank: usize, call: usize, output: &[u8]) -> bool {
    (0..cell.output()).all(|at| read(cell.dtype, output, at) == expected(cell, rank, call, at))
}

/// Exact for the values here, which have eight bits or fewer.
#[inline(always)]
fn bf16(value: f32) -> [u8; 2] {
    ((value.to_bits() >> 16) as u16).to_ne_bytes()
}
