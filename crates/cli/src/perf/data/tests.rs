use crossover_core::call::{Dtype, ReduceOp};
use crossover_core::contract::{Deviation, Deviations};

use super::*;

/// Every op, reduce op and dtype, and a size that is no multiple of anything.
fn cases(rank: u32, world: u32) -> Vec<Case> {
    let mut cases = Vec::new();
    for &op in Op::ALL {
        for &dtype in Dtype::ALL {
            for &reduce_op in ReduceOp::ALL {
                let size = (CHUNK + 37) * dtype.size() * world as usize;
                cases.push(Case::new(op, dtype, reduce_op, (rank, world), size as u64));
            }
        }
    }
    cases
}

fn right(case: &Case, call: u64) -> Vec<u8> {
    let mut output = vec![0; case.output * case.dtype.size()];
    poison(case, call, &mut output);
    output.iter_mut().for_each(|byte| *byte = !*byte);
    output
}

#[test]
fn a_right_output_has_no_wrong_element() {
    for case in cases(1, 3).into_iter() {
        assert_eq!(count_wrong(&case, 5, &right(&case, 5)), 0, "{case:?}");
    }
}

#[test]
fn one_flipped_bit_is_one_wrong_element() {
    for case in cases(1, 3).into_iter() {
        let mut output = right(&case, 5);
        let last = output.len() - 1;
        output[last] ^= 1;
        assert_eq!(count_wrong(&case, 5, &output), 1, "{case:?}");
        output[0] ^= 0x80;
        assert_eq!(count_wrong(&case, 5, &output), 2, "{case:?}");
    }
}

#[test]
fn another_calls_output_is_wrong() {
    let case = Case::new(Op::AllGather, Dtype::Bf16, ReduceOp::Sum, (0, 2), 64 << 10);
    assert!(count_wrong(&case, 6, &right(&case, 5)) > 32_000);
    let case = Case { op: Op::AllReduce, input: case.output, ..case };
    assert!(count_wrong(&case, 6, &right(&case, 5)) > 30_000);
}

#[test]
fn poison_is_wrong_everywhere() {
    for case in cases(0, 2) {
        let mut output = vec![0; case.output * case.dtype.size()];
        poison(&case, 5, &mut output);
        assert_eq!(count_wrong(&case, 5, &output), case.output as u64, "{case:?}");
    }
}

/// The reference itself, against a plain sum of what the ranks give.
#[test]
fn results_are_reductions_of_inputs() {
    for world in [1, 2, 3, 8, 16, 64] {
        for reduce_op in [ReduceOp::Sum, ReduceOp::Avg, ReduceOp::Prod] {
            let whole = |rank| Case::new(Op::AllReduce, Dtype::I32, reduce_op, (rank, world), 9999);
            let decode = |bytes: &[u8]| -> Vec<i32> {
                let numbers = bytes.chunks_exact(4);
                numbers.map(|b| i32::from_ne_bytes(b.try_into().expect("4 bytes"))).collect()
            };
            let inputs = (0..world).map(|rank| {
                let mut input = vec![0; whole(rank).input * 4];
                write_input(&whole(rank), 3, &mut input);
                decode(&input)
            });
            let combined = inputs.reduce(|a, b| {
                let both = a.iter().zip(&b);
                both.map(|(a, b)| if reduce_op == ReduceOp::Prod { a * b } else { a + b }).collect()
            });
            let divisor = if reduce_op == ReduceOp::Avg { world as i32 } else { 1 };
            let combined = combined.expect("a rank").into_iter();
            let by_hand: Vec<i32> = combined
                .inspect(|sum| assert_eq!(sum % divisor, 0, "{reduce_op} over {world}"))
                .map(|sum| sum / divisor)
                .collect();
            assert_eq!(decode(&right(&whole(0), 3)), by_hand, "{reduce_op} over {world}");
        }
    }
}

/// Copies move every bit pattern, so that some bf16 in 64 Ki is a -0.0.
#[test]
fn a_flushed_zero_is_wrong_unless_the_contract_accepts_it() {
    let size = 1 << 20; // size: enough for each pattern
    let case = Case::new(Op::AllGather, Dtype::Bf16, ReduceOp::Sum, (0, 2), size);
    let mut output = right(&case, 5);
    let minus_zero = |element: &&mut [u8]| **element == (-0.0f32).to_le_bytes()[2..];
    let mut flushed = 0;
    for element in output.chunks_mut(2).filter(minus_zero) {
        element.fill(0);
        flushed += 1;
    }
    assert!(flushed > 0);
    assert_eq!(count_wrong(&case, 5, &output), flushed);
    let flush = Deviations::of(&[Deviation::SignedZeroFlush]);
    assert_eq!(count_wrong(&case.accepting(flush), 5, &output), 0);
    output[0] ^= 1;
    assert_eq!(count_wrong(&case.accepting(flush), 5, &output), 1);
    let whole = Case::new(Op::AllGather, Dtype::I8, ReduceOp::Sum, (0, 2), 64);
    assert!(!whole.accepting(flush).flushes, "a whole number has one zero");
}
