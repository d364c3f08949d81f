//! The same in a const fn.
#![allow(unused, unreachable_code)]
use crossover_core::backend::{Algorithm, Backend, Descriptor};
use crossover_core::call::{Dtypes, Modes, Ops, ReduceOps};
use crossover_core::contract::{Determinism, Deviations, OrderClass};
use crossover_core::eligibility::{Eligibility, Nodes, Worlds};
use crossover_core::facts::{Caps, Topologies};

const fn base() -> Eligibility {
    Eligibility {
        ops: Ops::ALL,
        dtypes: Dtypes::ALL,
        reduce_ops: ReduceOps::ALL,
        modes: Modes::ALL,
        worlds: Worlds::range(2, 16),
        nodes: Nodes::One,
        topologies: Topologies::ALL,
        needs: Caps::NONE,
        multiple_of: 1,
        order: OrderClass::RankOrdered,
        determinism: Determinism::SizeInvariant,
        deviates: Deviations::NONE,
    }
}

fn make() -> Box<dyn Backend> {
    unimplemented!()
}

const fn eligibility() -> Eligibility {
    match std::env::var_os("FAST") {
        Some(_) => base(),
        None => Eligibility { ops: Ops::NONE, ..base() },
    }
}

crossover_core::register_backend!(
    Descriptor {
        id: "crooked",
        version: "1",
        algorithms: &[Algorithm { name: "one", eligibility: eligibility() }],
    },
    make
);

fn main() {}
