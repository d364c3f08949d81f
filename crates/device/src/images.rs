//! Where kernel images are, and which image has a kernel.
//!
//! `cargo xtask kernels` writes a folder for each architecture, with an image for each source and
//! `manifest.json`, which says what is in them: `kernels/sm90/manifest.json`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::driver::Vendor;
use crate::error::DeviceError;

/// Marks cargo's folder for what it builds.
const CARGO_MARK: &str = "CACHEDIR.TAG";
/// How far above a program cargo's folder is: `target/debug/deps`.
const CARGO_DEPTH: usize = 3;

/// The folders where images are looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    folders: Vec<PathBuf>,
}

impl Places {
    /// The folder that the user names, alone. Without one, `kernels` beside the program, as in a
    /// bundle, and then `kernels` in the folder where cargo built the program.
    pub fn new(named: Option<&Path>) -> Places {
        match (named, std::env::current_exe()) {
            (Some(folder), _) => Places { folders: vec![folder.into()] },
            (None, Ok(program)) => Places { folders: beside(&program) },
            (None, Err(_)) => Places { folders: Vec::new() },
        }
    }

    /// The images for an architecture. Where there are none, those for the first of its family,
    /// whose code it runs: `sm80`'s for `sm86`.
    ///
    /// # Errors
    /// There are none; or their manifest cannot be read.
    pub fn images(&self, vendor: Vendor, arch: &str) -> Result<Images, DeviceError> {
        let arches = candidates(vendor, arch);
        let mut looked = Vec::new();
        for arch in &arches {
            for folder in &self.folders {
                let folder = folder.join(arch);
                let manifest = folder.join("manifest.json");
                match std::fs::read(&manifest) {
                    Ok(text) => return Images::read(folder, &manifest, &text),
                    Err(_) => looked.push(manifest.display().to_string()),
                }
            }
        }
        // What serves the whole family is what is built.
        let built = arches.last().map_or(arch, String::as_str);
        let command = match vendor {
            Vendor::Cuda => format!("cargo xtask kernels cuda --arch {built}"),
            Vendor::Hip => format!("cargo xtask kernels hip --arch {built}"),
            Vendor::Emulated => "cargo xtask kernels host".into(),
        };
        Err(DeviceError::NoImage { arch: arch.into(), looked: looked.join(", "), command })
    }
}

/// The images for an architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Images {
    folder: PathBuf,
    arch: String,
    abi: String,
    files: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Manifest {
    arch: String,
    abi: String,
    files: Vec<File>,
}

#[derive(Deserialize)]
struct File {
    file: String,
    kernels: Vec<Kernel>,
}

#[derive(Deserialize)]
struct Kernel {
    name: String,
}

impl Images {
    fn read(folder: PathBuf, path: &Path, text: &[u8]) -> Result<Images, DeviceError> {
        let manifest: Manifest = serde_json::from_slice(text).map_err(|e| {
            let path = path.display();
            DeviceError::Invalid(format!("{path} is no manifest of kernels: {e}; build them again"))
        })?;
        let mut files = BTreeMap::new();
        for File { file, kernels } in manifest.files {
            files.extend(kernels.into_iter().map(|kernel| (kernel.name, file.clone())));
        }
        Ok(Images { folder, arch: manifest.arch, abi: manifest.abi, files })
    }

    /// What they were compiled for.
    pub fn arch(&self) -> &str {
        &self.arch
    }

    /// SHA-256 of the header of parameters that they were compiled with, in hexadecimal.
    pub fn abi(&self) -> &str {
        &self.abi
    }

    /// Where they are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The names of all kernels.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// The image that has a kernel.
    ///
    /// # Errors
    /// None has.
    pub fn file(&self, kernel: &str) -> Result<PathBuf, DeviceError> {
        match self.files.get(kernel) {
            Some(file) => Ok(self.folder.join(file)),
            None => Err(DeviceError::Invalid(format!(
                "no kernel in {} is called `{kernel}`: build the kernels of this version",
                self.folder.display()
            ))),
        }
    }
}

/// `kernels` beside a program, and in the folder where cargo built it.
fn beside(program: &Path) -> Vec<PathBuf> {
    let above = program.ancestors().skip(1);
    let built = above.clone().take(CARGO_DEPTH).filter(|folder| folder.join(CARGO_MARK).exists());
    above.take(1).chain(built).map(|folder| folder.join("kernels")).collect()
}

/// The architectures whose images a device runs, best first, as folders are called.
fn candidates(vendor: Vendor, arch: &str) -> Vec<String> {
    // Features may follow the name (`gfx942:sramecc+:xnack-`): images are for any of them.
    let exact = arch.split(':').next().unwrap_or_default();
    let mut all = vec![exact.to_string()];
    // NVIDIA's machine code runs on later minors of its major. AMD's runs on its own architecture
    // alone.
    if let (Vendor::Cuda, Some((minor, _))) = (vendor, exact.char_indices().next_back()) {
        let first = format!("{}0", &exact[..minor]);
        if first != exact {
            all.push(first);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_the_family_serves_where_the_vendor_runs_its_code() {
        assert_eq!(candidates(Vendor::Cuda, "sm90"), ["sm90"]);
        assert_eq!(candidates(Vendor::Cuda, "sm86"), ["sm86", "sm80"]);
        assert_eq!(candidates(Vendor::Cuda, "sm103"), ["sm103", "sm100"]);
        assert_eq!(candidates(Vendor::Cuda, "sm121"), ["sm121", "sm120"]);
        assert_eq!(candidates(Vendor::Hip, "gfx942:sramecc+:xnack-"), ["gfx942"]);
        assert_eq!(candidates(Vendor::Emulated, "host"), ["host"]);
    }

    #[test]
    fn a_program_finds_what_is_beside_it_and_what_cargo_built() {
        let root = tempfile::tempdir().unwrap();
        let deps = root.path().join("target/debug/deps");
        std::fs::create_dir_all(&deps).unwrap();
        assert_eq!(beside(&deps.join("test")), [deps.join("kernels")]);
        std::fs::write(root.path().join("target/CACHEDIR.TAG"), "").unwrap();
        let built = root.path().join("target/kernels");
        assert_eq!(beside(&deps.join("test")), [deps.join("kernels"), built.clone()]);
        let program = root.path().join("target/release/crossover");
        let beside_it = root.path().join("target/release/kernels");
        assert_eq!(beside(&program), [beside_it, built]);
    }

    #[test]
    fn images_are_found_by_kernel() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("sm80");
        std::fs::create_dir(&folder).unwrap();
        let manifest = r#"{"arch": "sm80", "platform": "cuda", "compiler": "nvcc", "abi": "00ff",
            "sources": "",
            "files": [{"file": "all_reduce-lamport.fatbin", "source": "", "digest": "",
                       "kernels": [{"name": "lamport_bf16_2"}, {"name": "lamport_f16_2"}]}]}"#;
        std::fs::write(folder.join("manifest.json"), manifest).unwrap();
        let places = Places::new(Some(root.path()));
        let images = places.images(Vendor::Cuda, "sm86").unwrap();
        assert_eq!((images.arch(), images.abi()), ("sm80", "00ff"));
        assert_eq!(images.kernels().collect::<Vec<_>>(), ["lamport_bf16_2", "lamport_f16_2"]);
        let file = images.file("lamport_f16_2").unwrap();
        assert_eq!(file, folder.join("all_reduce-lamport.fatbin"));
        let said = images.file("lamport_f8_2").unwrap_err().to_string();
        assert!(said.contains("`lamport_f8_2`") && said.contains("sm80"), "{said}");
    }

    #[test]
    fn where_there_are_none_the_command_that_builds_them_is_told() {
        let root = tempfile::tempdir().unwrap();
        let places = Places::new(Some(root.path()));
        for (vendor, arch, command) in [
            (Vendor::Cuda, "sm103", "`cargo xtask kernels cuda --arch sm100`"),
            (Vendor::Hip, "gfx942:xnack-", "`cargo xtask kernels hip --arch gfx942`"),
            (Vendor::Emulated, "host", "`cargo xtask kernels host`"),
        ] {
            let said = places.images(vendor, arch).unwrap_err().to_string();
            assert!(said.contains(command) && said.contains("manifest.json"), "{said}");
        }
    }

    #[test]
    fn a_broken_manifest_is_told_with_its_place() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("sm90")).unwrap();
        std::fs::write(root.path().join("sm90/manifest.json"), "{").unwrap();
        let said =
            Places::new(Some(root.path())).images(Vendor::Cuda, "sm90").unwrap_err().to_string();
        assert!(said.contains("sm90/manifest.json is no manifest"), "{said}");
    }
}
