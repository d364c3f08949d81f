//! A backend that is made differently on each rank.
#![allow(unused, unreachable_code)]
use crossover_core::backend::{Backend, Descriptor};
use crossover_core::registry::Registration;

fn main() {
    let rank = std::env::args().count();
    let descriptor: &'static Descriptor = unimplemented!();
    let _ = Registration {
        descriptor,
        make: || if rank == 0 { make() } else { make() },
    };
}

fn make() -> Box<dyn Backend> {
    unimplemented!()
}
