//! Eligibility that follows a thread-local.
#![allow(unused, unreachable_code)]
use crossover_core::backend::{Algorithm, Backend, Descriptor};
use crossover_core::call::Ops;
use crossover_core::eligibility::Eligibility;

fn make() -> Box<dyn Backend> {
    unimplemented!()
}

thread_local!(static FAST: std::cell::Cell<bool> = const { std::cell::Cell::new(true) });

const fn eligibility() -> Eligibility {
    if FAST.with(std::cell::Cell::get) {
        return Eligibility::EVERYTHING;
    }
    Eligibility { ops: Ops::NONE, ..Eligibility::EVERYTHING }
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
