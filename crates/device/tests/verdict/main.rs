//! Whether peers work: what is asked, of whom, how long, and what is remembered.

mod acs;
mod cache;
mod observation;
mod platform;
mod verdicts;

use crossover_device::verdict::observation::Observation;
use crossover_device::verdict::platform::Platform;
use crossover_device::verdict::{Pair, Verdict};

fn device(number: usize) -> String {
    format!("GPU-{number}")
}

fn devices(count: usize) -> Vec<String> {
    (0..count).map(device).collect()
}

fn pair(user: usize, owner: usize) -> Pair {
    Pair { user: device(user), owner: device(owner) }
}

fn platform() -> Platform {
    Platform {
        kernel: "6.8.0-45-generic".to_owned(),
        boot: "8c0b2f2e-7a3c-4f0e-9a38-3f5f4a4c0001".to_owned(),
        iommu: "identity".to_owned(),
    }
}

/// A pair that works.
fn good() -> Observation {
    let wrote: Vec<u32> = (1..=64).map(|word: u32| word.wrapping_mul(0x9e37_79b9)).collect();
    Observation { before: 0, user_read: wrote.clone(), owner_read: wrote.clone(), wrote }
}

/// A pair whose writes only their writer sees.
fn mirrored() -> Observation {
    Observation { owner_read: vec![0; 64], ..good() }
}

fn is_broken(verdict: &Verdict, how: &str) -> bool {
    matches!(verdict, Verdict::Broken(text) if text.contains(how))
}

fn is_inconclusive(verdict: &Verdict, why: &str) -> bool {
    matches!(verdict, Verdict::Inconclusive(text) if text.contains(why))
}
