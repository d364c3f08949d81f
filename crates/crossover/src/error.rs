//! Why a group could not be formed, and the exit code that says so.

use crossover_bootstrap::{LaunchError, Refusal, RendezvousError};
use crossover_core::agreement::AllOrNoneError;
use crossover_core::communicator::CallError;
use crossover_core::form::FormError;
use crossover_core::registry::RegistryError;
use crossover_device::error::DeviceError;
use crossover_policy::{Diagnostic, PolicyError, SettingsError};

/// A group could not be formed. Its `Debug` is its sentence, which is what a `main` that returns it
/// prints.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// This rank's device cannot be had.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Ranks met, and the group did not come about.
    #[error(transparent)]
    Form(#[from] FormError),
    /// The launcher's variables contradict one another.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A policy file is wrong.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// Two linked backends have one id.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// Ranks did not meet.
    #[error(transparent)]
    Rendezvous(#[from] RendezvousError),
    /// Another rank's settings or policy are wrong.
    #[error(transparent)]
    Peer(#[from] AllOrNoneError),
    /// A setting is wrong.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Lint has something to say of the policy, and the setting `strict` makes that an error.
    #[error("{}", told(.0))]
    Strict(Vec<Diagnostic>),
}

impl std::fmt::Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl Error {
    /// 2 bad usage or a bad file, 3 nothing eligible, 4 a peer was lost or a deadline passed.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Form(FormError::ControlPlane(_))
            | Error::Peer(AllOrNoneError::ControlPlane(_)) => 4,
            Error::Form(FormError::Forced { .. } | FormError::NoBackend { .. }) => 3,
            Error::Rendezvous(
                RendezvousError::Unreachable { .. }
                | RendezvousError::Refused(Refusal::Lost { .. } | Refusal::Missing { .. }),
            ) => 4,
            _ => 2,
        }
    }
}

fn told(findings: &[Diagnostic]) -> String {
    let texts: Vec<String> = findings.iter().map(Diagnostic::to_string).collect();
    format!("the setting `strict` refuses this policy for this group:\n\n{}", texts.join("\n\n"))
}

/// The same codes, for a call that failed.
pub fn call_exit_code(error: &CallError) -> u8 {
    match error {
        CallError::NothingEligible { .. } => 3,
        CallError::Failed(e) | CallError::Poisoned(e) if e.is_loss() => 4,
        CallError::Failed(_) | CallError::Poisoned(_) | CallError::Unprepared { .. } => 1,
        _ => 2,
    }
}
