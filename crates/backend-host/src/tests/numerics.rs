//! The kernels against the definition, bit for bit.

use crossover_core::call::{Dtype, ReduceOp};
use proptest::prelude::*;

use super::data::{random, reduced};
use crate::reduce::{Isa, Sources, Target, reduce_by};

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
            for isa in Isa::available() {
                let got = kernel(Dtype::F32, op, &of(values), Way { isa, ..Way::default() });
                assert_eq!(got, of(values)[0], "{op} {values:?} {isa:?}");
            }
        }
    }
}

#[test]
fn averages_of_integers_truncate_toward_zero_after_wrapping() {
    let of = |values: &[i8]| values.iter().map(|v| vec![*v as u8]).collect::<Vec<_>>();
    for (values, average) in [(&[-3i8, -4][..], -3i8), (&[127, 127], -1), (&[1, 1, 0], 0)] {
        for isa in Isa::available() {
            let got = kernel(Dtype::I8, ReduceOp::Avg, &of(values), Way { isa, ..Way::default() });
            assert_eq!(got, [average as u8], "{isa:?}");
        }
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

/// Places and lengths of every kind, of vectors and of parts of them, against the portable path.
#[test]
fn every_isa_gives_the_portable_bits() {
    let lengths: Vec<usize> = (0..=200).chain([255, 256, 257, 511, 1000, 4099]).collect();
    for &dtype in Dtype::ALL {
        let inputs: Vec<Vec<u8>> =
            (0..16).map(|r| random(dtype, 4101 * dtype.size(), r << 40 | 7)).collect();
        for &op in ReduceOp::ALL {
            for (at, &count) in lengths.iter().enumerate() {
                let inputs: Vec<Vec<u8>> = inputs[..1 + at % 16]
                    .iter()
                    .map(|input| input[at % 3 * dtype.size()..][..count * dtype.size()].to_vec())
                    .collect();
                let way = Way { misaligned: at % 9, in_place: at % 5 == 0, ..Way::default() };
                let expected = kernel(dtype, op, &inputs, way);
                for isa in Isa::available() {
                    let ways = [(false, true), (true, false), (true, true)];
                    for (stream, also) in ways {
                        // Past the caches or through them by turns, whatever else changes.
                        let past = also && (at + usize::from(stream)) % 2 == 0;
                        let way = Way { isa, stream, also, past, ..way };
                        let got = kernel(dtype, op, &inputs, way);
                        assert!(got == expected, "{dtype} {op} {count} {way:?}");
                    }
                }
            }
        }
    }
}

#[track_caller]
fn check(dtype: Dtype, op: ReduceOp, world: u32, count: usize, misaligned: usize, seed: u64) {
    let bytes = count * dtype.size();
    let inputs: Vec<Vec<u8>> =
        (0..u64::from(world)).map(|r| random(dtype, bytes, seed ^ r << 40)).collect();
    let expected = reduced(dtype, op, &inputs);
    for isa in Isa::available() {
        let [stream, also, in_place, past] = [1, 2, 4, 8].map(|bit| seed & bit == bit);
        let way = Way { isa, misaligned, stream, also, past: past && also, in_place };
        let got = kernel(dtype, op, &inputs, way);
        if got != expected {
            let at = got.iter().zip(&expected).position(|(a, b)| a != b).unwrap() / dtype.size();
            let element = |v: &Vec<u8>| v[at * dtype.size()..][..dtype.size()].to_vec();
            let from: Vec<_> = inputs.iter().map(element).collect();
            panic!(
                "{dtype} {op} {isa:?} world {world}, element {at} of {count}: {:x?} for {:x?} \
                 from {from:x?}",
                element(&got),
                element(&expected),
            );
        }
    }
}

/// How a kernel is run.
#[derive(Clone, Copy, Debug)]
struct Way {
    isa: Isa,
    misaligned: usize,
    stream: bool,
    also: bool,
    past: bool,
    in_place: bool,
}

impl Default for Way {
    fn default() -> Self {
        Way {
            isa: Isa::Portable,
            misaligned: 0,
            stream: false,
            also: false,
            past: false,
            in_place: false,
        }
    }
}

/// Runs the kernel with every buffer off alignment, the outputs by other distances, and checks
/// that nothing around the outputs is touched.
fn kernel(dtype: Dtype, op: ReduceOp, inputs: &[Vec<u8>], way: Way) -> Vec<u8> {
    let bytes = inputs[0].len();
    let framed =
        |before: usize, inside: &[u8]| [&vec![0xee; before][..], inside, &[0xee; 8]].concat();
    let shifted: Vec<Vec<u8>> = inputs.iter().map(|v| framed(way.misaligned, v)).collect();
    let before = 16 - way.misaligned;
    let zeros = vec![0; bytes];
    let mut output = framed(before, if way.in_place { &inputs[0] } else { &zeros });
    // A slot is aligned, and what is not is written through the caches all the same.
    let mut second = vec![0xee; bytes + 3 * 64];
    let place = if way.past { second.as_ptr().align_offset(64) } else { 3 };
    let to = output[before..].as_mut_ptr();
    let sources = Sources::new(inputs.len() as u32, |r| match r {
        0 if way.in_place => to.cast_const(),
        _ => shifted[r as usize][way.misaligned..].as_ptr(),
    });
    let also = way.also.then(|| second[place..].as_mut_ptr());
    let target = Target { to, also, stream: way.stream, past: way.past };
    // SAFETY: every source and output has `bytes` bytes from there; the machine has the isa.
    unsafe { reduce_by(way.isa, dtype, op, &sources, &target, bytes) };
    let result = output[before..][..bytes].to_vec();
    assert!(output == framed(before, &result), "written out of bounds");
    if way.also {
        assert!(second[place..][..bytes] == result, "the second copy");
        second.drain(place..place + bytes);
        assert!(second.iter().all(|byte| *byte == 0xee), "written beside the second copy");
    }
    result
}
