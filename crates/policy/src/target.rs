//! What a policy may name: `backend` or `backend/algorithm`, as this program has them.

use crossover_core::backend::Algorithm;
use crossover_core::registry::Registry;

use crate::suggest;

/// A backend or one of its algorithms, by name. No more than a name: there may be none so called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Backend id.
    pub backend: String,
    /// One of its algorithms; all of them if `None`.
    pub algorithm: Option<String>,
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.algorithm {
            Some(algorithm) if !algorithm.is_empty() => write!(f, "{}/{algorithm}", self.backend),
            _ => f.write_str(&self.backend),
        }
    }
}

/// Why a text names nothing: a sentence, and what to write instead.
#[derive(Debug)]
pub(crate) struct NoTarget {
    pub(crate) message: String,
    pub(crate) help: String,
    /// The backend is not in this program; nothing is wrong with the text as such.
    pub(crate) absent: bool,
}

impl Target {
    /// Splits at the slash. No more: any text is some name.
    pub(crate) fn parse(text: &str) -> Target {
        match text.split_once('/') {
            Some((backend, algorithm)) => {
                Target { backend: backend.to_owned(), algorithm: Some(algorithm.to_owned()) }
            }
            None => Target { backend: text.to_owned(), algorithm: None },
        }
    }

    /// The algorithms that are meant.
    pub(crate) fn resolve(&self, registry: &Registry) -> Result<Vec<&'static Algorithm>, NoTarget> {
        let backend = &self.backend;
        if self.algorithm.as_deref() == Some("") {
            return Err(NoTarget {
                message: format!("no algorithm stands behind the slash of `{backend}/`"),
                help: format!("write `{backend}`, or name one of its algorithms"),
                absent: false,
            });
        }
        let Some(descriptor) = registry.find(backend) else {
            let known = registry.descriptors();
            return Err(NoTarget {
                message: format!("this program knows no backend `{backend}`"),
                help: suggest::help(backend, known.iter().map(|d| d.id)),
                absent: true,
            });
        };
        let all = descriptor.algorithms;
        let Some(name) = &self.algorithm else {
            return Ok(all.iter().collect());
        };
        let ids: Vec<String> = all.iter().map(|a| descriptor.target(a)).collect();
        match all.iter().find(|a| a.name == name) {
            Some(algorithm) => Ok(vec![algorithm]),
            None => Err(NoTarget {
                message: format!("backend `{backend}` has no algorithm `{name}`"),
                help: suggest::help(&self.to_string(), ids.iter().map(String::as_str)),
                absent: false,
            }),
        }
    }
}
