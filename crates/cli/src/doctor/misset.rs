//! What is wrong with the settings of backends that serve devices. Each backend judges its own,
//! first thing as it is set up: a group of threads that claim devices gets that far, also on a
//! machine that has none.

use std::thread;
use std::time::Duration;

use crossover_bootstrap::threads;
use crossover_core::bootstrap::Bootstrap;
use crossover_core::communicator::Communicator;
use crossover_core::facts::{Cap, Caps, RankReport, Topology};
use crossover_core::form::FormError;
use crossover_core::policy::Policy;
use crossover_core::registry::Registry;
use crossover_core::settings::GroupSettings;
use crossover_policy::{Settings, Sources};

use super::finding::Finding;

/// What the ranks claim to be on: an architecture whose shipped policy names every backend for
/// devices of one node.
const CLAIMED: &str = "sm90";
/// It takes milliseconds.
const DEADLINE: Duration = Duration::from_secs(20);

pub(super) fn examine(settings: Option<&Settings>) -> Option<Finding> {
    let settings = settings.filter(|settings| !settings.backends.is_empty())?;
    let registry = crossover_backends::registry().ok()?;
    let effective = Sources::shipped(CLAIMED).load(&registry).ok()?;
    // Its device is host memory: who goes on to open one gets none, and touches nothing.
    let group = settings.group("doctor");
    let why = form(&registry, &effective.policy, &group)?;
    Some(Finding::fail("settings", why, None))
}

/// The sentence on the first setting that its backend does not take.
fn form(registry: &Registry, policy: &Policy, settings: &GroupSettings) -> Option<String> {
    let misset = thread::scope(|scope| {
        let ranks: Vec<_> = threads(2, DEADLINE)
            .into_iter()
            .map(|boot| {
                scope.spawn(move || {
                    let claim = claim(boot.rank());
                    Communicator::form(&boot, registry, policy, claim, settings).err()
                })
            })
            .collect();
        ranks.into_iter().map(|rank| rank.join().ok().flatten()).collect::<Vec<_>>()
    });
    misset.into_iter().flatten().find_map(|error| match error {
        FormError::Misset(failed) => Some(failed.why),
        // That there is no such device was known.
        _ => None,
    })
}

fn claim(rank: u32) -> RankReport {
    RankReport {
        arch: CLAIMED.to_owned(),
        unit: format!("claimed {rank}"),
        topology: Topology::NvlinkFull,
        caps: Caps::of(&[Cap::P2p]),
        ..crossover::report(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(key: &str, value: &str) -> Option<Finding> {
        let registry = crossover_backends::registry().expect("backends");
        let set = crossover_policy::Override {
            key: key.to_owned(),
            value: value.to_owned(),
            origin: "a test".to_owned(),
        };
        let settings = Settings::load([], &[set], &registry).expect("a setting");
        examine(Some(&settings))
    }

    #[test]
    fn backends_judge_their_own_settings_where_there_is_no_device() {
        let wrong = told("ipc.push", "3MiB").expect("no power of two").found;
        assert!(
            wrong.starts_with("setting ipc.push is `3MiB`: it must be a power of two"),
            "{wrong}"
        );
        let wrong = told("ipc.p2p_cache", "here").expect("no folder").found;
        assert!(wrong.starts_with("setting ipc.p2p_cache is `here`"), "{wrong}");
        assert!(told("ipc.push", "2MiB").is_none());
    }
}
