//! What the algorithms take, as data.

use crossover_core::backend::{Algorithm, Descriptor, Param, Values};
use crossover_core::call::{Dtype, Dtypes, Op, Ops};
use crossover_core::contract::{Determinism, OrderClass};
use crossover_core::eligibility::{Eligibility, Worlds};
use crossover_core::facts::{Cap, Caps, Topologies, Topology};

/// What backend `nccl` is. The first algorithm has no name of its own: the library chooses within.
pub const DESCRIPTOR: Descriptor = Descriptor {
    id: "nccl",
    version: env!("CARGO_PKG_VERSION"),
    settings: &[],
    algorithms: &[
        Algorithm { name: "", eligibility: LIBRARY, params: KNOBS },
        // Its kernels over registered windows: in which order each rank adds is not documented.
        Algorithm {
            name: "symmetric",
            eligibility: Eligibility {
                ops: Ops::of(&[Op::AllReduce, Op::AllGather, Op::ReduceScatter]),
                topologies: Topologies::of(&[Topology::NvlinkFull, Topology::Mnnvl]),
                needs: Caps::of(&[Cap::P2p]),
                determinism: Determinism::Any,
                ..LIBRARY
            },
            params: &[],
        },
    ],
};

/// What a policy can pin of the library's own choice; `auto` and 0 leave it to the library.
const KNOBS: &[Param] = &[
    Param { name: "algorithm", values: Values::Words(ALGORITHMS), default: 0 },
    Param {
        name: "protocol",
        values: Values::Words(&["auto", "ll", "ll128", "simple"]),
        default: 0,
    },
    Param { name: "channels", values: Values::Count { min: 0, max: 64 }, default: 0 },
];

/// NCCL's own names, in lower case (`nccl.h` has no list; `NCCL_ALGO` takes these).
const ALGORITHMS: &[&str] =
    &["auto", "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"];

/// Ranks agree on a result's bits because, in a ring, in a tree and in the switch (NVLS), each
/// element is reduced once, by one rank or by the switch, and the sum is handed to all. In which
/// order it is reduced depends on the size of the call.
///
/// Only recent versions reduce 8-bit floats, and only on recent devices. No fact of a group says
/// which it has, so none are reduced here; copies are bytes to the library.
const LIBRARY: Eligibility = Eligibility {
    reduce_dtypes: Dtypes::ALL.without(Dtypes::of(&[Dtype::F8E4M3, Dtype::F8E5M2])),
    worlds: Worlds::ANY,
    topologies: Topologies::ALL.without(Topologies::of(&[Topology::Host])),
    order: OrderClass::Library,
    determinism: Determinism::RankConsistent,
    ..Eligibility::EVERYTHING
};
