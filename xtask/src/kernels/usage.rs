//! What the vendors' tools tell of an object: its entry points and what they take.

use std::collections::HashMap;

use anyhow::{Context as _, Result};

use super::manifest::Kernel;

/// Of a fatbin: what ptxas reported, `cuobjdump -res-usage` and `cuobjdump -elf`.
///
/// Only ptxas tells an entry point from a function, and spills from the rest of a stack; only the
/// object tells its launch bound.
pub(super) fn cuda(ptxas: &str, usage: &str, elf: &str) -> Result<Vec<Kernel>> {
    let spills = spills(ptxas)?;
    let threads = max_threads(elf)?;
    let mut kernels = Vec::new();
    let mut lines = usage.lines().map(str::trim);
    while let Some(line) = lines.next() {
        let Some(name) = line.strip_prefix("Function ").and_then(|name| name.strip_suffix(':'))
        else {
            continue;
        };
        let Some(&spill) = spills.get(name) else { continue };
        let numbers = lines.next().unwrap_or_default();
        let number = |key: &str| -> Result<u32> {
            let value = numbers.split_whitespace().find_map(|word| word.strip_prefix(key));
            let value = value.with_context(|| format!("{name}: cuobjdump tells no {key}"))?;
            value.parse().with_context(|| format!("{name}: {key}{value} is no number"))
        };
        kernels.push(Kernel {
            name: name.to_owned(),
            threads: threads.get(name).copied().unwrap_or(0),
            registers: number("REG:")?,
            spill,
            stack: number("STACK:")? + number("LOCAL:")?,
            shared: number("SHARED:")?,
        });
    }
    Ok(kernels)
}

/// Bytes that each entry point stores aside.
fn spills(ptxas: &str) -> Result<HashMap<&str, u32>> {
    let mut spills = HashMap::new();
    let mut entry = None;
    for line in ptxas.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            entry = rest.split('\'').next();
        } else if let Some((_, rest)) = line.split_once("bytes stack frame, ")
            && let Some(name) = entry.take()
        {
            let bytes = rest.split(' ').next().unwrap_or_default();
            let bytes = bytes.parse().with_context(|| format!("ptxas said: {line}"))?;
            spills.insert(name, bytes);
        }
    }
    Ok(spills)
}

/// The launch bound of each entry point that has one.
fn max_threads(elf: &str) -> Result<HashMap<&str, u32>> {
    let mut threads = HashMap::new();
    let mut entry = "";
    let mut is_next = false;
    for line in elf.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix(".nv.info.") {
            entry = name;
        } else if line.starts_with("Attribute:") {
            is_next = line.ends_with("EIATTR_MAX_THREADS");
        } else if let Some(value) = line.strip_prefix("Value:").filter(|_| is_next) {
            let first = value.split_whitespace().next().and_then(|word| word.strip_prefix("0x"));
            let first = first.with_context(|| format!("{entry}: cuobjdump said: {line}"))?;
            threads.insert(entry, u32::from_str_radix(first, 16)?);
        }
    }
    Ok(threads)
}

/// Of a code object: `llvm-readobj --notes`.
///
/// Scalar registers that do not suffice are put into lanes of vector ones, not into memory, so that
/// they do not count as spilled.
pub(super) fn hip(notes: &str) -> Result<Vec<Kernel>> {
    let mut kernels: Vec<Kernel> = Vec::new();
    let mut is_list = false;
    for line in notes.lines() {
        // Two columns before a key of a kernel; the keys of its arguments are deeper.
        if !line.starts_with(' ') {
            is_list = line.starts_with("amdhsa.kernels:");
        }
        if !is_list {
            continue;
        }
        if line.starts_with("  - ") {
            kernels.push(Kernel::default());
        }
        let Some(kernel) = kernels.last_mut() else { continue };
        let key = line.get(4..).filter(|_| matches!(line.get(..4), Some("  - " | "    ")));
        let Some((key, value)) = key.and_then(|text| text.split_once(':')) else { continue };
        let value = value.trim();
        let number = || value.parse().with_context(|| format!("llvm-readobj said: {line}"));
        match key {
            ".name" => value.trim_matches('\'').clone_into(&mut kernel.name),
            ".max_flat_workgroup_size" => kernel.threads = number()?,
            ".vgpr_count" => kernel.registers = number()?,
            ".vgpr_spill_count" => kernel.spill = 4 * number()?,
            ".private_segment_fixed_size" => kernel.stack = number()?,
            ".group_segment_fixed_size" => kernel.shared = number()?,
            _ => {}
        }
    }
    Ok(kernels)
}

/// Of a host's object: `nm -g --defined-only`. Entry points alone have C's names.
pub(super) fn host(nm: &str) -> Result<Vec<Kernel>> {
    let names = nm.lines().filter_map(|line| line.split_once(" T ").map(|(_, name)| name));
    let kernels = names.filter(|name| !name.starts_with("_Z"));
    Ok(kernels.map(|name| Kernel { name: name.to_owned(), ..Kernel::default() }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nvidias_tools_say_is_understood() {
        let ptxas = "ptxas info    : Compiling entry function 'reduce' for 'sm_90a'\n\
            ptxas info    : Function properties for reduce\n    \
            640 bytes stack frame, 1272 bytes spill stores, 1284 bytes spill loads\n\
            ptxas info    : Used 64 registers, used 0 barriers, 640 bytes cumulative stack size\n\
            ptxas info    : Function properties for helper\n    \
            8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads\n";
        let usage = "Resource usage:\n Common:\n  GLOBAL:0\n Function reduce:\n  \
            REG:64 STACK:640 SHARED:1152 LOCAL:0 CONSTANT[0]:544 TEXTURE:0 SURFACE:0 SAMPLER:0\n \
            Function helper:\n  REG:8 STACK:8 SHARED:0 LOCAL:0 CONSTANT[0]:0 TEXTURE:0\n";
        let elf = "    c   b7f8    e70  0  4       CUDA_INFO       40    3       13 .nv.info.reduce\n\
            .nv.info.reduce\n\t<0x1>\n\tAttribute:\tEIATTR_CUDA_API_VERSION\n\tFormat:\tEIFMT_SVAL\n\
            \tValue:\t0x82\n\t<0x2>\n\tAttribute:\tEIATTR_MAX_THREADS\n\tFormat:\tEIFMT_SVAL\n\
            \tValue:\t0x200 0x1 0x1\n";
        let reduce = Kernel {
            name: "reduce".to_owned(),
            threads: 512,
            registers: 64,
            spill: 1272,
            stack: 640,
            shared: 1152,
        };
        assert_eq!(cuda(ptxas, usage, elf).unwrap(), [reduce]);
        let cut = "Function reduce:\n  REG:64\n";
        let why = cuda(ptxas, cut, elf).unwrap_err().to_string();
        assert_eq!(why, "reduce: cuobjdump tells no STACK:");
    }

    #[test]
    fn what_amds_object_notes_say_is_understood() {
        let notes = "        AMDGPU Metadata: ---\namdhsa.kernels:\n  - .agpr_count:     0\n    \
            .args:\n      - .name:           args\n        .offset:         0\n    \
            .group_segment_fixed_size: 128\n    .max_flat_workgroup_size: 1024\n    \
            .name:           reduce\n    .private_segment_fixed_size: 1232\n    \
            .sgpr_spill_count: 3\n    .vgpr_count:     128\n    .vgpr_spill_count: 278\n  \
            - .agpr_count:     0\n    .max_flat_workgroup_size: 512\n    .name:           copy\n    \
            .vgpr_count:     3\namdhsa.target:   amdgcn-amd-amdhsa--gfx942\n";
        let reduce = Kernel {
            name: "reduce".to_owned(),
            threads: 1024,
            registers: 128,
            spill: 4 * 278,
            stack: 1232,
            shared: 128,
        };
        let copy =
            Kernel { name: "copy".to_owned(), threads: 512, registers: 3, ..Kernel::default() };
        assert_eq!(hip(notes).unwrap(), [reduce, copy]);
        assert!(hip("amdhsa.kernels:\n  - .vgpr_count: many\n").is_err());
    }

    #[test]
    fn a_hosts_kernels_have_the_names_of_c() {
        let nm = "0000000000000000 T reduce\n0000000000000010 T _Z6helperv\n\
            0000000000000020 W inlined\n0000000000000000 D table\n";
        let names: Vec<_> = host(nm).unwrap().into_iter().map(|kernel| kernel.name).collect();
        assert_eq!(names, ["reduce"]);
    }
}
