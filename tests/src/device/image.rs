//! The kernels for the emulated device: built with g++, and told in a manifest as a vendor's are.

use std::fs;
use std::path::PathBuf;

use crossover_kernel_emulation::compile::{CompileError, Make, build, common_kernels};
use sha2::{Digest, Sha256};

/// The folder that holds a folder of images for the emulated architecture.
pub(super) fn folder() -> Result<PathBuf, CompileError> {
    let image = build(Make::Image, &common_kernels()?, &[])?;
    let root = image.with_extension("images");
    let folder = root.join("emulated");
    let told = |error| CompileError::File { path: folder.clone(), error };
    fs::create_dir_all(&folder).map_err(told)?;
    let header = crossover_kernel_abi::header();
    let abi: String =
        Sha256::digest(header.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let kernels: Vec<String> =
        names().iter().map(|name| format!(r#"{{"name": "{name}"}}"#)).collect();
    let manifest = format!(
        r#"{{"arch": "emulated", "abi": "{abi}", "files": [{{"file": {image:?}, "kernels": [{}]}}]}}"#,
        kernels.join(", ")
    );
    // Other tests read it meanwhile.
    let part = folder.join(format!("{}.part", std::process::id()));
    fs::write(&part, manifest).map_err(told)?;
    fs::rename(&part, folder.join("manifest.json")).map_err(told)?;
    Ok(root)
}

/// The entry points, by the pattern of `kernels-common/crossover/instantiate.h`.
fn names() -> Vec<String> {
    let families = ["one_shot_push", "one_shot_pull", "two_shot_push", "two_shot_pull", "lamport"];
    let scatters = ["reduce_scatter_push", "reduce_scatter_pull"];
    let mut names: Vec<String> =
        ["probe", "gather_pull", "parts_push", "parts_pull"].map(str::to_owned).into();
    names.extend(["floor_empty", "floor_trip", "floor_copy"].map(str::to_owned));
    for family in families.iter().chain(&scatters) {
        for dtype in ["f32", "f16", "bf16"] {
            names.extend(
                ["sum_2", "sum_4", "sum_8", "sum_any", "other_any"]
                    .map(|end| format!("{family}_{dtype}_{end}")),
            );
        }
    }
    for family in ["gather_push", "gather_lamport_f32", "gather_lamport_half"] {
        names.extend(["2", "4", "8", "any"].map(|world| format!("{family}_{world}")));
    }
    let has_short = |name: &&String| {
        ["push", "lamport"].iter().any(|way| name.contains(way)) && !name.contains("other")
    };
    let short: Vec<_> =
        names.iter().filter(has_short).map(|name| format!("{name}_short")).collect();
    names.extend(short);
    names
}
