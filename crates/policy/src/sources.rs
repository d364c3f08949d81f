//! From files, variables and options to the one policy in force.

use std::path::PathBuf;

use crossover_core::call::CallKind;
use crossover_core::facts::GroupProfile;
use crossover_core::policy::{Layer, Origin, Policy, Rule};
use crossover_core::registry::Registry;

use crate::diagnostic::{Code, Diagnostic, Source};
use crate::file::Document;
use crate::settings::{Settings, Stated};
use crate::shipped::{FLOOR, pack_for, shipped_rule_ids};
use crate::stack::stack;
use crate::target::Target;
use crate::verbs::{Forced, disable, parse_disabled};

/// Where the policy of a group comes from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Whose pack; none if `None`.
    arch: Option<String>,
    files: Vec<PathBuf>,
    forced: Option<Stated<String>>,
    disabled: Option<Stated<String>>,
}

/// The policy in force, and what of it was forced.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Effective {
    /// What the core compiles. Chains no longer name what is disabled, so that its digest differs
    /// where ranks disable different things.
    pub policy: Policy,
    /// Choices that forming a group must honour or fail.
    pub forced: Vec<Forced>,
    /// Backends and algorithms that are switched off.
    pub disabled: Vec<Target>,
    /// The policy's own tests, from all files.
    pub(crate) expects: Vec<Expect>,
}

/// An `[[expect]]` block: a call of a group, and who must serve it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Expect {
    /// Where it is written.
    pub(crate) origin: Origin,
    /// The group; what the block leaves out is as `crossover explain` has it.
    pub(crate) group: GroupProfile,
    /// The call, with the contract that the block states for the engine.
    pub(crate) call: CallKind,
    /// Its input bytes per rank.
    pub(crate) bytes: u64,
    /// `backend/algorithm`, or a backend that serves by any of its algorithms; `None` if nothing
    /// must serve (`use = "none"`).
    pub(crate) target: Option<Target>,
}

impl Effective {
    /// A finding about a rule, or about a candidate of its chain (counted from 0), at the place
    /// where that is written.
    pub(crate) fn finding(
        &self,
        code: Code,
        rule: &Rule,
        _candidate: Option<usize>,
        message: String,
        help: Option<String>,
    ) -> Diagnostic {
        let source = Source { name: rule.origin.file.clone(), text: String::new() };
        source.diagnostic(code, 0..0, message, help)
    }
}

/// The policy could not be put together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// There are mistakes: all of them, in all files.
    #[error("{}", all_of(.0))]
    Mistakes(Vec<Diagnostic>),
    /// A file cannot be read.
    #[error("the policy file {} cannot be read: {error}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        error: std::io::Error,
    },
}

impl Sources {
    /// The floor and the pack of an architecture, such as `sm90` or `host`, and nothing else.
    pub fn shipped(arch: impl Into<String>) -> Sources {
        Sources { arch: Some(arch.into()), ..Sources::default() }
    }

    /// What is shipped for an architecture, and what the settings add: files, `use`, `disable`.
    pub fn of(settings: &Settings, arch: impl Into<String>) -> Sources {
        Sources {
            files: settings.policy.clone(),
            forced: settings.forced.clone(),
            disabled: settings.disabled.clone(),
            ..Sources::shipped(arch)
        }
    }

    /// The floor and these files alone: no pack, and nothing from the environment.
    pub fn isolated(files: Vec<PathBuf>) -> Sources {
        Sources { files, ..Sources::default() }
    }

    /// Reads and stacks them. What backends are called is looked up in `registry`.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or there are mistakes: all of them are in the error.
    pub fn load(&self, registry: &Registry) -> Result<Effective, PolicyError> {
        let mut problems = Vec::new();
        let mut documents = Vec::new();
        for (layer, source) in self.read()? {
            let document = keep(Document::parse(source, registry), &mut problems);
            documents.extend(document.map(|document| (layer, document)));
        }
        let forced = self.forced.as_ref().map(|stated| Forced::parse(stated, registry));
        let forced = forced.and_then(|result| keep(result, &mut problems)).unwrap_or_default();
        let disabled = self.disabled.as_ref().map(|stated| parse_disabled(stated, registry));
        let disabled = disabled.and_then(|result| keep(result, &mut problems)).unwrap_or_default();
        if !problems.is_empty() {
            return Err(PolicyError::Mistakes(problems));
        }

        let (contract, mut rules) =
            stack(&documents, &shipped_rule_ids()).map_err(PolicyError::Mistakes)?;
        rules.extend(forced.iter().map(Forced::rule));
        disable(&mut rules, &disabled, registry);
        let has_rule = |f: &&Forced| rules.iter().any(|rule| rule.id == f.rule().id);
        let lost: Vec<_> = forced.iter().filter(|f| !has_rule(f)).map(Forced::conflict).collect();
        if !lost.is_empty() {
            return Err(PolicyError::Mistakes(lost));
        }
        Ok(Effective {
            policy: Policy::new(contract, rules),
            forced,
            disabled,
            expects: Vec::new(),
        })
    }

    /// The texts, weakest first.
    fn read(&self) -> Result<Vec<(Layer, Source)>, PolicyError> {
        let pack = self.arch.as_deref().and_then(pack_for);
        let mut sources = vec![(Layer::Builtin, FLOOR.source())];
        sources.extend(pack.map(|pack| (Layer::Pack, pack.source())));
        for path in &self.files {
            let unreadable = |error| PolicyError::Unreadable { path: path.clone(), error };
            let text = std::fs::read_to_string(path).map_err(unreadable)?;
            sources.push((Layer::User, Source { name: path.display().to_string(), text }));
        }
        Ok(sources)
    }
}

fn keep<T>(result: Result<T, Vec<Diagnostic>>, problems: &mut Vec<Diagnostic>) -> Option<T> {
    result.map_err(|more| problems.extend(more)).ok()
}

fn all_of(problems: &[Diagnostic]) -> String {
    let texts: Vec<String> = problems.iter().map(Diagnostic::to_string).collect();
    texts.join("\n\n")
}
