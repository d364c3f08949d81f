//! The policies that are compiled in: the floor, and one pack for each architecture that has been
//! measured.

use crate::diagnostic::Source;

/// A compiled-in policy file.
pub(crate) struct Shipped {
    /// The architecture that it is for.
    arch: &'static str,
    /// Its path in the repository, so that a person finds the line that a message names.
    file: &'static str,
    text: &'static str,
}

pub(crate) const FLOOR: Shipped = Shipped {
    arch: "",
    file: "policies/default.toml",
    text: include_str!("../../../policies/default.toml"),
};

/// A new pack is one more entry.
const PACKS: &[Shipped] = &[Shipped {
    arch: "host",
    file: "policies/host.toml",
    text: include_str!("../../../policies/host.toml"),
}];

impl Shipped {
    pub(crate) fn source(&self) -> Source {
        Source { name: self.file.to_owned(), text: self.text.to_owned() }
    }
}

/// The pack for an architecture: its own, else that of its family's base (`sm103` runs as `sm100`
/// does); that of another family never.
pub(crate) fn pack_for(arch: &str) -> Option<&'static Shipped> {
    find(PACKS, arch)
}

/// The ids of the rules of every pack. A user's file may be shared between machines, and change
/// rules of packs that are not in force on all of them.
pub(crate) fn shipped_rule_ids() -> Vec<String> {
    let mut ids = Vec::new();
    for pack in PACKS {
        let rules = toml::de::DeTable::parse(pack.text).ok();
        let rules =
            rules.as_ref().and_then(|root| root.get_ref().get("rule")?.get_ref().as_table());
        ids.extend(rules.into_iter().flatten().map(|(id, _)| id.get_ref().to_string()));
    }
    ids
}

fn find<'p>(packs: &'p [Shipped], arch: &str) -> Option<&'p Shipped> {
    // ROCm appends features: `gfx942:sramecc+:xnack-`.
    let arch = arch.split(':').next().unwrap_or(arch);
    let exactly = |arch: &str| packs.iter().find(|pack| pack.arch == arch);
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
        Shipped { arch, file: "", text: "" }
    }

    #[test]
    fn exact_then_family_base_then_none() {
        let two = [pack("sm90"), pack("sm100"), pack("gfx942")];
        let three = [pack("sm90"), pack("sm100"), pack("sm103"), pack("gfx942")];
        let found = |packs: &[Shipped], arch: &str| find(packs, arch).map(|p| p.arch);
        assert_eq!(found(&two, "sm103"), Some("sm100"));
        assert_eq!(found(&three, "sm103"), Some("sm103"));
        assert_eq!(found(&two, "sm90"), Some("sm90"));
        assert_eq!(found(&two, "sm120"), None);
        assert_eq!(found(&two, "sm80"), None);
        assert_eq!(found(&two, "gfx942:sramecc+:xnack-"), Some("gfx942"));
        assert_eq!(found(&two, "gfx950"), None);
        assert_eq!(found(&two, "host"), None);
        assert_eq!(found(&two, ""), None);
        assert_eq!(found(&two, "mixed"), None);
    }
}
