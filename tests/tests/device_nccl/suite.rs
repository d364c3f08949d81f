//! The suite of device backends, as far as it holds for a library: not `every_bit`, since in which
//! order a library adds, and which NaN it gives, is its own.

use crossover_core::call::{Dtype, Op, ReduceOp, Split};
use crossover_tests::device::{self, Case, Stand, Target};

use crate::stage::{self, Library};

macro_rules! tests_of {
    ($target:literal, $how:ident: $($test:ident),+ $(,)?) => {$(
        #[test]
        fn $test() {
            const NAME: &str = concat!(module_path!(), "::", stringify!($test));
            fn test(stand: &'static Stand) {
                let _library = Library::named_as_nccl(stand, &[]);
                device::$how(NAME, $target, crate::suite::bodies::$test);
            }
            stage::apart(NAME, test);
        }
    )+};
}

/// What is run: the suite's, and what follows.
pub(crate) mod bodies {
    pub(crate) use super::{
        a_large_exchange_in_place, every_stated_dtype_and_reduce_op, misaligned_reductions,
    };
    pub(crate) use crossover_tests::device::*;
}

/// Is a result that of the reference, bit for bit? NCCL averages floats by multiplying each rank's
/// elements by 1/N before it adds them up, which is exact for powers of two alone; the stand-in
/// divides the sum. All else is: NCCL rounds sums of f16 and bf16 at each hop, and data of the suite
/// are whole numbers so small that there is nothing to round.
fn is_exact(stand: &Stand, world: u32, dtype: Dtype, reduce_op: ReduceOp) -> bool {
    let floats = [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::F64];
    let premultiplied = reduce_op == ReduceOp::Avg && floats.contains(&dtype);
    stand.is_emulated() || !premultiplied || world.is_power_of_two()
}

/// Whatever the algorithm states, with a count that is no multiple of anything.
pub(crate) fn every_stated_dtype_and_reduce_op(stand: &Stand, target: &Target) {
    for world in stand.worlds(&[3]) {
        stand.run(world, &stand.plan(target), |rank| {
            let mut seed = 0;
            for op in target.ops() {
                let stated = target.reduce_ops();
                for dtype in target.dtypes(op) {
                    let reduce_ops = if op.reduces() { &stated[..] } else { &[ReduceOp::Sum] };
                    for &reduce_op in reduce_ops {
                        seed += 1;
                        if op.reduces() && !is_exact(stand, world, dtype, reduce_op) {
                            continue;
                        }
                        let mut case = Case::new(target, op, dtype, 257, seed);
                        case.call.reduce_op = reduce_op;
                        case.call.root = seed as u32;
                        case.check(rank);
                    }
                }
            }
        });
    }
}

/// Reductions in place and of parts that differ, of tensors that are no multiple of their elements on
/// some ranks and are on others, small and large by turns.
pub(crate) fn misaligned_reductions(stand: &Stand, target: &Target) {
    let uneven = [40_001, 0, 3];
    for world in stand.worlds(&[3]) {
        stand.run(world, &stand.plan(target), |rank| {
            for (nth, dtype) in [Dtype::F64, Dtype::Bf16, Dtype::F32].into_iter().enumerate() {
                for op in [Op::AllReduce, Op::ReduceScatter] {
                    for (count, in_place) in [(5, false), (5, true), (30_000, true), (7, false)] {
                        let mut case = Case::new(target, op, dtype, count, nth as u64);
                        (case.in_place, case.offset) = (in_place, nth + rank.number());
                        case.check(rank);
                    }
                }
                let counts: Vec<usize> = (0..world as usize).map(|r| uneven[r % 3]).collect();
                for in_place in [false, true] {
                    let count = counts.iter().sum();
                    let mut case = Case::new(target, Op::ReduceScatter, dtype, count, nth as u64);
                    case.call.split = Split::PerRank(&counts);
                    (case.in_place, case.offset) = (in_place, 1 + rank.number() % 2);
                    case.check(rank);
                }
            }
        });
    }
}

/// An `all_to_all` in place of more bytes than what it is put through.
pub(crate) fn a_large_exchange_in_place(stand: &Stand, target: &Target) {
    for world in stand.worlds(&[3]) {
        stand.run(world, &stand.plan(target), |rank| {
            for count in [300_000, 524_289] {
                let dtype = Dtype::I32;
                let mut case = Case::new(target, Op::AllToAll, dtype, count, count as u64);
                case.in_place = true;
                case.check(rank);
            }
        });
    }
}

mod nccl {
    use super::*;
    tests_of!("nccl", as_threads:
        every_stated_dtype_and_reduce_op, a_large_exchange_in_place,
        sizes_around_every_room, every_world, misaligned_tensors, misaligned_reductions,
        in_place, counts_per_rank, calls_back_to_back,
        lagging_ranks, two_streams_by_turns, streams_that_go, several_groups_at_once,
        empty_calls_advance_together, different_calls_end_alike, other_graphs_end_alike,
        a_different_call_far_behind_is_seen, an_abort_ends_every_wait,
        a_dropped_rank_is_named, a_rank_that_never_comes_is_named,
        graphs_of_odd_numbers_of_calls, graphs_of_any_memory,
        two_graphs_by_turns, unequal_captures_are_refused,
        a_capture_that_failed_is_forgotten);
}

mod integers {
    use super::*;
    tests_of!("nccl/integers", as_threads:
        every_stated_dtype_and_reduce_op, counts_per_rank, in_place);
}

/// Of numbers; a NaN may get lost.
mod min_max {
    use super::*;
    tests_of!("nccl/min_max", as_threads: every_stated_dtype_and_reduce_op);
}

mod pinned {
    use super::*;
    tests_of!("nccl/pinned", as_threads:
        every_stated_dtype_and_reduce_op, counts_per_rank, in_place,
        calls_back_to_back, graphs_of_odd_numbers_of_calls);
}

mod symmetric {
    use super::*;
    tests_of!("nccl/symmetric", as_threads:
        every_stated_dtype_and_reduce_op, sizes_around_every_room,
        every_world, misaligned_tensors, in_place,
        counts_per_rank, calls_back_to_back, lagging_ranks,
        two_streams_by_turns, different_calls_end_alike,
        an_abort_ends_every_wait, a_dropped_rank_is_named,
        a_rank_that_never_comes_is_named, graphs_of_odd_numbers_of_calls,
        two_graphs_by_turns);
}

/// Ranks as processes, each with a library of its own.
mod processes {
    use super::*;

    mod nccl {
        use super::*;
        tests_of!("nccl", as_processes:
            calls_back_to_back, lagging_ranks, a_dropped_rank_is_named,
            a_rank_that_never_comes_is_named, groups_come_and_go_between,
            a_stopped_rank_is_named, a_killed_rank_is_named);
    }
    mod symmetric {
        use super::*;
        tests_of!("nccl/symmetric", as_processes:
            calls_back_to_back, graphs_of_odd_numbers_of_calls);
    }
}
