//! Groups that no policy tells apart, as one.

use std::collections::HashMap;

use crossover_core::facts::{GroupProfile, HOST_ARCH};

use super::book::Book;
use super::worlds::sizes_follow_world;

/// Groups that are alike in every decision.
pub(crate) struct GroupClass {
    /// The first of them.
    pub(crate) profile: GroupProfile,
    /// All of them.
    pub(crate) members: Vec<GroupProfile>,
    /// By book and rule: does it match them?
    pub(crate) rules: Vec<Vec<bool>>,
}

pub(super) fn classes(
    books: &[&Book<'_>],
    groups: impl Iterator<Item = GroupProfile>,
) -> Vec<GroupClass> {
    let world_counts = sizes_follow_world(books.iter().flat_map(|book| book.rules));
    let mut classes: Vec<GroupClass> = Vec::new();
    let mut by_vector = HashMap::new();
    for group in groups {
        let rules: Vec<Vec<bool>> = books.iter().map(|b| b.rules_for_group(&group)).collect();
        let takes: Vec<bool> = books
            .iter()
            .flat_map(|b| &b.known)
            .map(|k| k.algorithm.eligibility.failing_group(&group).is_none())
            .collect();
        let world = if world_counts { group.world } else { 0 };
        let vector = (rules.clone(), takes, world, group.arch == HOST_ARCH);
        match by_vector.get(&vector) {
            Some(&at) => {
                let class: &mut GroupClass = &mut classes[at];
                class.members.push(group);
            }
            None => {
                by_vector.insert(vector, classes.len());
                classes.push(GroupClass { profile: group.clone(), members: vec![group], rules });
            }
        }
    }
    classes
}
