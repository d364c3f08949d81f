//! What a stranger may send to the port that ranks meet at: no bytes make the parser panic, and
//! what it reads can be written and read again.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| crossover_bootstrap::fuzz_frame(bytes));
