//! What the algorithms take, as data.

use crossover_core::backend::{Algorithm, Descriptor, Param, Values};
use crossover_core::call::{Dtype, Dtypes, Op, Ops, ReduceOp, ReduceOps};
use crossover_core::contract::{Determinism, OrderClass};
use crossover_core::eligibility::{Eligibility, Memory, Worlds};
use crossover_core::facts::{Cap, Caps, Topologies, Topology};

/// What backend `nccl` is. The first algorithm has no name of its own: the library chooses within.
pub const DESCRIPTOR: Descriptor = Descriptor {
    id: "nccl",
    version: env!("CARGO_PKG_VERSION"),
    settings: &["library", "window"],
    algorithms: &[
        Algorithm { name: "", eligibility: LIBRARY, params: &[] },
        Algorithm { name: INTEGERS, eligibility: OF_INTEGERS, params: &[] },
        Algorithm { name: MIN_MAX, eligibility: OF_EXTREMES, params: &[] },
        Algorithm { name: PINNED, eligibility: OF_PINS, params: KNOBS },
        Algorithm { name: SYMMETRIC, eligibility: OF_WINDOWS, params: &[] },
    ],
};

/// Reductions of integers, which are exact in any order.
pub(crate) const INTEGERS: &str = "integers";
/// Minima and maxima of floats, which may lose a NaN.
pub(crate) const MIN_MAX: &str = "min_max";
/// The library's choice, as a policy prefers it.
pub(crate) const PINNED: &str = "pinned";
/// Its kernels over registered windows.
pub(crate) const SYMMETRIC: &str = "symmetric";

/// Ranks agree on a result's bits because, in a ring, in a tree and in the switch (NVLS), each
/// element is reduced once, by one rank or by the switch, and the sum is handed to all. In which
/// order it is reduced, and whether a 16-bit float is rounded after each addition, depends on the
/// size of the call. An average of floats adds contributions that were multiplied by 1/N before.
///
/// Minima and maxima have algorithms of their own, below.
///
/// Only recent versions reduce 8-bit floats, and only on recent devices. No fact of a group says
/// which it has, so none are reduced here; copies are bytes to the library.
const LIBRARY: Eligibility = Eligibility {
    reduce_dtypes: Dtypes::ALL.without(Dtypes::of(&[Dtype::F8E4M3, Dtype::F8E5M2])),
    reduce_ops: ReduceOps::of(&[ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Avg]),
    worlds: Worlds::ANY,
    memory: Memory::Device,
    topologies: Topologies::ALL.without(Topologies::of(&[Topology::Host])),
    order: OrderClass::Library,
    determinism: Determinism::RankConsistent,
    ..Eligibility::EVERYTHING
};

/// Wrapping sums and products, minima and maxima do not depend on the order, so neither do their
/// bits on the size. The library's average of integers divides the wrapped sum once, toward zero
/// (`FuncSumPostDiv`), as ours does.
const OF_INTEGERS: Eligibility = Eligibility {
    ops: Ops::of(&[Op::AllReduce, Op::ReduceScatter]),
    dtypes: Dtypes::of(&[Dtype::I8, Dtype::U8, Dtype::I32, Dtype::U32, Dtype::I64, Dtype::U64]),
    reduce_ops: ReduceOps::ALL,
    determinism: Determinism::SizeInvariant,
    ..LIBRARY
};

/// The library's minima and maxima of floats (`fminf`, `__hmin`, read in 2.30.7) pass a NaN over
/// where another rank has a number; [`ReduceOp::Max`] says that it stays. Past one node nothing else
/// has them, so they are here, under a name by which an explanation tells and an operator can switch
/// them off.
const OF_EXTREMES: Eligibility = Eligibility {
    ops: Ops::of(&[Op::AllReduce, Op::ReduceScatter]),
    dtypes: Dtypes::of(&[Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::F64]),
    reduce_ops: ReduceOps::of(&[ReduceOp::Min, ReduceOp::Max]),
    ..LIBRARY
};

/// No more is promised of it than of the library's own choice: that some algorithm adds in one order
/// at every size was not proven.
const OF_PINS: Eligibility = Eligibility {
    ops: Ops::of(&[Op::AllReduce, Op::AllGather, Op::ReduceScatter, Op::Broadcast]),
    ..LIBRARY
};

/// What the library has symmetric kernels for: sums of floats of 16 and 32 bits, and copies. One
/// rank, the switch, or every rank in the order of ranks adds an element up (read in 2.30.7), so
/// that ranks agree.
const OF_WINDOWS: Eligibility = Eligibility {
    ops: Ops::of(&[Op::AllReduce, Op::AllGather, Op::ReduceScatter]),
    reduce_dtypes: Dtypes::of(&[Dtype::F32, Dtype::F16, Dtype::Bf16]),
    reduce_ops: ReduceOps::of(&[ReduceOp::Sum, ReduceOp::Avg]),
    topologies: Topologies::of(&[Topology::NvlinkFull, Topology::Mnnvl]),
    needs: Caps::of(&[Cap::P2p]),
    ..LIBRARY
};

/// What a policy can prefer of the library's own choice; `auto` and 0 leave it to the library, and so
/// does what the library has not for a call: broadcasts have `ring` alone, all-gathers and
/// reduce-scatters have no tree, all-reduces no `pat`, and `ll` and `ll128` are of `ring` and `tree`
/// alone. More channels than the communicator has are as many as it has.
///
/// With counts per rank it is said of the broadcasts that an all-gather is made of; the reductions
/// that a reduce-scatter is made of take no preference, and run as the library chooses.
const KNOBS: &[Param] = &[
    Param { name: "algorithm", values: Values::Words(ALGORITHMS), default: 0 },
    Param { name: "protocol", values: Values::Words(PROTOCOLS), default: 0 },
    Param { name: "channels", values: Values::Count { min: 0, max: 64 }, default: 0 },
];

/// NCCL's own names, in lower case (`nccl.h` has no list; `NCCL_ALGO` takes these).
pub(crate) const ALGORITHMS: &[&str] =
    &["auto", "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"];

/// Likewise; but `LL` cannot be had alone: the library takes it for `LL128` too.
pub(crate) const PROTOCOLS: &[&str] = &["auto", "ll_or_ll128", "ll128", "simple"];
