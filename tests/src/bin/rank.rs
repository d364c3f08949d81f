//! One rank of a small engine: forms a group as an engine does and makes calls whose results it
//! checks, until its time is up. What goes wrong is one line on stderr and design's exit code.
//!
//! `rank SECONDS`: prints `ready` once the group is formed, `done CALLS` at the end.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use crossover::{Builder, Communicator, ReduceOp, call_exit_code};

fn main() -> ExitCode {
    let seconds: f64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(1.0);
    let group = match Builder::from_env().and_then(|builder| builder.tag("tp").form()) {
        Ok(group) => group,
        Err(e) => {
            eprintln!("{e}");
            return ExitCode::from(e.exit_code());
        }
    };
    println!("ready");
    match calls(&group, Duration::from_secs_f64(seconds)) {
        Ok(calls) => {
            println!("done {calls}");
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("{e}");
            ExitCode::from(call_exit_code(&e))
        }
    }
}

/// Rounds of every collective; each ends when rank 0 says so, since clocks differ.
fn calls(group: &Communicator, time: Duration) -> Result<u64, crossover::CallError> {
    let (rank, world) = (group.rank() as i64, i64::from(group.world()));
    let start = Instant::now();
    let mut calls = 0;
    for round in 0i64.. {
        let count = 1 + (round as usize * 7919) % 200_000;
        let mut sum: Vec<i64> = (0..count as i64).map(|i| i * (rank + 1) + round).collect();
        group.all_reduce_in_place(&mut sum, ReduceOp::Sum)?;
        let weight = world * (world + 1) / 2;
        for (i, got) in (0..).zip(&sum) {
            assert_eq!(*got, i * weight + round * world, "a wrong sum");
        }
        let mut parts = vec![0i64; world as usize];
        group.all_gather(&[rank * 10 + round], &mut parts)?;
        assert!((0..world).all(|r| parts[r as usize] == r * 10 + round), "a wrong part");
        let mut go_on = [i64::from(start.elapsed() < time)];
        group.broadcast(&mut go_on, 0)?;
        calls += 3;
        if go_on[0] == 0 {
            break;
        }
    }
    group.close()?;
    Ok(calls)
}
