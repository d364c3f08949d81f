//! Who may answer a call, as data. A backend states an [`Eligibility`]; it never writes the `if`.
//!
//! Data can be printed, hashed, compared between ranks, and explained to a person. It is a `const`
//! where a backend registers ([`register_backend!`](crate::register_backend)), so no environment
//! variable, clock, file, atomic or pointer can get into it and still compile.

use std::fmt;

use serde::Serialize;

use crate::call::{CallKind, Dtypes, Modes, Ops, ReduceOps};
use crate::contract::{Determinism, Deviation, Deviations, OrderClass};
use crate::facts::{Caps, GroupProfile, HOST_ARCH, Topologies};

/// Everything an algorithm can ever take. What only set-up can know (capacity) joins it as an
/// agreed number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Eligibility {
    /// Collectives.
    pub ops: Ops,
    /// Element types, whatever the collective.
    pub dtypes: Dtypes,
    /// Element types of calls that reduce: those must be among [`Self::dtypes`] as well.
    pub reduce_dtypes: Dtypes,
    /// Reduce ops, for collectives that reduce.
    pub reduce_ops: ReduceOps,
    /// Modes.
    pub modes: Modes,
    /// Group sizes.
    pub worlds: Worlds,
    /// Where tensors are.
    pub memory: Memory,
    /// One node, or any number.
    pub nodes: Nodes,
    /// Topologies.
    pub topologies: Topologies,
    /// Capabilities that the group must have.
    pub needs: Caps,
    /// Input bytes per rank must be a multiple of this power of two; 1 takes all.
    pub multiple_of: u64,
    /// Most input bytes per rank that any set-up can make room for; `u64::MAX` if any number.
    pub max_bytes: u64,
    /// In which order contributions are added.
    pub order: OrderClass,
    /// The most that can be demanded of the result of a reduction, and of a copy that deviates.
    pub determinism: Determinism,
    /// Deviations that the contract must accept.
    pub deviates: Deviations,
}

/// Group sizes that an algorithm takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Worlds {
    /// Bit `n - 1` for a group of `n`.
    bits: u64,
    /// Does it take groups of more than 64?
    beyond: bool,
}

impl Worlds {
    /// Any size.
    pub const ANY: Worlds = Worlds { bits: u64::MAX, beyond: true };

    /// From `low` to `high`, both included, at most 64.
    pub const fn range(low: u32, high: u32) -> Worlds {
        assert!(1 <= low && low <= high && high <= 64, "worlds are 1..=64");
        let upto_high = u64::MAX >> (64 - high);
        let below_low = (1u64 << (low - 1)) - 1;
        Worlds { bits: upto_high & !below_low, beyond: false }
    }

    /// These and `other`.
    pub const fn or(self, other: Worlds) -> Worlds {
        Worlds { bits: self.bits | other.bits, beyond: self.beyond || other.beyond }
    }

    /// Is a group of `world` taken?
    pub const fn contains(self, world: u32) -> bool {
        match world {
            1..=64 => self.bits & (1 << (world - 1)) != 0,
            _ => self.beyond && world > 64,
        }
    }
}

impl fmt::Display for Worlds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Worlds::ANY {
            return f.write_str("any");
        }
        let mut runs = Vec::new();
        let mut world = 1;
        while world <= 64 {
            if self.contains(world) {
                let low = world;
                while world < 64 && self.contains(world + 1) {
                    world += 1;
                }
                runs.push(if low == world { low.to_string() } else { format!("{low}..={world}") });
            }
            world += 1;
        }
        f.write_str(&runs.join(", "))
    }
}

/// Where a group's tensors are. Between nodes the topology does not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Memory {
    /// Anywhere that the topology allows.
    Any,
    /// In the host's memory.
    Host,
    /// On devices.
    Device,
}

impl Memory {
    fn is_of(self, group: &GroupProfile) -> bool {
        match self {
            Memory::Any => true,
            Memory::Host => group.arch == HOST_ARCH,
            Memory::Device => group.arch != HOST_ARCH,
        }
    }
}

/// How many nodes a group may span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Nodes {
    /// One or more.
    Any,
    /// Exactly one.
    One,
}

/// Names of clauses, in the order in which they are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Clause {
    /// The collective.
    Op,
    /// Where the tensors are.
    Memory,
    /// The topology.
    Topology,
    /// The number of nodes.
    Nodes,
    /// The group size.
    World,
    /// A capability that the group lacks.
    Caps,
    /// The mode.
    Mode,
    /// The element type.
    Dtype,
    /// The reduce op.
    ReduceOp,
    /// The contract demands more than the result gives.
    Determinism,
    /// The contract does not accept a deviation.
    Deviation,
    /// More bytes than set-up found room for.
    Capacity,
    /// Not a multiple.
    MultipleOf,
    /// Not linked into this program, or switched off.
    Presence,
    /// Set-up failed on some rank.
    Setup,
}

impl Clause {
    /// The word for messages.
    pub const fn name(self) -> &'static str {
        match self {
            Clause::Op => "op",
            Clause::Memory => "memory",
            Clause::Topology => "topology",
            Clause::Nodes => "nodes",
            Clause::World => "world",
            Clause::Caps => "caps",
            Clause::Mode => "mode",
            Clause::Dtype => "dtype",
            Clause::ReduceOp => "reduce_op",
            Clause::Determinism => "determinism",
            Clause::Deviation => "accept",
            Clause::Capacity => "capacity",
            Clause::MultipleOf => "multiple_of",
            Clause::Presence => "presence",
            Clause::Setup => "setup",
        }
    }
}

/// Why not: the first clause that failed, what it wants and what it got.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: wants {want}, got {got}", clause.name())]
pub struct Refusal {
    /// Which clause.
    pub clause: Clause,
    /// What it accepts.
    pub want: String,
    /// What the call or the group has.
    pub got: String,
}

impl Eligibility {
    /// Takes everything and meets every demand: for `..Eligibility::EVERYTHING`, after the clauses
    /// that an algorithm narrows.
    pub const EVERYTHING: Eligibility = Eligibility {
        ops: Ops::ALL,
        dtypes: Dtypes::ALL,
        reduce_dtypes: Dtypes::ALL,
        reduce_ops: ReduceOps::ALL,
        modes: Modes::ALL,
        worlds: Worlds::ANY,
        memory: Memory::Any,
        nodes: Nodes::Any,
        topologies: Topologies::ALL,
        needs: Caps::NONE,
        multiple_of: 1,
        max_bytes: u64::MAX,
        order: OrderClass::RankOrdered,
        determinism: Determinism::SizeInvariant,
        deviates: Deviations::NONE,
    };

    /// The first clause, but for [`Clause::MultipleOf`], that this group and call fail. Pure, and
    /// free of allocation. `bytes` is the call's input per rank, `capacity` the agreed number of
    /// input bytes that set-up found room for.
    pub fn failing(
        &self,
        group: &GroupProfile,
        call: &CallKind,
        bytes: u64,
        capacity: u64,
    ) -> Option<Clause> {
        let of_call = self.failing_call(call);
        if of_call == Some(Clause::Op) {
            return of_call;
        }
        let too_large = bytes > capacity.min(self.max_bytes);
        let of_size = too_large.then_some(Clause::Capacity);
        self.failing_group(group).or(of_call).or(of_size)
    }

    /// The first clause that this kind of call, with its contract, fails in any group and at any
    /// size.
    pub fn failing_call(&self, call: &CallKind) -> Option<Clause> {
        if !self.ops.contains(call.op) {
            Some(Clause::Op)
        } else if !self.modes.contains(call.mode) {
            Some(Clause::Mode)
        } else if !self.dtypes_of(call).contains(call.dtype) {
            Some(Clause::Dtype)
        } else if call.op.reduces() && !self.reduce_ops.contains(call.reduce_op) {
            Some(Clause::ReduceOp)
        } else {
            self.failing_contract(call)
        }
    }

    /// The first clause that no call of this group can meet.
    pub fn failing_group(&self, group: &GroupProfile) -> Option<Clause> {
        if !self.memory.is_of(group) {
            Some(Clause::Memory)
        } else if !self.topologies.contains(group.topology) {
            Some(Clause::Topology)
        } else if self.nodes == Nodes::One && group.nodes > 1 {
            Some(Clause::Nodes)
        } else if !self.worlds.contains(group.world) {
            Some(Clause::World)
        } else if !group.caps.covers(self.needs) {
            Some(Clause::Caps)
        } else {
            None
        }
    }

    /// The element types that calls of this op can have.
    fn dtypes_of(&self, call: &CallKind) -> Dtypes {
        if call.op.reduces() { self.dtypes.intersection(self.reduce_dtypes) } else { self.dtypes }
    }

    /// A call that only copies gives the same bits always, unless the copy deviates: then the bits
    /// follow the algorithm, and so the size of the call that chose it.
    fn failing_contract(&self, call: &CallKind) -> Option<Clause> {
        let varies = call.op.reduces() || !self.deviates.is_empty();
        if varies && self.determinism < call.contract.determinism {
            Some(Clause::Determinism)
        } else if !call.contract.accept.covers(self.deviates) {
            Some(Clause::Deviation)
        } else {
            None
        }
    }

    /// A failed clause with the words that a person needs.
    pub fn refusal(
        &self,
        clause: Clause,
        group: &GroupProfile,
        call: &CallKind,
        bytes: u64,
        capacity: u64,
    ) -> Refusal {
        let (want, got) = match clause {
            Clause::Op => (self.ops.to_string(), call.op.to_string()),
            Clause::Mode => (self.modes.to_string(), call.mode.to_string()),
            Clause::Dtype => (self.dtypes_of(call).to_string(), call.dtype.to_string()),
            Clause::ReduceOp => (self.reduce_ops.to_string(), call.reduce_op.to_string()),
            Clause::Determinism => (
                format!("a contract of at most {}", self.determinism),
                call.contract.determinism.to_string(),
            ),
            Clause::Deviation => (accepting(self.deviates), accepting(call.contract.accept)),
            Clause::Capacity => {
                (format!("at most {} B", capacity.min(self.max_bytes)), format!("{bytes} B"))
            }
            Clause::MultipleOf => {
                (format!("a multiple of {} B", self.multiple_of), format!("{bytes} B"))
            }
            _ => return self.group_refusal(clause, group),
        };
        Refusal { clause, want, got }
    }

    /// A failed clause of the group with the words that a person needs.
    pub fn group_refusal(&self, clause: Clause, group: &GroupProfile) -> Refusal {
        let (want, got) = match clause {
            Clause::Memory => {
                let words = |on_host: bool| if on_host { "the host's" } else { "a device's" };
                let on_host = self.memory == Memory::Host;
                (words(on_host).to_owned(), words(group.arch == HOST_ARCH).to_owned())
            }
            Clause::Topology => (self.topologies.to_string(), group.topology.to_string()),
            Clause::Nodes => ("one node".to_owned(), format!("a group on {} nodes", group.nodes)),
            Clause::World => (self.worlds.to_string(), group.world.to_string()),
            Clause::Caps => (self.needs.to_string(), group.caps.to_string()),
            _ => ("-".to_owned(), "-".to_owned()),
        };
        Refusal { clause, want, got }
    }
}

/// As a policy would write it.
fn accepting(deviations: Deviations) -> String {
    let words: Vec<&str> = deviations.iter().map(Deviation::name).collect();
    format!("accept = [{}]", words.join(", "))
}
