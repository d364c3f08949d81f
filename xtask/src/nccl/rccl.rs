//! `cargo xtask rccl`: a real RCCL with its header, which the tests of nccl-sys hold themselves to.
//!
//! It is on no package index of Python's; Debian has it ahead of its releases. So its packages are
//! fetched by apt into folders of their own, and nothing is installed. They want a newer C library
//! than most machines have, which is among them, with the loader that tests start themselves by.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

/// Suites, packages and versions.
const PACKAGES: &str = include_str!("rccl-packages.txt");
/// The lines of [`PACKAGES`] that were fetched, beside what was.
const LIST: &str = "packages.txt";
/// Of RCCL, not of ROCm; the tests of nccl-sys look for it.
const VERSION: &str = "2.27.7";
/// Whose signature a list of packages has to bear: of package debian-archive-keyring.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
const WANTED: &str = "RCCL cannot be fetched: it takes apt-get and dpkg-deb of Debian on x86-64, and \
                      Debian's packages";

/// Fetches 440 MB and keeps 635 MB of it, or does nothing where it is already there.
///
/// # Errors
///
/// It cannot be had: one sentence with what it takes.
pub(crate) fn run(root: &Path) -> Result<()> {
    have(root, &lines().collect::<Vec<_>>())
}

/// Fetches no more than the header: 26 kB, and 1 MB of lists.
///
/// # Errors
///
/// As [`run`].
pub(crate) fn header(root: &Path) -> Result<()> {
    have(root, &lines().take(1).collect::<Vec<_>>())
}

fn lines() -> impl Iterator<Item = &'static str> {
    PACKAGES.lines().filter(|line| !line.starts_with('#'))
}

fn have(root: &Path, wanted: &[&str]) -> Result<()> {
    let whole = root.join(format!("target/toolchains/rccl-{VERSION}"));
    let had = fs::read_to_string(whole.join(LIST)).unwrap_or_default();
    if wanted.iter().all(|line| had.lines().any(|had| had == *line)) {
        return Ok(());
    }
    ensure!(cfg!(all(target_os = "linux", target_arch = "x86_64")), "{WANTED}");
    crate::say(&format!("fetching RCCL {VERSION} into {}", whole.display()));
    let part = root.join(format!("target/toolchains/rccl-{VERSION}-part"));
    if part.exists() {
        fs::remove_dir_all(&part)?; // a fetch that was broken off
    }
    let unpacked = part.join("unpacked");
    fs::create_dir_all(&unpacked)?;
    let apt = Apt::new(&part.join("apt"), wanted)?;
    for line in wanted {
        let package = apt.download(line)?;
        quietly(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&unpacked))?;
        fs::remove_file(package)?;
    }
    for (from, to) in [("usr/include", "include"), ("usr/lib/x86_64-linux-gnu", "lib")] {
        let from = unpacked.join(from);
        if from.exists() {
            fs::rename(from, part.join(to))?;
        }
    }
    fs::remove_dir_all(&unpacked)?;
    fs::remove_dir_all(&apt.folder)?;
    fs::write(part.join(LIST), wanted.join("\n") + "\n")?;
    if whole.exists() {
        fs::remove_dir_all(&whole)?; // of other packages, or of fewer
    }
    fs::rename(&part, &whole)?;
    Ok(())
}

/// apt with state of its own.
struct Apt {
    folder: PathBuf,
}

impl Apt {
    /// Reads the lists of the suites that are wanted, from where this machine has Debian's.
    fn new(folder: &Path, wanted: &[&str]) -> Result<Self> {
        for state in ["lists/partial", "archives/partial", "debs"] {
            fs::create_dir_all(folder.join(state))?;
        }
        let mut suites: Vec<_> = wanted.iter().filter_map(|line| line.split(' ').next()).collect();
        suites.dedup();
        let (from, suites) = (mirror()?, suites.join(" "));
        let sources = format!(
            "Types: deb\nURIs: {from}\nSuites: {suites}\nComponents: main\nSigned-By: {KEYS}\n"
        );
        fs::write(folder.join("debian.sources"), sources)?;
        fs::write(folder.join("status"), "")?; // as if nothing were installed
        let apt = Self { folder: folder.to_owned() };
        apt.run(&["update"])?;
        Ok(apt)
    }

    /// The file of a line's package.
    fn download(&self, line: &str) -> Result<PathBuf> {
        let (suite, package) = line.split_once(' ').context("a line is a suite and a package")?;
        // Both suites may have it, in other versions.
        self.run(&["-t", suite, "download", package])?;
        let debs = fs::read_dir(self.folder.join("debs"))?.next();
        Ok(debs.with_context(|| format!("apt-get has downloaded no {package}"))??.path())
    }

    fn run(&self, args: &[&str]) -> Result<()> {
        let at = |name: &str| self.folder.join(name).display().to_string();
        let mut apt = Command::new("apt-get");
        apt.arg("--quiet").current_dir(at("debs"));
        for (key, value) in [
            ("Dir::Etc::SourceList", at("debian.sources")),
            ("Dir::Etc::SourceParts", "/dev/null".to_owned()),
            ("Dir::Etc::PreferencesParts", "/dev/null".to_owned()),
            ("Dir::State::Lists", at("lists")),
            ("Dir::State::Status", at("status")),
            ("Dir::Cache::Archives", at("archives")),
            ("Dir::Cache::PkgCache", String::new()),
            ("Dir::Cache::SrcPkgCache", String::new()),
            ("APT::Architecture", "amd64".to_owned()),
            ("APT::Architectures", "amd64".to_owned()),
            // Its own user may not come into the folder.
            ("APT::Sandbox::User", "root".to_owned()),
            ("Acquire::Retries", "2".to_owned()),
            ("Acquire::IndexTargets::deb::DEP-11::DefaultEnabled", "false".to_owned()),
            ("Acquire::Languages", "none".to_owned()),
        ] {
            apt.arg("-o").arg(format!("{key}={value}"));
        }
        quietly(apt.args(args)).map(|_| ())
    }
}

/// Where this machine has Debian's own packages from.
fn mirror() -> Result<String> {
    let mut apt = Command::new("apt-get");
    apt.args(["indextargets", "--format", "$(SITE)", "Created-By: Packages", "Label: Debian"]);
    let told = quietly(&mut apt)?;
    Ok(told.lines().next().context(WANTED)?.to_owned())
}

/// What a program prints; where it fails, the last that it says.
fn quietly(program: &mut Command) -> Result<String> {
    let output = program.output().context(WANTED)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{WANTED}: {}", said.lines().next_back().unwrap_or("no message").trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
