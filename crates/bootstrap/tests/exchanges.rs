//! Exchanges of ranks that have met, over every kind of channel.

mod common;

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use common::{AMPLE, Boot, KINDS, Kind, group, on_all, same_sentence};
use crossover_bootstrap::Solo;
use crossover_core::bootstrap::{Bootstrap, BootstrapError};

/// Bytes that no other rank, round or position has.
fn bytes(rank: u32, round: u32) -> Vec<u8> {
    let length = [0, 1, 7, 300_001][(round % 4) as usize] + rank as usize;
    (0..length).map(|i| (i as u32 * 7 + rank * 31 + round) as u8).collect()
}

#[test]
fn everyone_gets_everyones_bytes() {
    for kind in KINDS {
        for world in [2, 3, 8] {
            on_all(group(kind, world, AMPLE), |boot| {
                assert_eq!(boot.world(), world);
                for round in 0..5 {
                    let all = boot.all_gather("exchange", &bytes(boot.rank(), round)).unwrap();
                    let want: Vec<_> = (0..world).map(|rank| bytes(rank, round)).collect();
                    assert!(all == want, "{kind:?}, world {world}, round {round}");
                }
            });
        }
    }
}

#[test]
fn a_missing_rank_is_named_by_all_at_the_deadline() {
    let deadline = Duration::from_secs(3);
    // Rank 0 missing: the others can name rank 0 alone. Others missing: rank 0 knows which.
    let cases = [(&[0][..], "rank 0"), (&[2], "rank 2"), (&[1, 3], "ranks 1 and 3")];
    let start = Instant::now();
    std::thread::scope(|scope| {
        for (kind, (missing, words)) in
            KINDS.into_iter().flat_map(|kind| cases.map(|case| (kind, case)))
        {
            scope.spawn(move || {
                let said = on_all(group(kind, 4, deadline), |boot| {
                    if missing.contains(&boot.rank()) {
                        std::thread::sleep(deadline * 3 / 2); // alive, but elsewhere
                        return None;
                    }
                    // Not all at once: whose deadline passes first must not matter.
                    std::thread::sleep(deadline / 16 * boot.rank());
                    Some(boot.all_gather("exchange facts", b"x"))
                });
                // Not before the deadline; rank 0 itself is waited for a quarter longer.
                let said = same_sentence(said);
                let want = format!("step `exchange facts`: still waiting for {words} after ");
                assert!(said.starts_with(&want), "{kind:?}: {said}");
                let seconds = said.trim_start_matches(&want).trim_end_matches('s');
                let seconds: f64 = seconds.parse().expect("a number of seconds");
                assert!((3.0..=3.8).contains(&seconds), "{kind:?}: {said}");
            });
        }
    });
    assert!(start.elapsed() < deadline * 3);
}

#[test]
fn a_lost_rank_is_named_by_all_at_once() {
    for kind in KINDS {
        for lost in [0, 2] {
            let start = Instant::now();
            let said = on_all(group(kind, 4, AMPLE), |boot| {
                boot.all_gather("first", b"").unwrap();
                if boot.rank() == lost {
                    std::thread::sleep(Duration::from_millis(50));
                    return None; // dropped, as by its process's end
                }
                let said = boot.all_gather("second", b"x");
                // And it stays so.
                assert_eq!(boot.all_gather("third", b"x"), said);
                Some(said)
            });
            let said = same_sentence(said);
            assert!(
                said.starts_with(&format!("rank {lost} was lost at step `second`: ")),
                "{said}"
            );
            assert!(start.elapsed() < AMPLE / 2);
        }
    }
}

#[test]
fn an_exchange_that_is_over_for_one_rank_is_left_by_all() {
    for kind in KINDS {
        for told in [0, 2] {
            let start = Instant::now();
            let said = on_all(group(kind, 4, AMPLE), |boot| {
                let ended = || {
                    (start.elapsed() > Duration::from_millis(100))
                        .then(|| "it was told to".to_owned())
                };
                boot.all_gather_unless("first", b"x", &|| None).unwrap();
                match boot.rank() {
                    1 => {
                        // It lives, and does not come.
                        std::thread::sleep(Duration::from_millis(500));
                        None
                    }
                    rank if rank == told => Some(boot.all_gather_unless("second", b"x", &ended)),
                    _ => Some(boot.all_gather_unless("second", b"x", &|| None)),
                }
            });
            let want = format!(
                "rank {told} was lost at step `second`: its group has ended: it was told to"
            );
            assert_eq!(same_sentence(said), want, "{kind:?}");
            assert!(start.elapsed() < AMPLE / 2);
        }
    }
}

#[test]
fn different_steps_are_told_apart() {
    for kind in KINDS {
        let said = on_all(group(kind, 3, AMPLE), |boot| {
            let step = if boot.rank() == 1 { "form group tp" } else { "form group ep" };
            Some(boot.all_gather(step, b"x"))
        });
        let said = same_sentence(said);
        let parts =
            ["rank 1", "`form group tp`", "`form group ep`", "same groups in the same order"];
        assert!(parts.iter().all(|part| said.contains(part)), "{kind:?}: {said}");
    }
}

/// Each rank gives files with its own bytes; everyone appends through what it received, and the
/// owner finds everyone's bytes in its files.
fn pass_files(boots: Vec<Boot>, each: u32) {
    on_all(boots, |boot| {
        let (me, world) = (boot.rank(), boot.world());
        // Rank 1 gives none.
        let count = |rank| if rank == 1 { 0 } else { each + rank % 2 };
        let mut own: Vec<File> = (0..count(me)).map(|_| tempfile::tempfile().unwrap()).collect();
        own.iter_mut().for_each(|file| file.write_all(&vec![0xee; world as usize]).unwrap());
        let fds: Vec<_> = own.iter().map(AsFd::as_fd).collect();
        let all = boot.all_gather_fds("pass files", &fds).unwrap();
        assert_eq!(all.len(), world as usize);
        for (rank, fds) in (0..).zip(all) {
            assert_eq!(fds.len(), count(rank) as usize, "of rank {rank}");
            for (at, fd) in (0..).zip(fds) {
                let flags = rustix::io::fcntl_getfd(&fd).unwrap();
                assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
                rustix::io::pwrite(&fd, &[(me * 16 + rank + at) as u8], me.into()).unwrap();
            }
        }
        boot.all_gather("all have written", b"").unwrap();
        for (at, file) in (0..).zip(&mut own) {
            let mut found = Vec::new();
            file.rewind().unwrap();
            file.read_to_end(&mut found).unwrap();
            let want: Vec<u8> = (0..world).map(|rank| (rank * 16 + me + at) as u8).collect();
            assert_eq!(found, want);
        }
    });
}

#[test]
fn descriptors_open_the_owners_files() {
    for kind in KINDS {
        pass_files(group(kind, 4, AMPLE), 3);
    }
    // More than the kernel passes with one message.
    pass_files(group(Kind::Unix, 16, AMPLE), 17);
}

#[test]
fn pipes_pass_over_unix_sockets() {
    on_all(group(Kind::Unix, 3, AMPLE), |boot| {
        let (read, write) = std::io::pipe().unwrap();
        let all = boot.all_gather_fds("pass pipes", &[write.as_fd()]).unwrap();
        drop(write);
        for fds in all {
            rustix::io::write(&fds[0], &[boot.rank() as u8]).unwrap();
        }
        let mut found = Vec::new();
        (&read).read_to_end(&mut found).unwrap(); // ends only if no write end is left anywhere
        found.sort_unstable();
        assert_eq!(found, [0, 1, 2]);
    });
}

#[test]
fn what_cannot_be_opened_is_refused_by_all() {
    let said = on_all(group(Kind::Tcp, 3, AMPLE), |boot| {
        let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let file = tempfile::tempfile().unwrap();
        let fd = if boot.rank() == 1 { socket.as_fd() } else { file.as_fd() };
        let said = boot.all_gather_fds("pass", &[fd]);
        // The channel is still good.
        assert_eq!(boot.all_gather("go on", b"x").unwrap().len(), 3);
        Some(said)
    });
    let said = same_sentence(said);
    assert!(said.contains("rank 0 cannot open one of rank 1: /proc/"), "{said}");
}

#[test]
fn one_rank_needs_nobody() {
    let solo = Solo::new(AMPLE);
    assert_eq!(solo.all_gather("x", b"me").unwrap(), [b"me"]);
    let (_read, write) = std::io::pipe().unwrap();
    let all = solo.all_gather_fds("x", &[write.as_fd()]).unwrap();
    assert_eq!((all.len(), all[0].len()), (1, 1));
}

#[test]
fn a_frame_too_long_is_refused_by_all() {
    let said = on_all(group(Kind::Unix, 2, AMPLE), |boot| {
        let mine = if boot.rank() == 1 { vec![0; (64 << 20) + 1] } else { Vec::new() };
        Some(boot.all_gather("too long", &mine))
    });
    assert!(matches!(said[0], Some(Err(BootstrapError::Garbled { rank: 1, .. }))), "{said:?}");
    assert!(same_sentence(said).contains("at most 67108864 are allowed"));
}
