//! Open MPI's JSON rules: of the sets the first that suits a communicator, of its rules the first
//! that suits a size.

use crossover_core::call::Op;
use crossover_core::facts::Topology;
use crossover_policy::import::Format;
use proptest::prelude::*;

use crate::{around, call, group, imported_rule, plans};

/// Rules for communicators of some sizes.
#[derive(Clone, Debug)]
struct Set {
    ranks: (Option<u64>, Option<u64>),
    single_node: bool,
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
struct Rule {
    bytes: (Option<u64>, Option<u64>),
    algorithm: usize,
}

/// By number, for an all-reduce.
const ALGORITHMS: [&str; 8] = [
    "ignore",
    "basic_linear",
    "nonoverlapping",
    "recursive_doubling",
    "ring",
    "segmented_ring",
    "rabenseifner",
    "allgather_reduce",
];

/// Both ends are inside, and may be absent.
fn holds((low, high): (Option<u64>, Option<u64>), value: u64) -> bool {
    low.is_none_or(|low| low <= value) && high.is_none_or(|high| value <= high)
}

fn range(values: &'static [u64]) -> impl Strategy<Value = (Option<u64>, Option<u64>)> {
    let end = || prop::option::of(prop::sample::select(values));
    (end(), end()).prop_map(|(a, b)| match (a, b) {
        (Some(a), Some(b)) => (Some(a.min(b)), Some(a.max(b))),
        open => open,
    })
}

fn sets() -> impl Strategy<Value = Vec<Set>> {
    let rule = (range(&[0, 1, 8, 1023, 1024, 4096, 65536]), 0..8usize)
        .prop_map(|(bytes, algorithm)| Rule { bytes, algorithm });
    let rules = prop::collection::vec(rule, 0..5);
    let set = (range(&[0, 1, 2, 4, 8, 9]), any::<bool>(), rules)
        .prop_map(|(ranks, single_node, rules)| Set { ranks, single_node, rules });
    prop::collection::vec(set, 1..4)
}

fn keys((low, high): (Option<u64>, Option<u64>), name: &str) -> String {
    let key = |end: &str, value: Option<u64>| {
        value.map_or(String::new(), |value| format!("\"{name}_{end}\": {value}, "))
    };
    key("min", low) + &key("max", high)
}

fn json(collective: &str, by_name: bool, sets: &[Set]) -> String {
    let set = |set: &Set| {
        let rule = |rule: &Rule| {
            let algorithm = match by_name {
                true => format!("\"{}\"", ALGORITHMS[rule.algorithm]),
                false => rule.algorithm.to_string(),
            };
            format!("{{ {}\"alg\": {algorithm} }}", keys(rule.bytes, "msg_size"))
        };
        let place = if set.single_node { "single-node" } else { "any" };
        let rules: Vec<String> = set.rules.iter().map(rule).collect();
        format!(
            "{{ {}\"comm_rank_distribution\": \"{place}\", \"rules\": [{}] }}",
            keys(set.ranks, "comm_size"),
            rules.join(",\n")
        )
    };
    let sets: Vec<String> = sets.iter().map(set).collect();
    format!(
        "{{ \"rule_file_version\": 3, \"module\": \"tuned\", \"collectives\": {{\n\"{collective}\": \
         [{}] }} }}",
        sets.join(",\n")
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn open_mpi_json_rules_decide_as_before(sets in sets(), gather in any::<bool>()) {
        let (op, collective) = match gather {
            true => (Op::AllGather, "allgather"),
            false => (Op::AllReduce, "allreduce"),
        };
        let text = json(collective, !gather, &sets);
        let groups = [2, 3, 4, 8, 9, 10].map(|world| group("host", world, 1, Topology::Host));
        let ends = |set: &Set| -> Vec<u64> {
            set.rules.iter().flat_map(|r| [r.bytes.0, r.bytes.1]).flatten().collect()
        };
        let named: Vec<u64> = sets.iter().flat_map(ends).collect();
        for (plan, group) in plans(Format::OpenMpi, &text, &groups).iter().zip(&groups) {
            let scale = if gather { u64::from(group.world) } else { 1 };
            for bytes in around(&named, scale).into_iter().filter(|b| b.checked_mul(scale).is_some()) {
                // All ranks are on one node, so that either distribution suits.
                let set = sets.iter().find(|set| holds(set.ranks, u64::from(group.world)));
                let rule = set.and_then(|s| s.rules.iter().find(|r| holds(r.bytes, bytes * scale)));
                let algorithm = rule.map(|rule| rule.algorithm).filter(|a| *a != 0);
                let choice = plan.decide(&call(op), bytes);
                let imported = imported_rule(plan, choice, "openmpi-tuned-");
                let case = format!("{op} {bytes} B, {} ranks\n{text}", group.world);
                prop_assert_eq!(imported.is_some(), algorithm.is_some(), "{:?} {}", imported, case);
                let (Some(algorithm), Some(choice)) = (algorithm, choice) else { continue };
                let wanted = match (gather, algorithm) {
                    (false, 4..=6) => "host/two_shot",
                    _ => "host/one_shot", // for a gather, the first of two that do the same
                };
                prop_assert_eq!(plan.name_of(choice), wanted, "{}", case);
            }
        }
    }
}
