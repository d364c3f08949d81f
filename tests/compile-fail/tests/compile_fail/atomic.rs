//! Eligibility that follows a flag which another thread may set.
#![allow(unused, unreachable_code)]
use crossover_core::backend::{Algorithm, Backend, Descriptor};
use crossover_core::call::Ops;
use crossover_core::eligibility::Eligibility;

fn make() -> Box<dyn Backend> {
    unimplemented!()
}

static DISABLED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

const fn eligibility() -> Eligibility {
    if DISABLED.load(std::sync::atomic::Ordering::Relaxed) {
        return Eligibility { ops: Ops::NONE, ..Eligibility::EVERYTHING };
    }
    Eligibility::EVERYTHING
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
