//! Each platform's header keeps its word: the instructions that a compiler makes of every primitive
//! have the scope and the order that the dialect promises.

use std::collections::HashMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::arch::{Arch, Platform};
use super::compile::{compile, tell};
use super::sources::Source;
use super::toolchain::Toolchain;

/// A kernel of `orders.cc`, and lines that its code has in this order; `..` stands for anything.
type Promise = (&'static str, &'static [&'static str]);

/// sm_80 and later. A release waits for all that was written before; an acquire empties the cache
/// that is not coherent. Counting orders nothing: barriers around it do.
const CUDA: &[Promise] = &[
    ("pack", &["LDG.E.128 ", "STG.E.128 "]),
    ("pack_relaxed", &["LDG.E.128.STRONG.SYS", "STG.E.128.STRONG.SYS"]),
    ("line_relaxed", &["LDG.E.128.STRONG.SYS", "STG.E.128.STRONG.SYS"]),
    ("relaxed_u64", &["LDG.E.64.STRONG.SYS", "STG.E.64.STRONG.SYS"]),
    ("relaxed_u32", &["LDG.E.STRONG.SYS", "STG.E.STRONG.SYS"]),
    ("acquire_u64", &["LDG.E.64.STRONG.SYS", "CCTL.IVALL", "STG.E.128 "]),
    ("release_u64", &["MEMBAR.ALL.SYS", "STG.E.64.STRONG.SYS"]),
    ("release_u32", &["MEMBAR.ALL.SYS", "STG.E.STRONG.SYS"]),
    ("exchange_u32", &["MEMBAR.ALL.SYS", "CAS.STRONG.SYS", "CCTL.IVALL"]),
    ("barrier", &["BAR.SYNC"]),
];

/// gfx942 and gfx950: `sc0 sc1` is system scope, `sc1` the device's. The write-back is itself
/// waited for.
const GFX942: &[Promise] = &[
    ("pack", &["global_load_dwordx4", "global_store_dwordx4"]),
    ("pack_relaxed", GFX942_LINE),
    ("line_relaxed", GFX942_LINE),
    ("relaxed_u64", &["global_load_dwordx2 .. sc0 sc1", "global_store_dwordx2 .. sc0 sc1"]),
    ("relaxed_u32", &["global_load_dword .. sc0 sc1", "global_store_dword .. sc0 sc1"]),
    ("acquire_u64", &["global_load_dwordx2 .. sc0 sc1", "vmcnt(0)", "buffer_inv sc0 sc1"]),
    ("release_u64", &["buffer_wbl2 sc0 sc1", "vmcnt(0)", "global_store_dwordx2 .. sc0 sc1"]),
    ("release_u32", &["buffer_wbl2 sc0 sc1", "vmcnt(0)", "global_store_dword .. sc0 sc1"]),
    (
        "exchange_u32",
        &["buffer_wbl2 sc0 sc1", "vmcnt(0)", "cmpswap .. sc1", "vmcnt(0)", "buffer_inv sc0 sc1"],
    ),
    ("barrier", &["vmcnt(0)", "s_barrier"]),
];
const GFX942_LINE: &[&str] = &[
    "global_load_dwordx2 .. sc0 sc1",
    "global_load_dwordx2 .. sc0 sc1",
    "global_store_dwordx2 .. sc0 sc1",
    "global_store_dwordx2 .. sc0 sc1",
];

/// gfx90a: `glc` passes by the first cache; stores always do, and the second cache is written back
/// and emptied by instructions of its own.
const GFX90A: &[Promise] = &[
    ("pack", &["global_load_dwordx4", "global_store_dwordx4"]),
    ("pack_relaxed", GFX90A_LINE),
    ("line_relaxed", GFX90A_LINE),
    ("relaxed_u64", &["global_load_dwordx2 .. glc", "global_store_dwordx2"]),
    ("relaxed_u32", &["global_load_dword .. glc", "global_store_dword"]),
    (
        "acquire_u64",
        &["global_load_dwordx2 .. glc", "vmcnt(0)", "buffer_invl2", "buffer_wbinvl1_vol"],
    ),
    ("release_u64", &["buffer_wbl2", "vmcnt(0)", "global_store_dwordx2"]),
    ("release_u32", &["buffer_wbl2", "vmcnt(0)", "global_store_dword"]),
    (
        "exchange_u32",
        &["buffer_wbl2", "vmcnt(0)", "cmpswap", "vmcnt(0)", "buffer_invl2", "buffer_wbinvl1_vol"],
    ),
    ("barrier", &["vmcnt(0)", "s_barrier"]),
];
const GFX90A_LINE: &[&str] = &[
    "global_load_dwordx2 .. glc",
    "global_load_dwordx2 .. glc",
    "global_store_dwordx2",
    "global_store_dwordx2",
];

#[test]
fn nvidias_header_keeps_its_word() {
    check(Platform::Cuda, |_| CUDA);
}

#[test]
fn amds_header_keeps_its_word() {
    check(Platform::Hip, |arch| if arch == "gfx90a" { GFX90A } else { GFX942 });
}

#[track_caller]
fn check(platform: Platform, promises: fn(&str) -> &'static [Promise]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let Some(toolchain) = Toolchain::find(root, platform).unwrap() else {
        return crate::say(&format!(
            "skipped: no compiler here; `cargo xtask kernels {}` fetches it or says how",
            platform.name()
        ));
    };
    let source = Source {
        path: PathBuf::from("xtask/src/kernels/orders.cc"),
        stem: "orders".to_owned(),
        is_kernel: true,
    };
    // A folder a platform: both are checked at the same time.
    let name = format!("crossover-orders-{}-{}", platform as u8, std::process::id());
    let folder = env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    for arch in Arch::of(platform) {
        let object = folder.join(arch.name);
        let kernels = compile(root, &toolchain, arch, &source, &object).unwrap();
        for kernel in &kernels {
            assert_eq!((kernel.threads, kernel.stack), (512, 0), "{} {kernel:?}", arch.name);
        }
        let text = disassemble(&toolchain, &object);
        let bodies = bodies(&text);
        for (name, lines) in promises(arch.name) {
            let body = bodies.get(name).unwrap_or_else(|| panic!("{} has no {name}", arch.name));
            let mut code = body.iter();
            for line in *lines {
                assert!(
                    code.any(|it| has(it, line)),
                    "{} {name}: `{line}` is missing, or too early\n{}",
                    arch.name,
                    body.join("\n")
                );
            }
        }
        assert_eq!(kernels.len(), promises(arch.name).len(), "a primitive that nobody reads");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

fn disassemble(toolchain: &Toolchain, object: &Path) -> String {
    let mut command = match toolchain.platform {
        Platform::Cuda => {
            // It looks for nvdisasm there.
            let mut path = toolchain.reader.parent().unwrap().as_os_str().to_owned();
            path.push(":");
            path.push(env::var_os("PATH").unwrap_or_default());
            let mut command = Command::new(&toolchain.reader);
            command.arg("-sass").env("PATH", path);
            command
        }
        _ => {
            let name = toolchain.reader.file_name().unwrap().display().to_string();
            let objdump = toolchain.reader.with_file_name(name.replace("readobj", "objdump"));
            let mut command = Command::new(objdump);
            command.args(["-d", "--no-show-raw-insn"]);
            command
        }
    };
    tell(command.arg(object)).unwrap().stdout
}

/// The lines of each function, by its name: `Function : pack`, or `0000000000002a00 <pack>:`.
fn bodies(text: &str) -> HashMap<&str, Vec<&str>> {
    let mut bodies = HashMap::<_, Vec<_>>::new();
    let mut name = "";
    for line in text.lines().map(str::trim) {
        let begun = line
            .strip_prefix("Function : ")
            .or_else(|| line.split_once(" <").and_then(|(_, rest)| rest.strip_suffix(">:")));
        match begun {
            Some(begun) => name = begun,
            None => bodies.entry(name).or_default().push(line),
        }
    }
    bodies
}

/// Does the line have all parts of what is looked for, in order?
fn has(line: &str, wanted: &str) -> bool {
    let mut rest = line;
    wanted.split(" .. ").all(|part| match rest.split_once(part) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}
