//! A call on the hot path allocates nothing: not the decision, not its record, not the host's collectives.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use crossover_core::call::{CallBuffers, CallSig, Op, ReduceOp};
use crossover_core::communicator::CallError;
use crossover_tests::groups::{Plan, run_recorded};

/// The system's allocator, counting what each thread asks of it.
struct Counting;

thread_local!(static ASKED: Cell<u64> = const { Cell::new(0) });

// SAFETY: all is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED.with(|asked| asked.set(asked.get() + 1));
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise, passed on.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(work: impl FnOnce()) -> u64 {
    let before = ASKED.with(Cell::get);
    work();
    ASKED.with(Cell::get) - before
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(vec![1u8; 100]))), 1);
}

#[test]
fn decisions_and_calls_allocate_nothing() {
    for target in ["host/one_shot", "host/two_shot"] {
        run_recorded(2, &Plan::forcing(target), |comm| {
            let call = comm.signature::<f32>(crossover_core::call::Op::AllReduce, 4096);
            let decided = allocations(|| {
                std::hint::black_box(comm.plan().select(std::hint::black_box(&call)));
            });
            assert_eq!(decided, 0, "a decision");
            let (mut data, mut all) = (vec![1f32; 4096], vec![0f32; 8192]);
            for round in 0..20 {
                let called = allocations(|| {
                    comm.all_reduce_in_place(&mut data, ReduceOp::Max).expect("it runs");
                    comm.all_gather(&data, &mut all).expect("it runs");
                    comm.broadcast(&mut data, 1).expect("it runs");
                });
                assert_eq!(called, 0, "round {round} on {target}");
            }
        });
    }
}

/// What was decided last is kept for the same call: another split, reduce op, type, count, root or op tells
/// a call from it.
#[test]
fn what_was_decided_is_for_no_other_call() {
    run_recorded(2, &Plan::forcing("host"), |comm| {
        let rank = comm.rank() as usize;
        let input = [1f32, 2.0, 3.0, 4.0, 5.0];
        let mut output = vec![0f32; 3 - rank];
        comm.reduce_scatter_v(&input, &[3, 2], &mut output, ReduceOp::Sum).expect("it runs");
        assert_eq!(output, [[2.0, 4.0, 6.0].as_slice(), &[8.0, 10.0]][rank]);

        // As many elements, but not per rank: they cannot be dealt out evenly.
        let even = CallSig { count: 5, ..comm.signature::<f32>(Op::ReduceScatter, 5) };
        let mut results = [-1f32; 3];
        let buffers = CallBuffers {
            input: input.as_ptr().cast(),
            output: results.as_mut_ptr().cast(),
            stream: 0,
        };
        // SAFETY: the input has as many elements as the call, and the output more than a part of them.
        let refused = unsafe { comm.run(&even, &buffers) };
        assert!(matches!(refused, Err(CallError::Invalid { .. })), "{refused:?}");
        assert_eq!(results, [-1.0; 3]);

        // The last call again, but for one thing of it each time.
        let mut sums = [0f32; 4];
        comm.all_reduce(&[1.0, 2.0, 3.0, 4.0], &mut sums, ReduceOp::Sum).expect("it runs");
        assert_eq!(sums, [2.0, 4.0, 6.0, 8.0]);
        comm.all_reduce(&[1.0, 2.0, 3.0, 4.0], &mut sums, ReduceOp::Prod).expect("it runs");
        assert_eq!(sums, [1.0, 4.0, 9.0, 16.0]);
        let mut words = [0i32; 4];
        comm.all_reduce(&[1, 2, 3, 4], &mut words, ReduceOp::Prod).expect("it runs");
        assert_eq!(words, [1, 4, 9, 16]);
        let mut words = [0i32; 3];
        comm.all_reduce(&[1, 2, 3], &mut words, ReduceOp::Prod).expect("it runs");
        assert_eq!(words, [1, 4, 9]);
        for root in [0, 1, 0] {
            let mut data = [rank as i32; 3];
            comm.broadcast(&mut data, root).expect("it runs");
            assert_eq!(data, [root as i32; 3]);
        }
        let mut all = [-1; 6];
        comm.all_gather(&[rank as i32; 3], &mut all).expect("it runs");
        assert_eq!(all, [0, 0, 0, 1, 1, 1]);
    });
}
