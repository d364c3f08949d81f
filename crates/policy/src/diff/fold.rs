//! Many small differences to few lines: what is alike over element types, modes, worlds and groups
//! stands in one.

use std::collections::{BTreeMap, BTreeSet};

use crossover_core::call::{Dtype, Dtypes, Mode, Modes, Op, ReduceOp, ReduceOps};
use crossover_core::facts::{GroupProfile, Topology};

use super::{Change, Multiples, Under};
use crate::domain::{CallClass, GroupClass};

/// A difference, but for where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct What {
    pub(super) op: Op,
    pub(super) from: u64,
    pub(super) to: Option<u64>,
    pub(super) multiples: Multiples,
    pub(super) under: Under,
    pub(super) old: Option<String>,
    pub(super) new: Option<String>,
}

/// All differences so far.
#[derive(Default)]
pub(super) struct Pieces {
    /// Every group that was looked at.
    seen: BTreeSet<Where>,
    /// By difference and group: the kinds of calls.
    of_group: BTreeMap<What, BTreeMap<Where, Kinds>>,
}

type Kinds = BTreeSet<(ReduceOp, Mode, Dtype)>;

impl Pieces {
    /// Notes the groups of a domain, whose runs of worlds begin at these.
    pub(super) fn see(&mut self, groups: &[GroupClass], worlds: &[u32]) {
        let members = groups.iter().flat_map(|class| &class.members);
        self.seen.extend(members.map(|group| Where::of(group, worlds)));
    }

    /// Adds what differs in a class of groups and a class of calls.
    pub(super) fn add(
        &mut self,
        changes: Vec<What>,
        group: &GroupClass,
        call: &CallClass,
        worlds: &[u32],
    ) {
        for what in changes {
            let of_group = self.of_group.entry(what).or_default();
            for member in &group.members {
                let kinds = of_group.entry(Where::of(member, worlds)).or_default();
                kinds.extend(call.members.iter().map(|k| (k.reduce_op, k.mode, k.dtype)));
            }
        }
    }

    /// The lines, by op, groups and sizes.
    pub(super) fn changes(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        for (what, of_group) in &self.of_group {
            let mut by_kinds: BTreeMap<&Kinds, Vec<Where>> = BTreeMap::new();
            for (place, kinds) in of_group {
                by_kinds.entry(kinds).or_default().push(place.clone());
            }
            for (kinds, places) in by_kinds {
                for place in merged(places, &self.seen) {
                    let groups = place.in_words();
                    for row in rows(kinds) {
                        changes.push(what.on(&groups, row));
                    }
                }
            }
        }
        changes.sort_by(|a, b| {
            let key = |c: &Change| (c.op, c.groups.clone(), c.dtypes.to_string(), c.from);
            key(a).cmp(&key(b))
        });
        changes
    }
}

impl What {
    fn on(&self, groups: &str, (reduce_ops, modes, dtypes): (ReduceOps, Modes, Dtypes)) -> Change {
        let What { op, from, to, multiples, under, old, new } = self.clone();
        let reduce_ops = if op.reduces() { reduce_ops } else { ReduceOps::ALL };
        let groups = groups.to_owned();
        let under = under.contract();
        Change { groups, op, dtypes, modes, reduce_ops, from, to, multiples, under, old, new }
    }
}

/// Kinds of calls as products of sets.
fn rows(kinds: &Kinds) -> Vec<(ReduceOps, Modes, Dtypes)> {
    let mut dtypes: BTreeMap<(ReduceOp, Mode), Dtypes> = BTreeMap::new();
    for &(reduce_op, mode, dtype) in kinds {
        let set = dtypes.entry((reduce_op, mode)).or_default();
        *set = set.union(Dtypes::of(&[dtype]));
    }
    let mut of_modes: Vec<(ReduceOp, Modes, Dtypes)> = Vec::new();
    for ((reduce_op, mode), dtypes) in dtypes {
        let mode = Modes::of(&[mode]);
        match of_modes.iter_mut().find(|(r, _, d)| *r == reduce_op && *d == dtypes) {
            Some((_, modes, _)) => *modes = modes.union(mode),
            None => of_modes.push((reduce_op, mode, dtypes)),
        }
    }
    let mut rows: Vec<(ReduceOps, Modes, Dtypes)> = Vec::new();
    for (reduce_op, modes, dtypes) in of_modes {
        let reduce_op = ReduceOps::of(&[reduce_op]);
        match rows.iter_mut().find(|(_, m, d)| *m == modes && *d == dtypes) {
            Some((reduce_ops, ..)) => *reduce_ops = reduce_ops.union(reduce_op),
            None => rows.push((reduce_op, modes, dtypes)),
        }
    }
    rows
}

/// Groups, as a product of what each key can be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Where {
    archs: BTreeSet<String>,
    topologies: BTreeSet<Topology>,
    /// Runs of worlds, with no end where there is none.
    worlds: BTreeSet<(u32, Option<u32>)>,
    /// From here on: none where all that can be are meant.
    nodes: BTreeSet<u32>,
    caps: BTreeSet<String>,
    tags: BTreeSet<String>,
    devices: BTreeSet<String>,
}

impl Where {
    /// A group that stands for the run of worlds that its own begins.
    fn of(group: &GroupProfile, starts: &[u32]) -> Where {
        let next = starts.iter().find(|start| **start > group.world);
        // A group that somebody stated stands for itself alone.
        let end = match starts.contains(&group.world) {
            true => next.map(|next| next - 1),
            false => Some(group.world),
        };
        // The one without a name stands for all that no rule names.
        let device = if group.device.is_empty() { "any other" } else { &group.device };
        Where {
            archs: BTreeSet::from([group.arch.clone()]),
            topologies: BTreeSet::from([group.topology]),
            worlds: BTreeSet::from([(group.world, end)]),
            nodes: BTreeSet::from([group.nodes]),
            caps: BTreeSet::from([group.caps.to_string()]),
            tags: BTreeSet::from([group.tag.clone()]),
            devices: BTreeSet::from([device.to_owned()]),
        }
    }

    /// Empties what makes no difference: the keys that here are all that they can be, on this
    /// architecture and topology.
    fn widened(mut self, seen: &BTreeSet<Where>) -> Where {
        let beside: Vec<&Where> = seen
            .iter()
            .filter(|w| w.archs == self.archs && w.topologies == self.topologies)
            .collect();
        if beside.iter().all(|w| w.nodes.is_subset(&self.nodes)) {
            self.nodes.clear();
        }
        if beside.iter().all(|w| w.caps.is_subset(&self.caps)) {
            self.caps.clear();
        }
        if beside.iter().all(|w| w.tags.is_subset(&self.tags)) {
            self.tags.clear();
        }
        if beside.iter().all(|w| w.devices.is_subset(&self.devices)) {
            self.devices.clear();
        }
        self
    }

    /// `sm90 x2..=8 nvlink_full`; `|` between what is alike.
    fn in_words(&self) -> String {
        let list =
            |set: &BTreeSet<String>| set.iter().map(String::as_str).collect::<Vec<_>>().join("|");
        let topologies: Vec<&str> = self.topologies.iter().map(|t| t.name()).collect();
        let worlds: Vec<String> = self.worlds.iter().map(world_words).collect();
        let nodes: BTreeSet<String> = self.nodes.iter().map(u32::to_string).collect();
        let caps = self.caps.iter().map(|caps| caps.replace(", ", "+")).collect();
        let mut words =
            format!("{} x{} {}", list(&self.archs), worlds.join(","), topologies.join("|"));
        let rest =
            [("nodes", &nodes), ("caps", &caps), ("group", &self.tags), ("device", &self.devices)];
        for (key, set) in rest.into_iter().filter(|(_, set)| !set.is_empty()) {
            words += &format!(", {key} {}", list(set));
        }
        words
    }
}

fn world_words((low, high): &(u32, Option<u32>)) -> String {
    match high {
        Some(high) if low == high => low.to_string(),
        Some(high) => format!("{low}..={high}"),
        None => format!("{low}.."),
    }
}

/// Joins groups that differ in one key alone, key by key.
fn merged(places: Vec<Where>, seen: &BTreeSet<Where>) -> Vec<Where> {
    let places = merged_by(places, |w| &mut w.worlds);
    let places = places.into_iter().map(|mut w| {
        w.worlds = joined(&w.worlds);
        w
    });
    let places = merged_by(places.collect(), |w| &mut w.nodes);
    let places = merged_by(places, |w| &mut w.caps);
    let places = merged_by(places, |w| &mut w.tags);
    let places = merged_by(places, |w| &mut w.devices);
    let places = places.into_iter().map(|place| place.widened(seen)).collect();
    let places = merged_by(places, |w| &mut w.topologies);
    merged_by(places, |w| &mut w.archs)
}

fn merged_by<T: Ord + Clone>(
    places: Vec<Where>,
    key: fn(&mut Where) -> &mut BTreeSet<T>,
) -> Vec<Where> {
    let mut by_rest: BTreeMap<Where, BTreeSet<T>> = BTreeMap::new();
    for mut place in places {
        let own = std::mem::take(key(&mut place));
        by_rest.entry(place).or_default().extend(own);
    }
    let whole = by_rest.into_iter().map(|(mut place, set)| {
        *key(&mut place) = set;
        place
    });
    whole.collect()
}

/// Runs that touch, as one.
fn joined(runs: &BTreeSet<(u32, Option<u32>)>) -> BTreeSet<(u32, Option<u32>)> {
    let mut joined: Vec<(u32, Option<u32>)> = Vec::new();
    for &(low, high) in runs {
        match joined.last_mut() {
            Some((_, end)) if end.is_some_and(|end| low <= end + 1) => *end = high,
            _ => joined.push((low, high)),
        }
    }
    joined.into_iter().collect()
}
