//! Whether GPUs reach one another: what the platform, wires and drivers say, and what backends found
//! out and remember.

use crossover_core::facts::Topology;
use crossover_device::driver::{Description, Driver};
use crossover_device::error::DeviceError;
use crossover_device::topology::facts::{NvidiaFacts, P2p};
use crossover_device::topology::mesh::{self, Matrix, Reach};
use crossover_device::topology::{kfd, nvml};
use crossover_device::verdict::cache::Cache;
use crossover_device::verdict::platform::Platform;
use crossover_device::verdict::{Pair, Verdict, Verdicts, refused};
use crossover_policy::Settings;
use serde::Serialize;

use super::devices::Shown;
use super::finding::Finding;

const CHECK: &str = "peers";

/// How the devices of one vendor reach one another, for programs.
#[derive(Debug, Serialize)]
pub(super) struct Reached {
    /// The driver's name.
    vendor: &'static str,
    /// The word of policies for a group of them all; absent where that is not known.
    pub(super) topology: Option<Topology>,
    /// Does nobody say no to any pair?
    pub(super) p2p: bool,
    #[serde(flatten)]
    matrix: Option<Matrix>,
    pairs: Vec<Directed>,
}

/// What is said of one device using another's memory.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Directed {
    #[serde(flatten)]
    pair: Pair,
    /// What the driver says: `ok`, `unknown`, or why not.
    driver: String,
    /// What a backend saw on this machine as it is now; absent where none has looked.
    seen: Option<Verdict>,
}

pub(super) fn examine(
    vendor: &Shown,
    settings: Option<&Settings>,
    platform: &Platform,
) -> (Reached, Vec<Finding>) {
    let (devices, uuids) = (&vendor.devices, vendor.uuids());
    let mut findings = Vec::new();
    let wires = match vendor.name {
        "cuda" => Wires::of_nvml(&uuids),
        _ => Wires::of_kfd(&uuids),
    };
    let wires = wires.unwrap_or_else(|e| {
        findings.push(unknown_wires(&e));
        Wires::default()
    });
    if let Some((all, matrix)) = wires.mesh.as_ref().zip(wires.matrix.as_ref()) {
        let table = if devices.len() > 1 { format!("\n{matrix}") } else { String::new() };
        findings.push(Finding::ok("topology", format!("{all}{table}")));
    }
    let mut remembered = Verdicts::default();
    if let Some(cache) = settings.and_then(cache) {
        findings.extend(of_memory(&cache, &vendor.version, platform));
        remembered = recalled(&cache, &vendor.version, platform);
    }
    let refused = by_driver(&*vendor.driver, devices, &uuids);
    let pairs = directed(&uuids, &refused, &wires.facts, &remembered);
    findings.extend(of_pairs(&pairs));
    let p2p = platform.refusal().is_none() && pairs.iter().all(Directed::is_allowed);
    let topology = wires.mesh.map(|found| topology(vendor.name, found.reach));
    (Reached { vendor: vendor.name, topology, p2p, matrix: wires.matrix, pairs }, findings)
}

/// Rules for a vendor's best links are right for one device's memory.
fn topology(vendor: &str, reach: Reach) -> Topology {
    match (reach, vendor) {
        (Reach::OneDevice, "hip") => Topology::XgmiFull,
        _ => reach.class().parse().unwrap_or(Topology::Pcie),
    }
}

/// What is known of how devices are wired.
#[derive(Default)]
struct Wires {
    mesh: Option<mesh::Finding>,
    matrix: Option<Matrix>,
    /// What NVIDIA's library says of pairs.
    facts: NvidiaFacts,
}

impl Wires {
    fn of_nvml(uuids: &[String]) -> Result<Wires, DeviceError> {
        let facts = nvml::read()?;
        let (mesh, matrix) = (mesh::nvidia(&facts, uuids)?, Matrix::nvidia(&facts, uuids));
        Ok(Wires { mesh: Some(mesh), matrix: Some(matrix), facts })
    }

    fn of_kfd(uuids: &[String]) -> Result<Wires, DeviceError> {
        let facts = kfd::read(kfd::NODES.as_ref())?;
        let (mesh, matrix) = (mesh::amd(&facts, uuids)?, Matrix::amd(&facts, uuids));
        Ok(Wires { mesh: Some(mesh), matrix: Some(matrix), facts: NvidiaFacts::default() })
    }
}

/// Where backend `ipc` remembers.
fn cache(settings: &Settings) -> Option<Cache> {
    match settings.backends.get("ipc.p2p_cache").map(String::as_str) {
        Some("none") => None,
        Some(folder) => Some(Cache::new(folder)),
        None => settings.cache.as_ref().map(Cache::new),
    }
}

fn unknown_wires(error: &DeviceError) -> Finding {
    Finding::ok("topology", format!("how GPUs are wired is not known: {error}"))
}

/// The pairs that the driver refuses.
fn by_driver(driver: &dyn Driver, devices: &[Description], uuids: &[String]) -> Vec<Pair> {
    devices.iter().flat_map(|own| refused(driver, own, uuids).unwrap_or_default()).collect()
}

/// Every directed pair of different devices, with all that is said of it.
fn directed(
    uuids: &[String],
    refused: &[Pair],
    facts: &NvidiaFacts,
    remembered: &Verdicts,
) -> Vec<Directed> {
    let ordered = uuids.iter().flat_map(|user| uuids.iter().map(move |owner| (user, owner)));
    let pairs = ordered.filter(|(user, owner)| user != owner);
    let told = pairs.map(|(user, owner)| {
        let pair = Pair { user: user.clone(), owner: owner.clone() };
        let of_library = facts.pair(user, owner);
        let driver = match of_library.and_then(|pair| pair.refusal()) {
            Some(why) => why,
            None if refused.contains(&pair) => format!("the driver refuses {pair}"),
            None => match of_library.map(|pair| (&pair.read, &pair.write)) {
                None | Some((P2p::Ok, P2p::Ok)) => "ok".to_owned(),
                Some(_) => "unknown".to_owned(),
            },
        };
        let seen = remembered.pairs.iter().find(|(known, _)| *known == pair);
        Directed { driver, seen: seen.map(|(_, verdict)| verdict.clone()), pair }
    });
    told.collect()
}

impl Directed {
    /// A veto is one; what was never seen may yet be.
    fn is_allowed(&self) -> bool {
        let is_bad = self.seen.as_ref().is_some_and(|verdict| *verdict != Verdict::Proven);
        !is_bad && ["ok", "unknown"].contains(&self.driver.as_str())
    }
}

fn of_pairs(pairs: &[Directed]) -> Vec<Finding> {
    let refusals = pairs.iter().filter(|pair| !["ok", "unknown"].contains(&pair.driver.as_str()));
    let mut findings: Vec<Finding> = refusals.map(|pair| refusal(&pair.driver)).collect();
    if findings.is_empty() && !pairs.is_empty() {
        let proven = pairs.iter().filter(|pair| pair.seen == Some(Verdict::Proven)).count();
        let unseen = pairs.iter().filter(|pair| pair.seen.is_none()).count();
        let found = format!(
            "the driver refuses none of {} directed pairs; seen to work are {proven}, nobody has \
             looked at {unseen}",
            pairs.len()
        );
        findings.push(Finding::ok(CHECK, found));
    }
    findings
}

fn refusal(why: &str) -> Finding {
    let advice = "groups of these devices go without peer access: another backend serves";
    Finding::warn(CHECK, why, advice)
}

/// All that is remembered of this machine as it is now.
fn recalled(cache: &Cache, driver_version: &str, platform: &Platform) -> Verdicts {
    let files = cache.all().into_iter().filter_map(|(_, found)| found.ok());
    let hold = files.filter(|found| found.key.holds(driver_version, platform));
    Verdicts::of(hold.flat_map(|found| found.verdicts.pairs))
}

/// What is remembered of these devices as they are now.
fn of_memory(cache: &Cache, driver_version: &str, platform: &Platform) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, found) in cache.all() {
        let file = path.display();
        let found = match found {
            Ok(found) if found.key.holds(driver_version, platform) => found,
            Ok(_) => continue,
            Err(why) => {
                findings.push(Finding::warn(CHECK, why, format!("delete {file}")));
                continue;
            }
        };
        let (pairs, day) = (&found.verdicts.pairs, found.day());
        let proven = pairs.iter().filter(|(_, verdict)| *verdict == Verdict::Proven).count();
        let all = pairs.len();
        let text = format!("{proven} of {all} directed pairs proven on {day} ({file})");
        findings.push(Finding::ok(CHECK, text));
        let broken = pairs.iter().filter(|(_, verdict)| *verdict != Verdict::Proven);
        findings.extend(broken.map(|(pair, verdict)| {
            let advice = format!(
                "backend ipc declines groups with both; look for acs_redirect here, and delete \
                 {file} to have them tried again"
            );
            Finding::warn(CHECK, format!("{pair} is {verdict}; found on {day}"), advice)
        }));
    }
    findings
}

#[cfg(test)]
mod tests {
    use crossover_device::verdict::cache::Key;

    use super::*;
    use crate::doctor::finding::Verdict as Judged;

    fn uuids(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("GPU-{number}")).collect()
    }

    fn platform(kernel: &str) -> Platform {
        let (kernel, boot) = (kernel.to_owned(), "a start".to_owned());
        Platform { kernel, boot, iommu: "off".to_owned() }
    }

    fn texts(findings: &[Finding]) -> Vec<(Judged, &str)> {
        findings.iter().map(|finding| (finding.verdict, finding.found.as_str())).collect()
    }

    #[test]
    fn each_directed_pair_has_the_drivers_word_and_what_was_seen() {
        let pair = |user: usize, owner: usize| Pair {
            user: format!("GPU-{user}"),
            owner: format!("GPU-{owner}"),
        };
        let broken = Verdict::Broken("writes are lost".to_owned());
        let seen = Verdicts::of([(pair(0, 1), Verdict::Proven), (pair(1, 0), broken.clone())]);
        let of = |refused: &[Pair], seen: &Verdicts| {
            directed(&uuids(2), refused, &NvidiaFacts::default(), seen)
        };
        let told = of(&[], &seen);
        assert_eq!((told.len(), told[0].seen.clone()), (2, Some(Verdict::Proven)));
        assert_eq!(told.iter().map(Directed::is_allowed).collect::<Vec<_>>(), [true, false]);
        let want = "the driver refuses none of 2 directed pairs; seen to work are 1, nobody has \
                    looked at 0";
        assert_eq!(texts(&of_pairs(&told)), [(Judged::Ok, want)]);
        let json = serde_json::to_value(&told[1]).expect("JSON");
        let want = serde_json::json!({
            "user": "GPU-1", "owner": "GPU-0", "driver": "ok", "seen": {"broken": "writes are lost"},
        });
        assert_eq!(json, want);

        let told = of(&[pair(1, 0)], &Verdicts::default());
        let want = "the driver refuses GPU-1 using memory of GPU-0";
        assert_eq!(texts(&of_pairs(&told)), [(Judged::Warn, want)]);
        assert_eq!(told.iter().map(Directed::is_allowed).collect::<Vec<_>>(), [true, false]);
        assert!(of_pairs(&directed(&uuids(1), &[], &NvidiaFacts::default(), &seen)).is_empty());
    }

    #[test]
    fn one_device_is_of_its_vendors_best_topology() {
        assert_eq!(topology("hip", Reach::OneDevice), Topology::XgmiFull);
        assert_eq!(topology("cuda", Reach::OneDevice), Topology::NvlinkFull);
        assert_eq!(topology("cuda", Reach::Pcie), Topology::Pcie);
    }

    #[test]
    fn what_is_remembered_is_told_while_it_holds() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::new(folder.path());
        let now = platform("6.8.0-45-generic");
        let key = Key::new(&uuids(2), "580", &now).expect("there is a start");
        let pair = |user: usize, owner: usize| Pair {
            user: format!("GPU-{user}"),
            owner: format!("GPU-{owner}"),
        };
        let broken = Verdict::Broken("writes are lost".to_owned());
        let found = Verdicts::of([(pair(0, 1), Verdict::Proven), (pair(1, 0), broken)]);
        cache.store(&key, &found).expect("written");
        let findings = of_memory(&cache, "580", &now);
        assert_eq!(findings.len(), 2);
        let start = "1 of 2 directed pairs proven on 20";
        assert!(findings[0].found.starts_with(start), "{}", findings[0].found);
        let start = "GPU-1 using memory of GPU-0 is broken: writes are lost; found on 20";
        assert!(findings[1].found.starts_with(start), "{}", findings[1].found);
        let advice = findings[1].advice.as_deref().expect("what to do");
        assert!(advice.contains(&cache.path(&key).display().to_string()), "{advice}");
        assert!(of_memory(&cache, "590", &now).is_empty());
        std::fs::write(cache.path(&key), "{").expect("written");
        assert_eq!(of_memory(&cache, "580", &now)[0].verdict, Judged::Warn);
    }
}
