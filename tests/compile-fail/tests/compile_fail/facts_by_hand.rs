//! Facts that no exchange made.
#![allow(unused, unreachable_code)]
use crossover_core::facts::{GroupFacts, GroupProfile, RankReport};

fn facts(reports: Vec<RankReport>, profile: GroupProfile) -> GroupFacts {
    GroupFacts { reports, profile }
}

fn main() {}
