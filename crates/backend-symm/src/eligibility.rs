//! What the algorithms take, as data.

use crossover_core::backend::{Algorithm, Descriptor, Param, Values};
use crossover_core::call::{Dtype, Dtypes, Op, Ops};
use crossover_core::eligibility::{Eligibility, Worlds};
use crossover_core::facts::{Cap, Caps, Topologies, Topology};

/// What backend `symm` is.
pub const DESCRIPTOR: Descriptor = Descriptor {
    id: "symm",
    version: env!("CARGO_PKG_VERSION"),
    settings: &[],
    algorithms: &[
        Algorithm {
            name: "two_shot",
            eligibility: Eligibility { ops: Ops::of(&[Op::AllReduce]), dtypes: FLOATS, ..ON_HEAP },
            params: LAUNCH,
        },
        Algorithm {
            name: "all_gather",
            eligibility: Eligibility { ops: Ops::of(&[Op::AllGather]), ..ON_HEAP },
            params: LAUNCH,
        },
        Algorithm {
            name: "reduce_scatter",
            eligibility: Eligibility {
                ops: Ops::of(&[Op::ReduceScatter]),
                dtypes: FLOATS,
                ..ON_HEAP
            },
            params: LAUNCH,
        },
    ],
};

/// 0 leaves a number to the backend.
const LAUNCH: &[Param] = &[
    Param { name: "blocks", values: Values::Count { min: 0, max: 1024 }, default: 0 },
    Param { name: "threads", values: Values::Count { min: 0, max: 1024 }, default: 0 },
];

/// Heaps can be mapped wherever every pair reaches one another.
const ON_HEAP: Eligibility = Eligibility {
    worlds: Worlds::range(2, 16),
    topologies: Topologies::of(&[Topology::NvlinkFull, Topology::XgmiFull, Topology::Mnnvl]),
    needs: Caps::of(&[Cap::P2p]),
    ..Eligibility::EVERYTHING
};

const FLOATS: Dtypes = Dtypes::of(&[Dtype::F32, Dtype::F16, Dtype::Bf16]);
