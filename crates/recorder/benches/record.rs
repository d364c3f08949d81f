//! What recording costs a call, as a communicator makes it, begin and end: the budget is 20 ns.
//! `cargo bench -p crossover-recorder`. Samples are shorter than a time slice, so that on a machine that
//! others use the least and the median are the record's.

#![allow(missing_docs)] // a program

use std::hint::black_box;
use std::io::Write;
use std::panic::Location;
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use crossover_backend_host as _;
use crossover_bootstrap::Launch;
use crossover_core::bootstrap::Bootstrap;
use crossover_core::call::{CallSig, Dtype, Mode, Op, ReduceOp, Split};
use crossover_core::contract::Contract;
use crossover_core::record::{Entry, Event, Recorder};
use crossover_core::registry::Registry;
use crossover_core::settings::{HOST_DEVICE, OnHang};
use crossover_recorder::{Dumps, GroupRecorder, Job, Options};

#[path = "../tests/group/mod.rs"]
mod group;

const SAMPLES: usize = 2000;
const RECORDS: u64 = 500;
/// So much that no line of a ring is left in the caches of a processor.
const OTHER_WORK: usize = 8 << 20; // size: four times a large second-level cache

fn main() -> std::io::Result<()> {
    let done = Barrier::new(2);
    std::thread::scope(|scope| {
        let mut channels = crossover_bootstrap::threads(2, Duration::from_secs(60));
        let (peer, own) = (channels.pop(), channels.pop());
        scope.spawn(|| {
            let recorder = recorder(&peer.expect("two channels"));
            done.wait();
            drop(recorder);
        });
        let recorder = recorder(&own.expect("two channels"));
        let told = tell(black_box(&*recorder));
        done.wait();
        told
    })
}

fn tell(recorder: &dyn Recorder) -> std::io::Result<()> {
    let site = Location::caller();
    let mut seq = 0;
    let mut record = |event: Event<'_>| {
        seq += 1;
        recorder.begin(&Entry { event, seq, target: 0, site })
    };
    let mut out = std::io::stdout();
    let mut tell = |what: &str, times: [f64; 2]| {
        writeln!(out, "{what:>44}: least {:6.1} ns, median {:6.1} ns", times[0], times[1])
    };
    tell("a call", sample(|count| record(Event::Call(&call(count))) && ended(recorder)))?;
    let state = |count| Event::State { step: count as u32, digest: black_box(99) };
    tell("a note", sample(|count| record(state(count)) && ended(recorder)))?;
    tell("nothing", sample(|count| black_box(call(count)).count == count as usize))?;
    // As between two steps of an engine: other data has been through the caches since the ring's line
    // was written last. What a call then tells its peers leaves the processor after its record.
    let other = vec![1u8; OTHER_WORK];
    let cold = |begin: &mut dyn FnMut(u64) -> bool| {
        let mut times: Vec<f64> = (0..SAMPLES as u64 / 2)
            .map(|count| {
                black_box(other.iter().step_by(64).fold(0u8, |sum, byte| sum ^ byte));
                recorder.end();
                let pause = Instant::now();
                while pause.elapsed() < Duration::from_nanos(500) {}
                let start = Instant::now();
                black_box(begin(count));
                fence(Ordering::SeqCst);
                start.elapsed().as_nanos() as f64
            })
            .collect();
        least_and_median(&mut times)
    };
    tell(
        "begin in a cold line, until it is written",
        cold(&mut |count| record(Event::Call(&call(count)))),
    )?;
    tell("the same, of nothing", cold(&mut |_| true))
}

fn ended(recorder: &dyn Recorder) -> bool {
    recorder.end();
    true
}

fn sample(mut once: impl FnMut(u64) -> bool) -> [f64; 2] {
    let mut times: Vec<f64> = (0..SAMPLES)
        .map(|_| {
            let start = Instant::now();
            for count in 0..RECORDS {
                assert!(once(black_box(count)), "nothing is refused");
            }
            start.elapsed().as_nanos() as f64 / RECORDS as f64
        })
        .collect();
    least_and_median(&mut times)
}

fn least_and_median(times: &mut [f64]) -> [f64; 2] {
    times.sort_by(f64::total_cmp);
    [times[0], times[times.len() / 2]]
}

fn call(count: u64) -> CallSig<'static> {
    CallSig {
        op: Op::AllReduce,
        dtype: Dtype::Bf16,
        reduce_op: ReduceOp::Sum,
        count: count as usize,
        mode: Mode::Eager,
        root: 0,
        split: Split::Even,
        contract: Contract::DEFAULT,
    }
}

/// Of one rank of two, which are threads.
fn recorder(channel: &dyn Bootstrap) -> Arc<GroupRecorder> {
    let registry = Registry::linked().expect("one backend");
    let group = group::form(channel, &registry);
    let job = Job {
        launch: Launch::new(channel.rank(), 2).named(format!("bench-{}", std::process::id()), 0),
        device: HOST_DEVICE.to_owned(),
        backends: String::new(),
    };
    let options = Options {
        rings: None,
        dumps: Dumps::None,
        on_hang: OnHang::Log,
        // The other rank does nothing.
        warn_after: Some(Duration::from_secs(3600)),
        hang_after: Duration::from_secs(3600),
    };
    let opened = GroupRecorder::open(channel, &group, &job, options);
    opened.expect("both are here").expect("there is memory")
}
