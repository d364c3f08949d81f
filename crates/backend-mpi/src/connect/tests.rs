use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crossover_core::verdict::Verdict;

use super::{Party, connect, listen};
use crate::watch::News;

#[test]
fn a_stranger_is_not_taken_for_a_rank() {
    let (listener, there) = listener();
    let strange = Party { nonces: vec![33, 22], ..party(1, there) };
    std::thread::scope(|scope| {
        let host = scope.spawn(|| connect(&listener, &party(0, there)));
        let (other, _) = listen().expect("a port");
        let refused = connect(&other, &strange).err().expect("it is turned away");
        assert!(refused.0.contains("rank 0 is not reached by TCP"), "{refused}");
        assert!(connect(&other, &party(1, there)).is_ok());
        assert!(host.join().expect("no panic").is_ok());
    });
}

#[test]
fn who_does_not_come_is_named() {
    let (listener, addresses) = listen().expect("a port");
    let party = Party {
        rank: 0,
        addresses: vec![addresses, Vec::new(), Vec::new()],
        nonces: vec![1, 2, 3],
        deadline: Duration::from_millis(50),
    };
    let why = connect(&listener, &party).err().expect("nobody comes");
    assert_eq!(why.0, "ranks 1 and 2 did not connect by TCP within 50.0ms");
}

#[test]
fn strangers_do_not_stretch_the_deadline() {
    let (listener, there) = listener();
    let _silent = [there; 3].map(|there| TcpStream::connect(there).expect("it listens"));
    let mut trickle = TcpStream::connect(there).expect("it listens");
    trickle.write_all(&[7; 5]).expect("a connection takes some bytes");
    let start = Instant::now();
    let party = Party { deadline: Duration::from_millis(100), ..party(0, there) };
    let why = connect(&listener, &party).err().expect("no rank comes");
    assert_eq!(why.0, "rank 1 did not connect by TCP within 100.0ms");
    // One of them alone used to be waited for as long as an address is tried.
    assert!(start.elapsed() < super::ONE_ADDRESS, "{:?}", start.elapsed());
}

#[test]
fn a_silent_stranger_does_not_keep_a_rank_waiting() {
    let (listener, there) = listener();
    let _silent = [there; 3].map(|there| TcpStream::connect(there).expect("it listens"));
    std::thread::scope(|scope| {
        let host = scope.spawn(|| connect(&listener, &party(0, there)));
        let (other, _) = listen().expect("a port");
        assert!(connect(&other, &party(1, there)).is_ok());
        assert!(host.join().expect("no panic").is_ok());
    });
}

/// A rank that gave up on one address and took the next has left a connection whose greeting is right.
#[test]
fn what_a_rank_left_behind_is_not_kept() {
    let (listener, there) = listener();
    let mut stale = TcpStream::connect(there).expect("it listens");
    let greeting = [&11u64.to_le_bytes()[..], &1u32.to_le_bytes()].concat();
    stale.write_all(&greeting).expect("a connection takes some bytes");
    drop(stale);
    let (host, guest) = std::thread::scope(|scope| {
        let host = scope.spawn(|| connect(&listener, &party(0, there)));
        let (other, _) = listen().expect("a port");
        let guest = connect(&other, &party(1, there)).expect("it is let in");
        (host.join().expect("no panic").expect("the rank comes"), guest)
    });
    assert!(guest.end(Verdict::aborted(1, "over the connection that lives")));
    let until = Instant::now() + Duration::from_secs(5);
    let news = loop {
        match host.look() {
            None if Instant::now() < until => std::thread::sleep(Duration::from_millis(1)),
            news => break news,
        }
    };
    assert!(matches!(news, Some(News::Ended(_))), "the other connection was kept");
}

fn listener() -> (TcpListener, SocketAddr) {
    let (listener, addresses) = listen().expect("a port");
    (listener, *addresses.last().expect("loopback is always there"))
}

/// Of two ranks, of which the first listens there.
fn party(rank: u32, there: SocketAddr) -> Party {
    Party {
        rank,
        addresses: vec![vec![there], Vec::new()],
        nonces: vec![11, 22],
        deadline: Duration::from_secs(10),
    }
}
