//! Everything on a real CUDA device; where there is none, each test says that it skips.

#![allow(clippy::print_stderr, reason = "says what the machine is, and why a test skips")]

mod graphs;
mod kernels;
mod memory;
mod processes;
mod streams;

use crossover_device::device::Device;

/// The first CUDA device; `None`, said aloud, where there is none.
fn device() -> Option<Device> {
    match crossover_device::open("cuda:0") {
        Ok(device) => Some(device),
        Err(why) => {
            eprintln!("skipped: it needs a CUDA device: {why}");
            None
        }
    }
}

/// 32-bit words as bytes.
fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

#[test]
fn a_device_tells_what_it_is() {
    let Some(device) = device() else { return };
    let told = device.description();
    eprintln!("{device}: {told:?}, driver of CUDA {}", device.driver().version().unwrap());
    assert_eq!(told.ordinal, 0);
    assert!(told.arch.starts_with("sm") && told.arch.len() >= 4, "{}", told.arch);
    assert!(told.uuid.starts_with("GPU-") || told.uuid.starts_with("MIG-"), "{}", told.uuid);
    assert_eq!(told.uuid.len(), "GPU-00112233-4455-6677-8899-aabbccddeeff".len());
    assert_eq!(told.pci.len(), "0000:17:00.0".len(), "{}", told.pci);
    assert!(told.multiprocessors > 0 && told.l2 > 0 && told.memory > told.l2);
}

#[test]
fn the_current_device_is_the_one_made_current_on_this_thread() {
    let Some(device) = device() else { return };
    let fresh = std::thread::spawn(|| crossover_device::open("cuda").map(|d| d.ordinal()));
    assert_eq!(fresh.join().unwrap(), Ok(0), "no context is current: the first device");
    device.make_current().unwrap();
    assert_eq!(device.driver().current(), Ok(Some(0)));
    assert_eq!(crossover_device::open("cuda").unwrap().ordinal(), 0);
}

#[test]
fn a_device_that_is_not_there_is_refused() {
    let Some(device) = device() else { return };
    let count = device.driver().devices().unwrap().len();
    let said = crossover_device::open(&format!("cuda:{count}")).unwrap_err().to_string();
    assert!(said.contains(&format!("sees {count}")), "{said}");
}

#[test]
fn a_failed_call_is_told_in_the_vendors_words() {
    let Some(device) = device() else { return };
    device.make_current().unwrap();
    let said = device.driver().free(1).unwrap_err().to_string();
    assert!(said.starts_with("cuMemFree_v2 failed: ") && said.ends_with("(1)"), "{said}");
}
