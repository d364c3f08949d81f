//! Both ways, and whole measurements over several nodes that one machine plays.

use std::process::Command;
use std::thread;

use crossover_bootstrap::{Launch, Place as Meeting};
use crossover_tests::nccl;

use super::*;
use crate::group::Formation;
use crate::perf::place::Place;
use crate::perf::support::{args, emulate};
use crate::perf::{Args, bench};

/// Ranks as threads of this process, each with what its group is formed from.
fn ranks<R: Send>(world: u32, rank: impl Fn(u32, Formation) -> R + Sync) -> Vec<R> {
    let folder = tempfile::tempdir().expect("a folder to meet in");
    let (base, rank) = (folder.path(), &rank);
    thread::scope(|scope| {
        let start = |number| {
            let meeting = Meeting::JobDirectory { base: base.into(), name: "job".to_owned() };
            let launch = Launch::new(number, world).named("job", 0).at(meeting);
            let formation = Formation::from_env(&[]).expect("settings").seated(launch);
            scope.spawn(move || rank(number, formation))
        };
        let all: Vec<_> = (0..world).map(start).collect();
        all.into_iter().map(|one| one.join().expect("no rank panics")).collect()
    })
}

/// What every rank of three holds after each exchange.
fn exchange(rank: u32, beside: &Beside<'_>) {
    let own = u64::from(rank);
    beside.barrier().expect("all are here");
    let mut values = [own, 7 - own, u64::MAX - own];
    beside.max(&mut values).expect("all are here");
    assert_eq!(values, [2, 7, u64::MAX]);
    assert_eq!(beside.sum(1 << (8 * own)).expect("all are here"), 0x01_01_01);
    beside.max(&mut []).expect("all are here");
}

#[test]
fn ranks_of_one_node_exchange_through_a_group() {
    for op in [Op::AllReduce, Op::Broadcast] {
        ranks(3, |rank, formation| {
            let group = formation.form_on_host().expect("shared memory");
            exchange(rank, &Beside::new(&group, op));
            let counters = group.counters();
            assert!(!counters.is_empty() && counters.iter().all(|count| count.op != op));
            group.close().expect("all are here");
        });
    }
}

#[test]
fn ranks_of_several_nodes_exchange_over_the_control_plane() {
    ranks(3, |rank, formation| {
        let formation = formation.set("node_id", format!("node {rank}"), "a test");
        let boot = formation.control_plane().expect("all are here");
        exchange(rank, &Beside::ControlPlane(&*boot));
    });
}

#[test]
fn a_rank_that_left_is_named_and_the_exit_code_says_so() {
    let told = ranks(2, |rank, formation| {
        let formation = formation.set("call_timeout", "5s", "a test");
        let boot = formation.control_plane().expect("all are here");
        match rank {
            0 => Beside::ControlPlane(&*boot).barrier().err(),
            _ => None,
        }
    });
    let failure = told.into_iter().flatten().next().expect("rank 1 has left");
    let sentence = failure.to_string();
    assert!(sentence.contains("rank 1 was lost at step `start a call of perf"), "{sentence}");
    let [code, lost] = [failure.exit_code(), 4.into()].map(|code| format!("{code:?}"));
    assert_eq!(code, lost);
}

/// One rank of a measurement on devices, on a node of its own.
fn measure(args: &Args, rank: u32, formation: Formation) -> Result<(), Failure> {
    let formation = formation.set("node_id", format!("node {rank}"), "a test");
    let (place, formation) = Place::resolve(args, formation)?;
    bench::run(args, &formation, &place, &[8, 1000])
}

/// The stand-in takes all emulated devices for one.
const SHARED: (&str, &str) = ("NCCL_MULTI_RANK_GPU_ENABLE", "1");

/// In a process of its own: to set a variable while other threads run is not sound.
#[test]
fn devices_of_several_nodes_are_measured() {
    let name = "perf::beside::tests::on_several_nodes";
    let output = Command::new(std::env::current_exe().expect("this program has a file"))
        .args([name, "--exact", "--ignored", "--nocapture"])
        .env(SHARED.0, SHARED.1)
        .output()
        .expect("this program can be started again");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success() && said.contains("1 passed"), "{}\n{said}", output.status);
    let is_row = |line: &&str| line.contains(" nccl ") && !line.starts_with('#');
    let rows = said.lines().filter(is_row).count();
    assert!(rows >= 4 || said.contains("skipped: "), "{rows} rows\n{said}");
}

#[test]
#[ignore = "the test above starts it"]
fn on_several_nodes() {
    let driver = emulate();
    let library = match nccl::stand_in(&[]) {
        Ok(library) => library,
        Err(why) => return crate::out::note(&format!("skipped: {why}")),
    };
    nccl::install(&library, driver).expect("it was just built");
    let folder = tempfile::tempdir().expect("a folder");
    let policy = folder.path().join("policy.toml");
    std::fs::write(&policy, "schema = 1\n[rule.all]\nchain = [{ use = \"nccl\" }]\n")
        .expect("a file");
    for words in [["all_reduce", "--use", "auto"], ["all_gather", "--use", "all"]] {
        let args = args(&[&words[..], &["-n", "2", "--iters", "2"]].concat());
        let ended = ranks(2, |rank, formation| {
            let formation = [
                ("device", format!("emulated:{rank}")),
                ("nccl.library", library.display().to_string()),
                ("policy", policy.display().to_string()),
            ]
            .into_iter()
            .fold(formation, |formation, (key, value)| formation.set(key, value, "a test"));
            measure(&args, rank, formation)
        });
        for (rank, end) in ended.into_iter().enumerate() {
            end.unwrap_or_else(|why| panic!("rank {rank}, {words:?}: {why}"));
        }
    }
}
