//! A call on the hot path allocates nothing: not the decision, not its record, not the host's collectives.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use crossover_core::call::ReduceOp;
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
