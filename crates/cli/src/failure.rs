//! Why the program ends with another code than 0, in one sentence.

use std::fmt;
use std::process::ExitCode;

use crossover_core::communicator::CallError;
use crossover_core::registry::RegistryError;
use crossover_policy::{PolicyError, SettingsError};

use crate::group::Seat;

/// A sentence and an exit code. An empty sentence means that everything has been said.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    sentence: String,
}

impl Failure {
    /// A wrong result, or a check that failed.
    pub(crate) fn check(sentence: impl Into<String>) -> Failure {
        Failure { code: 1, sentence: sentence.into() }
    }

    /// Options or files that make no sense.
    pub(crate) fn usage(sentence: impl Into<String>) -> Failure {
        Failure { code: 2, sentence: sentence.into() }
    }

    /// Nothing may serve what was asked for.
    pub(crate) fn ineligible(sentence: impl Into<String>) -> Failure {
        Failure { code: 3, sentence: sentence.into() }
    }

    /// A peer was lost, or a deadline passed.
    pub(crate) fn lost(sentence: impl Into<String>) -> Failure {
        Failure { code: 4, sentence: sentence.into() }
    }

    /// Everything has been said, on stdout or by another process.
    pub(crate) fn silent(code: u8) -> Failure {
        Failure { code, sentence: String::new() }
    }

    /// On one rank of several that all have the same sentence: rank 0 says it, for all.
    pub(crate) fn on_all_ranks(self, Seat { rank, world }: Seat) -> Failure {
        match (rank, world) {
            (_, 1) => self,
            (0, _) => Failure { sentence: format!("{self} (on all {world} ranks)"), ..self },
            _ => Failure::silent(self.code),
        }
    }

    pub(crate) fn is_silent(&self) -> bool {
        self.sentence.is_empty()
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        self.code.into()
    }

    /// With a number of its own, such as that of a command that was run.
    pub(crate) fn with_code(code: u8, sentence: impl Into<String>) -> Failure {
        Failure { code, sentence: sentence.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Failure {
        Failure::with_code(crossover::call_exit_code(&error), error.to_string())
    }
}

impl From<crossover::Error> for Failure {
    fn from(error: crossover::Error) -> Failure {
        Failure::with_code(error.exit_code(), error.to_string())
    }
}

impl From<PolicyError> for Failure {
    fn from(error: PolicyError) -> Failure {
        Failure::usage(error.to_string())
    }
}

impl From<RegistryError> for Failure {
    fn from(error: RegistryError) -> Failure {
        Failure::usage(error.to_string())
    }
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Failure {
        Failure::usage(error.to_string())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure::check(format!("the output cannot be written: {error}"))
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Failure {
        Failure::check(format!("the output cannot be written: {error}"))
    }
}
