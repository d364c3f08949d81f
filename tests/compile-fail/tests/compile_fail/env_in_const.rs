//! The same in a const fn.
#![allow(unused, unreachable_code)]
use crossover_core::backend::{Algorithm, Backend, Descriptor};
use crossover_core::call::Ops;
use crossover_core::eligibility::Eligibility;

fn make() -> Box<dyn Backend> {
    unimplemented!()
}

const fn eligibility() -> Eligibility {
    match std::env::var_os("FAST") {
        Some(_) => Eligibility::EVERYTHING,
        None => Eligibility { ops: Ops::NONE, ..Eligibility::EVERYTHING },
    }
}

crossover_core::register_backend!(
    Descriptor {
        id: "crooked",
        version: "1",
        settings: &[],
        algorithms: &[Algorithm { name: "one", eligibility: eligibility(), params: &[] }],
    },
    make
);

fn main() {}
