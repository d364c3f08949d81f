//! Links backends into a program: one feature and one `use` line each. A backend crate that is only
//! in a `Cargo.toml` is silently absent, so programs name this crate and no backend.
//!
//! Every backend of this workspace is declared, linked or not: a policy can name it, and
//! explanations and lints reckon with what it states.

use crossover_core::backend::Descriptor;
use crossover_core::registry::{Registry, RegistryError};

#[cfg(feature = "hierarchical")]
use crossover_backend_hierarchical as _;
#[cfg(feature = "host")]
use crossover_backend_host as _;
#[cfg(feature = "ipc")]
use crossover_backend_ipc as _;
#[cfg(feature = "mpi")]
use crossover_backend_mpi as _;
#[cfg(feature = "nccl")]
use crossover_backend_nccl as _;

/// What every backend of this workspace states, fastest kind first.
pub const DECLARED: &[&Descriptor] = &[
    &crossover_backend_quick_reduce::DESCRIPTOR,
    &crossover_backend_nvls::DESCRIPTOR,
    #[cfg(feature = "ipc")]
    &crossover_backend_ipc::DESCRIPTOR,
    &crossover_backend_symm::DESCRIPTOR,
    #[cfg(feature = "hierarchical")]
    &crossover_backend_hierarchical::DESCRIPTOR,
    #[cfg(feature = "nccl")]
    &crossover_backend_nccl::DESCRIPTOR,
    #[cfg(feature = "host")]
    &crossover_backend_host::DESCRIPTOR,
    #[cfg(feature = "mpi")]
    &crossover_backend_mpi::DESCRIPTOR,
];

/// Every backend whose feature is on, and whatever else the program links; the others declared.
///
/// # Errors
///
/// Two linked backends have the same id, or one is malformed.
pub fn registry() -> Result<Registry, RegistryError> {
    DECLARED.iter().try_fold(Registry::linked()?, |registry, d| registry.declaring(d))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_registry_holds_exactly_the_features() {
        let registry = super::registry().expect("distinct ids");
        let ids: Vec<&str> = registry.entries().iter().map(|e| e.descriptor.id).collect();
        let mut features = Vec::new();
        if cfg!(feature = "hierarchical") {
            features.push("hierarchical");
        }
        if cfg!(feature = "host") {
            features.push("host");
        }
        if cfg!(feature = "ipc") {
            features.push("ipc");
        }
        if cfg!(feature = "mpi") {
            features.push("mpi");
        }
        if cfg!(feature = "nccl") {
            features.push("nccl");
        }
        assert_eq!(ids, features);
    }

    #[test]
    fn what_is_not_linked_is_declared() {
        let registry = super::registry().expect("well-formed backends");
        for id in ["nvls", "quick_reduce", "symm"] {
            assert!(registry.find(id).is_some(), "{id}");
            assert!(!registry.is_linked(id), "{id}");
        }
        assert!(registry.find("nvsl").is_none());
    }
}
