//! What the algorithms take, as data.

use crossover_core::backend::{Algorithm, Descriptor};
use crossover_core::call::{Dtypes, Mode, Modes, Ops, ReduceOps};
use crossover_core::contract::{Determinism, Deviations, OrderClass};
use crossover_core::eligibility::{Eligibility, Memory, Nodes, Worlds};
use crossover_core::facts::{Caps, Topologies, Topology};

/// The index of `one_shot` in [`DESCRIPTOR`]'s list. The other is `two_shot`.
pub(crate) const ONE_SHOT: usize = 0;

/// Most ranks: of so many a rank reduces contributions at once.
pub(crate) const MAX_WORLD: u32 = crossover_backend_host::reduce::MOST_SOURCES as u32;

/// What backend `mpi` is: two algorithms that take the same calls and give the same bits.
///
/// They differ in `all_reduce` alone. `one_shot` gathers all tensors on every rank, which reduces
/// them; `two_shot` lets every rank reduce its share and then gathers the shares. MPI moves bytes and
/// reduces nothing: it lacks half of the element types, and says nothing of the order of an addition.
pub const DESCRIPTOR: Descriptor = Descriptor {
    id: "mpi",
    version: env!("CARGO_PKG_VERSION"),
    settings: &["chunk", "library"],
    algorithms: &[
        Algorithm { name: "one_shot", eligibility: ELIGIBILITY, params: &[] },
        Algorithm { name: "two_shot", eligibility: ELIGIBILITY, params: &[] },
    ],
};

/// A group of one node is `host`'s, which is faster, and to begin with MPI is nothing to do unasked: who
/// wants this backend there gives ranks other node ids.
const ELIGIBILITY: Eligibility = Eligibility {
    ops: Ops::ALL,
    dtypes: Dtypes::ALL,
    reduce_dtypes: Dtypes::ALL,
    reduce_ops: ReduceOps::ALL,
    modes: Modes::of(&[Mode::Eager]),
    worlds: Worlds::range(1, MAX_WORLD),
    memory: Memory::Host,
    nodes: Nodes::Any,
    topologies: Topologies::of(&[Topology::MultiNode]),
    needs: Caps::NONE,
    multiple_of: 1,
    max_bytes: u64::MAX,
    order: OrderClass::RankOrdered,
    determinism: Determinism::SizeInvariant,
    deviates: Deviations::NONE,
};
