//! Ranks of one test, as threads that each own a channel.

#![allow(dead_code, reason = "each test file uses its part")]

use std::net::TcpListener;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crossover_bootstrap::{Launch, Options, Place, RendezvousError, connect, threads};
use crossover_core::bootstrap::{Bootstrap, BootstrapError};

pub(crate) type Boot = Box<dyn Bootstrap>;

/// Where a deadline is not what is tested.
pub(crate) const AMPLE: Duration = Duration::from_secs(30);

/// The ways to meet that one process can play.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    File,
    Tcp,
    Threads,
    Unix,
}

pub(crate) const KINDS: [Kind; 4] = [Kind::File, Kind::Tcp, Kind::Threads, Kind::Unix];

pub(crate) fn options(deadline: Duration) -> Options {
    Options { deadline, ..Options::default() }
}

/// A port that was free a moment ago: another test may not take it, another process could.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

pub(crate) fn place(kind: Kind, dir: &Path) -> Place {
    match kind {
        Kind::File => Place::File(dir.join("meet")),
        Kind::Tcp => Place::Tcp { host: "127.0.0.1".into(), port: free_port() },
        Kind::Unix => Place::Unix(dir.join("socket")),
        Kind::Threads => unreachable!("threads meet nowhere"),
    }
}

/// Runs one `connect` per launch, at once.
pub(crate) fn meet(launches: Vec<(Launch, Options)>) -> Vec<Result<Boot, RendezvousError>> {
    thread::scope(|scope| {
        let all: Vec<_> = launches
            .iter()
            .map(|(launch, options)| scope.spawn(move || connect(launch, options)))
            .collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

/// A whole group that has met.
pub(crate) fn group(kind: Kind, world: u32, deadline: Duration) -> Vec<Boot> {
    if kind == Kind::Threads {
        return threads(world, deadline).into_iter().map(|one| Box::new(one) as Boot).collect();
    }
    let dir = tempfile::tempdir().unwrap();
    let place = place(kind, dir.path());
    let launch =
        |rank| (Launch::new(rank, world).named("test", 0).at(place.clone()), options(AMPLE));
    // Met with ample time; the deadline of the exchanges may be what is tested.
    let launches = (0..world).map(launch).map(|(l, _)| (l, options(deadline))).collect();
    let boots =
        meet(launches).into_iter().map(|met| met.unwrap_or_else(|e| panic!("{e}"))).collect();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "something is left on disk");
    boots
}

/// Runs `f` on every rank's own thread.
pub(crate) fn on_all<T: Send>(boots: Vec<Boot>, f: impl Fn(Boot) -> T + Sync) -> Vec<T> {
    let f = &f;
    thread::scope(|scope| {
        let all: Vec<_> = boots.into_iter().map(|boot| scope.spawn(move || f(boot))).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

/// What all ranks that say something say; asserts that it is the same.
#[track_caller]
pub(crate) fn same_sentence<T>(all: Vec<Option<Result<T, BootstrapError>>>) -> String {
    let mut said: Vec<String> =
        all.into_iter().flatten().map(|r| r.err().expect("a failure").to_string()).collect();
    said.dedup();
    assert_eq!(said.len(), 1, "{said:#?}");
    said.remove(0)
}
