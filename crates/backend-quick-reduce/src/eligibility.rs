//! What the algorithms take, as data.

use crossover_core::backend::{Algorithm, Descriptor};
use crossover_core::call::{Dtype, Dtypes, Op, Ops, ReduceOp, ReduceOps};
use crossover_core::contract::{Determinism, Deviation, Deviations, OrderClass};
use crossover_core::eligibility::{Eligibility, Nodes, Worlds};
use crossover_core::facts::{Cap, Caps, Topologies, Topology};

/// What backend `quick_reduce` is: an algorithm for each codec, the exact one first.
pub const DESCRIPTOR: Descriptor = Descriptor {
    id: "quick_reduce",
    version: env!("CARGO_PKG_VERSION"),
    settings: &[],
    algorithms: &[
        // 16-bit elements travel as they are.
        Algorithm { name: "fp16", eligibility: TWO_SHOT, params: &[] },
        Algorithm { name: "fp8", eligibility: quantised(Deviation::LossyFp8), params: &[] },
        Algorithm { name: "int8", eligibility: quantised(Deviation::LossyInt8), params: &[] },
        Algorithm { name: "int6", eligibility: quantised(Deviation::LossyInt6), params: &[] },
        Algorithm { name: "int4", eligibility: quantised(Deviation::LossyInt4), params: &[] },
    ],
};

const TWO_SHOT: Eligibility = Eligibility {
    ops: Ops::of(&[Op::AllReduce]),
    dtypes: Dtypes::of(&[Dtype::F16, Dtype::Bf16]),
    reduce_ops: ReduceOps::of(&[ReduceOp::Sum]),
    worlds: Worlds::range(2, 2).or(Worlds::range(4, 4)).or(Worlds::range(8, 8)),
    nodes: Nodes::One,
    topologies: Topologies::of(&[Topology::NvlinkFull, Topology::XgmiFull, Topology::Pcie]),
    needs: Caps::of(&[Cap::P2p]),
    multiple_of: 16,
    max_bytes: 2 << 30, // size: offsets have 31 bits
    ..Eligibility::EVERYTHING
};

/// A block of elements shares a scale, so that an element's bits depend on its neighbours.
const fn quantised(codec: Deviation) -> Eligibility {
    Eligibility {
        order: OrderClass::Quantised,
        determinism: Determinism::RunToRun,
        deviates: Deviations::of(&[codec]),
        ..TWO_SHOT
    }
}
