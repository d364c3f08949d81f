//! Eligibility that reads a file.
#![allow(unused, unreachable_code)]
use crossover_core::backend::{Algorithm, Backend, Descriptor};
use crossover_core::call::Ops;
use crossover_core::eligibility::Eligibility;

fn make() -> Box<dyn Backend> {
    unimplemented!()
}

const fn eligibility() -> Eligibility {
    match std::fs::exists("/etc/fast") {
        Ok(true) => Eligibility::EVERYTHING,
        _ => Eligibility { ops: Ops::NONE, ..Eligibility::EVERYTHING },
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
