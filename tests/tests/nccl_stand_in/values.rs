//! What comes out, bit for bit.

use std::ffi::c_void;

use crossover_core::call::{CallSig, Dtype, Mode, Op, ReduceOp, Split};
use crossover_core::contract::Contract;
use crossover_nccl_sys::layout::{DataType, RedOp, Status};
use crossover_tests::data::{Rng, Values, fill};
use crossover_tests::reference;

use super::group::{Bench, Rank, ok};

fn dtype_of(dtype: Dtype) -> DataType {
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

fn op_of(op: ReduceOp) -> RedOp {
    match op {
        ReduceOp::Sum => RedOp::SUM,
        ReduceOp::Prod => RedOp::PROD,
        ReduceOp::Min => RedOp::MIN,
        ReduceOp::Max => RedOp::MAX,
        ReduceOp::Avg => RedOp::AVG,
    }
}

fn sig(op: Op, dtype: Dtype, reduce_op: ReduceOp, count: usize, root: u32) -> CallSig<'static> {
    let (mode, split, contract) = (Mode::Eager, Split::Even, Contract::DEFAULT);
    CallSig { op, dtype, reduce_op, count, mode, root, split, contract }
}

/// One collective on one rank; returns the output. `skew` bytes misalign input and output.
fn call(rank: &Rank<'_>, sig: &CallSig<'_>, input: &[u8], in_place: bool, skew: usize) -> Vec<u8> {
    let world = rank.world;
    let outputs = match sig.op {
        Op::AllGather => input.len() * world,
        Op::ReduceScatter => input.len() / world,
        _ => input.len(),
    };
    let mut room = vec![0xeeu8; input.len().max(outputs) + 32];
    let mut apart = [vec![0xee; skew], input.to_vec()].concat();
    let base = room.as_mut_ptr().wrapping_add(skew);
    let (from, to) = match (in_place, sig.op) {
        (false, _) => (apart.as_mut_ptr().wrapping_add(skew), base),
        (true, Op::AllGather) => (base.wrapping_add(rank.rank * input.len()), base),
        (true, Op::ReduceScatter) => (base, base.wrapping_add(rank.rank * outputs)),
        (true, _) => (base, base),
    };
    if in_place {
        // SAFETY: the room holds the input and the output.
        unsafe { std::ptr::copy(input.as_ptr(), from, input.len()) };
    }
    let (from, out) = (from as *const c_void, to as *mut c_void);
    let (dtype, op) = (dtype_of(sig.dtype), op_of(sig.reduce_op));
    let (calls, comm, stream) = (&rank.bench.nccl.calls, rank.comm, rank.raw_stream());
    let count = sig.count;
    // SAFETY: the buffers are awaited.
    ok(unsafe {
        match sig.op {
            Op::AllReduce => (calls.all_reduce)(from, out, count, dtype, op, comm, stream),
            Op::AllGather => (calls.all_gather)(from, out, count, dtype, comm, stream),
            Op::ReduceScatter => {
                (calls.reduce_scatter)(from, out, count / world, dtype, op, comm, stream)
            }
            Op::Broadcast => {
                (calls.broadcast)(from, out, count, dtype, sig.root as i32, comm, stream)
            }
            Op::AllToAll => Status::INVALID_USAGE,
        }
    });
    rank.synchronize();
    // SAFETY: it lies in the room.
    unsafe { std::slice::from_raw_parts(to, outputs) }.to_vec()
}

/// Every rank's output is the reference's; NaNs of a reduction are the type's canonical one.
fn check(
    bench: &Bench,
    world: usize,
    sig: &CallSig<'_>,
    values: Values,
    in_place: bool,
    skew: usize,
) {
    let inputs: Vec<Vec<u8>> = (0..world)
        .map(|rank| {
            let mut rng = Rng::new(sig.count as u64 + skew as u64, rank as u32);
            fill(values, sig.dtype, sig.reduce_op, &mut rng, sig.count)
        })
        .collect();
    let inputs = &inputs;
    let got = bench.ranks(world, |rank| call(rank, sig, &inputs[rank.rank], in_place, skew));
    for (rank, got) in got.iter().enumerate() {
        let mut want = reference::output(sig, rank, inputs);
        if sig.op.reduces() {
            canonical(sig.dtype, &mut want);
        }
        assert_eq!(got, &want, "{sig:?} {values:?} rank {rank} of {world}, in place: {in_place}");
    }
}

fn canonical(dtype: Dtype, bytes: &mut [u8]) {
    let size = dtype.size();
    for element in bytes.chunks_exact_mut(size) {
        match dtype {
            Dtype::F32 if f32::from_ne_bytes(element.try_into().unwrap()).is_nan() => {
                element.copy_from_slice(&f32::NAN.to_ne_bytes());
            }
            Dtype::F64 if f64::from_ne_bytes(element.try_into().unwrap()).is_nan() => {
                element.copy_from_slice(&f64::NAN.to_ne_bytes());
            }
            Dtype::F16 if half::f16::from_ne_bytes(element.try_into().unwrap()).is_nan() => {
                element.copy_from_slice(&half::f16::NAN.to_ne_bytes());
            }
            Dtype::Bf16 if half::bf16::from_ne_bytes(element.try_into().unwrap()).is_nan() => {
                element.copy_from_slice(&half::bf16::NAN.to_ne_bytes());
            }
            _ => {}
        }
    }
}

#[test]
fn every_dtype_and_reduction_is_the_reference() {
    let Some(bench) = Bench::new() else { return };
    for &dtype in Dtype::ALL {
        for &op in ReduceOp::ALL {
            for (world, values) in [(2, Values::Bits), (3, Values::Rough), (5, Values::Exact)] {
                let skew = dtype.size();
                check(&bench, world, &sig(Op::AllReduce, dtype, op, 137, 0), values, false, skew);
            }
        }
    }
}

#[test]
fn every_collective_in_place_and_out_at_any_alignment_of_its_elements() {
    let Some(bench) = Bench::new() else { return };
    for op in [Op::AllReduce, Op::AllGather, Op::ReduceScatter, Op::Broadcast] {
        for (world, count) in [(1, 7), (2, 66), (4, 40_000)] {
            let skew = if op.reduces() { 2 } else { 3 };
            for (in_place, skew) in [(false, 0), (true, skew)] {
                let sig = sig(op, Dtype::Bf16, ReduceOp::Sum, count, world as u32 - 1);
                check(&bench, world, &sig, Values::Rough, in_place, skew);
            }
        }
    }
}

#[test]
fn copies_keep_every_bit() {
    let Some(bench) = Bench::new() else { return };
    for op in [Op::AllGather, Op::Broadcast] {
        check(&bench, 3, &sig(op, Dtype::F32, ReduceOp::Sum, 99, 1), Values::Bits, false, 2);
    }
}

#[test]
fn a_reduction_to_one_root_leaves_the_others_alone() {
    let Some(bench) = Bench::new() else { return };
    let got = bench.ranks(3, |rank| {
        let (input, mut output) = ([rank.rank as i32 + 1; 5], [-1i32; 5]);
        let (from, to) = (input.as_ptr().cast(), output.as_mut_ptr().cast());
        let to = if rank.rank == 1 { to } else { std::ptr::null_mut() };
        let (comm, stream) = (rank.comm, rank.raw_stream());
        let reduce = rank.bench.nccl.calls.reduce;
        // SAFETY: the buffers are awaited.
        ok(unsafe { reduce(from, to, 5, DataType::I32, RedOp::SUM, 1, comm, stream) });
        rank.synchronize();
        output
    });
    assert_eq!(got, [[-1; 5], [6; 5], [-1; 5]]);
}

#[test]
fn no_elements_are_no_call() {
    let Some(bench) = Bench::new() else { return };
    bench.stand.fail(Some("call=1 fail"));
    bench.ranks(2, |rank| {
        let (nowhere, to) = (std::ptr::null(), std::ptr::null_mut());
        let (comm, stream) = (rank.comm, rank.raw_stream());
        let all_reduce = rank.bench.nccl.calls.all_reduce;
        // SAFETY: nothing is read or written.
        ok(unsafe { all_reduce(nowhere, to, 0, DataType::F32, RedOp::SUM, comm, stream) });
    });
}
