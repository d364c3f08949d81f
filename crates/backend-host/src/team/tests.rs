//! A team's promises, with real threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::{ThreadId, current};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity};

use super::Team;
use super::worker::set;

/// This test's processors, as a rank would hand them over.
fn processors() -> Vec<u32> {
    let mask = sched_getaffinity(None).unwrap();
    (0..CpuSet::MAX_CPU as u32).filter(|number| mask.is_set(*number as usize)).collect()
}

/// Which thread ran each part.
fn who(team: &mut Team, parts: usize) -> Vec<ThreadId> {
    let ran: Vec<Mutex<Vec<ThreadId>>> = (0..parts).map(|_| Mutex::default()).collect();
    team.run(parts, &|part| ran[part].lock().unwrap().push(current().id()));
    ran.into_iter()
        .map(|ran| match ran.into_inner().unwrap().as_slice() {
            [once] => *once,
            other => panic!("ran {} times", other.len()),
        })
        .collect()
}

#[test]
fn every_part_runs_once_and_part_0_here() {
    for (threads, processors) in [(1, None), (2, None), (3, Some(processors())), (5, None)] {
        let mut team = Team::new(threads, processors.as_deref()).unwrap();
        assert_eq!(team.threads(), threads);
        assert!(who(&mut team, 0).is_empty());
        for parts in 1..=2 * threads + 1 {
            let ran = who(&mut team, parts);
            assert_eq!(ran[0], current().id());
            let different: std::collections::HashSet<_> = ran.iter().collect();
            assert_eq!(different.len(), parts.min(threads), "{parts} parts, {threads} threads");
            // Every thread goes on with the next of its turn.
            assert!((threads..parts).all(|part| ran[part] == ran[part - threads]));
        }
    }
}

#[test]
fn writes_are_seen_both_ways() {
    for processors in [None, Some(processors())] {
        let mut team = Team::new(2, processors.as_deref()).unwrap();
        for round in 0..20_000_u64 {
            let slots = [AtomicU64::new(round), AtomicU64::new(round)];
            team.run(2, &|part| {
                let seen = slots[part].load(Ordering::Relaxed);
                slots[part].store(seen + part as u64, Ordering::Relaxed);
            });
            assert_eq!(slots.map(AtomicU64::into_inner), [round, round + 1]);
        }
    }
}

/// Workers that have gone to sleep are woken, again and again.
#[test]
fn sleeping_workers_wake() {
    let mut team = Team::new(3, None).unwrap();
    let count = AtomicUsize::new(0);
    for _ in 0..50 {
        std::thread::sleep(Duration::from_millis(1));
        team.run(3, &|_| {
            count.fetch_add(1, Ordering::Relaxed);
        });
    }
    assert_eq!(count.into_inner(), 150);
}

#[test]
fn a_panic_reaches_the_caller_after_all_parts_and_the_team_goes_on() {
    let mut team = Team::new(3, None).unwrap();
    for bad in [[false, true, false], [true, false, false], [false, true, true], [true, true, true]]
    {
        let ended = AtomicUsize::new(0);
        let panic = catch_unwind(AssertUnwindSafe(|| {
            team.run(3, &|part| {
                if bad[part] {
                    panic!("part {part} is bad");
                }
                std::thread::sleep(Duration::from_millis(2));
                ended.fetch_add(1, Ordering::Relaxed);
            });
        }))
        .unwrap_err();
        let first = bad.iter().position(|bad| *bad).unwrap();
        assert_eq!(*panic.downcast::<String>().unwrap(), format!("part {first} is bad"));
        assert_eq!(ended.into_inner(), bad.iter().filter(|bad| !**bad).count());
        assert_eq!(who(&mut team, 3).len(), 3);
    }
}

/// A message that panics as it is dropped does not let `run` end before its workers.
#[test]
fn a_panic_inside_a_panic_waits_as_well() {
    struct Spiteful;
    impl Drop for Spiteful {
        fn drop(&mut self) {
            panic!("again");
        }
    }
    let mut team = Team::new(3, None).unwrap();
    let ended = AtomicUsize::new(0);
    let panic = catch_unwind(AssertUnwindSafe(|| {
        team.run(3, &|part| match part {
            0 | 1 => std::panic::panic_any(Spiteful),
            _ => {
                std::thread::sleep(Duration::from_millis(20));
                ended.fetch_add(1, Ordering::Relaxed);
            }
        });
    }));
    assert_eq!(ended.into_inner(), 1);
    std::mem::forget(panic);
}

#[test]
fn workers_run_inside_the_mask() {
    let mask = sched_getaffinity(None).unwrap();
    let all = processors();
    // To itself; too few for its threads; none stated.
    for (threads, processors) in [(2, Some(all.clone())), (2, Some(all[..1].to_vec())), (2, None)] {
        let mut team = Team::new(threads, processors.as_deref()).unwrap();
        let masks = Mutex::new(Vec::new());
        team.run(threads, &|_| masks.lock().unwrap().push(sched_getaffinity(None).unwrap()));
        assert_eq!(masks.into_inner().unwrap(), vec![mask; threads]);
    }
}

/// An engine's thread may be bound to a processor of its own: that is not where its worker belongs,
/// and it stays where it is.
#[test]
fn workers_go_where_they_are_told() {
    let [first, second, ..] = processors()[..] else { return };
    let masks = std::thread::spawn(move || {
        rustix::thread::sched_setaffinity(None, &set(&[first])).unwrap();
        let mut team = Team::new(2, Some(&[first, second])).unwrap();
        let masks = Mutex::new([CpuSet::new(); 2]);
        team.run(2, &|part| masks.lock().unwrap()[part] = sched_getaffinity(None).unwrap());
        masks.into_inner().unwrap()
    });
    assert_eq!(masks.join().unwrap(), [set(&[first]), set(&[first, second])]);
}

/// Processor time of this thread's team is spent while it works, and not while it rests.
#[test]
fn a_team_at_rest_burns_nothing() {
    let mut team = Team::new(2, Some(&processors())).unwrap();
    let clocks = Mutex::new(Vec::new());
    let clock = || Mutex::lock(&clocks).unwrap().push(thread_time());
    team.run(2, &|part| {
        if part == 1 {
            clock()
        }
    });
    std::thread::sleep(Duration::from_millis(100));
    team.run(2, &|part| {
        if part == 1 {
            clock()
        }
    });
    let [before, after] = clocks.into_inner().unwrap()[..] else { panic!("two runs") };
    assert!(after - before < Duration::from_millis(10), "{:?}", after - before);
}

fn thread_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// As a session is.
#[test]
fn a_team_can_go_to_another_thread() {
    let mut team = Team::new(2, None).unwrap();
    let ran = std::thread::spawn(move || who(&mut team, 2).len()).join();
    assert_eq!(ran.unwrap(), 2);
}

#[test]
fn drop_ends_the_workers() {
    let alive = || std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let named = || {
        let names = alive().map(|task| std::fs::read_to_string(task.path().join("comm")));
        names.filter(|name| name.as_ref().is_ok_and(|name| name == "crossover-63\n")).count()
    };
    // Only this test has a team of as many.
    let mut team = Team::new(64, None).unwrap();
    team.run(64, &|_| ());
    assert_eq!(named(), 1);
    let start = Instant::now();
    drop(team);
    // A worker ends in its own time.
    while named() > 0 {
        assert!(start.elapsed() < Duration::from_secs(5), "a worker is left");
        std::thread::yield_now();
    }
}
