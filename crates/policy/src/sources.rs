//! From files, variables and options to the one policy in force.

use std::path::PathBuf;

use crossover_core::policy::{Layer, Policy};
use crossover_core::registry::Registry;

use crate::diagnostic::Diagnostic;
use crate::effective::Effective;
use crate::loading::{Laid, Loader, Location};
use crate::settings::{Settings, Stated};
use crate::shipped::{FLOOR, pack_for};
use crate::stack::Stack;
use crate::verbs::{Forced, disable, parse_disabled, parse_disabled_rules, parse_enabled};

/// Where the policy of a group comes from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Whose pack; none if `None`.
    arch: Option<String>,
    /// The node's own files; none if `None`.
    site: Option<PathBuf>,
    files: Vec<PathBuf>,
    /// The program's own, by name.
    texts: Vec<(String, String)>,
    forced: Option<Stated<String>>,
    disabled: Option<Stated<String>>,
    enabled: Option<Stated<String>>,
}

/// The policy could not be put together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// There are mistakes: all of them, in all files.
    #[error("{}", all_of(.0))]
    Mistakes(Vec<Diagnostic>),
    /// No such file is compiled in.
    #[error("no policy `shipped:{name}` is compiled in; {help}")]
    NotShipped {
        /// What stands behind `shipped:`.
        name: String,
        /// The nearest, and all of them.
        help: String,
    },
    /// A file cannot be read.
    #[error("the policy file {} cannot be read: {error}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        error: std::io::Error,
    },
    /// A folder of files cannot be read.
    #[error("the folder of policies {} cannot be read: {error}", path.display())]
    UnreadableFolder {
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

    /// What is shipped for an architecture, what the node has, and what the settings add: files,
    /// `use`, `disable`, `enable`.
    pub fn of(settings: &Settings, arch: impl Into<String>) -> Sources {
        Sources {
            site: Some(settings.site.clone()),
            files: settings.policy.clone(),
            forced: settings.forced.clone(),
            disabled: settings.disabled.clone(),
            enabled: settings.enabled.clone(),
            ..Sources::shipped(arch)
        }
    }

    /// The floor and these files alone: no pack, and nothing of the node or from the environment.
    /// A path `shipped:ported/vllm.toml` names a file that is compiled in.
    pub fn isolated(files: Vec<PathBuf>) -> Sources {
        Sources { files, ..Sources::default() }
    }

    /// Adds the node's own files: `policy.d/*.toml` of this folder, sorted by name, as the layer
    /// `site`, and `tuned.d/*.toml` as the layer `tuned`. A folder that is not there has none.
    #[must_use]
    pub fn with_site(self, folder: PathBuf) -> Sources {
        Sources { site: Some(folder), ..self }
    }

    /// Does a pack belong to these, on architectures that have one?
    pub(crate) fn have_packs(&self) -> bool {
        self.arch.is_some()
    }

    /// Adds a policy of the program's own, as the layer `program`; a later one is stronger. `name` is
    /// what messages call it. It can include what is shipped, and no file.
    #[must_use]
    pub fn with_text(mut self, name: impl Into<String>, text: impl Into<String>) -> Sources {
        self.texts.push((name.into(), text.into()));
        self
    }

    /// The same over the floor alone: without a pack and the node's files.
    #[must_use]
    pub fn alone(self) -> Sources {
        Sources { arch: None, site: None, ..self }
    }

    /// The same on another architecture: with its pack, unless these have no pack.
    pub(crate) fn on_arch(&self, arch: &str) -> Sources {
        Sources { arch: self.arch.as_ref().map(|_| arch.to_owned()), ..self.clone() }
    }

    /// Reads and stacks them. What backends are called is looked up in `registry`.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or there are mistakes: all of them are in the error.
    pub fn load(&self, registry: &Registry) -> Result<Effective, PolicyError> {
        let (laid, mut problems) = self.read(registry)?;
        let forced = self.forced.as_ref().map(|stated| Forced::parse(stated, registry));
        let forced = kept(forced, &mut problems);
        let disabled = self.disabled.as_ref().map(|stated| parse_disabled(stated, registry));
        let disabled = kept(disabled, &mut problems);
        let off = kept(self.disabled.as_ref().map(parse_disabled_rules), &mut problems);
        let on = kept(self.enabled.as_ref().map(parse_enabled), &mut problems);
        let both = on.iter().filter(|on| off.iter().any(|off| off.id == on.id));
        problems.extend(both.map(|named| named.conflict()));
        if !problems.is_empty() {
            return Err(PolicyError::Mistakes(problems));
        }

        let mut stack = Stack::of(&laid);
        stack.switch(&on, true);
        stack.switch(&off, false);
        let stacked = stack.finish().map_err(PolicyError::Mistakes)?;
        let mut rules = stacked.rules;
        rules.extend(forced.iter().map(Forced::rule));
        disable(&mut rules, &disabled, registry);
        let has_rule =
            |f: &&Forced| rules.iter().any(|rule| rule.id == f.rule().id && !rule.chain.is_empty());
        let lost: Vec<_> = forced.iter().filter(|f| !has_rule(f)).map(Forced::conflict).collect();
        if !lost.is_empty() {
            return Err(PolicyError::Mistakes(lost));
        }
        Ok(Effective {
            policy: Policy::new(stacked.contract, rules),
            forced,
            disabled,
            disabled_rules: stacked.disabled,
            expects: stacked.expects,
            provenance: stacked.provenance,
        })
    }

    /// The files, weakest first, and the mistakes in them.
    fn read(&self, registry: &Registry) -> Result<(Vec<Laid>, Vec<Diagnostic>), PolicyError> {
        let mut loader = Loader::new(registry);
        loader.lay(Layer::Builtin, &Location::Shipped(FLOOR))?;
        if let Some(pack) = self.arch.as_deref().and_then(pack_for) {
            loader.lay(Layer::Pack, &Location::Shipped(pack))?;
        }
        if let Some(site) = &self.site {
            loader.lay_folder(Layer::Site, &site.join("policy.d"))?;
            loader.lay_folder(Layer::Tuned, &site.join("tuned.d"))?;
        }
        for path in &self.files {
            loader.lay(Layer::User, &Location::of(path)?)?;
        }
        for (at, (name, text)) in self.texts.iter().enumerate() {
            let twins = self.texts[..at].iter().filter(|(twin, _)| twin == name).count();
            let name = match twins {
                0 => name.clone(),
                // So that messages tell them apart.
                _ => format!("{name} ({})", twins + 1),
            };
            let text = text.clone();
            loader.lay(Layer::Program, &Location::Text { name, text })?;
        }
        Ok((loader.laid, loader.problems))
    }
}

/// What was read, if anything was; the mistakes in it otherwise.
fn kept<T: Default>(
    result: Option<Result<T, Vec<Diagnostic>>>,
    problems: &mut Vec<Diagnostic>,
) -> T {
    let result = result.unwrap_or_else(|| Ok(T::default()));
    result.map_err(|more| problems.extend(more)).unwrap_or_default()
}

fn all_of(problems: &[Diagnostic]) -> String {
    let texts: Vec<String> = problems.iter().map(Diagnostic::to_string).collect();
    texts.join("\n\n")
}
