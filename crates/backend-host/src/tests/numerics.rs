//! The kernels against the definition, bit for bit.

use crossover_core::call::{Dtype, ReduceOp};
use proptest::prelude::*;

use super::data::{random, reduced};
use crate::reduce::{Sources, Target, reduce};

#[test]
fn every_dtype_and_op_at_ragged_sizes() {
    let sizes = [0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 63, 64, 65, 511, 512, 513, 1025];
    for &dtype in Dtype::ALL {
        for &op in ReduceOp::ALL {
            for (seed, count) in (0..).zip(sizes) {
                check(dtype, op, [2, 3, 16][count % 3], count, count % 8, seed);
            }
        }
    }
}

#[test]
fn zeros_keep_the_sign_of_the_earliest_rank() {
    let of = |values: [f32; 2]| values.map(|v| v.to_ne_bytes().to_vec());
    for op in [ReduceOp::Min, ReduceOp::Max] {
        for values in [[-0.0, 0.0], [0.0, -0.0]] {
            assert_eq!(kernel(Dtype::F32, op, &of(values), 0), of(values)[0], "{op} {values:?}");
        }
    }
}

#[test]
fn averages_of_integers_truncate_toward_zero_after_wrapping() {
    let of = |values: &[i8]| values.iter().map(|v| vec![*v as u8]).collect::<Vec<_>>();
    for (values, average) in [(&[-3i8, -4][..], -3i8), (&[127, 127], -1), (&[1, 1, 0], 0)] {
        assert_eq!(kernel(Dtype::I8, ReduceOp::Avg, &of(values), 0), [average as u8]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_size_place_and_world(
        dtype in prop::sample::select(Dtype::ALL),
        op in prop::sample::select(ReduceOp::ALL),
        world in 1u32..=16,
        count in 0usize..1200,
        misaligned in 0usize..8,
        seed: u64,
    ) {
        check(dtype, op, world, count, misaligned, seed);
    }
}

#[track_caller]
fn check(dtype: Dtype, op: ReduceOp, world: u32, count: usize, misaligned: usize, seed: u64) {
    let bytes = count * dtype.size();
    let inputs: Vec<Vec<u8>> =
        (0..u64::from(world)).map(|r| random(dtype, bytes, seed ^ r << 40)).collect();
    let (got, expected) = (kernel(dtype, op, &inputs, misaligned), reduced(dtype, op, &inputs));
    if got != expected {
        let at = got.iter().zip(&expected).position(|(a, b)| a != b).unwrap() / dtype.size();
        let element = |v: &Vec<u8>| v[at * dtype.size()..][..dtype.size()].to_vec();
        let from: Vec<_> = inputs.iter().map(element).collect();
        panic!(
            "{dtype} {op} world {world}, element {at} of {count}: {:x?} for {:x?} from {from:x?}",
            element(&got),
            element(&expected),
        );
    }
}

/// Runs the kernel with every buffer off alignment, the output by another distance, and checks
/// that nothing around the output is touched.
fn kernel(dtype: Dtype, op: ReduceOp, inputs: &[Vec<u8>], misaligned: usize) -> Vec<u8> {
    let shifted: Vec<Vec<u8>> =
        inputs.iter().map(|v| [&vec![0; misaligned][..], v].concat()).collect();
    let sources = Sources::new(inputs.len() as u32, |r| shifted[r as usize][misaligned..].as_ptr());
    let (bytes, before) = (inputs[0].len(), 8 - misaligned);
    let mut output = vec![0xee; before + bytes + 8];
    let target = Target { to: output[before..].as_mut_ptr(), also: None, stream: false };
    // SAFETY: every source and the output have `bytes` bytes from there.
    unsafe { reduce(dtype, op, &sources, &target, bytes) };
    let (head, rest) = output.split_at(before);
    let (result, tail) = rest.split_at(bytes);
    assert!(head.iter().chain(tail).all(|b| *b == 0xee), "written out of bounds");
    result.to_vec()
}
