//! What every `rank_ordered` algorithm must return, bit for bit: one element at a time, one rank
//! after the other, with nothing shared with the code under test.

pub mod fp8;

use crossover_core::call::{CallSig, Dtype, Op, ReduceOp, Split};
use half::{bf16, f16};

/// The output of `rank`, from every rank's input.
pub fn output(call: &CallSig<'_>, rank: usize, inputs: &[Vec<u8>]) -> Vec<u8> {
    let world = inputs.len();
    let size = call.dtype.size();
    match call.op {
        Op::AllReduce => reduce(call.dtype, call.reduce_op, inputs, 0..call.count),
        Op::ReduceScatter => {
            let counts = match call.split {
                Split::Even => vec![call.count / world; world],
                Split::PerRank(counts) => counts.to_vec(),
            };
            let start: usize = counts[..rank].iter().sum();
            reduce(call.dtype, call.reduce_op, inputs, start..start + counts[rank])
        }
        Op::AllGather => inputs.concat(),
        Op::Broadcast => inputs[call.root as usize].clone(),
        Op::AllToAll => {
            let part = call.count / world * size;
            inputs.iter().flat_map(|i| i[rank * part..(rank + 1) * part].to_vec()).collect()
        }
    }
}

fn reduce(
    dtype: Dtype,
    op: ReduceOp,
    inputs: &[Vec<u8>],
    elements: std::ops::Range<usize>,
) -> Vec<u8> {
    let size = dtype.size();
    let mut out = Vec::new();
    for at in elements {
        let of_ranks: Vec<&[u8]> = inputs.iter().map(|i| &i[at * size..(at + 1) * size]).collect();
        out.extend(match dtype {
            Dtype::F32 => narrow(op, &of_ranks, f32_of).to_ne_bytes().to_vec(),
            Dtype::F16 => {
                let wide = narrow(op, &of_ranks, |b| f16::from_ne_bytes([b[0], b[1]]).to_f32());
                f16::from_f32(wide).to_ne_bytes().to_vec()
            }
            Dtype::Bf16 => {
                let wide = narrow(op, &of_ranks, |b| bf16::from_ne_bytes([b[0], b[1]]).to_f32());
                bf16::from_f32(wide).to_ne_bytes().to_vec()
            }
            Dtype::F8E4M3 => {
                vec![
                    fp8::E4M3
                        .encode(narrow(op, &of_ranks, |b| fp8::E4M3.decode(b[0]) as f32).into()),
                ]
            }
            Dtype::F8E5M2 => {
                vec![
                    fp8::E5M2
                        .encode(narrow(op, &of_ranks, |b| fp8::E5M2.decode(b[0]) as f32).into()),
                ]
            }
            Dtype::F64 => {
                let value = |b: &[u8]| f64::from_ne_bytes(b.try_into().expect("8 bytes"));
                double(op, &of_ranks, value).to_ne_bytes().to_vec()
            }
            _ => integer(dtype, op, &of_ranks),
        });
    }
    out
}

fn f32_of(b: &[u8]) -> f32 {
    f32::from_ne_bytes(b.try_into().expect("4 bytes"))
}

/// One element of every rank, added up in `$float`.
macro_rules! in_rank_order {
    ($name:ident, $float:ty) => {
        fn $name(op: ReduceOp, ranks: &[&[u8]], value: impl Fn(&[u8]) -> $float) -> $float {
            let mut acc = value(ranks[0]);
            for bytes in &ranks[1..] {
                let x = value(bytes);
                acc = match op {
                    ReduceOp::Sum | ReduceOp::Avg => acc + x,
                    ReduceOp::Prod => acc * x,
                    _ if acc.is_nan() || x.is_nan() => <$float>::NAN,
                    ReduceOp::Min => {
                        if x < acc {
                            x
                        } else {
                            acc
                        }
                    }
                    ReduceOp::Max => {
                        if x > acc {
                            x
                        } else {
                            acc
                        }
                    }
                };
            }
            if op == ReduceOp::Avg { acc / ranks.len() as $float } else { acc }
        }
    };
}

in_rank_order!(narrow, f32);
in_rank_order!(double, f64);

/// Integers, in i128 and cut to the dtype after every step: wrapping by definition.
fn integer(dtype: Dtype, op: ReduceOp, ranks: &[&[u8]]) -> Vec<u8> {
    let size = dtype.size();
    let signed = matches!(dtype, Dtype::I8 | Dtype::I32 | Dtype::I64);
    let cut = |wide: i128| -> i128 {
        let bits = 8 * size as u32;
        let low = wide & ((1i128 << bits) - 1);
        if signed && low >> (bits - 1) & 1 == 1 { low - (1i128 << bits) } else { low }
    };
    let value = |b: &[u8]| {
        let mut wide = [0u8; 16];
        wide[..size].copy_from_slice(b);
        cut(i128::from_le_bytes(wide))
    };
    let mut acc = value(ranks[0]);
    for bytes in &ranks[1..] {
        let x = value(bytes);
        acc = match op {
            ReduceOp::Sum | ReduceOp::Avg => cut(acc + x),
            ReduceOp::Prod => cut(acc.wrapping_mul(x)),
            ReduceOp::Min => acc.min(x),
            ReduceOp::Max => acc.max(x),
        };
    }
    if op == ReduceOp::Avg {
        acc /= ranks.len() as i128; // toward zero
    }
    acc.to_le_bytes()[..size].to_vec()
}
