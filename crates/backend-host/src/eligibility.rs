//! What the algorithms take, as data.

use crossover_core::backend::{Algorithm, Descriptor};
use crossover_core::call::{Dtypes, Mode, Modes, Ops, ReduceOps};
use crossover_core::contract::{Determinism, Deviations, OrderClass};
use crossover_core::eligibility::{Eligibility, Memory, Nodes, Worlds};
use crossover_core::facts::{Caps, Topologies, Topology};

use crate::layout::MAX_WORLD;
use crate::mover::PARAMS;

/// The index of `one_shot` in [`DESCRIPTOR`]'s list.
pub(crate) const ONE_SHOT: usize = 0;
/// The index of `two_shot` in [`DESCRIPTOR`]'s list.
pub(crate) const TWO_SHOT: usize = 1;
/// What backend `host` is: two algorithms that take the same calls and give the same bits.
///
/// They differ in `all_reduce` alone. `one_shot` lets every rank reduce everything; `two_shot` lets
/// every rank reduce its share and then collect the others'. The other ops have one way through
/// shared memory, which serves both names.
pub const DESCRIPTOR: Descriptor = Descriptor {
    id: "host",
    version: env!("CARGO_PKG_VERSION"),
    settings: &["chunk", "distance", "ring", "shm_dir", "threads"],
    algorithms: &[
        Algorithm { name: "one_shot", eligibility: ELIGIBILITY, params: PARAMS },
        Algorithm { name: "two_shot", eligibility: ELIGIBILITY, params: PARAMS },
    ],
};

const ELIGIBILITY: Eligibility = Eligibility {
    ops: Ops::ALL,
    dtypes: Dtypes::ALL,
    reduce_dtypes: Dtypes::ALL,
    reduce_ops: ReduceOps::ALL,
    modes: Modes::of(&[Mode::Eager]),
    worlds: Worlds::range(1, MAX_WORLD),
    memory: Memory::Any, // the topology says it
    nodes: Nodes::One,
    topologies: Topologies::of(&[Topology::Host]),
    needs: Caps::NONE,
    multiple_of: 1,
    max_bytes: u64::MAX,
    order: OrderClass::RankOrdered,
    determinism: Determinism::SizeInvariant,
    deviates: Deviations::NONE,
};
