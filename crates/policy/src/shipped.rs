//! The policies that are compiled in: the floor, one pack for each architecture that has been
//! measured, and files that packs and users include.

use std::collections::BTreeSet;
use std::path::{Component, Path};
use std::sync::LazyLock;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::diagnostic::Source;

/// A compiled-in policy file.
#[derive(Debug)]
pub(crate) struct Shipped {
    /// The architecture whose pack it is.
    arch: Option<&'static str>,
    /// Its path below `policies/`, by which others name it behind `shipped:`.
    pub(crate) path: &'static str,
    text: &'static str,
}

/// `shipped!("file.toml")`, or `shipped!("file.toml", "arch")` for the pack of an architecture.
macro_rules! shipped {
    ($path:literal) => {
        shipped!(@ $path, None)
    };
    ($path:literal, $arch:literal) => {
        shipped!(@ $path, Some($arch))
    };
    (@ $path:literal, $arch:expr) => {
        Shipped {
            arch: $arch,
            path: $path,
            text: include_str!(concat!("../../../policies/", $path)),
        }
    };
}

pub(crate) const FLOOR: &Shipped = &shipped!("default.toml");

/// A new file is one more line.
const SHIPPED: &[&Shipped] = &[
    FLOOR,
    &shipped!("host.toml", "host"),
    &shipped!("sm80.toml", "sm80"),
    &shipped!("sm90.toml", "sm90"),
    &shipped!("sm100.toml", "sm100"),
    &shipped!("gfx90a.toml", "gfx90a"),
    &shipped!("gfx942.toml", "gfx942"),
    &shipped!("gfx950.toml", "gfx950"),
    &shipped!("beyond.toml"),
    &shipped!("ported/vllm.toml"),
    &shipped!("ported/sglang.toml"),
    &shipped!("deterministic.toml"),
    &shipped!("small_all_gather.toml"),
    &shipped!("hierarchical.toml"),
];

/// How a path names a shipped file, wherever it is written.
pub(crate) const PREFIX: &str = "shipped:";

impl Shipped {
    pub(crate) fn source(&self) -> Source {
        // As it lies in the repository, so that a person finds the line that a message names.
        Source { name: format!("policies/{}", self.path), text: self.text.to_owned() }
    }

    /// The file that this one means by a path, and what that path is below `policies/`.
    pub(crate) fn sibling(&self, path: &str) -> (String, Option<&'static Shipped>) {
        let folder = Path::new(self.path).parent().unwrap_or(Path::new(""));
        let mut parts: Vec<String> = Vec::new();
        for part in folder.join(path).components() {
            match part {
                Component::ParentDir => drop(parts.pop()),
                Component::Normal(name) => parts.push(name.to_string_lossy().into_owned()),
                _ => {}
            }
        }
        let path = parts.join("/");
        let found = named(&path);
        (path, found)
    }
}

/// The shipped file of this path below `policies/`.
pub(crate) fn named(path: &str) -> Option<&'static Shipped> {
    SHIPPED.iter().copied().find(|shipped| shipped.path == path)
}

/// The paths of all of them.
pub(crate) fn paths() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|shipped| shipped.path)
}

/// The architectures that have packs of their own.
pub(crate) fn archs_with_packs() -> Vec<&'static str> {
    SHIPPED.iter().filter_map(|shipped| shipped.arch).collect()
}

/// The pack for an architecture: its own, else that of its family's base (`sm103` runs as `sm100`
/// does); that of another family never.
pub(crate) fn pack_for(arch: &str) -> Option<&'static Shipped> {
    find(SHIPPED, arch)
}

/// Does some pack have a rule, a table or a row of this id, be it in force here or not? A user's
/// file may be shared between machines, and change rules of packs that are not in force on all of
/// them.
pub(crate) fn is_in_a_pack(id: &str) -> bool {
    static IDS: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
        let mut ids = BTreeSet::new();
        let mut seen = Vec::new();
        let mut left: Vec<_> = SHIPPED.iter().copied().filter(|s| s.arch.is_some()).collect();
        while let Some(shipped) = left.pop() {
            if !seen.contains(&shipped.path) {
                seen.push(shipped.path);
                left.extend(collect_ids(shipped, &mut ids));
            }
        }
        ids
    });
    IDS.contains(id)
}

/// Adds the ids in a file; returns what it includes.
fn collect_ids(shipped: &Shipped, ids: &mut BTreeSet<String>) -> Vec<&'static Shipped> {
    let Ok(root) = DeTable::parse(shipped.text) else { return Vec::new() };
    let root = root.get_ref();
    ids.extend(entries(root, "rule").map(|(id, _)| id.get_ref().to_string()));
    for (id, table) in entries(root, "table") {
        ids.insert(id.get_ref().to_string());
        let rows = table.get_ref().as_table().into_iter().flat_map(|table| entries(table, "rows"));
        ids.extend(rows.map(|(row, _)| crate::file::row_id(id.get_ref(), row.get_ref())));
    }
    let includes = root.get("include").and_then(|value| value.get_ref().as_array());
    let paths = includes.into_iter().flatten().filter_map(|path| path.get_ref().as_str());
    paths.filter_map(|path| shipped.sibling(path).1).collect()
}

fn entries<'t, 'i>(
    table: &'t DeTable<'i>,
    key: &str,
) -> impl Iterator<Item = (&'t Spanned<DeString<'i>>, &'t Spanned<DeValue<'i>>)> {
    let below = table.get(key).and_then(|value| value.get_ref().as_table());
    below.into_iter().flatten()
}

fn find(packs: &[&'static Shipped], arch: &str) -> Option<&'static Shipped> {
    // ROCm appends features: `gfx942:sramecc+:xnack-`.
    let arch = arch.split(':').next().unwrap_or(arch);
    let exactly = |arch: &str| packs.iter().copied().find(|pack| pack.arch == Some(arch));
    exactly(arch).or_else(|| exactly(&family_base(arch)?))
}

/// The member of a family that gives it its name: the last digit counts steppings.
fn family_base(arch: &str) -> Option<String> {
    let stem = arch.strip_suffix(|c: char| c.is_ascii_digit())?;
    Some(format!("{stem}0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn pack(arch: &'static str) -> Shipped {
        Shipped { arch: Some(arch), path: "", text: "" }
    }

    #[test]
    fn exact_then_family_base_then_none() {
        static PACKS: [Shipped; 4] = [pack("sm90"), pack("sm100"), pack("gfx942"), pack("sm103")];
        let all: Vec<&'static Shipped> = PACKS.iter().collect();
        let found = |packs: &[&'static Shipped], arch: &str| find(packs, arch).and_then(|p| p.arch);
        assert_eq!(found(&all[..3], "sm103"), Some("sm100"));
        assert_eq!(found(&all, "sm103"), Some("sm103"));
        assert_eq!(found(&all, "sm90"), Some("sm90"));
        assert_eq!(found(&all, "sm120"), None);
        assert_eq!(found(&all, "sm80"), None);
        assert_eq!(found(&all, "gfx942:sramecc+:xnack-"), Some("gfx942"));
        assert_eq!(found(&all, "gfx950"), None);
        assert_eq!(found(&all, "host"), None);
        assert_eq!(found(&all, ""), None);
        assert_eq!(found(&all, "mixed"), None);
    }

    #[test]
    fn every_policy_of_the_repository_is_shipped() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policies");
        let mut files = Vec::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("the folder of policies") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|end| end == "toml") {
                    let below = path.strip_prefix(&root).expect("below it");
                    files.push(below.display().to_string());
                }
            }
        }
        files.sort();
        let mut shipped: Vec<&str> = paths().collect();
        shipped.sort_unstable();
        assert_eq!(files, shipped, "a file of policies/ that is not in this table, or twice in it");
    }

    #[test]
    fn shipped_files_name_one_another_by_relative_paths() {
        let nested = Shipped { arch: None, path: "ported/one.toml", text: "" };
        assert_eq!(nested.sibling("two.toml").0, "ported/two.toml");
        assert_eq!(nested.sibling("../host.toml").1.map(|s| s.path), Some("host.toml"));
        assert_eq!(nested.sibling("./a/../../host.toml").1.map(|s| s.path), Some("host.toml"));
    }

    #[test]
    fn ids_of_packs_are_known_wherever_one_is() {
        assert!(is_in_a_pack("host-all-reduce-2"));
        assert!(!is_in_a_pack("floor"), "the floor is in force everywhere");
        assert!(!is_in_a_pack("host-all-reduce"));
    }
}
