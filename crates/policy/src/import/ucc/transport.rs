//! UCC's transport layers, what they have, and what comes nearest to it here.

use std::fmt;

use crossover_core::call::Op;

/// A transport layer.
#[derive(Debug)]
pub(super) struct Transport {
    /// In its variable, in lower case.
    pub(super) name: &'static str,
    /// Where a string states none.
    pub(super) score: u64,
    /// The memory that it has an equal for here.
    pub(super) serves: Serves,
    /// By number; none where there is nothing to choose.
    algorithms: &'static [(Op, &'static [&'static str])],
}

/// For which memory a layer has an equal here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Serves {
    Host,
    Device,
    Nothing,
}

/// For any memory; a string without a variable is read as its.
pub(super) static UCP: Transport = Transport {
    name: "ucp",
    score: 10,
    serves: Serves::Host,
    algorithms: &[
        (Op::AllReduce, &["knomial", "sra_knomial", "sliding_window", "dbt", "ring"]),
        (Op::AllGather, &["knomial", "ring", "neighbor", "bruck", "sparbit", "linear", "batched"]),
        (Op::ReduceScatter, &["ring", "knomial"]),
        (Op::Broadcast, &["knomial", "sag_knomial", "dbt"]),
        (Op::AllToAll, &["pairwise", "bruck", "onesided"]),
    ],
};

/// The others.
static OTHERS: [Transport; 6] = [
    Transport { name: "nccl", score: 20, serves: Serves::Device, algorithms: &[] },
    Transport { name: "rccl", score: 20, serves: Serves::Device, algorithms: &[] },
    Transport {
        name: "cuda",
        score: 40,
        serves: Serves::Device,
        algorithms: &[
            (Op::AllReduce, &["nvls", "auto"]),
            (Op::AllGather, &["auto", "ring", "linear"]),
            (Op::ReduceScatter, &["auto", "ring", "linear", "nvls"]),
            (Op::Broadcast, &["linear"]),
        ],
    },
    Transport { name: "self", score: 50, serves: Serves::Nothing, algorithms: &[] },
    Transport { name: "sharp", score: 30, serves: Serves::Nothing, algorithms: &[] },
    Transport { name: "mlx5", score: 1, serves: Serves::Nothing, algorithms: &[] },
];

impl fmt::Display for Serves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Serves::Host => "the host's",
            Serves::Device => "devices'",
            Serves::Nothing => "none",
        })
    }
}

impl Transport {
    /// All of them.
    pub(super) fn all() -> impl Iterator<Item = &'static Transport> {
        std::iter::once(&UCP).chain(&OTHERS)
    }

    /// The name of its variable.
    pub(super) fn variable(&self) -> String {
        format!("UCC_TL_{}_TUNE", self.name.to_uppercase())
    }

    /// Whether it has an op; the libraries of a vendor have all.
    pub(super) fn has(&self, op: Op) -> bool {
        self.algorithms.is_empty() || !self.algorithms(op).is_empty()
    }

    /// Its algorithms for an op, by number.
    pub(super) fn algorithms(&self, op: Op) -> &'static [&'static str] {
        let of_op = self.algorithms.iter().find(|(known, _)| *known == op);
        of_op.map_or(&[], |(_, names)| names)
    }

    /// What comes nearest here; `None` if nothing does.
    pub(super) fn target(&self, op: Op, algorithm: Option<&str>) -> Option<&'static str> {
        match (self.name, op, algorithm) {
            ("ucp", Op::AllReduce, Some("knomial" | "dbt")) => Some("host/one_shot"),
            ("ucp", Op::AllReduce, Some(_)) => Some("host/two_shot"),
            ("ucp", ..) => Some("host"),
            ("nccl" | "rccl", ..) => Some("nccl"),
            ("cuda", Op::AllReduce, Some("nvls")) => Some("nvls/two_shot"),
            ("cuda", Op::ReduceScatter, Some("nvls")) => Some("nvls/reduce_scatter"),
            ("cuda", Op::AllReduce, _) => Some("ipc"),
            ("cuda", Op::AllGather, _) => Some("ipc/all_gather"),
            ("cuda", Op::ReduceScatter, _) => Some("ipc/reduce_scatter"),
            _ => None,
        }
    }
}
