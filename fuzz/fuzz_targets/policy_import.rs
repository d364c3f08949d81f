//! Any text as another system's table: it is refused with its mistakes, or what it becomes is a
//! policy that loads.

#![no_main]

use crossover_policy::Sources;
use crossover_policy::import::{Format, import};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((which, bytes)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let format = [Format::NcclTuner, Format::UccTune, Format::OpenMpi][usize::from(*which) % 3];
    if let Ok(imported) = import(format, "fuzz", text) {
        let registry = crossover_backends::registry().expect("well-formed backends");
        let loaded =
            Sources::isolated(Vec::new()).with_text("fuzz.toml", &*imported.policy).load(&registry);
        assert!(loaded.is_ok(), "{}\n{}", imported.policy, loaded.unwrap_err());
    }
});
