//! What the algorithms take, as data.

use crossover_core::backend::{Algorithm, Descriptor, Param, Values};
use crossover_core::call::{Dtype, Dtypes, Op, Ops, ReduceOp, ReduceOps};
use crossover_core::contract::{Determinism, Deviation, Deviations, OrderClass};
use crossover_core::eligibility::{Eligibility, Worlds};
use crossover_core::facts::{Cap, Caps, Topologies, Topology};

/// What backend `nvls` is.
pub const DESCRIPTOR: Descriptor = Descriptor {
    id: "nvls",
    version: env!("CARGO_PKG_VERSION"),
    settings: &[],
    algorithms: &[
        Algorithm {
            name: "two_shot",
            eligibility: Eligibility { ops: Ops::of(&[Op::AllReduce]), ..IN_SWITCH },
            params: LAUNCH,
        },
        // Every rank has the switch add for itself: nothing says that two of them see one order.
        Algorithm {
            name: "one_shot",
            eligibility: Eligibility {
                ops: Ops::of(&[Op::AllReduce]),
                determinism: Determinism::Any,
                ..IN_SWITCH
            },
            params: LAUNCH,
        },
        // -0.0 marks an empty slot: whether one survives follows the size of the call.
        Algorithm {
            name: "lamport_all_gather",
            eligibility: Eligibility {
                ops: Ops::of(&[Op::AllGather]),
                dtypes: FLOATS,
                determinism: Determinism::RunToRun,
                deviates: Deviations::of(&[Deviation::SignedZeroFlush]),
                max_bytes: LAMPORT_BYTES,
                ..BY_MULTICAST
            },
            params: LAUNCH,
        },
        Algorithm {
            name: "all_gather",
            eligibility: Eligibility { ops: Ops::of(&[Op::AllGather]), ..BY_MULTICAST },
            params: LAUNCH,
        },
        Algorithm {
            name: "reduce_scatter",
            eligibility: Eligibility { ops: Ops::of(&[Op::ReduceScatter]), ..IN_SWITCH },
            params: LAUNCH,
        },
    ],
};

/// 0 leaves a number to the backend.
const LAUNCH: &[Param] = &[
    Param { name: "blocks", values: Values::Count { min: 0, max: 1024 }, default: 0 },
    Param { name: "threads", values: Values::Count { min: 0, max: 1024 }, default: 0 },
];

const BY_MULTICAST: Eligibility = Eligibility {
    worlds: Worlds::range(2, 16),
    topologies: Topologies::of(&[Topology::NvlinkFull, Topology::Mnnvl]),
    needs: Caps::of(&[Cap::P2p, Cap::Multicast]),
    ..Eligibility::EVERYTHING
};

/// `multimem.ld_reduce` adds 16 bytes at a time, in an order that the switch does not tell. One rank
/// reduces each part for all, so that all hold the same bits.
const IN_SWITCH: Eligibility = Eligibility {
    dtypes: FLOATS,
    reduce_ops: ReduceOps::of(&[ReduceOp::Sum]),
    multiple_of: 16,
    order: OrderClass::Switch,
    determinism: Determinism::RankConsistent,
    ..BY_MULTICAST
};

/// Three slots for the part of each of 16 ranks are 384 MiB of every device at this size.
const LAMPORT_BYTES: u64 = 8 << 20; // size: what memory allows

const FLOATS: Dtypes = Dtypes::of(&[Dtype::F32, Dtype::F16, Dtype::Bf16]);
