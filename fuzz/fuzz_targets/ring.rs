//! What a crash has left of a flight recorder's ring: no bytes make the reader panic, nor the judge, nor
//! what draws.

#![no_main]

use crossover_recorder::{BYTES, Image, analyse, text, timeline};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // What is missing of a ring's length is empty, as most of a ring is.
    let mut ring = bytes.to_vec();
    ring.resize(BYTES, 0);
    if let Ok(image) = Image::parse(&ring, "fuzzed") {
        let images = [image];
        for diagnosis in analyse(&images) {
            text(&diagnosis);
            timeline(&images, &diagnosis);
        }
    }
});
