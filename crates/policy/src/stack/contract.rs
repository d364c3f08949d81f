//! The policy's side of the contract.

use crossover_core::contract::{Contract, Determinism, Deviations};
use crossover_core::policy::Origin;

use crate::loading::Laid;
use crate::provenance::Statement;

/// As the strongest files have it, and who stated it. What no file states, the policy leaves to
/// the engine, whose contract this is intersected with.
pub(super) fn in_force(documents: &[Laid]) -> (Contract, Vec<Statement>) {
    let mut contract = Contract { determinism: Determinism::Any, accept: Deviations::ALL };
    let (mut determinism, mut accept) = (None, None);
    for laid in documents {
        let statement = |field, line| Statement {
            field,
            layer: laid.standing.layer,
            origin: Origin { file: laid.source.name.clone(), line },
        };
        let stated = &laid.document.contract;
        if let Some(said) = &stated.determinism {
            contract.determinism = said.value;
            determinism = Some(statement("determinism", said.line));
        }
        if let Some(said) = &stated.accept {
            contract.accept = said.value;
            accept = Some(statement("accept", said.line));
        }
    }
    (contract, determinism.into_iter().chain(accept).collect())
}
