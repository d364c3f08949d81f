//! Links backends into a program: one feature and one `use` line each. A backend crate that is only
//! in a `Cargo.toml` is silently absent, so programs name this crate and no backend.

use crossover_core::registry::{Registry, RegistryError};

#[cfg(feature = "host")]
use crossover_backend_host as _;

/// Every backend whose feature is on, and whatever else the program links.
///
/// # Errors
///
/// Two linked backends have the same id.
pub fn registry() -> Result<Registry, RegistryError> {
    Registry::linked()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_registry_holds_exactly_the_features() {
        let registry = super::registry().expect("distinct ids");
        let ids: Vec<&str> = registry.entries().iter().map(|e| e.descriptor.id).collect();
        let mut features = Vec::new();
        if cfg!(feature = "host") {
            features.push("host");
        }
        assert_eq!(ids, features);
    }
}
