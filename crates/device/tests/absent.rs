//! Where there is no CUDA driver, or none that serves, a sentence says so.

#![allow(clippy::print_stderr, reason = "says why a test skips")]

use crossover_device::error::DeviceError;

#[test]
fn a_missing_driver_is_a_sentence_and_no_panic() {
    let said = match crossover_device::open("cuda:0") {
        Ok(device) => return eprintln!("skipped: {device} is here, and the test needs none"),
        Err(DeviceError::Absent(said)) => said,
        Err(other) => panic!("an absent driver is Absent, not {other:?}"),
    };
    assert!(!said.contains('\n'), "one sentence: {said}");
    // Either the library is not there, or it sees no device: each says what to do.
    let library = said.contains("libcuda.so") && said.contains("libcuda.so.1");
    let device = said.contains("CUDA_VISIBLE_DEVICES");
    assert!(library || device, "{said}");
}

#[test]
fn asking_again_says_the_same() {
    let [first, second] = [(); 2].map(|()| crossover_device::open("cuda").map(|_| ()));
    assert_eq!(first, second);
}
