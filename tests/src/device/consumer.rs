//! What is behind a call in its stream and may start early: it waits for the kernel ahead and then
//! reads at once.

use std::time::Duration;

use crossover_device::images::Places;
use crossover_device::library::Library;
use crossover_device::module::{Kernel, Shape};
use crossover_kernel_abi::CopyArgs;

use super::{Case, Prepared, Rank, Stand, Target};
use crate::data::{Rng, Values};

/// A call, and where its consumer puts what it has read.
struct Consumed<'a> {
    call: Prepared<'a>,
    copy: u64,
}

/// Behind each of many calls back to back a kernel is launched as the engine's next may be, before the
/// call has ended, and the next call likewise behind that: what it reads at once is the whole
/// output, however late ranks come.
pub fn a_consumer_reads_at_once(stand: &Stand, target: &Target) {
    let calls = stand.scale(50, 200);
    for world in stand.worlds(&[3]) {
        stand.run(world, &stand.plan(target), |rank| {
            // Loaded before any call: on a device this may wait for the device.
            let kernel = Library::open(&rank.device, &Places::new(stand.kernels()))
                .and_then(|library| library.kernel("floor_copy"))
                .expect("the images of this version have the kernel");
            let mut shape = Rng::new(17, 0);
            let all: Vec<_> =
                (0..calls).map(|seed| prepare(rank, target, &mut shape, seed)).collect();
            rank.meet("loaded");
            let mut delay = Rng::new(18, rank.comm().rank());
            for (seed, one) in (0..calls).zip(&all) {
                if delay.below(8) == 0 {
                    std::thread::sleep(Duration::from_micros(delay.below(400)));
                }
                let slow = seed / 10 % rank.world() as u64 == rank.number() as u64;
                rank.oversleep(Duration::from_micros(if slow { 200 } else { 0 }));
                one.call.enqueue(rank).expect("the call can be made");
                consume(rank, &kernel, one);
            }
            rank.finish().expect("all succeed");
            (0..calls).zip(&all).for_each(|(seed, one)| check(rank, target, one, seed));
        });
    }
}

/// A call whose output has a place to be copied to, which holds nothing of it yet.
fn prepare<'a>(rank: &Rank<'_>, target: &'a Target, shape: &mut Rng, seed: u64) -> Consumed<'a> {
    let ops = target.ops();
    let op = ops[seed as usize % ops.len()];
    let dtypes = target.dtypes(op);
    let dtype = dtypes[seed as usize % dtypes.len()];
    let most = rank.stand.scale(200, 10_000);
    let mut case = Case::new(target, op, dtype, 1 + shape.below(most) as usize, seed);
    case.values = Values::Rough;
    case.call.root = seed as u32;
    let call = case.prepare(rank, &rank.room);
    let (_, want) = call.output();
    let copy = rank.room.take(want.len());
    rank.fill(copy, !want.first().copied().unwrap_or(0), want.len().next_multiple_of(256));
    Consumed { call, copy }
}

fn consume(rank: &Rank<'_>, kernel: &Kernel, one: &Consumed<'_>) {
    let (from, want) = one.call.output();
    let args = CopyArgs { from, to: one.copy, bytes: want.len() as u64, early: 1 };
    let shape = Shape { blocks: 2, threads: 32, programmatic: true };
    // SAFETY: both ranges lie within the room, which outlives the stream's work.
    unsafe { kernel.launch(shape, args.as_bytes(), rank.stream.raw()) }.expect("it is launched");
}

#[track_caller]
fn check(rank: &Rank<'_>, target: &Target, one: &Consumed<'_>, seed: u64) {
    let (_, want) = one.call.output();
    let read = rank.download(one.copy, want.len());
    let wrong = read.iter().zip(want).filter(|(a, b)| a != b).count();
    assert_eq!(
        wrong,
        0,
        "rank {} of {}, {}, call {seed}: its consumer has read {wrong} wrong bytes of {}: {:?}",
        rank.number(),
        rank.world(),
        target.name,
        want.len(),
        one.call.call(),
    );
    one.call.check(rank);
}
