//! One clique, or who is not in it.

use crossover_device::topology::fabric::{Fabric, Member, State, common};
use crossover_device::topology::mesh::{Reach, across};
use proptest::prelude::*;

use crate::machines::{clique, gpu};

fn member(rank: u32, fabric: Option<Fabric>) -> Member {
    Member { rank, host: format!("node{}", rank / 2), uuid: gpu(rank), fabric }
}

fn members(cliques: &[u32]) -> Vec<Member> {
    (0..).zip(cliques).map(|(rank, number)| member(rank, clique(*number))).collect()
}

#[test]
fn one_clique_is_common() {
    let found = common(&members(&[7, 7, 7, 7])).unwrap();
    assert_eq!((found.clique, found.cluster.len()), (7, 32));
}

#[test]
fn the_odd_rank_is_named_with_all_that_it_says() {
    let error = common(&members(&[7, 7, 7, 9])).unwrap_err();
    assert_eq!(error.odd.iter().map(|member| member.rank).collect::<Vec<_>>(), [3]);
    let cluster = "0123456789abcdef0123456789abcdef";
    assert_eq!(
        error.to_string(),
        format!(
            "no common NVLink fabric: rank 3 ({} on node1): clique 9 of cluster {cluster}, \
             registration completed; but rank 0 ({} on node0): clique 7 of cluster {cluster}, \
             registration completed",
            gpu(3),
            gpu(0)
        )
    );
}

#[test]
fn rank_0_may_be_the_odd_one() {
    let error = common(&members(&[9, 7, 7, 7])).unwrap_err();
    assert_eq!(error.odd[0].rank, 0);
    assert_eq!(error.most.unwrap().rank, 1);
    // Of two halves, it is the one without rank 0 that is odd.
    let error = common(&members(&[9, 7, 9, 7])).unwrap_err();
    assert_eq!(error.odd.iter().map(|member| member.rank).collect::<Vec<_>>(), [1, 3]);
}

#[test]
fn a_clique_of_another_cluster_is_another() {
    let mut all = members(&[7, 7, 7]);
    all[1].fabric.as_mut().unwrap().cluster = "f".repeat(32);
    assert_eq!(common(&all).unwrap_err().odd[0].rank, 1);
}

#[test]
fn who_has_not_joined_is_not_there() {
    for (state, status, cluster) in [
        (State::InProgress, 0, "1"),
        (State::NotStarted, 0, "1"),
        (State::NotSupported, 0, "1"),
        (State::Unknown, 0, "1"),
        (State::Completed, 999, "1"),
        (State::Completed, 0, "0"),
    ] {
        let mut all = members(&[7, 7]);
        let fabric = Fabric { cluster: cluster.repeat(32), clique: 7, state, status, health: 0 };
        all[1].fabric = Some(fabric.clone());
        assert!(!fabric.is_joined());
        assert_eq!(common(&all).unwrap_err().odd[0].rank, 1);
        // Nobody has joined: all are said.
        all[0].fabric = None;
        let error = common(&all).unwrap_err();
        assert_eq!((error.odd.len(), &error.most), (2, &None));
        assert!(error.to_string().contains("rank 0") && error.to_string().contains("no fabric"));
    }
    let error = common(&[]).unwrap_err().to_string();
    assert_eq!(error, "no common NVLink fabric: nobody is there");
}

#[test]
fn nodes_are_joined_by_one_clique_or_by_a_network() {
    let found = across(2, &members(&[7, 7]));
    assert_eq!((found.reach, found.reach.class()), (Reach::Mnnvl, "mnnvl"));
    // Two ranks on two nodes are no pair of one node.
    let found = across(2, &[member(0, None), member(2, None)]);
    assert_eq!((found.reach, found.reach.class()), (Reach::MultiNode, "multi_node"));
    assert!(found.why.starts_with("spans 2 nodes: no common NVLink fabric: rank 0"), "{found}");
}

#[test]
fn degraded_bandwidth_is_a_bit_of_the_health() {
    let health = |health| Fabric { health, ..clique(7).unwrap() }.is_degraded();
    assert_eq!([health(0), health(1), health(2), health(0b1001)], [false, true, false, true]);
}

proptest! {
    /// Every rank gets the same answer, in whatever order it holds the members; and the odd ones
    /// are never most.
    #[test]
    fn the_answer_is_the_same_everywhere(cliques in prop::collection::vec(0_u32..3, 1..9)) {
        let all = members(&cliques);
        let mut turned = all.clone();
        turned.reverse();
        let found = common(&all);
        prop_assert_eq!(&found, &common(&turned));
        match found {
            Ok(found) => prop_assert!(cliques.iter().all(|number| *number == found.clique)),
            Err(error) => {
                let home = error.most.unwrap().fabric.unwrap().clique;
                let size = |number| cliques.iter().filter(|c| **c == number).count();
                prop_assert_eq!(error.odd.len(), cliques.len() - size(home));
                prop_assert!((0..3).all(|number| size(number) <= size(home)));
            }
        }
    }
}
