//! What the algorithms take, as data.

use crossover_core::backend::{Algorithm, Descriptor, Param, Values};
use crossover_core::call::{Dtype, Dtypes, Op, Ops};
use crossover_core::contract::{Determinism, Deviation, Deviations};
use crossover_core::eligibility::{Eligibility, Nodes, Worlds};
use crossover_core::facts::{Cap, Caps, Topologies, Topology};

/// What backend `ipc` is. `pull` reads peers' inputs behind a barrier; `push` writes into peers'
/// slots, each value beside its flag; `lamport` lets the value itself say that it has arrived.
pub const DESCRIPTOR: Descriptor = Descriptor {
    id: "ipc",
    version: env!("CARGO_PKG_VERSION"),
    settings: &[],
    algorithms: &[
        Algorithm { name: "one_shot_push", eligibility: REDUCTION, params: LAUNCH },
        Algorithm { name: "one_shot_pull", eligibility: REDUCTION, params: LAUNCH },
        Algorithm { name: "two_shot_push", eligibility: REDUCTION, params: LAUNCH },
        Algorithm { name: "two_shot_pull", eligibility: REDUCTION, params: LAUNCH },
        Algorithm {
            name: "lamport",
            eligibility: Eligibility { ops: Ops::of(&[Op::AllReduce]), ..LAMPORT },
            params: LAUNCH,
        },
        Algorithm {
            name: "all_gather",
            eligibility: Eligibility { ops: Ops::of(&[Op::AllGather]), ..BETWEEN_PEERS },
            params: LAUNCH,
        },
        Algorithm {
            name: "lamport_all_gather",
            eligibility: Eligibility { ops: Ops::of(&[Op::AllGather]), ..LAMPORT },
            params: LAUNCH,
        },
        Algorithm {
            name: "reduce_scatter",
            eligibility: Eligibility { ops: Ops::of(&[Op::ReduceScatter]), ..REDUCTION },
            params: LAUNCH,
        },
    ],
};

/// The launch: the same on every rank, or peers wait for blocks that do not exist. 0 leaves a
/// number to the backend.
const LAUNCH: &[Param] = &[
    Param { name: "blocks", values: Values::Count { min: 0, max: 1024 }, default: 0 },
    Param { name: "threads", values: Values::Count { min: 0, max: 1024 }, default: 0 },
];

/// Peers on one node whose memory has been seen to be reachable.
const BETWEEN_PEERS: Eligibility = Eligibility {
    worlds: Worlds::range(2, 16),
    nodes: Nodes::One,
    topologies: Topologies::of(&[
        Topology::NvlinkFull,
        Topology::NvlinkPartial,
        Topology::XgmiFull,
        Topology::Pcie,
        Topology::Mnnvl,
    ]),
    needs: Caps::of(&[Cap::P2p]),
    ..Eligibility::EVERYTHING
};

const REDUCTION: Eligibility =
    Eligibility { ops: Ops::of(&[Op::AllReduce]), dtypes: FLOATS, ..BETWEEN_PEERS };

/// -0.0 marks an empty slot. Integers are out: the mark is a number to them. Whether a -0.0 survives
/// depends on whether the call is small enough to come here: the bits follow the size.
const LAMPORT: Eligibility = Eligibility {
    dtypes: FLOATS,
    determinism: Determinism::RunToRun,
    deviates: Deviations::of(&[Deviation::SignedZeroFlush]),
    max_bytes: LAMPORT_BYTES,
    ..BETWEEN_PEERS
};

/// Three slots for the part of each of 16 ranks are 384 MiB of every device at this size.
const LAMPORT_BYTES: u64 = 8 << 20; // size: what memory allows

const FLOATS: Dtypes = Dtypes::of(&[Dtype::F32, Dtype::F16, Dtype::Bf16]);
