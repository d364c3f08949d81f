//! Ranks as processes: this program again, told which test and which rank.

use std::env;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crossover_device::driver::Driver;
use crossover_nccl_sys::layout::{Config, Status, UniqueId};

use super::group::{Bench, Rank, ok};

const SEAT: &str = "CROSSOVER_STAND_IN_SEAT";

/// On one device, where ranks may share it if `NCCL_MULTI_RANK_GPU_ENABLE` says so.
fn shared() -> Option<Bench> {
    Bench::of(&[])
}

/// Starts the ranks of a communicator, if this process is not one of them.
fn start(test: &str, world: usize, environment: &[(&str, &str)]) -> Option<Vec<Child>> {
    if env::var_os(SEAT).is_some() {
        return None;
    }
    let Some(bench) = shared() else { return Some(Vec::new()) };
    let id: String = bench.id().to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let program = env::current_exe().expect("this program has a file");
    let children: Vec<Child> = (0..world)
        .map(|rank| {
            Command::new(&program)
                .args([&format!("processes::{test}"), "--exact", "--nocapture"])
                .env(SEAT, format!("{rank} {world} {id}"))
                .envs(environment.iter().copied())
                .stdout(Stdio::null())
                .spawn()
                .expect("this program can be started again")
        })
        .collect();
    // The id must be there until all have it.
    Some(wait_for(children, bench))
}

fn wait_for(mut children: Vec<Child>, bench: Bench) -> Vec<Child> {
    for child in &mut children {
        child.wait().expect("it ends");
    }
    drop(bench);
    children
}

fn succeeded(children: Option<Vec<Child>>) {
    for mut child in children.into_iter().flatten() {
        let status = child.wait().expect("it has ended");
        assert!(status.success(), "{status}");
    }
}

/// Runs `body` if this process is a rank.
fn as_rank(body: impl FnOnce(&Rank<'_>)) {
    let Ok(seat) = env::var(SEAT) else { return };
    let words: Vec<&str> = seat.split(' ').collect();
    let bytes = |at: usize| u8::from_str_radix(&words[2][2 * at..2 * at + 2], 16).expect("hex");
    let id = UniqueId::from_bytes(std::array::from_fn(bytes));
    let number = |word: &str| word.parse().expect("a number");
    let bench = shared().expect("there was a compiler");
    bench.stand.fail(None);
    let config = Config::new().blocking(false);
    body(&bench.join(id, number(words[0]), number(words[1]), config));
}

/// Once begun, a sum on a communicator that does not block.
fn sum(rank: &Rank<'_>, numbers: &mut [u32]) {
    let status = rank.sum(numbers);
    assert!(matches!(status, Status::SUCCESS | Status::IN_PROGRESS), "{status:?}");
    ok(rank.settle());
}

#[test]
fn processes_agree() {
    let allowed = [("NCCL_MULTI_RANK_GPU_ENABLE", "1")];
    succeeded(start("processes_agree", 3, &allowed));
    as_rank(|rank| {
        ok(rank.settle());
        let mut numbers = vec![rank.rank as u32; 20_000];
        sum(rank, &mut numbers);
        rank.bench.driver.begin_capture(rank.stream).unwrap();
        sum(rank, &mut numbers);
        let graph = rank.bench.driver.end_capture(rank.stream).unwrap();
        rank.bench.driver.replay(graph, rank.stream).unwrap();
        rank.bench.driver.replay(graph, rank.stream).unwrap();
        rank.synchronize();
        assert!(numbers.iter().all(|number| *number == 27));
        assert_eq!(rank.finalize(), Status::IN_PROGRESS);
        ok(rank.settle());
        ok(rank.destroy());
    });
}

#[test]
fn ranks_of_one_device_are_refused() {
    succeeded(start("ranks_of_one_device_are_refused", 2, &[("NCCL_MULTI_RANK_GPU_ENABLE", "0")]));
    as_rank(|rank| assert_eq!(rank.settle(), Status::INVALID_USAGE));
}

#[test]
fn a_rank_that_died_never_answers() {
    let test = "a_rank_that_died_never_answers";
    let told = [("NCCL_MULTI_RANK_GPU_ENABLE", "1"), ("CROSSOVER_STAND_IN", "rank=1 call=2 die")];
    if let Some(mut children) = start(test, 2, &told)
        && let [survivor, dead] = &mut children[..]
    {
        assert!(survivor.wait().expect("it has ended").success());
        assert_eq!(dead.wait().expect("it has ended").code(), None, "a signal ended it");
    }
    as_rank(|rank| {
        ok(rank.settle());
        let mut numbers = [1u32; 8];
        sum(rank, &mut numbers);
        rank.synchronize();
        sum(rank, &mut numbers);
        thread::sleep(Duration::from_millis(100));
        assert!(!rank.bench.driver.is_done(rank.stream).unwrap());
        assert_eq!(rank.state(), Status::SUCCESS);
        rank.abort();
        rank.synchronize();
        assert_eq!(numbers, [2; 8]);
    });
}
