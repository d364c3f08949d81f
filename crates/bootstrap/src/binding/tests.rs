//! Named machines with the shares that a person would give, and the rules on machines of any kind.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::{Claim, Machine, Seat, list, share};

/// A machine from lines `node: core core ..`, a core being the processors of its threads, such as
/// `0+4`.
fn machine(lines: &[&str]) -> Machine {
    let mut seats = Vec::new();
    for line in lines {
        let (node, cores) = line.split_once(':').unwrap();
        for core in cores.split_whitespace() {
            let threads: Vec<usize> = core.split('+').map(|n| n.parse().unwrap()).collect();
            let seat = Seat { node: node.parse().unwrap(), core: threads[0] };
            seats.extend(threads.into_iter().map(|thread| (thread, seat)));
        }
    }
    seats.into_iter().collect()
}

/// Nodes of so many cores with two threads each: first threads are numbered through all nodes,
/// then second threads.
fn two_threads_a_core(nodes: usize, cores: usize) -> Machine {
    let all = nodes * cores;
    (0..2 * all).map(|n| (n, Seat { node: n % all / cores, core: n % all })).collect()
}

#[track_caller]
fn check(
    machine: &Machine,
    allowed: impl IntoIterator<Item = usize>,
    threads: usize,
    want: &[&str],
) {
    let (allowed, ranks) = (allowed.into_iter().collect::<Vec<_>>(), want.len());
    let shares =
        (0..ranks).map(|rank| list(&share(&allowed, machine, Claim { rank, ranks, threads })));
    assert_eq!(shares.collect::<Vec<_>>(), want);
}

#[test]
fn two_sockets() {
    let xeon = two_threads_a_core(2, 4); // node 0: 0-3 and 8-11, node 1: 4-7 and 12-15
    check(&xeon, 0..16, 1, &["0-3,8-11"]);
    check(&xeon, 0..16, 1, &["0-3,8-11", "4-7,12-15"]);
    check(&xeon, 0..16, 1, &["0-1,8-9", "2-3,10-11", "4-7,12-15"]);
    check(&xeon, 0..16, 1, &["0-1,8-9", "2-3,10-11", "4-5,12-13", "6-7,14-15"]);
    // A rank of nine threads has no room on a node of eight processors.
    check(&xeon, 0..16, 9, &["0-15"]);
    check(&xeon, 0..16, 9, &["0-3,8-11", "4-7,12-15"]);
    // Twelve ranks on eight cores: six on each node, of which two have a core for themselves.
    let twelve = ["0", "8", "1,9", "2", "10", "3,11", "4", "12", "5,13", "6", "14", "7,15"];
    check(&xeon, 0..16, 1, &twelve);
}

/// A container's mask on the second node: halves of that mask, in whole cores.
#[test]
fn a_container_on_one_node_of_two() {
    let machine = two_threads_a_core(2, 60);
    // First threads 0-119 (node 1 has 60-119), second threads 120-239 (node 1 has 180-239).
    let mask = || (60..120).chain(180..240);
    check(&machine, mask(), 1, &["60-89,180-209", "90-119,210-239"]);
    check(&machine, mask(), 40, &["60-89,180-209", "90-119,210-239"]);
    check(&machine, mask(), 1, &["60-79,180-199", "80-99,200-219", "100-119,220-239"]);
    // One thread of each core: a share is that of its cores which is allowed.
    check(&machine, 60..120, 1, &["60-89", "90-119"]);
}

#[test]
fn a_container_with_processors_of_both_nodes() {
    let xeon = two_threads_a_core(2, 4);
    // One core of node 0 and three of node 1.
    let mask = || [3, 11, 5, 6, 7, 13, 14, 15].into_iter();
    check(&xeon, mask(), 1, &["3,11", "5-7,13-15"]);
    check(&xeon, mask(), 1, &["3,11", "5-6,13-14", "7,15"]);
    check(&xeon, mask(), 1, &["3,11", "5,13", "6,14", "7,15"]);
    // Three threads do not fit on node 0, but two ranks of them on node 1 do not either.
    check(&xeon, mask(), 3, &["3,11", "5-7,13-15"]);
    // One rank of three threads is best on node 1.
    check(&xeon, mask(), 3, &["5-7,13-15"]);
}

#[test]
fn four_nodes_a_socket() {
    let epyc = two_threads_a_core(4, 2); // node n: 2n, 2n+1 and 8 more
    check(&epyc, 0..16, 1, &["0-1,8-9"]);
    check(&epyc, 0..16, 1, &["0-1,8-9", "4-5,12-13"]);
    check(&epyc, 0..16, 1, &["0-1,8-9", "2-3,10-11", "4-5,12-13", "6-7,14-15"]);
    check(&epyc, 0..16, 1, &["0,8", "1,9", "2-3,10-11", "4,12", "5,13", "6-7,14-15"]);
    // Five threads need more than a node: two nodes for each of two ranks.
    check(&epyc, 0..16, 5, &["0-3,8-11", "4-7,12-15"]);
    check(&epyc, 0..16, 5, &["0-15"]);
}

#[test]
fn one_processor() {
    check(&machine(&["0: 0"]), [0], 1, &["0"]);
    check(&machine(&["0: 0"]), [0], 8, &["0", "0", "0"]);
}

/// Four wide cores of two threads, eight narrow ones of one: each rank gets of both.
#[test]
fn a_laptop() {
    let laptop = machine(&["0: 0+1 2+3 4+5 6+7 8 9 10 11 12 13 14 15"]);
    check(&laptop, 0..16, 1, &["0-15"]);
    check(&laptop, 0..16, 1, &["0-3,8-11", "4-7,12-15"]);
    // What is left of the narrow ones goes to those that got none of the wide ones' rest.
    check(&laptop, 0..16, 1, &["0-3,8-9", "4-5,10-12", "6-7,13-15"]);
    let six = ["0-1,8", "2-3,9", "4-5,10", "6-7,11", "12-13", "14-15"];
    check(&laptop, 0..16, 1, &six);
}

#[test]
fn ranks_that_outnumber_processors_take_turns() {
    check(&machine(&["0: 3 7"]), [3, 7], 1, &["3", "7", "3", "7", "3"]);
    // The nodes take turns, and second threads come after all first ones.
    let small = two_threads_a_core(2, 1);
    check(&small, 0..4, 1, &["0", "1", "2", "3", "0", "1"]);
}

#[test]
fn numbers_with_holes_and_processors_that_nobody_knows() {
    let holed = machine(&["0: 0+8 2+10", "3: 40+50"]);
    check(&holed, [0, 2, 8, 10, 40, 50], 1, &["0,2,8,10", "40,50"]);
    check(&Machine::default(), [5, 9, 17], 1, &["5,9", "17"]);
}

#[test]
fn a_machine_is_read_as_sysfs_shows_it() {
    let root = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = root.path().join("devices/system").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("node/node0/cpulist", "0-1,4\n");
    write("node/node1/cpulist", "2,6\n");
    write("node/node2/cpulist", "\n"); // memory alone
    write("node/online", "0-2\n");
    write("cpu/cpu0/topology/core_cpus_list", "0,4\n");
    write("cpu/cpu4/topology/core_cpus_list", "0,4\n");
    // An older kernel's name, and a text that means nothing.
    write("cpu/cpu2/topology/thread_siblings_list", "2,6\n");
    write("cpu/cpu6/topology/thread_siblings_list", "2,6\n");
    write("cpu/cpu1/topology/core_cpus_list", "?\n");
    let read = Machine::read(root.path(), &[0, 1, 2, 4, 6]);
    assert_eq!(read, machine(&["0: 0+4 1", "1: 2+6"]));
    let unknown = Machine::read(Path::new("/no/such/sys"), &[2, 5]);
    assert_eq!(unknown, machine(&["0: 2 5"]));
}

/// Nodes (with holes in their numbers) of cores of one to four threads, numbered in any order.
fn machines() -> impl Strategy<Value = (Vec<(usize, Seat)>, Vec<bool>)> {
    let nodes = prop::collection::vec(prop::collection::vec(1_usize..=4, 0..6), 1..5);
    let seats = nodes.prop_map(|nodes| {
        let cores = nodes
            .into_iter()
            .enumerate()
            .flat_map(|(node, cores)| cores.into_iter().map(move |threads| (node * 2, threads)));
        let mut seats = Vec::new();
        for (node, threads) in cores {
            let core = seats.len() * 3;
            seats.extend((0..threads).map(|_| Seat { node, core }));
        }
        seats
    });
    seats.prop_flat_map(|seats| {
        let len = seats.len();
        let numbers: Vec<usize> = (0..len).map(|n| n * 3).collect();
        (Just(numbers).prop_shuffle(), Just(seats), prop::collection::vec(any::<bool>(), len))
            .prop_map(|(numbers, seats, mask)| (numbers.into_iter().zip(seats).collect(), mask))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn the_rules_hold((seats, mask) in machines(), ranks in 1_usize..12, threads in 1_usize..6) {
        let mut allowed: Vec<(usize, Seat)> =
            seats.iter().zip(mask).filter(|(_, is_in)| *is_in).map(|(seat, _)| *seat).collect();
        allowed.sort_unstable();
        prop_assume!(!allowed.is_empty());
        let machine: Machine = seats.into_iter().collect();
        let numbers: Vec<usize> = allowed.iter().map(|(n, _)| *n).collect();
        let shares: Vec<Vec<usize>> = (0..ranks)
            .map(|rank| share(&numbers, &machine, Claim { rank, ranks, threads }))
            .collect();
        let seat = |n: usize| allowed.iter().find(|(number, _)| *number == n).unwrap().1;
        let cores: BTreeSet<Seat> = allowed.iter().map(|(_, seat)| *seat).collect();
        let nodes: BTreeSet<usize> = cores.iter().map(|seat| seat.node).collect();

        // 1. Within what is allowed; ascending, and nobody is left without.
        for share in &shares {
            prop_assert!(!share.is_empty() && share.is_sorted_by(|a, b| a < b), "{share:?}");
            prop_assert!(share.iter().all(|n| numbers.contains(n)), "{share:?}");
        }
        // 2. Disjoint, or by turns.
        let uses = |n: &usize| shares.iter().filter(|share| share.contains(n)).count();
        let used = numbers.iter().map(uses);
        if ranks <= numbers.len() {
            prop_assert!(used.max() <= Some(1), "{shares:?}");
        } else {
            let (least, most) = (used.clone().min().unwrap(), used.max().unwrap());
            prop_assert!(most - least <= 1, "{shares:?}");
        }
        // 3. Whole cores: of a core that a rank has, it has all that is allowed.
        if ranks <= cores.len() {
            for share in &shares {
                let mine: BTreeSet<Seat> = share.iter().map(|n| seat(*n)).collect();
                let whole = allowed.iter().filter(|(_, seat)| mine.contains(seat)).count();
                prop_assert_eq!(whole, share.len(), "{:?}", share);
            }
        }
        // 4. One node each, unless there are nodes to spare and no room on any.
        let of = |node: usize| cores.iter().filter(|seat| seat.node == node).count();
        if ranks >= nodes.len() || nodes.iter().filter(|n| of(**n) >= threads).count() >= ranks {
            for share in &shares {
                let nodes: BTreeSet<usize> = share.iter().map(|n| seat(*n).node).collect();
                prop_assert_eq!(nodes.len(), 1, "{:?}", share);
            }
        }
        // 5. Evenly over the nodes, where each has room.
        if nodes.iter().all(|node| of(*node) >= ranks.div_ceil(nodes.len()) * threads) {
            let ranks_on =
                |node: &usize| shares.iter().filter(|share| seat(share[0]).node == *node).count();
            let (least, most) =
                (nodes.iter().map(ranks_on).min().unwrap(), nodes.iter().map(ranks_on).max().unwrap());
            prop_assert!(most - least <= 1, "{shares:?}");
        }
        // Nothing lies idle where every node has a rank.
        if threads == 1 && (nodes.len()..=numbers.len()).contains(&ranks) {
            prop_assert_eq!(shares.concat().len(), numbers.len(), "{:?}", shares);
        }
    }
}
