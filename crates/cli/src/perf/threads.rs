//! Ranks as threads of this process, each with a stream of its own. Figures of other libraries on one
//! GPU are often made so.
//!
//! Where ranks share a context, the driver may let a thread wait for the whole device, with the
//! context locked: when it frees memory, loads a kernel or destroys a graph. A peer's kernel that
//! waits for this rank's launch would then never end. So whatever may wait is done while no rank has
//! put a call into a stream that some other has not: ranks meet behind it, before they call again.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::thread;

use crossover_bootstrap::{Launch, Place as Meeting};

use super::place::Place;
use super::{Args, bench};
use crate::failure::Failure;
use crate::group::Formation;
use crate::out;

/// What a driver reads when it starts, and must find: how many queues of a device a process's streams
/// are spread over. Streams of one queue wait for one another: a rank's launch would stand behind a
/// peer's kernel that waits for it. CUDA has 8 otherwise and 32 at most; HIP has 4 otherwise.
const QUEUES: [(&str, &str); 2] =
    [("cuda", "CUDA_DEVICE_MAX_CONNECTIONS"), ("hip", "GPU_MAX_HW_QUEUES")];
const MOST_QUEUES: &str = "32";

/// Runs so many ranks. `formation` is the ranks' own, before it has a place.
pub(super) fn run(
    args: &Args,
    ranks: u32,
    formation: &Formation,
    place: &Place,
    sizes: &[u64],
) -> Result<(), Failure> {
    start_with_queues(place)?;
    let job = format!("crossover-{}-{:016x}", std::process::id(), draw());
    let meeting = Meeting::JobDirectory { base: "/tmp".into(), name: job.clone() };
    let rank = |rank| {
        let launch = Launch::new(rank, ranks).named(job.as_str(), 0).at(meeting.clone());
        let (place, formation) = Place::resolve(args, formation.clone().seated(launch))?;
        bench::run(args, &formation, &place, sizes)
    };
    let results: Vec<Result<(), Failure>> = thread::scope(|scope| {
        let rank = &rank;
        let threads: Vec<_> = (0..ranks).map(|number| scope.spawn(move || rank(number))).collect();
        threads
            .into_iter()
            .map(|one| one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    one_of(results)
}

/// The first failure that says something. Those behind it have their ranks' numbers before them, as
/// processes' have.
fn one_of(results: Vec<Result<(), Failure>>) -> Result<(), Failure> {
    let failed = (0..).zip(results).filter_map(|(rank, one)| Some((rank, one.err()?)));
    let (told, silent): (Vec<(u32, Failure)>, Vec<_>) =
        failed.partition(|(_, failure)| !failure.is_silent());
    let mut told = told.into_iter();
    let first = told.next().or(silent.into_iter().next());
    for (rank, failure) in told {
        out::note(&format!("[{rank}] error: {failure}"));
    }
    first.map_or(Ok(()), |(_, failure)| Err(failure))
}

/// Random without a source of randomness: `RandomState` is seeded by the operating system.
fn draw() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Becomes this program again, with what the driver has to find, unless the user has set it.
fn start_with_queues(place: &Place) -> Result<(), Failure> {
    let Some((_, variable)) = QUEUES.iter().find(|(driver, _)| *driver == place.name()) else {
        return Ok(());
    };
    if std::env::var_os(variable).is_some() {
        return Ok(());
    }
    let program = std::env::current_exe()
        .map_err(|e| Failure::usage(format!("this program cannot find its own file: {e}")))?;
    let mut again = Command::new(program);
    again.args(std::env::args_os().skip(1)).env(variable, MOST_QUEUES);
    let why = again.exec();
    Err(Failure::usage(format!("this program cannot start itself with {variable} set: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::support::{args, emulate};

    #[test]
    fn the_first_failure_that_says_something_is_told() {
        let silent = || Err(Failure::silent(3));
        let said = |text: &str| Err(Failure::lost(text));
        let told = |results| one_of(results).err().map(|failure| failure.to_string());
        assert_eq!(told(vec![Ok(()), Ok(())]), None);
        assert_eq!(told(vec![Ok(()), silent(), said("a"), said("b")]).as_deref(), Some("a"));
        assert_eq!(told(vec![silent(), Ok(())]).as_deref(), Some(""));
    }

    #[test]
    fn threads_are_ranks_on_host_memory_and_on_a_device() {
        emulate();
        for (device, ranks) in [("host", 3), ("emulated", 1)] {
            let args =
                args(&["all_gather", "-b", "8", "-e", "64", "--iters", "2", "--one-process"]);
            let formation = Formation::from_env(&[]).expect("settings");
            let formation = formation.set("device", device, "a test");
            let (place, _) = Place::resolve(&args, formation.clone()).expect("a place");
            run(&args, ranks, &formation, &place, &[12, 48]).expect("right results");
        }
    }
}
