//! What a program can check of the house rules. Each finding is one line: file, line, what is wrong.

mod kernels;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

/// The longest a source file may be.
const LINES: usize = 500;
/// Where sources are.
const FOLDERS: [&str; 8] = [
    "crates",
    "examples",
    "fuzz",
    "kernels-common",
    "kernels-cuda",
    "kernels-hip",
    "tests",
    "xtask",
];
/// How sources end.
const ENDINGS: [&str; 7] = ["rs", "h", "cc", "cpp", "c", "cu", "hip"];
/// What every backend crate's `src` has: who has read one has read all. A backend that is only
/// declared has the first two.
const BACKEND_FILES: [&str; 4] = ["lib.rs", "eligibility.rs", "setup.rs", "session.rs"];

/// Checks the checkout below `root`.
pub(crate) fn run(root: &Path) -> Result<()> {
    let findings = findings(root)?;
    match findings.len() {
        0 => Ok(()),
        n => bail!("{}\n{n} findings", findings.join("\n")),
    }
}

fn findings(root: &Path) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for folder in FOLDERS {
        for file in sources(&root.join(folder))? {
            let text = fs::read_to_string(&file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
            check_file(&name, &text, &mut findings);
            kernels::check(&name, &text, &mut findings);
        }
    }
    for entry in fs::read_dir(root.join("crates"))? {
        check_backend(&entry?.path(), &mut findings);
    }
    findings.sort();
    Ok(findings)
}

/// Every source below a folder, built ones apart.
fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return Ok(found) };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            found.extend(sources(&path)?);
        } else if path.extension().is_some_and(|end| ENDINGS.iter().any(|it| end == *it)) {
            found.push(path);
        }
    }
    Ok(found)
}

fn check_file(name: &str, text: &str, findings: &mut Vec<String>) {
    let lines = text.lines().count();
    if lines > LINES {
        findings.push(format!("{name}:1: {lines} lines; split it by concern (at most {LINES})"));
    }
    let mut in_tests = name.contains("/tests/") || name.contains("/benches/");
    // What must not compile need not be finished.
    if name.contains("/compile_fail/") {
        return;
    }
    for (at, line) in (1..).zip(text.lines()) {
        for mark in unfinished() {
            if line.contains(&mark) {
                findings.push(format!("{name}:{at}: `{mark}`: finish it, or take it out"));
            }
        }
        in_tests |= line.contains("#[cfg(test)]");
        if name.starts_with("crates/") && !in_tests && is_threshold(line) {
            findings.push(format!(
                "{name}:{at}: a size in code: if it chooses between algorithms it belongs to \
                 policies/; if not, say what it is in a comment `// size: ..`"
            ));
        }
    }
}

/// Put together so that this file does not find itself.
fn unfinished() -> [String; 4] {
    ["TO DO", "FIX ME", "unimplemented !(", "todo !("].map(|mark| mark.replace(' ', ""))
}

/// A size from 1 KiB to 512 MiB, written as code writes one.
fn is_threshold(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let shifted = code.match_indices("1 << ").any(|(at, mark)| {
        let digits: String =
            code[at + mark.len()..].chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u32>().is_ok_and(|bits| (10..30).contains(&bits))
    });
    (shifted || code.contains("* 1024")) && !line.contains("// size: ")
}

fn check_backend(folder: &Path, findings: &mut Vec<String>) {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with("backend-") {
        let lib = fs::read_to_string(folder.join("src/lib.rs")).unwrap_or_default();
        let runs = lib.contains("register_backend!");
        for file in &BACKEND_FILES[..if runs { 4 } else { 2 }] {
            if !folder.join("src").join(file).exists() {
                findings.push(format!("crates/{name}: it has no src/{file}, as every backend has"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checkout_is_tidy() {
        run(Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace")).unwrap();
    }

    #[test]
    fn sizes_in_code_are_found() {
        for line in ["if bytes < 1 << 18 {", "const CAP: u64 = 256 * 1024;"] {
            assert!(is_threshold(line), "{line}");
        }
        for line in ["1 << bits", "1 << 3", "// 1 << 18", "let c = 4 * 1024; // size: a page"] {
            assert!(!is_threshold(line), "{line}");
        }
    }
}
