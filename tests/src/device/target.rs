//! The algorithm that a test is about.

use crossover_core::backend::Algorithm;
use crossover_core::call::{CallSig, Dtype, Op, ReduceOp, Split};
use crossover_core::contract::Deviation;

/// An algorithm and the way in which its copies travel.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Such as `ipc/all_gather`.
    pub name: &'static str,
    /// What can be pushed is pulled.
    pub pulled: bool,
    algorithm: &'static Algorithm,
}

impl Target {
    /// From `ipc/all_gather` or `ipc/all_gather pulled`; `nccl` is its algorithm without a name.
    ///
    /// # Panics
    ///
    /// If no such algorithm is declared.
    pub fn parse(text: &'static str) -> Target {
        let (name, pulled) = match text.strip_suffix(" pulled") {
            Some(name) => (name, true),
            None => (text, false),
        };
        let (backend, wanted) = name.split_once('/').unwrap_or((name, ""));
        let declared = crossover_backends::DECLARED.iter().find(|d| d.id == backend);
        let algorithms = declared.expect("a backend of this workspace").algorithms;
        let algorithm = algorithms.iter().find(|a| a.name == wanted).expect("one of its own");
        Target { name, pulled, algorithm }
    }

    /// The ops that it states.
    pub fn ops(&self) -> Vec<Op> {
        self.algorithm.eligibility.ops.iter().collect()
    }

    /// The element types that it states for an op.
    pub fn dtypes(&self, op: Op) -> Vec<Dtype> {
        let stated = &self.algorithm.eligibility;
        let reduced = stated.dtypes.intersection(stated.reduce_dtypes);
        if op.reduces() { reduced } else { stated.dtypes }.iter().collect()
    }

    /// The reduce ops that it states.
    pub fn reduce_ops(&self) -> Vec<ReduceOp> {
        self.algorithm.eligibility.reduce_ops.iter().collect()
    }

    /// Does it state groups of this size?
    pub fn takes_world(&self, world: u32) -> bool {
        self.algorithm.eligibility.worlds.contains(world)
    }

    /// Is this a parameter of it?
    pub fn has_param(&self, name: &str) -> bool {
        self.algorithm.params.iter().any(|param| param.name == name)
    }

    /// Do captured calls read inputs where they are?
    pub fn reads_rows(&self) -> bool {
        self.pulled || self.name.ends_with("shot_pull")
    }

    /// Does a -0.0 arrive as +0.0? Parts that differ go another way, which keeps it.
    pub fn flushes(&self, call: &CallSig<'_>) -> bool {
        let even = match call.split {
            Split::Even => true,
            Split::PerRank(counts) => counts.iter().all(|count| *count == counts[0]),
        };
        even && self.algorithm.eligibility.deviates.contains(Deviation::SignedZeroFlush)
    }
}
