//! The walk of the lint is a proof: on a small domain, deciding every size of every group by a
//! compiled plan finds no gap and no candidate that the lint got wrong.

mod support;

use std::collections::BTreeSet;

use crossover_core::backend::{Algorithm, Descriptor};
use crossover_core::call::{CallKind, Dtype, Dtypes, Mode, Op, Ops, ReduceOp};
use crossover_core::contract::{Contract, Determinism, Deviation, Deviations};
use crossover_core::eligibility::{Eligibility, Worlds};
use crossover_core::facts::{Cap, Caps, GroupProfile, Topology};
use crossover_core::plan::{Choice, Offer, OfferState, Plan};
use crossover_core::policy::{Policy, Rule};
use crossover_core::registry::Registry;
use crossover_policy::lint::{Options, Report, lint};
use crossover_policy::{Diagnostic, Sources};
use proptest::prelude::*;
use support::Files;

/// Takes all-gathers of bytes; each algorithm is narrow in one way.
static TOY: Descriptor = Descriptor {
    id: "toy",
    version: "0",
    settings: &[],
    algorithms: &[
        Algorithm { name: "all", eligibility: GATHERS, params: &[] },
        Algorithm {
            name: "packs",
            eligibility: Eligibility { multiple_of: 16, ..GATHERS },
            params: &[],
        },
        Algorithm {
            name: "small",
            eligibility: Eligibility { multiple_of: 4, max_bytes: 50, ..GATHERS },
            params: &[],
        },
        Algorithm {
            name: "few",
            eligibility: Eligibility { worlds: Worlds::range(2, 4), ..GATHERS },
            params: &[],
        },
        Algorithm {
            name: "flush",
            eligibility: Eligibility {
                needs: Caps::of(&[Cap::Multicast]),
                deviates: Deviations::of(&[Deviation::SignedZeroFlush]),
                ..GATHERS
            },
            params: &[],
        },
    ],
};
/// The same, for all ops and types: so that a gap is a matter of sizes, groups and modes.
static TOTAL: Descriptor = Descriptor {
    algorithms: &[
        total(TOY.algorithms[0]),
        total(TOY.algorithms[1]),
        total(TOY.algorithms[2]),
        total(TOY.algorithms[3]),
        total(TOY.algorithms[4]),
    ],
    ..TOY
};
const fn total(algorithm: Algorithm) -> Algorithm {
    let eligibility = Eligibility { ops: Ops::ALL, dtypes: Dtypes::ALL, ..algorithm.eligibility };
    Algorithm { eligibility, ..algorithm }
}
const GATHERS: Eligibility = Eligibility {
    ops: Ops::of(&[Op::AllGather]),
    dtypes: Dtypes::of(&[Dtype::U8, Dtype::F32]),
    ..Eligibility::EVERYTHING
};

/// Ranges end in here, so that nothing beyond differs from the last; nor do larger worlds differ
/// from the largest whose output has such a size.
const SIZES: u64 = 100;

fn range() -> impl Strategy<Value = String> {
    let size = 0..(SIZES - 40);
    prop_oneof![
        1 => Just("any".to_owned()),
        2 => size.clone().prop_map(|low| format!("{low}B..")),
        6 => (size, 1..40u64).prop_map(|(low, more)| format!("{low}B..{}B", low + more)),
    ]
}

fn rule(id: usize) -> impl Strategy<Value = String> {
    let names = ["toy", "toy/all", "toy/packs", "toy/small", "toy/few", "toy/flush"];
    let candidate = (prop::sample::select(names.to_vec()), range(), any::<bool>());
    let candidate = candidate.prop_map(|(name, range, of_output)| {
        let basis = if of_output { ", bytes_of = 'output'" } else { "" };
        format!("{{ use = '{name}', bytes = '{range}'{basis} }}")
    });
    let keys = [
        "world = 3",
        "world = '2..=5'",
        "world = '6..'",
        "mode = 'graph'",
        "dtype = 'f32'",
        "arch = 'sm90'",
        "caps = 'multicast'",
        "group = 'tp'",
    ];
    let keys = prop::sample::subsequence(keys.to_vec(), 0..3);
    let chain = prop::collection::vec(candidate, 1..4);
    (keys, chain, -1..2i32, prop::bool::weighted(0.15)).prop_map(
        move |(keys, chain, priority, last)| {
            let mut seen = BTreeSet::new();
            let once = |key: &&&str| seen.insert(key.split(' ').next().unwrap().to_owned());
            let keys: Vec<&str> = keys.iter().filter(once).copied().collect();
            format!(
                "[rule.r{id}]\npriority = {priority}\nlast = {last}\n\
                 match = {{ op = 'all_gather'{}{} }}\nchain = [\n{},\n]\n",
                if keys.is_empty() { "" } else { ", " },
                keys.join(", "),
                chain.join(",\n")
            )
        },
    )
}

fn policy() -> impl Strategy<Value = String> {
    let rules = (rule(0), rule(1), rule(2), rule(3));
    (rules, 1..5usize, any::<bool>()).prop_map(|((a, b, c, d), rules, exact)| {
        let contract = if exact { "[contract]\naccept = []\n" } else { "" };
        let rules = [a, b, c, d][..rules].concat();
        format!("schema = 1\n{contract}{rules}")
    })
}

/// Every group that a policy of these can tell apart, and some that it cannot.
fn groups() -> impl Iterator<Item = GroupProfile> {
    let caps = [Caps::of(&[Cap::P2p]), Caps::ALL];
    ["sm80", "sm90"].into_iter().flat_map(move |arch| {
        (2..=SIZES as u32 + 1).chain([1024]).flat_map(move |world| {
            caps.into_iter().flat_map(move |caps| {
                ["world", "tp"].into_iter().map(move |tag| GroupProfile {
                    arch: arch.to_owned(),
                    device: String::new(),
                    world,
                    nodes: 1,
                    topology: Topology::NvlinkFull,
                    tag: tag.to_owned(),
                    caps,
                    caches: Default::default(),
                })
            })
        })
    })
}

/// Calls that the algorithms take: all others are gaps, and not looked at.
fn calls() -> impl Iterator<Item = CallKind> {
    [Dtype::U8, Dtype::F32].into_iter().flat_map(|dtype| {
        Mode::ALL.iter().map(move |&mode| CallKind {
            op: Op::AllGather,
            dtype,
            reduce_op: ReduceOp::Sum,
            mode,
            contract: Contract { determinism: Determinism::Any, accept: Deviations::ALL },
        })
    })
}

fn plan(
    toy: &'static Descriptor,
    group: GroupProfile,
    contract: Contract,
    policy: &Policy,
) -> Plan {
    let open = Offer { descriptor: toy, state: OfferState::Open { capacity: u64::MAX } };
    Plan::compile(group, contract, policy, vec![open])
}

/// Who serves every size of every call, by a contract; a rule and the written candidate.
fn decided(
    toy: &'static Descriptor,
    policy: &Policy,
    contract: Contract,
) -> Vec<Option<(String, String)>> {
    let mut decided = Vec::new();
    for group in groups() {
        let plan = plan(toy, group, contract, policy);
        for call in calls() {
            let element = call.dtype.size() as u64;
            for bytes in (0..SIZES).filter(|bytes| bytes.is_multiple_of(element)) {
                decided.push(plan.decide(&CallKind { contract, ..call }, bytes).map(|choice| {
                    let rule = plan.rule_of(choice).unwrap();
                    (rule.id.clone(), plan.name_of(choice))
                }));
            }
        }
    }
    decided
}

/// The candidates that some plan ever chooses, as lines of the file: by hand, from its choices.
fn chosen(policy: &Policy, contract: Contract) -> BTreeSet<(String, usize)> {
    let exact = Contract { accept: Deviations::NONE, ..contract };
    let mut chosen = BTreeSet::new();
    for contract in [contract, exact] {
        for group in groups() {
            let world = group.world;
            let plan = plan(&TOY, group, contract, policy);
            for call in calls() {
                let element = call.dtype.size() as u64;
                for bytes in (0..SIZES).filter(|bytes| bytes.is_multiple_of(element)) {
                    let call = CallKind { contract, ..call };
                    if let Some(choice) = plan.decide(&call, bytes) {
                        let rule = plan.rule_of(choice).unwrap();
                        let at = first_that_serves(rule, &plan, choice, bytes, world);
                        chosen.insert((rule.id.clone(), at));
                    }
                }
            }
        }
    }
    chosen
}

/// The candidate of its rule that made a choice: the first that names the algorithm and whose
/// range holds the size.
fn first_that_serves(rule: &Rule, plan: &Plan, choice: Choice, bytes: u64, world: u32) -> usize {
    let name = plan.name_of(choice);
    let output = bytes * u64::from(world);
    let serves = |c: &crossover_core::policy::Candidate| {
        let size = match c.basis {
            crossover_core::policy::Basis::Input => bytes,
            crossover_core::policy::Basis::Output => output,
        };
        (c.target() == name || c.target() == "toy") && c.bytes.contains(size)
    };
    rule.chain.iter().position(serves).unwrap()
}

fn linted(toy: &'static Descriptor, text: &str) -> (Report, Policy) {
    let registry = Registry::empty().declaring(toy).unwrap();
    let files = Files::of(&[text]);
    let sources = Sources::isolated(files.paths());
    let report = lint(&sources, &registry, &Options::default());
    let report = report.unwrap_or_else(|e| panic!("{}\n{text}", files.shown(&e)));
    (report, sources.load(&registry).unwrap().policy)
}

/// The candidates, or whole rules, of which the lint says that they are never chosen.
fn told_never(
    text: &str,
    findings: &[Diagnostic],
) -> (BTreeSet<(String, usize)>, BTreeSet<String>) {
    let (mut candidates, mut rules) = (BTreeSet::new(), BTreeSet::new());
    for finding in findings.iter().filter(|f| f.code.name() == "W006") {
        // A candidate has a line of its own, below the line of its rule's chain.
        let above: Vec<&str> = text.lines().take(finding.line as usize).collect();
        let id = |line: &&&str| line.starts_with("[rule.");
        let rule = above.iter().rev().find(id).unwrap();
        let rule = rule.trim_start_matches("[rule.").trim_end_matches(']').to_owned();
        match above.iter().rev().position(|line| line.starts_with("chain")) {
            Some(at) if at > 0 && above.last().unwrap().starts_with('{') => {
                candidates.insert((rule, at - 1));
            }
            _ => drop(rules.insert(rule)),
        }
    }
    (candidates, rules)
}

fn never_chosen_agrees(text: &str) {
    let (report, policy) = linted(&TOY, text);
    let chosen = chosen(&policy, policy.contract);
    let (candidates, rules) = told_never(text, &report.findings);
    for rule in policy.rules().iter().filter(|rule| rule.id != "floor") {
        for at in 0..rule.chain.len() {
            let told = rules.contains(&rule.id) || candidates.contains(&(rule.id.clone(), at));
            let chosen = chosen.contains(&(rule.id.clone(), at));
            assert_eq!(told, !chosen, "candidate {at} of {}\n{text}", rule.id);
        }
    }
}

/// A range over output bytes is narrow, or gone, in large worlds and not in small ones, or the other
/// way about.
#[test]
fn ranges_of_output_are_asked_of_every_world() {
    let chains = [
        // One byte of each of 84 ranks and more.
        [("any", "2B..", "input"), ("any", "84B..", "output")],
        // One byte of each of 67 to 80 ranks.
        [("any", "67B..81B", "output"), ("any", "any", "input")],
        // Sixteen bytes of each of five ranks.
        [("packs", "80B..85B", "output"), ("any", "any", "input")],
        // Two of each of 36 to 39.
        [("any", "2B..3B", "input"), ("any", "72B..80B", "output")],
    ];
    for chain in chains {
        let candidates = chain.map(|(algorithm, bytes, of)| {
            let name =
                if algorithm == "any" { "toy".to_owned() } else { format!("toy/{algorithm}") };
            format!("{{ use = '{name}', bytes = '{bytes}', bytes_of = '{of}' }},\n")
        });
        never_chosen_agrees(&format!(
            "schema = 1\n[rule.r0]\nmatch = {{ op = 'all_gather' }}\nchain = [\n{}]\n",
            candidates.concat()
        ));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    /// W006 is told of exactly the candidates that no decision chooses.
    #[test]
    fn never_chosen_is_exact(text in policy()) {
        never_chosen_agrees(&text);
    }

    /// E009 is told if, and only if, swapping two rules of equal precedence changes a decision.
    #[test]
    fn ties_are_exact(text in policy()) {
        let (report, policy) = linted(&TOY, &text);
        let told = report.findings.iter().any(|f| f.code.name() == "E009");
        let rules = policy.rules();
        let precedence = |r: &Rule| (r.layer, r.priority, r.when.constrained());
        let mut differs = false;
        let contracts = [policy.contract, Contract { accept: Deviations::NONE, ..policy.contract }];
        for contract in contracts {
            let now: Vec<_> = decided(&TOY, &policy, contract).into_iter().map(|d| d.map(|d| d.1)).collect();
            for a in 0..rules.len() {
                for b in a + 1..rules.len() {
                    if precedence(&rules[a]) == precedence(&rules[b]) && !differs {
                        let mut swapped = rules.to_vec();
                        swapped.swap(a, b);
                        let swapped = Policy::new(policy.contract, swapped);
                        let then = decided(&TOY, &swapped, contract);
                        differs = then.into_iter().map(|d| d.map(|d| d.1)).ne(now.iter().cloned());
                    }
                }
            }
        }
        prop_assert_eq!(told, differs, "{}", text);
    }

    /// E008 is told if, and only if, some all-gather is served by nobody.
    #[test]
    fn gaps_are_exact(text in policy(), rest in prop::sample::select(vec!["any", "..=60B", "1B.."])) {
        // So that most calls reach something, and the other ops play no part.
        let text = format!(
            "{text}[rule.rest]\npriority = -50\nmatch = {{ op = 'all_gather' }}\n\
             chain = [{{ use = 'toy/all', bytes = '{rest}' }}]\n[rule.others]\n\
             match = {{ op = ['all_reduce', 'reduce_scatter', 'broadcast', 'all_to_all'] }}\n\
             chain = [{{ use = 'toy/all' }}]\n"
        );
        let (report, policy) = linted(&TOTAL, &text);
        let loosest = Contract { determinism: Determinism::Any, accept: Deviations::ALL };
        let served = decided(&TOTAL, &policy, loosest).iter().all(Option::is_some);
        let told = report.findings.iter().any(|f| f.code.name() == "E008");
        prop_assert_eq!(told, !served, "{}\n{:#?}", text, report.findings);
    }
}
