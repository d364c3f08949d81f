//! What kernels may take of a device, and the table of what they do take.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::{Result, bail, ensure};

use super::manifest::{Kernel, Manifest};

/// Most registers of a thread, by the most threads of a block: platform, threads, registers.
///
/// A launch has at most one block a multiprocessor, so one block of the most threads has to fit: more
/// registers would not launch. NVIDIA: 65,536 registers a multiprocessor. AMD: 512 a lane of each of a
/// unit's four SIMDs, waves of 64.
const LIMITS: [(&str, u32, u32); 6] = [
    ("cuda", 256, 255),
    ("cuda", 512, 128),
    ("cuda", 1024, 64),
    ("hip", 256, 256),
    ("hip", 512, 256),
    ("hip", 1024, 128),
];

/// Checks all that is built, and prints what it takes.
///
/// # Errors
///
/// Each kernel that spills, has a stack, takes too many registers or states no launch bound.
pub(super) fn run(root: &Path) -> Result<()> {
    let mut findings = Vec::new();
    let mut folders: Vec<_> =
        fs::read_dir(root.join("target/kernels")).into_iter().flatten().flatten().collect();
    folders.sort_by_key(fs::DirEntry::file_name);
    for folder in folders {
        if let Some(manifest) = Manifest::read(&folder.path()) {
            crate::say(&table(&manifest));
            findings.extend(wrong(&manifest));
        }
    }
    match findings.len() {
        0 => Ok(()),
        n => bail!("{n} findings in kernels\n{}", findings.join("\n")),
    }
}

/// A loader finds a kernel by its name alone.
pub(super) fn unique(manifest: &Manifest) -> Result<()> {
    let mut seen = HashMap::new();
    for file in &manifest.files {
        for kernel in &file.kernels {
            let other = seen.insert(&kernel.name, &file.source);
            ensure!(
                other.is_none(),
                "{} and {} both define the kernel {}",
                other.map_or("", String::as_str),
                file.source,
                kernel.name
            );
        }
    }
    Ok(())
}

/// One finding a line.
fn wrong(manifest: &Manifest) -> Vec<String> {
    if manifest.platform == "host" {
        return Vec::new();
    }
    let kernels = manifest.files.iter().flat_map(|file| &file.kernels);
    kernels
        .flat_map(|kernel| {
            let what = why_not(&manifest.platform, kernel);
            what.into_iter().map(|what| format!("{} {}: {what}", manifest.arch, kernel.name))
        })
        .collect()
}

fn why_not(platform: &str, kernel: &Kernel) -> Vec<String> {
    let mut why = Vec::new();
    let Kernel { threads, registers, spill, stack, .. } = *kernel;
    if spill > 0 {
        why.push(format!("it spills {spill} bytes of registers"));
    }
    if stack > 0 {
        why.push(format!("its threads have a stack of {stack} bytes"));
    }
    let limit = LIMITS.iter().find(|(of, most, _)| *of == platform && threads <= *most);
    match limit {
        _ if threads == 0 => why.push("it states no most threads of a block".to_owned()),
        None => why.push(format!("no limit is known for {threads} threads")),
        Some(&(_, most, limit)) if registers > limit => why.push(format!(
            "{registers} registers, and at most {limit} where a block has up to {most} threads"
        )),
        Some(_) => {}
    }
    why
}

/// A line for each file: how many kernels, and the most that one of them takes.
pub(super) fn table(manifest: &Manifest) -> String {
    if manifest.platform == "host" {
        let kernels: usize = manifest.files.iter().map(|file| file.kernels.len()).sum();
        return format!("{}: {kernels} kernels", manifest.arch);
    }
    let mut lines = vec![format!(
        "{:<8}{:<44}{:>8}{:>9}{:>10}{:>7}{:>7}{:>8}",
        manifest.arch, "source", "kernels", "threads", "registers", "spill", "stack", "shared"
    )];
    for file in manifest.files.iter().filter(|file| !file.kernels.is_empty()) {
        let most = |of: fn(&Kernel) -> u32| file.kernels.iter().map(of).max().unwrap_or(0);
        let source = file.source.trim_start_matches("kernels-common/kernels/");
        lines.push(format!(
            "{:<8}{source:<44}{:>8}{:>9}{:>10}{:>7}{:>7}{:>8}",
            "",
            file.kernels.len(),
            most(|kernel| kernel.threads),
            most(|kernel| kernel.registers),
            most(|kernel| kernel.spill),
            most(|kernel| kernel.stack),
            most(|kernel| kernel.shared),
        ));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::manifest::File;
    use super::*;

    fn kernel(threads: u32, registers: u32) -> Kernel {
        Kernel { name: "k".to_owned(), threads, registers, ..Kernel::default() }
    }

    #[test]
    fn a_kernel_that_takes_too_much_is_named_with_the_reason() {
        assert!(why_not("cuda", &kernel(512, 128)).is_empty());
        assert!(why_not("cuda", &kernel(256, 128)).is_empty());
        assert_eq!(
            why_not("cuda", &kernel(512, 129)),
            ["129 registers, and at most 128 where a block has up to 512 threads"]
        );
        // Two waves a SIMD, and four.
        assert!(why_not("hip", &kernel(512, 256)).is_empty());
        assert!(!why_not("hip", &kernel(512, 257)).is_empty());
        assert!(!why_not("hip", &kernel(1024, 129)).is_empty());
        assert_eq!(why_not("hip", &kernel(0, 1)), ["it states no most threads of a block"]);
        let spills = Kernel { spill: 16, stack: 24, ..kernel(512, 128) };
        let manifest = Manifest {
            arch: "sm90".to_owned(),
            platform: "cuda".to_owned(),
            files: vec![File {
                file: String::new(),
                source: String::new(),
                digest: String::new(),
                kernels: vec![spills],
            }],
            ..Manifest::default()
        };
        assert_eq!(
            wrong(&manifest),
            [
                "sm90 k: it spills 16 bytes of registers",
                "sm90 k: its threads have a stack of 24 bytes"
            ]
        );
    }
}
