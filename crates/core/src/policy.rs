//! A policy: which backends are tried for which calls, in what order, within which sizes. This is
//! what files are parsed into (`crossover-policy`); it knows neither files nor their syntax.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::backend::{Param, Values};
use crate::bytes::size_text;
use crate::call::{CallKind, Dtypes, Modes, Op, Ops, ReduceOps};
use crate::contract::Contract;
use crate::digest::{Digest, digest};
use crate::facts::{Caches, Caps, GroupProfile, Topologies};
use crate::vocabulary::vocabulary;

vocabulary! { "layer",
    /// Where a rule comes from, weakest first: a rule of a later layer goes before.
    pub enum Layer in Layers {
        /// Compiled in: the floor.
        Builtin = "builtin",
        /// Shipped for an architecture.
        Pack = "pack",
        /// The node's own files.
        Site = "site",
        /// Written by the tuner.
        Tuned = "tuned",
        /// The user's file.
        User = "user",
        /// Environment verbs.
        Env = "env",
        /// The program's own choice.
        Program = "program",
    }
}

/// A whole policy, in force for a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    /// The policy's side of the contract.
    pub contract: Contract,
    rules: Vec<Rule>,
}

/// For which groups and calls, a chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// Its name, unique in a policy.
    pub id: String,
    /// Which layer it stands in.
    pub layer: Layer,
    /// Where it is written.
    pub origin: Origin,
    /// Higher goes first, within a layer.
    pub priority: i32,
    /// Nothing after this rule is tried.
    pub last: bool,
    /// A group that it is for and that cannot have every backend of its chain is not formed: a
    /// choice that somebody insists on (the verb `use`) is never replaced in silence.
    pub forced: bool,
    /// For which groups and calls.
    pub when: Match,
    /// What is tried, in this order.
    pub chain: Vec<Candidate>,
    /// Where its numbers come from; people read it, and no decision depends on it.
    pub evidence: Option<Evidence>,
}

vocabulary! { "kind of evidence",
    /// What a rule's numbers rest on.
    pub enum EvidenceKind in EvidenceKinds {
        /// Nothing: the shape of a chain, without numbers.
        Default = "default",
        /// Another system's numbers.
        Ported = "ported",
        /// Measurements, read by a person.
        Measured = "measured",
        /// Measurements, read by the tuner.
        Tuned = "tuned",
    }
}

/// Where a rule's numbers come from.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// On what they rest.
    pub kind: Option<EvidenceKind>,
    /// The rest, by key, as the file has it: `("device", "B200")`.
    pub facts: Vec<(String, String)>,
}

impl Evidence {
    /// What is said under a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.facts.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
    }
}

impl fmt::Display for Evidence {
    /// `measured: device B200, world 4`; a note stands for itself.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.facts.iter().map(|(key, value)| match key.as_str() {
            "note" => value.clone(),
            _ => format!("{key} {value}"),
        });
        let words = words.collect::<Vec<_>>().join(", ");
        match self.kind {
            Some(kind) if words.is_empty() => write!(f, "{kind}"),
            Some(kind) => write!(f, "{kind}: {words}"),
            None => f.write_str(&words),
        }
    }
}

/// A place in a file, or where else a rule was given.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Origin {
    /// Path of the file, or words such as `builtin` or `--use`.
    pub file: String,
    /// Line, from 1; 0 where there is none.
    pub line: u32,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}

/// The groups and calls that a rule is for. An absent key constrains nothing.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Match {
    /// Architectures, exact or a family such as `sm10x`.
    pub arch: Option<Vec<String>>,
    /// Device names.
    pub device: Option<Vec<String>>,
    /// Group sizes, as inclusive ranges.
    pub world: Option<Vec<(u32, u32)>>,
    /// Numbers of nodes, as inclusive ranges.
    pub nodes: Option<Vec<(u32, u32)>>,
    /// Topologies.
    pub topology: Option<Topologies>,
    /// Group tags.
    pub group: Option<Vec<String>>,
    /// Capabilities that the group must have.
    pub caps: Option<Caps>,
    /// Collectives.
    pub op: Option<Ops>,
    /// Element types.
    pub dtype: Option<Dtypes>,
    /// Reduce ops; a collective that only copies matches whatever is written.
    pub reduce_op: Option<ReduceOps>,
    /// Modes.
    pub mode: Option<Modes>,
}

/// One position in a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// Backend id.
    pub backend: String,
    /// One of its algorithms; all, in the backend's own order, if `None`.
    pub algorithm: Option<String>,
    /// For which sizes.
    pub bytes: ByteRange,
    /// Which bytes those are.
    pub basis: Basis,
    /// Legal to name even where the program does not know the backend.
    pub optional: bool,
    /// Params that it sets, by name, in the order of the file.
    pub params: Vec<(String, ParamValue)>,
}

impl Candidate {
    /// What a session receives for a param of its algorithm. A value that the param cannot be leaves
    /// it at its default.
    pub(crate) fn param(&self, param: &Param, group: &GroupProfile) -> u64 {
        let stated = self.params.iter().find(|(name, _)| name == param.name);
        let stated = stated.and_then(|(_, value)| value.resolve(param, group.world, group.caches));
        stated.unwrap_or(param.default)
    }
}

/// The value that a policy gives to a [`Param`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ParamValue {
    /// `16`
    Count(u64),
    /// `"128/world"`: divided by the number of ranks, rounded down.
    PerWorld(u64),
    /// `"64KiB"`
    Bytes(u64),
    /// `"llc/4"` or `"l2/4/world"`: a share of a cache of the group's processors.
    Cache {
        /// Which one.
        level: CacheLevel,
        /// 4; 1 for the whole cache.
        parts: u64,
        /// Divided by the number of ranks too.
        per_world: bool,
    },
    /// `"ring"`
    Word(String),
    /// `true`
    Flag(bool),
}

vocabulary! { "cache",
    /// A cache of a processor.
    pub enum CacheLevel in CacheLevels {
        /// The second level, of its own.
        L2 = "l2",
        /// The last level, which processors share.
        Llc = "llc",
    }
}

impl fmt::Display for ParamValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParamValue::Count(count) => write!(f, "{count}"),
            ParamValue::PerWorld(count) => write!(f, "{count}/world"),
            ParamValue::Bytes(bytes) => f.write_str(&size_text(*bytes)),
            ParamValue::Cache { level, parts, per_world } => {
                f.write_str(level.name())?;
                if *parts != 1 {
                    write!(f, "/{parts}")?;
                }
                f.write_str(if *per_world { "/world" } else { "" })
            }
            ParamValue::Word(word) => f.write_str(word),
            ParamValue::Flag(yes) => write!(f, "{yes}"),
        }
    }
}

impl ParamValue {
    /// What a session receives for it in a group of `world` ranks whose processors have these
    /// caches; `None` if the param cannot be that, or where the cache is not known.
    pub fn resolve(&self, param: &Param, world: u32, caches: Caches) -> Option<u64> {
        match (self, param.values) {
            (ParamValue::Count(n), Values::Count { min, max })
            | (ParamValue::Bytes(n), Values::Bytes { min, max }) => {
                (min <= *n && *n <= max).then_some(*n)
            }
            (ParamValue::Cache { level, parts, per_world }, Values::Bytes { min, max }) => {
                let whole = match level {
                    CacheLevel::L2 => caches.l2,
                    CacheLevel::Llc => caches.llc,
                };
                let ranks = if *per_world { u64::from(world) } else { 1 };
                (whole > 0).then(|| (whole / parts / ranks).clamp(min, max))
            }
            // A share that no group of this size can have is the nearest that it can.
            (ParamValue::PerWorld(n), Values::Count { min, max }) => {
                Some((n / u64::from(world)).clamp(min, max))
            }
            (ParamValue::Word(word), Values::Bytes { max: u64::MAX, .. }) if word == "none" => {
                Some(u64::MAX)
            }
            (ParamValue::Word(word), Values::Words(words)) => {
                words.iter().position(|w| w == word).map(|at| at as u64)
            }
            (ParamValue::Flag(yes), Values::Flag) => Some(u64::from(*yes)),
            _ => None,
        }
    }
}

impl Candidate {
    /// As policies write it: `host` or `host/one_shot`.
    pub fn target(&self) -> String {
        match &self.algorithm {
            Some(algorithm) if !algorithm.is_empty() => format!("{}/{algorithm}", self.backend),
            // Of all its algorithms, or of the one without a name.
            _ => self.backend.clone(),
        }
    }
}

/// Which bytes a range is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Input bytes per rank.
    Input,
    /// Output bytes per rank.
    Output,
}

/// A half-open range of byte counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ByteRange {
    /// First size inside.
    pub low: u64,
    /// First size beyond; `None` is no bound.
    pub high: Option<u64>,
}

impl ByteRange {
    /// Every size.
    pub const ANY: ByteRange = ByteRange { low: 0, high: None };

    /// Is this size inside?
    pub const fn contains(self, bytes: u64) -> bool {
        let below = match self.high {
            Some(high) => bytes < high,
            None => true,
        };
        self.low <= bytes && below
    }

    /// A range of input or output bytes, as input bytes per rank of an op in a group of `world`: a
    /// size is inside this range if its input bytes are inside the result. `world` is not 0.
    #[must_use]
    pub fn of_input(self, basis: Basis, op: Op, world: u32) -> ByteRange {
        let world = u64::from(world);
        let convert = |bytes: u64| match (basis, op) {
            (Basis::Output, Op::AllGather) => bytes.div_ceil(world),
            (Basis::Output, Op::ReduceScatter) => bytes.saturating_mul(world),
            _ => bytes,
        };
        ByteRange { low: convert(self.low), high: self.high.map(convert) }
    }
}

impl Policy {
    /// Sorts the rules by precedence: layer, then priority, then the number of constrained keys;
    /// among equals, the order given.
    pub fn new(contract: Contract, mut rules: Vec<Rule>) -> Self {
        rules.sort_by_key(|r| std::cmp::Reverse((r.layer, r.priority, r.when.constrained())));
        Policy { contract, rules }
    }

    /// The rules, in the order in which they are tried.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The digest over everything that decides; files and lines are not in it.
    pub fn digest(&self) -> Digest {
        let rules: Vec<Digest> = self.rules.iter().map(Rule::digest).collect();
        digest(&(self.contract, rules))
    }
}

impl Rule {
    /// The digest over everything that decides.
    pub fn digest(&self) -> Digest {
        digest(&(
            (&self.id, self.layer, self.priority, self.last, self.forced),
            (&self.when, &self.chain),
        ))
    }
}

impl Match {
    /// How many keys are constrained.
    pub fn constrained(&self) -> usize {
        self.keys().iter().filter(|(_, constrained)| *constrained).count()
    }

    fn keys(&self) -> [(&'static str, bool); 11] {
        [
            ("op", self.op.is_some()),
            ("arch", self.arch.is_some()),
            ("device", self.device.is_some()),
            ("world", self.world.is_some()),
            ("nodes", self.nodes.is_some()),
            ("topology", self.topology.is_some()),
            ("group", self.group.is_some()),
            ("caps", self.caps.is_some()),
            ("dtype", self.dtype.is_some()),
            ("reduce_op", self.reduce_op.is_some()),
            ("mode", self.mode.is_some()),
        ]
    }

    /// The first key that this group and call do not meet. Pure, and free of allocation.
    pub fn failing(&self, group: &GroupProfile, call: &CallKind) -> Option<&'static str> {
        let [op, dtype, reduce_op, mode] = self.missed_by_call(call);
        let [arch, device, world, nodes, topology, tag, caps] = self.missed_by_group(group);
        let missed = [op, arch, device, world, nodes, topology, tag, caps, dtype, reduce_op, mode];
        missed.iter().position(|missed| *missed).map(|at| self.keys()[at].0)
    }

    /// Does this group meet all keys that are about groups?
    pub(crate) fn fits_group(&self, group: &GroupProfile) -> bool {
        !self.missed_by_group(group).contains(&true)
    }

    /// Does this call meet all keys that are about calls?
    pub(crate) fn fits_call(&self, call: &CallKind) -> bool {
        !self.missed_by_call(call).contains(&true)
    }

    fn missed_by_group(&self, group: &GroupProfile) -> [bool; 7] {
        let within =
            |ranges: &Vec<(u32, u32)>, n| ranges.iter().any(|(a, b)| (*a..=*b).contains(&n));
        [
            misses(&self.arch, |list| list.iter().any(|a| arch_matches(a, &group.arch))),
            misses(&self.device, |list| list.iter().any(|d| device_matches(d, &group.device))),
            misses(&self.world, |ranges| within(ranges, group.world)),
            misses(&self.nodes, |ranges| within(ranges, group.nodes)),
            misses(&self.topology, |set| set.contains(group.topology)),
            misses(&self.group, |list| list.contains(&group.tag)),
            misses(&self.caps, |set| group.caps.covers(*set)),
        ]
    }

    fn missed_by_call(&self, call: &CallKind) -> [bool; 4] {
        [
            misses(&self.op, |set| set.contains(call.op)),
            misses(&self.dtype, |set| set.contains(call.dtype)),
            misses(&self.reduce_op, |set| !call.op.reduces() || set.contains(call.reduce_op)),
            misses(&self.mode, |set| set.contains(call.mode)),
        ]
    }
}

fn misses<T>(key: &Option<T>, meets: impl FnOnce(&T) -> bool) -> bool {
    key.as_ref().is_some_and(|key| !meets(key))
}

/// Does a device match what a policy writes: is each of the words, in any case, in the device's
/// name? `H200` is `NVIDIA H200`.
pub fn device_matches(written: &str, device: &str) -> bool {
    let has = |word: &str| device.split_whitespace().any(|w| w.eq_ignore_ascii_case(word));
    match written.split_whitespace().next() {
        Some(_) => written.split_whitespace().all(has),
        None => device.trim().is_empty(),
    }
}

/// Does an architecture match what a policy writes: exactly, or as a family (`sm10x`)? Features that
/// follow an architecture's name (`gfx942:sramecc+:xnack-`) count only where the policy writes some.
pub fn arch_matches(pattern: &str, arch: &str) -> bool {
    let arch = match arch.split_once(':') {
        Some((name, _)) if !pattern.contains(':') => name,
        _ => arch,
    };
    match pattern.strip_suffix('x') {
        Some(family) if family.ends_with(|c: char| c.is_ascii_digit()) => {
            arch.len() == pattern.len() && arch.starts_with(family)
        }
        _ => pattern == arch,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_caches_are_resolved_with_what_the_group_has() {
        const BYTES: Param =
            Param { name: "stream", values: Values::Bytes { min: 64, max: u64::MAX }, default: 7 };
        let caches = Caches { l2: 2 << 20, llc: 300 << 20 };
        let share = |level, parts, per_world| ParamValue::Cache { level, parts, per_world };
        let cases = [
            (share(CacheLevel::L2, 1, false), Some(2 << 20), "l2"),
            (share(CacheLevel::L2, 2, false), Some(1 << 20), "l2/2"),
            (share(CacheLevel::Llc, 3, true), Some(25 << 20), "llc/3/world"),
            (share(CacheLevel::L2, 1 << 40, false), Some(64), "l2/1099511627776"),
            (ParamValue::Bytes(4096), Some(4096), "4KiB"),
            (ParamValue::Bytes(63), None, "63B"),
            (ParamValue::Word("none".to_owned()), Some(u64::MAX), "none"),
            (ParamValue::Count(4096), None, "4096"),
        ];
        for (value, expected, text) in cases {
            assert_eq!(value.resolve(&BYTES, 4, caches), expected, "{value}");
            assert_eq!(value.to_string(), text);
        }
        let unknown = share(CacheLevel::L2, 1, false).resolve(&BYTES, 4, Caches::default());
        assert_eq!(unknown, None, "the default holds");
    }
}
