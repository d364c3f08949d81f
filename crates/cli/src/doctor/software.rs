//! What an operator has set, and what it means.

use crossover_core::facts::HOST_ARCH;
use crossover_policy::{Settings, Sources};

use super::finding::Finding;

/// The settings, if they can be read, and what was found.
pub(super) fn examine() -> (Option<Settings>, Vec<Finding>) {
    let mut findings = Vec::new();
    let registry = match crossover_backends::registry() {
        Ok(registry) => registry,
        Err(e) => {
            findings.push(Finding::fail("backends", e.to_string(), None));
            return (None, findings);
        }
    };
    let settings = match Settings::load(std::env::vars_os(), &[], &registry) {
        Ok(settings) => settings,
        Err(e) => {
            findings.push(Finding::fail("settings", e.to_string(), None));
            return (None, findings);
        }
    };
    findings.push(Finding::ok("settings", variables()));
    findings.push(match Sources::of(&settings, HOST_ARCH).load(&registry) {
        Ok(effective) => {
            let (digest, rules) = (effective.policy.digest(), effective.policy.rules().len());
            Finding::ok("policy", format!("{digest}, {rules} rules in force on host memory"))
        }
        Err(e) => Finding::fail("policy", e.to_string(), None),
    });
    (Some(settings), findings)
}

/// What is set, as it is written in the environment; the settings file only by its name.
fn variables() -> String {
    let mut set: Vec<String> = std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value))
        .filter(|(name, _)| name.starts_with("CROSSOVER_"))
        .map(|(name, value)| format!("{name}={}", value.to_string_lossy()))
        .collect();
    set.sort_unstable();
    if set.is_empty() { "no CROSSOVER_ variable is set".to_owned() } else { set.join(", ") }
}
