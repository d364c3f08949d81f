//! The C header of the structures.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use crate::structs::{DECLARED, LAMPORT_EMPTY, MAX_BLOCKS, MAX_THREADS, MAX_WORLD, code, step};

/// The text of `kernels-common/crossover/abi.h`.
pub fn header() -> String {
    let mut text = String::from(
        "// Written by crates/kernel-abi: change it there, then BLESS=1 cargo test -p crossover-kernel-abi.\n#pragma once\n\n",
    );
    for (name, value) in constants() {
        writeln!(text, "constexpr uint32_t {name} = {value:#x};").expect("a string takes all");
    }
    for declared in DECLARED {
        text.push('\n');
        for line in declared.about {
            writeln!(text, "//{line}").expect("a string takes all");
        }
        writeln!(text, "struct {} {{", declared.name).expect("a string takes all");
        for field in declared.fields {
            writeln!(text, "  {};", c_field(field.name, field.rust_type))
                .expect("a string takes all");
        }
        writeln!(text, "}};").expect("a string takes all");
        let (name, size) = (declared.name, declared.size);
        writeln!(text, "static_assert(sizeof({name}) == {size}, \"{name}\");")
            .expect("a string takes all");
        for field in declared.fields {
            let (field, offset) = (field.name, field.offset);
            writeln!(
                text,
                "static_assert(__builtin_offsetof({name}, {field}) == {offset}, \"{name}.{field}\");"
            )
            .expect("a string takes all");
        }
    }
    text
}

/// SHA-256 of the header, in hexadecimal, as manifests of kernel images hold it: images of another one
/// would read parameters that are not there.
pub fn digest() -> String {
    Sha256::digest(header().as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn constants() -> [(&'static str, u32); 15] {
    [
        ("MAX_WORLD", MAX_WORLD as u32),
        ("MAX_BLOCKS", MAX_BLOCKS as u32),
        ("MAX_THREADS", MAX_THREADS as u32),
        ("LAMPORT_EMPTY", LAMPORT_EMPTY),
        ("CODE_LATE", code::LATE),
        ("CODE_ABORTED", code::ABORTED),
        ("CODE_NOT_COMMITTED", code::NOT_COMMITTED),
        ("STEP_DATA", step::DATA),
        ("STEP_SHARE", step::SHARE),
        ("STEP_BARRIER", step::BARRIER),
        ("STEP_SECOND_BARRIER", step::SECOND_BARRIER),
        ("STEP_TOKEN", step::TOKEN),
        ("STEP_LAMPORT", step::LAMPORT),
        ("ROW_NOT_COMMITTED", 0),
        ("ROW_STAGED", 1),
    ]
}

/// `[u64; 16]` is `uint64_t name[16]`.
fn c_field(name: &str, rust_type: &str) -> String {
    match rust_type.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(array) => {
            let (element, length) = array.split_once("; ").expect("an array has a length");
            format!("{} {name}[{length}]", c_type(element))
        }
        None => format!("{} {name}", c_type(rust_type)),
    }
}

fn c_type(rust_type: &str) -> &str {
    match rust_type {
        "u32" => "uint32_t",
        "u64" => "uint64_t",
        structure => structure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `BLESS=1` writes it.
    #[test]
    fn the_committed_header_is_what_this_crate_says() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernels-common/crossover/abi.h");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, header()).expect("the header can be written");
        }
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            committed == header(),
            "{path} is not current: BLESS=1 cargo test -p crossover-kernel-abi"
        );
    }
}
