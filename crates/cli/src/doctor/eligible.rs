//! Which backends a group of all devices here could use, or one on host memory where there is none,
//! and why not the others; and who would serve which sizes.
//!
//! Nobody is set up for it: the core's own judge answers, as for `crossover explain`, and what set-up
//! would look for first (kernels, a library) is looked for. A backend is taken to have room for all
//! that it states.

use crossover_core::backend::{Algorithm, Descriptor};
use crossover_core::bytes::size_text;
use crossover_core::call::{CallKind, Dtype, Mode, Op, ReduceOp};
use crossover_core::eligibility::{Clause, Refusal};
use crossover_core::facts::{Cap, Caps, GroupProfile, Topology};
use crossover_core::plan::{Offer, OfferState, Plan};
use crossover_core::registry::Registry;
use crossover_policy::{Effective, Settings, Sources};
use serde::Serialize;

use super::finding::Finding;

/// A group that could be, and what it could use; for programs.
#[derive(Debug, Serialize)]
pub(super) struct Group {
    /// The driver of its devices, or `host`.
    on: &'static str,
    arch: String,
    device: String,
    world: u32,
    topology: Topology,
    caps: Vec<Cap>,
    algorithms: Vec<Judged>,
    serves: Vec<Band>,
}

/// One algorithm.
#[derive(Debug, Serialize)]
struct Judged {
    #[serde(rename = "use")]
    target: String,
    backend: &'static str,
    eligible: bool,
    /// Why not.
    reason: Option<String>,
}

/// Who serves sums of `bf16` of these sizes, made at once.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Band {
    op: Op,
    /// Input bytes per rank.
    from: u64,
    /// The last ones; absent where there is no end.
    to: Option<u64>,
    #[serde(rename = "use")]
    target: Option<String>,
}

/// What a backend would miss when it is set up: its id, and the words.
pub(super) type Missing = Vec<(&'static str, Refusal)>;

/// That `wanted` is not here, which set-up would find first.
pub(super) fn missing(wanted: impl Into<String>, got: impl Into<String>) -> Refusal {
    Refusal { clause: Clause::Setup, want: wanted.into(), got: got.into() }
}

/// What it says of a group of `profile`, on `on`. Nothing where the policy cannot be read, which was
/// found elsewhere.
pub(super) fn examine(
    on: &'static str,
    profile: GroupProfile,
    settings: Option<&Settings>,
    missing: &Missing,
) -> Option<(Group, Vec<Finding>)> {
    let registry = crossover_backends::registry().ok()?;
    let sources = match settings {
        Some(settings) => Sources::of(settings, &profile.arch),
        None => Sources::shipped(&profile.arch),
    };
    let policy = sources.load(&registry).ok()?;
    let group = judge(on, profile, &registry, &policy, settings, missing);
    let findings = group.findings();
    Some((group, findings))
}

fn judge(
    on: &'static str,
    profile: GroupProfile,
    registry: &Registry,
    policy: &Effective,
    settings: Option<&Settings>,
    missing: &Missing,
) -> Group {
    let lacks = |id: &str| missing.iter().find(|(known, _)| *known == id).map(|(_, why)| why);
    let mut algorithms = Vec::new();
    let mut offers = Vec::new();
    for descriptor in registry.descriptors() {
        for algorithm in descriptor.algorithms {
            let why = why_not(descriptor, algorithm, &profile, registry, policy, lacks);
            algorithms.push(Judged {
                target: descriptor.target(algorithm),
                backend: descriptor.id,
                eligible: why.is_none(),
                reason: why,
            });
        }
        if registry.is_linked(descriptor.id) {
            let state = match lacks(descriptor.id) {
                Some(refusal) => OfferState::Unavailable(refusal.clone()),
                None => OfferState::Open { capacity: u64::MAX },
            };
            offers.push(Offer { descriptor, state });
        }
    }
    let demanded = settings.map(|settings| settings.contract);
    let contract = policy.policy.contract;
    let contract = demanded.map_or(contract, |demanded| demanded.intersection(contract));
    let plan = Plan::compile(profile.clone(), contract, &policy.policy, offers);
    let serves = Op::ALL.iter().flat_map(|op| bands(&plan, *op)).collect();
    let GroupProfile { arch, device, world, topology, caps, .. } = profile;
    Group { on, arch, device, world, topology, caps: caps.iter().collect(), algorithms, serves }
}

fn why_not<'a>(
    descriptor: &Descriptor,
    algorithm: &Algorithm,
    profile: &GroupProfile,
    registry: &Registry,
    policy: &Effective,
    lacks: impl Fn(&str) -> Option<&'a Refusal>,
) -> Option<String> {
    if !registry.is_linked(descriptor.id) {
        return Some("declared, and not linked into this program".to_owned());
    }
    let target = descriptor.target(algorithm);
    let is_off = |off: &&crossover_policy::Target| {
        let off = off.to_string();
        off == descriptor.id || off == target
    };
    if let Some(off) = policy.disabled.iter().find(is_off) {
        return Some(format!("switched off: {off}"));
    }
    let e = &algorithm.eligibility;
    let of_group = e.failing_group(profile).map(|clause| e.group_refusal(clause, profile));
    of_group.as_ref().or_else(|| lacks(descriptor.id)).map(ToString::to_string)
}

/// Neighbours that differ in params alone are one.
fn bands(plan: &Plan, op: Op) -> Vec<Band> {
    let call = CallKind {
        op,
        dtype: Dtype::Bf16,
        reduce_op: ReduceOp::Sum,
        mode: Mode::Eager,
        contract: plan.contract(),
    };
    let mut bands: Vec<Band> = Vec::new();
    for swept in plan.sweep(&call) {
        match bands.last_mut() {
            Some(last) if last.target == swept.target => continue,
            Some(last) => last.to = Some(swept.from - 1),
            None => {}
        }
        bands.push(Band { op, from: swept.from, to: None, target: swept.target });
    }
    bands
}

impl Group {
    fn findings(&self) -> Vec<Finding> {
        let Group { world, arch, topology, .. } = self;
        let caps = Caps::of(&self.caps);
        let group = format!("{world} ranks on {arch}, {topology}, caps {caps}");
        let mut findings = vec![Finding::ok("would_form", group)];
        findings.extend(self.backends());
        findings.extend(Op::ALL.iter().map(|op| self.served(*op)));
        findings
    }

    /// A line for each backend and outcome: its algorithms are alike mostly.
    fn backends(&self) -> Vec<Finding> {
        let mut lines: Vec<(&str, &Option<String>, Vec<&str>)> = Vec::new();
        for Judged { target, backend, reason, .. } in &self.algorithms {
            // An algorithm without a name is the backend's own.
            let name = target.split_once('/').map_or(*backend, |(_, algorithm)| algorithm);
            match lines.iter_mut().find(|(known, why, _)| known == backend && *why == reason) {
                Some((.., names)) => names.push(name),
                None => lines.push((backend, reason, vec![name])),
            }
        }
        let line = |(backend, reason, names): &(&str, &Option<String>, Vec<&str>)| {
            let all = self.algorithms.iter().filter(|judged| judged.backend == *backend).count();
            let which = match all == names.len() {
                true => (*backend).to_owned(),
                false => format!("{backend} ({})", names.join(", ")),
            };
            match reason {
                None => Finding::ok("eligible", which),
                Some(why) => Finding::ok("not_eligible", format!("{which}: {why}")),
            }
        };
        lines.iter().map(line).collect()
    }

    /// A line for each op.
    fn served(&self, op: Op) -> Finding {
        let bands = self.serves.iter().filter(|band| band.op == op);
        let words = bands.clone().map(|Band { from, to, target, .. }| {
            let target = target.as_deref().unwrap_or("nothing");
            match to {
                Some(to) => format!("{target} {}", end(*to)),
                None if *from == 0 => target.to_owned(),
                None => format!("{target} beyond"),
            }
        });
        let found = format!("{op}: {}", words.collect::<Vec<_>>().join(", "));
        match bands.clone().all(|band| band.target.is_some()) {
            true => Finding::ok("would_serve", found),
            false => Finding::warn(
                "would_serve",
                found,
                "see what is not eligible above; `crossover explain` tells it of any call",
            ),
        }
    }
}

/// Where a band ends, by whichever number is the rounder one.
fn end(last: u64) -> String {
    let beyond = last.saturating_add(1);
    match beyond.trailing_zeros() > last.trailing_zeros() {
        true => format!("below {}", size_text(beyond)),
        false => format!("to {}", size_text(last)),
    }
}

#[cfg(test)]
mod tests {
    use crossover_policy::{Override, StatedGroup};

    use super::*;
    use crate::doctor::finding::Verdict;

    fn told(arch: &str, settings: Option<&Settings>, missing: &Missing) -> (Group, Vec<String>) {
        let stated = StatedGroup { arch: Some(arch.to_owned()), ..StatedGroup::default() };
        let (group, findings) =
            examine("a test", stated.profile(), settings, missing).expect("a shipped policy");
        let line = |finding: Finding| format!("{} {}", finding.check, finding.found);
        (group, findings.into_iter().map(line).collect())
    }

    fn has(lines: &[String], start: &str) -> bool {
        lines.iter().any(|line| line.starts_with(start))
    }

    #[test]
    fn without_a_device_host_serves_all_and_others_say_why_not() {
        let (group, lines) = told("host", None, &Missing::new());
        assert_eq!(lines[0], "would_form 2 ranks on host, host, caps none");
        assert!(has(&lines, "eligible host"), "{lines:?}");
        assert!(has(&lines, "not_eligible ipc: topology: wants nvlink_full"), "{lines:?}");
        assert!(has(&lines, "not_eligible nvls: declared, and not linked"), "{lines:?}");
        for op in Op::ALL {
            assert!(has(&lines, &format!("would_serve {op}: ")), "{lines:?}");
        }
        assert!(group.serves.iter().all(|band| band.target.is_some()));
        let ends = group.serves.iter().filter(|band| band.to.is_none()).count();
        assert_eq!(ends, Op::ALL.len());
    }

    #[test]
    fn what_set_up_would_miss_takes_a_backend_away() {
        let (full, _) = told("sm90", None, &Missing::new());
        let by = |group: &Group, id: &str| {
            let target = |band: &&Band| band.target.as_deref().is_some_and(|t| t.starts_with(id));
            group.serves.iter().filter(target).count()
        };
        assert!(by(&full, "ipc/") > 0 && by(&full, "nccl") > 0);

        let no_kernels = vec![("ipc", missing("kernels for sm90", "none"))];
        let (less, lines) = told("sm90", None, &no_kernels);
        assert!(by(&less, "ipc/") == 0 && by(&less, "nccl") > 0);
        let want = "not_eligible ipc: setup: wants kernels for sm90, got none";
        assert!(lines.iter().any(|line| line == want), "{lines:?}");

        let nothing = vec![no_kernels[0].clone(), ("nccl", missing("libnccl.so.2", "no file"))];
        let stated = StatedGroup { arch: Some("sm90".to_owned()), ..StatedGroup::default() };
        let (_, findings) =
            examine("a test", stated.profile(), None, &nothing).expect("a shipped policy");
        let worst = findings.iter().map(|finding| finding.verdict).max();
        assert_eq!(worst, Some(Verdict::Warn));
        assert!(findings.iter().any(|f| f.found == "all_reduce: nothing"));
    }

    #[test]
    fn ends_are_told_by_their_rounder_number() {
        assert_eq!(end(512 << 10), "to 512KiB");
        assert_eq!(end((512 << 10) - 1), "below 512KiB");
        assert_eq!(end(47), "below 48B");
    }

    #[test]
    fn what_is_switched_off_is_told_as_that() {
        let registry = crossover_backends::registry().expect("backends");
        let set = Override {
            key: "disable".to_owned(),
            value: "ipc/lamport,nccl".to_owned(),
            origin: "a test".to_owned(),
        };
        let settings = Settings::load([], &[set], &registry).expect("a setting");
        let (_, lines) = told("sm90", Some(&settings), &Missing::new());
        assert!(has(&lines, "not_eligible ipc (lamport): switched off: ipc/lamport"), "{lines:?}");
        assert!(has(&lines, "not_eligible nccl: switched off: nccl"), "{lines:?}");
        assert!(has(&lines, "eligible ipc (one_shot"), "{lines:?}");
    }

    #[test]
    fn programs_get_the_group_and_each_algorithm() {
        let (group, _) = told("sm90", None, &Missing::new());
        let json = serde_json::to_value(&group).expect("JSON");
        assert_eq!(json["world"], 2);
        assert_eq!(json["topology"], Topology::NvlinkFull.to_string());
        let algorithms = json["algorithms"].as_array().expect("a list");
        let lamport = algorithms.iter().find(|a| a["use"] == "ipc/lamport").expect("it is known");
        assert_eq!((&lamport["eligible"], &lamport["reason"]), (&true.into(), &().into()));
        assert_eq!(json["serves"][0]["op"], "all_reduce");
    }
}
