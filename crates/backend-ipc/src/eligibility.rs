//! What the algorithms take, as data.

use crossover_core::backend::{Algorithm, Descriptor, Param, Values};
use crossover_core::call::{Dtype, Dtypes, Op, Ops};
use crossover_core::contract::{Determinism, Deviation, Deviations};
use crossover_core::eligibility::{Eligibility, Nodes, Worlds};
use crossover_core::facts::{Cap, Caps, Topologies, Topology};
use crossover_kernel_abi::{MAX_BLOCKS, MAX_THREADS};

/// The indices of the algorithms in [`DESCRIPTOR`]'s list.
pub(crate) mod index {
    pub(crate) const ONE_SHOT_PUSH: usize = 0;
    pub(crate) const ONE_SHOT_PULL: usize = 1;
    pub(crate) const TWO_SHOT_PUSH: usize = 2;
    pub(crate) const TWO_SHOT_PULL: usize = 3;
    pub(crate) const LAMPORT: usize = 4;
    pub(crate) const LAMPORT_ALL_GATHER: usize = 6;
}

/// What backend `ipc` is. `pull` reads peers' inputs behind a barrier; `push` writes into peers'
/// slots, each value beside its flag; `lamport` lets the value itself say that it has arrived.
pub const DESCRIPTOR: Descriptor = Descriptor {
    id: "ipc",
    version: env!("CARGO_PKG_VERSION"),
    settings: &["kernels", "lamport", "p2p_cache", "push", "stage"],
    algorithms: &[
        Algorithm { name: "one_shot_push", eligibility: ALL_REDUCE, params: LAUNCH },
        Algorithm { name: "one_shot_pull", eligibility: ALL_REDUCE, params: LAUNCH },
        Algorithm { name: "two_shot_push", eligibility: ALL_REDUCE, params: LAUNCH },
        Algorithm { name: "two_shot_pull", eligibility: ALL_REDUCE, params: LAUNCH },
        Algorithm {
            name: "lamport",
            eligibility: Eligibility { ops: Ops::of(&[Op::AllReduce]), ..LAMPORT },
            params: LAUNCH,
        },
        Algorithm { name: "all_gather", eligibility: only(Op::AllGather), params: PARTS },
        Algorithm {
            name: "lamport_all_gather",
            eligibility: Eligibility { ops: Ops::of(&[Op::AllGather]), ..LAMPORT },
            params: LAUNCH,
        },
        Algorithm {
            name: "reduce_scatter",
            eligibility: Eligibility { dtypes: FLOATS, ..only(Op::ReduceScatter) },
            params: PARTS,
        },
        Algorithm { name: "broadcast", eligibility: only(Op::Broadcast), params: PARTS },
        Algorithm { name: "all_to_all", eligibility: only(Op::AllToAll), params: PARTS },
    ],
};

/// The launch: the same on every rank, or peers wait for blocks that do not exist. 0 leaves a
/// number to the backend. `early`: the kernel behind may be put on the device while this one runs,
/// where there is room for both; it waits for the end of this one by itself.
const LAUNCH: &[Param] = &[
    Param { name: "blocks", values: Values::Count { min: 0, max: MAX_BLOCKS as u64 }, default: 0 },
    Param {
        name: "threads",
        values: Values::Count { min: 0, max: MAX_THREADS as u64 },
        default: 0,
    },
    Param { name: "early", values: Values::Flag, default: 1 },
];

/// Besides, `push`: up to so many bytes of one part it is pushed, beyond it is pulled.
const PARTS: &[Param] = &[
    LAUNCH[0],
    LAUNCH[1],
    LAUNCH[2],
    Param { name: "push", values: Values::Bytes { min: 0, max: u64::MAX }, default: PUSH },
];

/// Where nobody has measured. Pushed data moves twice over, pulled data costs two barriers: with
/// links of some 370 GB/s each way and 2.4 us for barriers, two ranks are even at 600 KiB and eight, which
/// send seven parts each, at 120 KiB.
const PUSH: u64 = 256 << 10; // size: a default between those, which policies replace

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

const fn only(op: Op) -> Eligibility {
    Eligibility { ops: Ops::of(&[op]), ..BETWEEN_PEERS }
}

const ALL_REDUCE: Eligibility = Eligibility { dtypes: FLOATS, ..only(Op::AllReduce) };

/// -0.0 marks an empty slot. Integers are out: the mark is a number to them. Whether a -0.0
/// survives depends on whether the call is small enough to come here: the bits follow the size.
const LAMPORT: Eligibility = Eligibility {
    dtypes: FLOATS,
    determinism: Determinism::RunToRun,
    deviates: Deviations::of(&[Deviation::SignedZeroFlush]),
    ..BETWEEN_PEERS
};

const FLOATS: Dtypes = Dtypes::of(&[Dtype::F32, Dtype::F16, Dtype::Bf16]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_those_of_the_names() {
        let names = DESCRIPTOR.algorithms.iter().map(|a| a.name).collect::<Vec<_>>();
        assert_eq!(names[index::ONE_SHOT_PUSH], "one_shot_push");
        assert_eq!(names[index::ONE_SHOT_PULL], "one_shot_pull");
        assert_eq!(names[index::TWO_SHOT_PUSH], "two_shot_push");
        assert_eq!(names[index::TWO_SHOT_PULL], "two_shot_pull");
        assert_eq!(names[index::LAMPORT], "lamport");
        assert_eq!(names[index::LAMPORT_ALL_GATHER], "lamport_all_gather");
    }
}
