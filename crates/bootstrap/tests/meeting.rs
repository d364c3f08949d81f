//! Who meets whom, and who is refused.

#![allow(clippy::print_stderr, reason = "says why a part of a test skips")]

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use common::{AMPLE, Boot, Kind, meet, on_all, options, place};
use crossover_bootstrap::{Launch, Options, Place, RendezvousError, connect};
use crossover_core::bootstrap::BootstrapError;

const SHORT: Duration = Duration::from_secs(2);

fn launch(rank: u32, world: u32, place: &Place) -> Launch {
    Launch::new(rank, world).named("job", 1).at(place.clone())
}

#[track_caller]
fn errors(met: Vec<Result<Boot, RendezvousError>>) -> Vec<String> {
    met.into_iter().map(|met| met.err().expect("a failure").to_string()).collect()
}

#[track_caller]
fn all_say(met: Vec<Result<Boot, RendezvousError>>, want: impl Fn(&str) -> bool) {
    let mut said = errors(met);
    said.dedup();
    assert!(said.len() == 1 && want(&said[0]), "{said:#?}");
}

/// Cases that mostly wait.
fn at_once<T: Send, const N: usize>(cases: [T; N], check: impl Fn(T) + Sync) {
    let check = &check;
    thread::scope(|scope| {
        cases.into_iter().for_each(|case| drop(scope.spawn(move || check(case))))
    });
}

fn label() -> String {
    crossover_bootstrap::Identity::here(None).label()
}

fn is_empty(dir: &Path) -> bool {
    std::fs::read_dir(dir).unwrap().next().is_none()
}

/// Seven ranks on one node and eight on another, in blocks and interleaved.
#[test]
fn uneven_nodes_meet() {
    let of_node =
        |rank: u32, interleaved: bool| if interleaved { (rank + 1) % 2 } else { rank / 7 % 2 };
    for interleaved in [false, true] {
        let place = place(Kind::Tcp, Path::new("/"));
        let launches = (0..15).map(|rank| {
            let node = if rank == 14 { 1 } else { of_node(rank, interleaved) };
            let local = (0..rank).filter(|r| of_node(*r, interleaved) == node).count() as u32;
            let launch = launch(rank, 15, &place).local(local.min(6 + node), 7 + node);
            let node_id = Some(format!("node{node}"));
            (launch, Options { node_id, allow_loopback: true, ..options(AMPLE) })
        });
        let boots: Vec<Boot> = meet(launches.collect()).into_iter().map(Result::unwrap).collect();
        let said = on_all(boots, |boot| {
            let all = boot.all_gather("exchange facts", &[boot.rank() as u8]).unwrap();
            assert_eq!(all, (0..15).map(|r| vec![r]).collect::<Vec<_>>());
            boot.all_gather_fds("pass files", &[]).unwrap_err().to_string()
        });
        let odd = if interleaved { 1 } else { 7 };
        let want = format!("rank {odd} ({}) is on another node than rank 0", label());
        assert!(said.iter().all(|said| said.contains(&want)), "{said:#?}");
    }
}

#[test]
fn several_nodes_meet_through_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let place = place(Kind::File, dir.path());
    let launches = (0..4).map(|rank| (launch(rank, 4, &place).local(rank % 2, 2), options(AMPLE)));
    for met in meet(launches.collect()) {
        match met {
            Ok(_) => assert!(is_empty(dir.path())),
            Err(e) if e.to_string().contains("no address but loopback") => {
                eprintln!("skipped: this machine has no address but loopback");
            }
            Err(e) => panic!("{e}"),
        }
    }
}

#[test]
fn loopback_is_refused_for_several_nodes_by_every_rank() {
    let place = place(Kind::Tcp, Path::new("/"));
    let launches = (0..2).map(|rank| (launch(rank, 2, &place).local(0, 1), options(AMPLE)));
    all_say(meet(launches.collect()), |said| {
        said.contains("a loopback address, but the job spans several nodes")
    });
}

#[test]
fn a_jobs_directory_is_private_and_goes() {
    let base = tempfile::tempdir().unwrap();
    let place = Place::JobDirectory { base: base.path().to_owned(), name: "mine".into() };
    let launches = (0..3).map(|rank| (launch(rank, 3, &place), options(AMPLE)));
    assert!(meet(launches.collect()).iter().all(Result::is_ok));
    assert!(is_empty(base.path()));
    // Somebody else may read this one.
    std::fs::create_dir(base.path().join("mine")).unwrap();
    let launches = (0..2).map(|rank| (launch(rank, 2, &place), options(AMPLE)));
    let said = errors(meet(launches.collect()));
    assert!(
        said.iter().all(|said| said.contains("not a directory of this user alone")),
        "{said:?}"
    );
}

#[test]
fn missing_ranks_are_named_by_all() {
    at_once([Kind::File, Kind::Tcp, Kind::Unix], |kind| {
        let dir = tempfile::tempdir().unwrap();
        let place = place(kind, dir.path());
        let start = Instant::now();
        let some = [0, 2, 4].map(|rank| (launch(rank, 5, &place), options(SHORT)));
        let want = "step `rendezvous`: still waiting for ranks 1 and 3 after 2.";
        all_say(meet(some.into()), |said| said.starts_with(want));
        assert!((SHORT..SHORT * 3).contains(&start.elapsed()), "{:?}", start.elapsed());
        assert!(is_empty(dir.path()), "{kind:?}");
        let nobody = [1, 2].map(|rank| (launch(rank, 3, &place), options(SHORT / 4)));
        all_say(meet(nobody.into()), |said| said.contains("still waiting for rank 0 at"));
    });
}

#[test]
fn two_processes_with_one_rank_end_it_for_all() {
    let cases = [(2, Kind::Tcp), (2, Kind::Unix), (0, Kind::Tcp), (0, Kind::Unix)];
    at_once(cases, |(rank, kind)| {
        let dir = tempfile::tempdir().unwrap();
        let place = place(kind, dir.path());
        let ranks = [0, 1, 2].into_iter().chain([rank]);
        let launches = ranks.map(|rank| (launch(rank, 4, &place), options(AMPLE))).collect();
        let me = label();
        let want =
            format!("two processes are rank {rank}: {me} and {me}; give each process its own rank");
        all_say(meet(launches), |said| said == want);
        assert!(is_empty(dir.path()));
    });
}

/// Strangers knock while a job forms: each is refused by name, and the job forms.
#[test]
fn strangers_do_not_disturb_a_healthy_job() {
    for kind in [Kind::Tcp, Kind::Unix] {
        let dir = tempfile::tempdir().unwrap();
        let place = &place(kind, dir.path());
        thread::scope(|scope| {
            let host = scope.spawn(|| connect(&launch(0, 2, place), &options(AMPLE)));
            let refused = |launch: Launch, want: &str| {
                let said = connect(&launch, &options(AMPLE)).err().expect(want).to_string();
                assert!(said.contains(want), "{said}");
            };
            refused(launch(1, 2, place).named("job", 0), "is of attempt 0 of job `job`, but");
            refused(launch(1, 2, place).named("other", 1), "is of job `other`, but");
            refused(launch(1, 8, place), "is rank 1 of a world of 8, but");
            // The next attempt waits for this one to end.
            let next = connect(&launch(1, 2, place).named("job", 2), &options(SHORT / 4));
            let next = next.err().unwrap().to_string();
            assert!(
                next.contains("still waiting for rank 0") && next.contains("serves attempt 1"),
                "{next}"
            );
            for garbage in [
                &b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..],
                b"\0\0\0\0",
                b"XOVR\x02\0\xff\xff\xff\xff",
            ] {
                assert_eq!(knock(place, garbage), b"", "a stranger is told nothing");
            }
            knock(place, b""); // and one that leaves without a word
            let silent = open(place);
            let joined = connect(&launch(1, 2, place), &options(AMPLE));
            let boots = vec![host.join().unwrap().unwrap(), joined.unwrap()];
            on_all(boots, |boot| assert_eq!(boot.all_gather("go", b"x").unwrap().len(), 2));
            drop(silent);
        });
        assert!(is_empty(dir.path()));
    }
}

#[test]
fn those_refused_are_told_when_a_rank_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let place = place(Kind::Unix, dir.path());
    let launches =
        vec![(launch(0, 2, &place), options(SHORT)), (launch(1, 3, &place), options(SHORT))];
    let said = errors(meet(launches));
    assert!(said[0].contains("waiting for rank 1 after "), "{said:?}");
    assert!(said[0].ends_with(&said[1]), "{said:?}");
}

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

fn open(place: &Place) -> Box<dyn Stream> {
    let until = Instant::now() + AMPLE;
    loop {
        let opened: std::io::Result<Box<dyn Stream>> = match place {
            Place::Tcp { host, port } => {
                TcpStream::connect((host.as_str(), *port)).map(|stream| Box::new(stream) as _)
            }
            Place::Unix(path) => UnixStream::connect(path).map(|stream| Box::new(stream) as _),
            _ => unreachable!("not used here"),
        };
        match opened {
            Ok(stream) => return stream,
            Err(e) => assert!(Instant::now() < until, "{e}"),
        }
    }
}

/// Says something, and returns what comes back before the connection ends.
fn knock(place: &Place, say: &[u8]) -> Vec<u8> {
    let mut stream = open(place);
    stream.write_all(say).unwrap();
    if say.is_empty() {
        return Vec::new();
    }
    let mut answer = Vec::new();
    // Unread bytes turn the end into a reset.
    let _ = stream.read_to_end(&mut answer);
    answer
}

/// A program that is no rank has the port: rank 0 says that it is in use, the others that what
/// answers there is no rank.
#[test]
fn a_port_in_use_is_the_cause_on_every_rank() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut stream = stream;
                let _ = stream.read(&mut [0; 16]);
                let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
            });
        }
    });
    let place = Place::Tcp { host: "127.0.0.1".into(), port };
    let launches = (0..3).map(|rank| (launch(rank, 3, &place), options(AMPLE))).collect();
    let said = errors(meet(launches));
    assert_eq!(
        said[0],
        format!(
            "rank 0 cannot listen at tcp://127.0.0.1:{port}: it is in use by something that is no rank: it sent `HTTP/1.1 400 Bad Request`, which is not this program's protocol; give the job another address"
        )
    );
    for said in &said[1..] {
        let want = format!(
            "what listens at tcp://127.0.0.1:{port} is not rank 0: it sent `HTTP/1.1 400 Bad Request`"
        );
        assert!(said.starts_with(&want), "{said}");
    }
}

/// Whoever listens may only be slow: what was heard before is told, and nobody is called a stranger for an
/// answer that was not due yet. One that has been silent for long is.
#[test]
fn an_answer_that_was_not_due_is_no_evidence() {
    let dir = tempfile::tempdir().unwrap();
    for (deadline, want) in [
        (SHORT / 4, "still waiting for rank 0 at"),
        (SHORT + SHORT / 4, "is not rank 0: it took the connection and never answered"),
    ] {
        for place in [place(Kind::Tcp, dir.path()), place(Kind::Unix, dir.path())] {
            let _silent: Box<dyn std::any::Any> = match &place {
                Place::Tcp { port, .. } => {
                    Box::new(TcpListener::bind(("127.0.0.1", *port)).unwrap())
                }
                Place::Unix(path) => {
                    let _ = std::fs::remove_file(path);
                    Box::new(std::os::unix::net::UnixListener::bind(path).unwrap())
                }
                _ => unreachable!("not used here"),
            };
            let said = errors(meet(vec![(launch(1, 2, &place), options(deadline))]));
            assert!(said[0].contains(want), "{}", said[0]);
        }
    }
}

/// With a file, every rank reads rank 0's own words.
#[test]
fn a_published_failure_is_everyones() {
    let dir = tempfile::tempdir().unwrap();
    let place = place(Kind::File, dir.path());
    // Where rank 0 wants its socket, there is something that cannot be one.
    std::fs::create_dir(dir.path().join("meet.socket")).unwrap();
    let launches = (0..3).map(|rank| (launch(rank, 3, &place), options(AMPLE))).collect();
    all_say(meet(launches), |said| said.starts_with("cannot listen at the Unix socket"));
}

#[test]
fn leftovers_of_a_killed_job_do_not_matter() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("socket");
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    assert!(socket.exists());
    let file = dir.path().join("meet");
    let old =
        format!("crossover rendezvous 1\njob job\nattempt 1\nrun 5\nunix {}\n", socket.display());
    std::fs::write(&file, old).unwrap();
    for place in [Place::File(file), Place::Unix(socket)] {
        let launches = (0..3).map(|rank| (launch(rank, 3, &place), options(AMPLE))).collect();
        assert!(meet(launches).iter().all(Result::is_ok));
    }
    assert!(is_empty(dir.path()));
}

/// The same place serves one group after another, as it does for an engine's several groups.
#[test]
fn one_place_serves_many_groups() {
    for kind in [Kind::File, Kind::Tcp, Kind::Unix] {
        let dir = tempfile::tempdir().unwrap();
        let place = &place(kind, dir.path());
        thread::scope(|scope| {
            for rank in 0..3 {
                scope.spawn(move || {
                    for round in 0..20 {
                        let boot = connect(&launch(rank, 3, place), &options(AMPLE)).unwrap();
                        let all = boot.all_gather("round", &[round]).unwrap();
                        assert_eq!(all, vec![vec![round]; 3]);
                    }
                });
            }
        });
    }
}

#[test]
fn a_member_that_leaves_early_ends_it_for_all() {
    let dir = tempfile::tempdir().unwrap();
    let place = place(Kind::Unix, dir.path());
    // Rank 1's own deadline passes long before the others': it asks, and all are told who is missing.
    let launches =
        vec![(launch(0, 3, &place), options(AMPLE)), (launch(1, 3, &place), options(SHORT))];
    let start = Instant::now();
    let said = errors(meet(launches));
    assert!(said.iter().all(|said| said.contains("still waiting for rank 2")), "{said:?}");
    assert!(start.elapsed() < AMPLE / 2);
}

#[test]
fn a_world_of_one_touches_nothing() {
    let place = Place::Unix("/nonexistent/socket".into());
    let boot = connect(&launch(0, 1, &place), &options(AMPLE)).unwrap();
    assert_eq!(boot.all_gather("x", b"y"), Ok::<_, BootstrapError>(vec![b"y".to_vec()]));
    let e = connect(&Launch::new(0, 2), &options(AMPLE)).err().unwrap();
    assert_eq!(e, RendezvousError::NoPlace { world: 2 });
}

#[test]
fn names_that_are_too_long_are_refused_before_anybody_waits() {
    let place = Place::Unix("/nowhere/at/all".into());
    let launch = Launch::new(1, 2).at(place);
    let e = connect(&launch.clone().named("j".repeat(6000), 0), &Options::default()).err();
    let said = e.expect("it cannot travel").to_string();
    assert!(said.contains("the job's name has 6000 B, and at most 512"), "{said}");
    let options = Options { node_id: Some("n".repeat(513)), ..Options::default() };
    let said = connect(&launch, &options).err().expect("it cannot travel").to_string();
    assert!(said.contains("node_id has 513 B"), "{said}");
}

/// A place that is somebody's file is refused, and the file is left as it is.
#[test]
fn files_that_are_no_rendezvous_are_left_alone() {
    for kind in [Kind::Unix, Kind::File] {
        let dir = tempfile::tempdir().unwrap();
        let place = place(kind, dir.path());
        let path = match &place {
            Place::Unix(path) | Place::File(path) => path.clone(),
            other => panic!("{other}"),
        };
        for target in [path.clone(), dir.path().join("elsewhere")] {
            std::fs::write(&target, "precious").unwrap();
            if target != path {
                std::fs::remove_file(&path).unwrap();
                std::os::unix::fs::symlink(&target, &path).unwrap();
            }
            let said = errors(meet(vec![(launch(0, 2, &place), options(SHORT))]));
            assert!(said[0].contains("give another path"), "{kind:?}: {said:?}");
            assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious", "{kind:?}");
            assert!(std::fs::symlink_metadata(&path).is_ok(), "{kind:?}");
        }
    }
}

/// A listener that takes nobody in holds nobody beyond the deadline.
#[test]
fn a_full_backlog_ends_at_the_deadline() {
    let dir = tempfile::tempdir().unwrap();
    let place = place(Kind::Unix, dir.path());
    let Place::Unix(path) = &place else { panic!("{place}") };
    let listener = std::os::unix::net::UnixListener::bind(path).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let mut waiting = Vec::new();
    for _ in 0..4 {
        let flags = rustix::net::SocketFlags::NONBLOCK;
        let family = rustix::net::AddressFamily::UNIX;
        let kind = rustix::net::SocketType::STREAM;
        let socket = rustix::net::socket_with(family, kind, flags, None).unwrap();
        let full = rustix::net::connect(&socket, &rustix::net::SocketAddrUnix::new(path).unwrap());
        waiting.push(socket);
        if full.is_err() {
            break;
        }
    }
    let start = Instant::now();
    let both = [0, 1].map(|rank| (launch(rank, 2, &place), options(SHORT)));
    assert_eq!(errors(meet(both.into())).len(), 2);
    assert!(start.elapsed() < SHORT * 2, "{:?}", start.elapsed());
}
