//! What to put for each key of a group: every value that a policy or a backend tells apart, and one
//! that none does.

use std::collections::BTreeSet;

use crossover_core::facts::{Cap, Caps, GroupProfile, HOST_ARCH, Topology};
use crossover_core::policy::{Match, Rule, arch_matches};

use super::Laws;
use super::book::Book;
use super::worlds::worlds;

/// The largest group and the most nodes that are looked at.
pub(super) const MOST_RANKS: u32 = 1024; // size: ranks, not bytes

/// The values of each key, the simplest first.
pub(crate) struct Values {
    archs: Vec<String>,
    devices: Vec<String>,
    /// The first world of each run of worlds that are alike.
    pub(crate) worlds: Vec<u32>,
    nodes: Vec<u32>,
    tags: Vec<String>,
}

impl Values {
    /// What these books tell apart; the architectures are given.
    pub(crate) fn new(books: &[&Book<'_>], archs: Vec<String>) -> Values {
        let rules: Vec<&Rule> = books.iter().flat_map(|book| book.rules).collect();
        let named = |key: fn(&Match) -> &Option<Vec<String>>| {
            let lists = rules.iter().filter_map(|rule| key(&rule.when).as_ref());
            lists.flatten().cloned().collect::<BTreeSet<String>>()
        };
        Values {
            archs,
            devices: with_another(named(|when| &when.device), ["", "another device"]),
            worlds: worlds(books),
            nodes: nodes(&rules),
            tags: with_another(named(|when| &when.group), ["world", "another group"]),
        }
    }

    /// Every group that can be, made of these values.
    pub(super) fn groups(&self, laws: &Laws) -> impl Iterator<Item = GroupProfile> {
        self.archs
            .iter()
            .flat_map(move |arch| {
                TOPOLOGIES.iter().flat_map(move |&topology| {
                    self.worlds.iter().flat_map(move |&world| {
                        self.nodes.iter().flat_map(move |&nodes| {
                            CAPS.iter().flat_map(move |&caps| {
                                self.tags.iter().flat_map(move |tag| {
                                    self.devices.iter().map(move |device| GroupProfile {
                                        arch: arch.clone(),
                                        device: device.clone(),
                                        world,
                                        nodes,
                                        topology,
                                        tag: tag.clone(),
                                        caps,
                                        caches: Default::default(),
                                    })
                                })
                            })
                        })
                    })
                })
            })
            .filter(|group| laws.allow(group))
    }
}

/// The most usual first, since messages name the first group that shows something.
const TOPOLOGIES: [Topology; 7] = [
    Topology::Host,
    Topology::NvlinkFull,
    Topology::XgmiFull,
    Topology::Pcie,
    Topology::NvlinkPartial,
    Topology::Mnnvl,
    Topology::MultiNode,
];
const CAPS: [Caps; 4] = [Caps::of(&[Cap::P2p]), Caps::ALL, Caps::NONE, Caps::of(&[Cap::Multicast])];

/// The architectures that these rules name, members of the families that they name, `more`, and
/// of each vendor one that no rule names.
pub(crate) fn architectures(rules: &[&Rule], more: &[&str]) -> Vec<String> {
    let patterns: BTreeSet<&str> = rules
        .iter()
        .filter_map(|rule| rule.when.arch.as_ref())
        .flatten()
        .map(String::as_str)
        .collect();
    let exact = patterns.iter().filter(|p| !p.ends_with('x')).copied().chain(more.iter().copied());
    let mut archs: BTreeSet<String> = exact.map(str::to_owned).collect();
    let families = patterns.iter().filter_map(|p| Some((p, p.strip_suffix('x')?)));
    for (family, stem) in families {
        // A member that is named by the family alone.
        let members = (0..10).map(|digit| format!("{stem}{digit}"));
        let by_family =
            |arch: &String| !patterns.contains(arch.as_str()) && !more.contains(&&**arch);
        debug_assert!(members.clone().all(|m| arch_matches(family, &m)));
        archs.extend(members.into_iter().find(by_family));
    }
    let unnamed = |arch: &String| {
        !patterns.iter().any(|p| arch_matches(p, arch)) && !more.contains(&arch.as_str())
    };
    let usual = ["sm80", "sm86", "sm89", "sm120"].into_iter().map(str::to_owned);
    archs.extend(usual.chain((1..).map(|n| format!("sm{n}"))).find(unnamed));
    let usual = ["gfx90a", "gfx1100"].into_iter().map(str::to_owned);
    archs.extend(usual.chain((1..).map(|n| format!("gfx{n}"))).find(unnamed));
    archs.insert(HOST_ARCH.to_owned());
    let mut archs: Vec<String> = archs.into_iter().collect();
    archs
        .sort_by_key(|arch| (arch != HOST_ARCH, !arch.starts_with("sm"), arch.len(), arch.clone()));
    archs
}

/// The named ones behind one that is not named.
fn with_another(named: BTreeSet<String>, others: [&str; 2]) -> Vec<String> {
    let mut other = others[usize::from(named.contains(others[0]))].to_owned();
    while named.contains(&other) {
        other.push('\'');
    }
    std::iter::once(other).chain(named).collect()
}

fn nodes(rules: &[&Rule]) -> Vec<u32> {
    let mut starts = BTreeSet::from([1, 2]);
    starts.extend(starts_of(rules.iter().filter_map(|r| r.when.nodes.as_ref()).flatten()));
    starts.into_iter().filter(|nodes| (1..=MOST_RANKS).contains(nodes)).collect()
}

/// The first count inside each range, and the first beyond it.
pub(super) fn starts_of<'r>(
    ranges: impl Iterator<Item = &'r (u32, u32)>,
) -> impl Iterator<Item = u32> {
    ranges.flat_map(|(low, high)| [Some(*low), high.checked_add(1)]).flatten()
}
