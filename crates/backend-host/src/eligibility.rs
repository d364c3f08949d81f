//! What the algorithms take, as data.

use crossover_core::backend::{Algorithm, Descriptor};
use crossover_core::call::{Dtypes, Mode, Modes, Op, Ops, ReduceOps};
use crossover_core::contract::{Determinism, Deviations, OrderClass};
use crossover_core::eligibility::{Eligibility, Nodes, Worlds};
use crossover_core::facts::{Caps, Topologies, Topology};

use crate::layout::MAX_WORLD;
use crate::mover::PARAMS;

/// The index of `one_shot` in [`DESCRIPTOR`]'s list.
pub(crate) const ONE_SHOT: usize = 0;
/// The index of `two_shot` in [`DESCRIPTOR`]'s list.
pub(crate) const TWO_SHOT: usize = 1;
/// The index of `direct` in [`DESCRIPTOR`]'s list.
pub(crate) const DIRECT: usize = 2;

/// What backend `host` is: three algorithms that give the same bits.
///
/// - `one_shot`: every rank puts its input into shared memory, and takes out of it what it needs;
/// - `two_shot`: the same, but that in `all_reduce` every rank reduces its share and then collects
///   the others'. Other ops are as in `one_shot`;
/// - `direct`: ranks tell where their buffers are and read one another's memory through the kernel,
///   so that nothing is copied twice. It takes a system call for each piece, and a group can have it
///   only where the kernel lets its processes read one another.
pub const DESCRIPTOR: Descriptor = Descriptor {
    id: "host",
    version: env!("CARGO_PKG_VERSION"),
    settings: &["chunk", "shm_dir", "threads"],
    algorithms: &[
        Algorithm { name: "one_shot", eligibility: ELIGIBILITY, params: PARAMS },
        Algorithm { name: "two_shot", eligibility: ELIGIBILITY, params: PARAMS },
        Algorithm { name: "direct", eligibility: READING, params: PARAMS },
    ],
};

/// In place, an `all_to_all` overwrites what peers still have to read.
const READING: Eligibility = Eligibility {
    ops: Ops::of(&[Op::AllReduce, Op::AllGather, Op::ReduceScatter, Op::Broadcast]),
    ..ELIGIBILITY
};

const ELIGIBILITY: Eligibility = Eligibility {
    ops: Ops::ALL,
    dtypes: Dtypes::ALL,
    reduce_dtypes: Dtypes::ALL,
    reduce_ops: ReduceOps::ALL,
    modes: Modes::of(&[Mode::Eager]),
    worlds: Worlds::range(1, MAX_WORLD),
    nodes: Nodes::One,
    topologies: Topologies::of(&[Topology::Host]),
    needs: Caps::NONE,
    multiple_of: 1,
    max_bytes: u64::MAX,
    order: OrderClass::RankOrdered,
    determinism: Determinism::SizeInvariant,
    deviates: Deviations::NONE,
};
