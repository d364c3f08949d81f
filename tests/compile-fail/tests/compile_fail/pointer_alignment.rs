//! Eligibility that tests where memory lies.
#![allow(unused, unreachable_code)]
use crossover_core::backend::{Algorithm, Backend, Descriptor};
use crossover_core::call::Ops;
use crossover_core::eligibility::Eligibility;

fn make() -> Box<dyn Backend> {
    unimplemented!()
}

static BUFFER: [u8; 64] = [0; 64];

const fn eligibility() -> Eligibility {
    if (&raw const BUFFER as usize) % 16 == 0 {
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
