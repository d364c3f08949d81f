//! What the algorithm takes, as data: what both `ipc/reduce_scatter` and `nccl` take.

use crossover_core::backend::{Algorithm, Descriptor};
use crossover_core::call::{Dtype, Dtypes, Op, Ops, ReduceOp, ReduceOps};
use crossover_core::contract::{Determinism, OrderClass};
use crossover_core::eligibility::{Eligibility, Memory};
use crossover_core::facts::{Cap, Caps, Topologies, Topology};

/// What backend `hierarchical` is. It has no settings: those of `ipc` and `nccl` hold for the groups
/// inside and across.
pub const DESCRIPTOR: Descriptor = Descriptor {
    id: "hierarchical",
    version: env!("CARGO_PKG_VERSION"),
    settings: &[],
    algorithms: &[Algorithm { name: "", eligibility: ALL_REDUCE, params: &[] }],
};

/// Ranks agree on a result's bits because each part is reduced by one group across nodes, whose
/// ranks agree, and then copied. Its order is the library's; besides, an element is rounded once
/// inside the node before it goes across, and an average divides twice.
///
/// No minimum and no maximum, and no integers: the library's pass NaNs over, and the kernels inside
/// reduce floats.
const ALL_REDUCE: Eligibility = Eligibility {
    ops: Ops::of(&[Op::AllReduce]),
    dtypes: Dtypes::of(&[Dtype::F32, Dtype::F16, Dtype::Bf16]),
    reduce_ops: ReduceOps::of(&[ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Avg]),
    memory: Memory::Device,
    topologies: Topologies::of(&[Topology::MultiNode]),
    needs: Caps::of(&[Cap::P2p]),
    order: OrderClass::Library,
    determinism: Determinism::RankConsistent,
    ..Eligibility::EVERYTHING
};

#[cfg(test)]
mod tests {
    use super::*;

    fn stated(descriptor: &Descriptor, name: &str) -> Eligibility {
        let found = descriptor.algorithms.iter().find(|a| a.name == name);
        found.expect("it has this algorithm").eligibility
    }

    #[test]
    fn it_takes_what_both_levels_take_and_promises_no_more() {
        let inside = stated(&crossover_backend_ipc::DESCRIPTOR, "reduce_scatter");
        let across = stated(&crossover_backend_nccl::DESCRIPTOR, "");
        let reduced = |e: &Eligibility| e.dtypes.intersection(e.reduce_dtypes);
        assert_eq!(ALL_REDUCE.dtypes, reduced(&inside).intersection(reduced(&across)));
        assert_eq!(ALL_REDUCE.reduce_ops, inside.reduce_ops.intersection(across.reduce_ops));
        let both = inside.modes.intersection(across.modes);
        assert_eq!(ALL_REDUCE.modes, both);
        assert_eq!(ALL_REDUCE.determinism, inside.determinism.min(across.determinism));
        assert_eq!(ALL_REDUCE.deviates, inside.deviates.union(across.deviates));
        assert_eq!(ALL_REDUCE.needs, inside.needs.union(across.needs));
        assert_eq!(ALL_REDUCE.memory, across.memory);
        assert!(across.topologies.contains(Topology::MultiNode));
    }
}
