//! The same files on several architectures, each with its pack.

use crossover_core::policy::Rule;
use crossover_core::registry::Registry;

use super::Options;
use crate::domain::{Book, Domain, Laws, Values, architectures};
use crate::effective::Effective;
use crate::shipped::archs_with_packs;
use crate::sources::{PolicyError, Sources};

/// The files as they are laid on one architecture.
pub(super) struct Stack {
    /// The architecture; `None` where there is no pack, and the stack is the same on all.
    pub(super) arch: Option<String>,
    pub(super) effective: Effective,
}

/// One stack for each architecture whose pack may differ; a single one where there is no pack.
pub(super) fn stacks(
    sources: &Sources,
    registry: &Registry,
    options: &Options,
) -> Result<Vec<Stack>, PolicyError> {
    let archs = match (&options.group, sources.have_packs()) {
        (_, false) => vec![None],
        (Some(group), true) => vec![Some(group.arch.clone())],
        (None, true) => {
            let mut archs = architectures_of(&[sources], registry)?;
            // What is expected on an architecture that no rule names is as good an expectation.
            for expect in sources.load(registry)?.expects {
                if !archs.contains(&expect.group.arch) {
                    archs.push(expect.group.arch);
                }
            }
            archs.into_iter().map(Some).collect()
        }
    };
    let load = |arch: Option<String>| {
        let effective = match &arch {
            Some(arch) => sources.on_arch(arch).load(registry)?,
            None => sources.load(registry)?,
        };
        Ok(Stack { arch, effective })
    };
    archs.into_iter().map(load).collect()
}

/// Every architecture that some of these stacks tell apart, whichever pack is in force.
pub(crate) fn architectures_of(
    all: &[&Sources],
    registry: &Registry,
) -> Result<Vec<String>, PolicyError> {
    let packs = match all.iter().any(|sources| sources.have_packs()) {
        true => archs_with_packs(),
        false => Vec::new(),
    };
    let mut rules: Vec<Rule> = Vec::new();
    for sources in all {
        rules.extend_from_slice(sources.load(registry)?.policy.rules());
        for arch in packs.iter().filter(|_| sources.have_packs()) {
            rules.extend_from_slice(sources.on_arch(arch).load(registry)?.policy.rules());
        }
    }
    Ok(architectures(&rules.iter().collect::<Vec<_>>(), &packs))
}

impl Stack {
    pub(super) fn domain(&self, book: &Book<'_>, laws: &Laws, options: &Options) -> Domain {
        let rules: Vec<&Rule> = book.rules.iter().collect();
        let archs = match &self.arch {
            Some(arch) => vec![arch.clone()],
            None => architectures(&rules, &[]),
        };
        let values = Values::new(&[book], archs);
        Domain::new(&[book], &values, laws, options.group.as_ref())
    }
}
