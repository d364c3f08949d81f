//! Open MPI's collectives, and the algorithms that `coll/tuned` has for them.

use crossover_core::call::Op;
use crossover_core::policy::Basis;

/// A collective of Open MPI's.
pub(super) struct Collective {
    pub(super) name: &'static str,
    /// As the JSON format has it, where that differs.
    json: &'static str,
    /// Which op it is here, and whose bytes Open MPI counts.
    pub(super) op: Option<(Op, Basis)>,
    /// By number. Empty where there is nothing to choose.
    pub(super) algorithms: &'static [&'static str],
}

const fn ours(
    name: &'static str,
    op: Op,
    basis: Basis,
    algorithms: &'static [&'static str],
) -> Collective {
    Collective { name, json: name, op: Some((op, basis)), algorithms }
}

const fn other(name: &'static str, algorithms: &'static [&'static str]) -> Collective {
    Collective { name, json: name, op: None, algorithms }
}

/// By number in the classic format.
pub(super) const COLLECTIVES: [Collective; 22] = [
    ours(
        "allgather",
        Op::AllGather,
        Basis::Output,
        &[
            "ignore",
            "linear",
            "bruck-k-fanout",
            "recursive_doubling",
            "ring",
            "neighbor",
            "two_proc",
            "sparbit",
            "direct-messaging",
        ],
    ),
    other("allgatherv", &["ignore", "default", "bruck", "ring", "neighbor", "two_proc", "sparbit"]),
    ours(
        "allreduce",
        Op::AllReduce,
        Basis::Input,
        &[
            "ignore",
            "basic_linear",
            "nonoverlapping",
            "recursive_doubling",
            "ring",
            "segmented_ring",
            "rabenseifner",
            "allgather_reduce",
        ],
    ),
    ours(
        "alltoall",
        Op::AllToAll,
        Basis::Input,
        &["ignore", "linear", "pairwise", "modified_bruck", "linear_sync", "two_proc"],
    ),
    other("alltoallv", &["ignore", "basic_linear", "pairwise"]),
    other("alltoallw", &[]),
    other(
        "barrier",
        &["ignore", "linear", "double_ring", "recursive_doubling", "bruck", "two_proc", "tree"],
    ),
    ours(
        "bcast",
        Op::Broadcast,
        Basis::Input,
        &[
            "ignore",
            "basic_linear",
            "chain",
            "pipeline",
            "split_binary_tree",
            "binary_tree",
            "binomial",
            "knomial",
            "scatter_allgather",
            "scatter_allgather_ring",
        ],
    ),
    other("exscan", &["ignore", "linear", "recursive_doubling"]),
    other("gather", &["ignore", "basic_linear", "binomial", "linear_sync"]),
    other("gatherv", &[]),
    other(
        "reduce",
        &[
            "ignore",
            "linear",
            "chain",
            "pipeline",
            "binary",
            "binomial",
            "in-order_binary",
            "rabenseifner",
            "knomial",
        ],
    ),
    Collective {
        json: "reducescatter",
        ..ours(
            "reduce_scatter",
            Op::ReduceScatter,
            Basis::Input,
            &["ignore", "non-overlapping", "recursive_halving", "ring", "butterfly"],
        )
    },
    Collective {
        json: "reducescatterblock",
        ..ours(
            "reduce_scatter_block",
            Op::ReduceScatter,
            Basis::Input,
            &["ignore", "basic_linear", "recursive_doubling", "recursive_halving", "butterfly"],
        )
    },
    other("scan", &["ignore", "linear", "recursive_doubling"]),
    other("scatter", &["ignore", "basic_linear", "binomial", "linear_nb"]),
    other("scatterv", &[]),
    other("neighbor_allgather", &[]),
    other("neighbor_allgatherv", &[]),
    other("neighbor_alltoall", &[]),
    other("neighbor_alltoallv", &[]),
    other("neighbor_alltoallw", &[]),
];

/// By name in the JSON format.
pub(super) fn by_name(name: &str) -> Option<&'static Collective> {
    COLLECTIVES.iter().find(|collective| collective.json == name)
}

/// The names in the JSON format.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    COLLECTIVES.iter().map(|collective| collective.json)
}
