//! A build that fails leaves what was built: here on the host, whose compiler is at hand.

use std::fs;
use std::path::{Path, PathBuf};

use super::arch::{Arch, Platform};
use super::build;
use super::manifest::Manifest;
use super::toolchain::Toolchain;

const KERNELS: &str = "kernels-common/kernels";

/// A checkout with two kernels.
struct Checkout {
    root: PathBuf,
    toolchain: Toolchain,
}

impl Checkout {
    fn write(&self, source: &str, text: &str) {
        fs::write(self.root.join(KERNELS).join(source), text).unwrap();
    }

    fn build(&self) -> Result<(), String> {
        let arches: Vec<_> = Arch::of(Platform::Host).collect();
        build::run(&self.root, &self.toolchain, &arches).map_err(|why| why.to_string())
    }

    fn folder(&self) -> PathBuf {
        self.root.join("target/kernels/host")
    }

    fn manifest(&self) -> Manifest {
        Manifest::read(&self.folder()).unwrap()
    }

    fn library(&self) -> Vec<u8> {
        fs::read(self.folder().join("kernels.so")).unwrap()
    }
}

#[test]
fn what_was_built_stays_until_all_is_compiled() {
    let root = std::env::temp_dir().join(format!("crossover-rebuilds-{}", std::process::id()));
    for folder in [KERNELS, "kernels-common/crossover", "tests/kernel-emulation"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    fs::write(root.join("kernels-common/crossover/abi.h"), "").unwrap();
    let Some(toolchain) = Toolchain::find(&root, Platform::Host).unwrap() else {
        return crate::say("skipped: no g++ here");
    };
    let checkout = Checkout { root, toolchain };
    checkout.write("one.cc", &kernel("one", 1));
    checkout.write("two.cc", &kernel("two", 1));
    checkout.build().unwrap();
    let (manifest, library) = (checkout.manifest(), checkout.library());
    assert_eq!(manifest.files.len(), 2);

    checkout.write("one.cc", "no kernel");
    checkout.write("two.cc", &kernel("two", 2));
    let why = checkout.build().unwrap_err();
    assert!(why.starts_with("1 of 2 not compiled; what was built before is kept\n"), "{why}");
    assert_eq!(checkout.manifest(), manifest);
    assert_eq!(checkout.library(), library);

    // What was compiled beside it is not compiled again.
    let waiting = checkout.root.join("target/kernels/.part/host/two.o");
    let made = written(&waiting);
    checkout.build().unwrap_err();
    assert_eq!(written(&waiting), made);

    checkout.write("one.cc", &kernel("one", 2));
    checkout.build().unwrap();
    assert_ne!(checkout.manifest().sources, manifest.sources);
    assert_ne!(checkout.library(), library);
    assert_eq!(written(&checkout.folder().join("objects/two.o")), made);
    assert!(!checkout.root.join("target/kernels/.part/host").exists());

    // A source that is gone is gone from the library.
    let library = checkout.library();
    fs::remove_file(checkout.root.join(KERNELS).join("one.cc")).unwrap();
    checkout.build().unwrap();
    assert_eq!(checkout.manifest().files.len(), 1);
    assert_ne!(checkout.library(), library);
    fs::remove_dir_all(&checkout.root).unwrap();
}

fn written(path: &Path) -> std::time::SystemTime {
    fs::metadata(path).unwrap().modified().unwrap()
}

fn kernel(name: &str, result: u32) -> String {
    format!("extern \"C\" int {name}() {{ return {result}; }}\n")
}
