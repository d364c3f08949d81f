//! Calls on real buffers, and what they must give: computed one element at a time, from the
//! definition, by code that shares nothing with the kernels but the tables of 8-bit floats.

use crossover_core::backend::{EnqueueError, Session};
use crossover_core::call::{CallBuffers, CallSig, Dtype, Mode, Op, ReduceOp, Split};
use crossover_core::contract::Contract;

use crate::session::HostSession;

pub(crate) fn call(op: Op, dtype: Dtype, reduce_op: ReduceOp, count: usize) -> CallSig<'static> {
    CallSig {
        op,
        dtype,
        reduce_op,
        count,
        mode: Mode::Eager,
        root: 0,
        split: Split::Even,
        contract: Contract::DEFAULT,
    }
}

pub(crate) fn sum(count: usize) -> CallSig<'static> {
    call(Op::AllReduce, Dtype::F32, ReduceOp::Sum, count)
}

/// Random bits, new for each seed and rank: NaNs of all kinds, subnormals and infinities among
/// them, and the special values themselves.
pub(crate) fn random(dtype: Dtype, bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut data: Vec<u8> = (0..bytes).map(|_| (next() >> 32) as u8).collect();
    let specials: &[f32] =
        &[0.0, -0.0, 1.0, -1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-40, f32::MAX];
    if matches!(dtype, Dtype::F32 | Dtype::Bf16 | Dtype::F16) {
        for element in data.chunks_exact_mut(dtype.size()) {
            let at = next() as usize % (2 * specials.len());
            if let Some(special) = specials.get(at) {
                match dtype {
                    Dtype::F32 => element.copy_from_slice(&special.to_ne_bytes()),
                    Dtype::F16 => {
                        element.copy_from_slice(&half::f16::from_f32(*special).to_ne_bytes())
                    }
                    _ => element.copy_from_slice(&half::bf16::from_f32(*special).to_ne_bytes()),
                }
            }
        }
    }
    data
}

/// Bytes of this rank's input.
pub(crate) fn input_bytes(call: &CallSig<'_>, rank: u32) -> usize {
    match (call.op, call.split) {
        (Op::AllGather, Split::PerRank(counts)) => counts[rank as usize] * call.dtype.size(),
        _ => call.bytes() as usize,
    }
}

/// Elements before rank `rank`'s part, and in it.
fn part(call: &CallSig<'_>, world: usize, rank: usize) -> (usize, usize) {
    match (call.split, call.op) {
        (Split::PerRank(counts), _) => (counts[..rank].iter().sum(), counts[rank]),
        (Split::Even, Op::AllGather) => (rank * call.count, call.count),
        (Split::Even, _) => (rank * (call.count / world), call.count / world),
    }
}

/// What rank `rank` must receive.
pub(crate) fn expected(call: &CallSig<'_>, inputs: &[Vec<u8>], rank: u32) -> Vec<u8> {
    let (world, rank, size) = (inputs.len(), rank as usize, call.dtype.size());
    let of = |input: &Vec<u8>, rank| {
        let (start, len) = part(call, world, rank);
        input[start * size..][..len * size].to_vec()
    };
    match call.op {
        Op::AllReduce => reduced(call.dtype, call.reduce_op, inputs),
        Op::AllGather => inputs.concat(),
        Op::ReduceScatter => of(&reduced(call.dtype, call.reduce_op, inputs), rank),
        Op::Broadcast => inputs[call.root as usize].clone(),
        Op::AllToAll => inputs.iter().flat_map(|input| of(input, rank)).collect(),
    }
}

/// Runs the call on memory of this misalignment, in place or not; the input is overwritten as
/// soon as the call returns, and only then is the output looked at.
pub(crate) fn run(
    session: &mut HostSession,
    (algorithm, seq, call): (usize, u64, &CallSig<'_>),
    (rank, inputs): (u32, &[Vec<u8>]),
    (misaligned, in_place): (usize, bool),
) -> Result<Vec<u8>, EnqueueError> {
    let mine = &inputs[rank as usize];
    let result = expected(call, inputs, rank).len();
    let whole = mine.len().max(result);
    let mut memory = vec![0xa5u8; misaligned + whole];
    let (start, _) = part(call, inputs.len(), rank as usize);
    let (input_at, output_at) = match call.op {
        Op::AllGather => (start * call.dtype.size(), 0),
        Op::ReduceScatter => (0, start * call.dtype.size()),
        _ => (0, 0),
    };
    let base = memory[misaligned..].as_mut_ptr();
    let mut separate = mine.clone();
    // SAFETY: offsets of parts inside the larger buffer; the result fits.
    let buffers = unsafe {
        if in_place {
            std::ptr::copy(mine.as_ptr(), base.add(input_at), mine.len());
            let (input, output) = (base.add(input_at).cast_const(), base.add(output_at));
            CallBuffers { input, output, stream: 0 }
        } else {
            CallBuffers { input: separate.as_ptr(), output: base, stream: 0 }
        }
    };
    // SAFETY: the buffers hold what the call says.
    unsafe { session.enqueue(algorithm, &ways(seq), seq, call, &buffers) }?;
    separate.fill(0x5a);
    // SAFETY: the output, inside `memory`.
    Ok(unsafe { std::slice::from_raw_parts(buffers.output, result) }.to_vec())
}

/// A window that some calls have.
pub(crate) const WINDOW: usize = 4160;

/// Values of the params, none of which may show: other ones for each call.
pub(crate) fn ways(seq: u64) -> [u64; 6] {
    let turn = |values: &[u64], every: u64| values[(seq / every) as usize % values.len()];
    [
        turn(&[u64::MAX, 0, 2048], 1),
        turn(&[64 << 10, 64], 3),
        turn(&[1 << 20, 0, 3000], 2),
        turn(&[u64::MAX, 0], 5),
        turn(&[u64::MAX, 0, 3000], 7),
        turn(&[u64::MAX, WINDOW as u64], 13),
    ]
}

/// The reduction, by its definition.
pub(crate) fn reduced(dtype: Dtype, op: ReduceOp, inputs: &[Vec<u8>]) -> Vec<u8> {
    macro_rules! ints {
        ($int:ty) => {
            elements(inputs, |values: Vec<$int>| {
                let world = values.len() as $int;
                let values = values.into_iter();
                match op {
                    ReduceOp::Sum => values.fold(0, <$int>::wrapping_add),
                    ReduceOp::Prod => values.fold(1, <$int>::wrapping_mul),
                    ReduceOp::Min => values.min().unwrap(),
                    ReduceOp::Max => values.max().unwrap(),
                    ReduceOp::Avg => values.fold(0, <$int>::wrapping_add) / world,
                }
            })
        };
    }
    let narrow = |values: &[f32]| floats(op, values, values.len() as f32);
    match dtype {
        Dtype::F32 => elements(inputs, |v: Vec<f32>| narrow(&v)),
        Dtype::F64 => elements(inputs, |v: Vec<f64>| floats(op, &v, v.len() as f64)),
        Dtype::F16 => elements(inputs, |v: Vec<half::f16>| {
            half::f16::from_f32(narrow(&v.iter().map(|x| x.to_f32()).collect::<Vec<_>>()))
        }),
        Dtype::Bf16 => elements(inputs, |v: Vec<half::bf16>| {
            half::bf16::from_f32(narrow(&v.iter().map(|x| x.to_f32()).collect::<Vec<_>>()))
        }),
        Dtype::F8E4M3 => elements(inputs, |v: Vec<u8>| crate::reduce::e4m3(&v, narrow)),
        Dtype::F8E5M2 => elements(inputs, |v: Vec<u8>| crate::reduce::e5m2(&v, narrow)),
        Dtype::I8 => ints!(i8),
        Dtype::U8 => ints!(u8),
        Dtype::I32 => ints!(i32),
        Dtype::U32 => ints!(u32),
        Dtype::I64 => ints!(i64),
        Dtype::U64 => ints!(u64),
    }
}

trait Float: Copy + PartialOrd + num::Arithmetic {}
impl<T: Copy + PartialOrd + num::Arithmetic> Float for T {}

mod num {
    use std::ops::{Add, Div, Mul};

    /// What f32 and f64 have in common here.
    pub(super) trait Arithmetic:
        Sized + Add<Output = Self> + Mul<Output = Self> + Div<Output = Self>
    {
        const NAN: Self;
    }

    impl Arithmetic for f32 {
        const NAN: Self = f32::NAN;
    }

    impl Arithmetic for f64 {
        const NAN: Self = f64::NAN;
    }
}

fn floats<F: Float>(op: ReduceOp, values: &[F], world: F) -> F {
    let nan = |x: F| x.partial_cmp(&x).is_none();
    let mut result = values[0];
    for &value in &values[1..] {
        result = match op {
            ReduceOp::Sum | ReduceOp::Avg => result + value,
            ReduceOp::Prod => result * value,
            ReduceOp::Min if nan(result) || nan(value) => F::NAN,
            ReduceOp::Max if nan(result) || nan(value) => F::NAN,
            ReduceOp::Min if value < result => value,
            ReduceOp::Max if value > result => value,
            ReduceOp::Min | ReduceOp::Max => result,
        };
    }
    let result = if op == ReduceOp::Avg { result / world } else { result };
    if nan(result) { F::NAN } else { result }
}

/// Applies `f` to the ranks' values of each element.
fn elements<T: Copy>(inputs: &[Vec<u8>], f: impl Fn(Vec<T>) -> T) -> Vec<u8> {
    let size = size_of::<T>();
    let mut out = Vec::with_capacity(inputs[0].len());
    for at in (0..inputs[0].len()).step_by(size) {
        // SAFETY: numbers, of which every bit pattern is one, in bounds.
        let read = |input: &Vec<u8>| unsafe { input[at..].as_ptr().cast::<T>().read_unaligned() };
        let result = f(inputs.iter().map(read).collect());
        // SAFETY: numbers have no padding.
        out.extend_from_slice(unsafe {
            std::slice::from_raw_parts((&raw const result).cast(), size)
        });
    }
    out
}
