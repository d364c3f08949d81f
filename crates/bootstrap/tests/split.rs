//! Groups within a group: channels of parts of a channel's ranks.

mod common;

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use common::{AMPLE, Boot, KINDS, Kind, group, meet, on_all, options, place, same_sentence};
use crossover_bootstrap::{Launch, Options, Solo};
use crossover_core::bootstrap::Bootstrap;

/// The nodes of ranks: 7 and 8 of them one after the other, by turns, and in no order at all.
const UNEVEN: [[u32; 15]; 3] = [
    [0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1],
    [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1],
    [1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 0, 0, 1, 0, 1],
];

/// Ranks that play nodes of one host: over TCP, which is all that nodes have in common.
fn on_nodes(nodes: &[u32], deadline: Duration) -> Vec<Boot> {
    let dir = tempfile::tempdir().unwrap();
    let place = place(Kind::Tcp, dir.path());
    let launch = |(rank, node): (usize, &u32)| {
        let here = |n: &&u32| *n == node;
        let (local, many) =
            (nodes[..rank].iter().filter(here).count(), nodes.iter().filter(here).count());
        let launch = Launch::new(rank as u32, nodes.len() as u32).local(local as u32, many as u32);
        let node_id = Some(format!("node{node}"));
        let options = Options { node_id, allow_loopback: true, ..options(deadline) };
        (launch.named("split", 0).at(place.clone()), options)
    };
    let met = meet(nodes.iter().enumerate().map(launch).collect());
    met.into_iter().map(|met| met.unwrap_or_else(|e| panic!("{e}"))).collect()
}

/// Asserts that a part has these ranks of the whole, in this order.
#[track_caller]
fn is_of(part: &dyn Bootstrap, whole: &dyn Bootstrap, ranks: &[u32]) {
    let all = part.all_gather("who is there", &whole.rank().to_le_bytes()).unwrap();
    let want: Vec<_> = ranks.iter().map(|rank| rank.to_le_bytes().to_vec()).collect();
    assert_eq!(all, want);
    assert_eq!(part.world() as usize, ranks.len());
    assert_eq!(ranks[part.rank() as usize], whole.rank());
    assert_eq!(part.deadline(), whole.deadline() / 2);
}

fn of_color(colors: &[u32], color: u32) -> Vec<u32> {
    (0..).zip(colors).filter(|(_, one)| **one == color).map(|(rank, _)| rank).collect()
}

#[test]
fn uneven_parts_in_any_order_have_channels_of_their_own() {
    for kind in KINDS {
        for colors in UNEVEN {
            on_all(group(kind, 15, AMPLE), |boot| {
                let color = colors[boot.rank() as usize];
                let part = boot.split("meet apart", color).unwrap();
                for _ in 0..3 {
                    is_of(&*part, &*boot, &of_color(&colors, color));
                }
                // The whole goes on.
                assert_eq!(boot.all_gather("after", &[7]).unwrap(), vec![vec![7]; 15]);
            });
        }
    }
}

#[test]
fn nodes_of_unequal_size_meet_inside_and_across() {
    for nodes in UNEVEN {
        on_all(on_nodes(&nodes, AMPLE), |boot| {
            let me = boot.rank() as usize;
            let node = nodes[me];
            let inside = boot.split("meet inside", node).unwrap();
            is_of(&*inside, &*boot, &of_color(&nodes, node));
            let index = |rank: usize| nodes[..rank].iter().filter(|n| **n == nodes[rank]).count();
            let indices: Vec<u32> = (0..15).map(|rank| index(rank) as u32).collect();
            let across = boot.split("meet across", indices[me]).unwrap();
            is_of(&*across, &*boot, &of_color(&indices, indices[me]));
            // Descriptors travel inside a node, not between nodes.
            let mut file = tempfile::tempfile().unwrap();
            write!(file, "of rank {me}").unwrap();
            let all = inside.all_gather_fds("pass", &[file.as_fd()]).unwrap();
            for (fds, rank) in all.into_iter().zip(of_color(&nodes, node)) {
                let theirs: File = fds.into_iter().next().unwrap().into();
                // Its offset is shared by all who have it.
                let mut text = vec![0; 16];
                let length = theirs.read_at(&mut text, 0).unwrap();
                assert_eq!(text[..length], *format!("of rank {rank}").as_bytes());
            }
            let passed = across.all_gather_fds("pass", &[file.as_fd()]);
            assert_eq!(passed.is_err(), across.world() > 1, "{passed:?}");
        });
    }
}

#[test]
fn parts_live_without_the_whole_and_are_split_again() {
    for kind in KINDS {
        on_all(group(kind, 8, AMPLE), |boot| {
            let me = boot.rank();
            let half = boot.split("halve", me % 2).unwrap();
            drop(boot);
            let quarter = half.split("halve again", half.rank() / 2).unwrap();
            drop(half);
            let all = quarter.all_gather("who is there", &me.to_le_bytes()).unwrap();
            let other = if me % 4 < 2 && me < 4 { me + 2 } else { me ^ 2 };
            let mut want = [me, other];
            want.sort_unstable();
            assert_eq!(all, want.map(|rank| rank.to_le_bytes().to_vec()));
        });
    }
}

#[test]
fn a_rank_of_its_own_color_is_alone() {
    for kind in KINDS {
        on_all(group(kind, 3, AMPLE), |boot| {
            let part = boot.split("meet apart", boot.rank()).unwrap();
            is_of(&*part, &*boot, &[boot.rank()]);
        });
    }
    let solo = Solo::new(AMPLE);
    is_of(&*solo.split("meet apart", 5).unwrap(), &solo, &[0]);
}

#[test]
fn a_rank_that_does_not_come_or_is_lost_is_named_by_all_parts() {
    let deadline = Duration::from_secs(3);
    for kind in KINDS {
        let start = Instant::now();
        let said = on_all(group(kind, 4, deadline), |boot| match boot.rank() {
            2 => {
                std::thread::sleep(deadline * 3 / 2); // alive, but elsewhere
                None
            }
            rank => Some(boot.split("meet apart", rank % 2)),
        });
        let said = same_sentence(said);
        assert!(said.starts_with("step `meet apart`: still waiting for rank 2 after "), "{said}");
        assert!(start.elapsed() < deadline * 2);
        let said = on_all(group(kind, 4, AMPLE), |boot| match boot.rank() {
            2 => None,
            rank => Some(boot.split("meet apart", rank % 2)),
        });
        let said = same_sentence(said);
        assert!(said.starts_with("rank 2 was lost at step `meet apart`: "), "{said}");
        assert!(start.elapsed() < deadline * 3, "a loss is seen at once");
    }
}

#[test]
fn parts_leave_nothing_on_disk() {
    let ours = || {
        let entries = std::fs::read_dir("/tmp").unwrap().flatten();
        let name = format!("crossover-part-{}-", std::process::id());
        entries.filter(|e| e.file_name().to_string_lossy().starts_with(&name)).count()
    };
    on_all(group(Kind::Unix, 6, AMPLE), |boot| {
        boot.split("meet apart", boot.rank() / 3).map(drop).unwrap();
    });
    // Other tests of this process are at it as well, and done soon.
    let until = Instant::now() + AMPLE;
    while ours() > 0 {
        assert!(Instant::now() < until, "something is left on disk");
        std::thread::sleep(Duration::from_millis(5));
    }
}
