//! What a person and a program are told about a decision.

mod support;

use crossover_core::backend::{Algorithm, Descriptor, Param, Values};
use crossover_core::call::{CallKind, Dtype, Mode, Op, ReduceOp};
use crossover_core::contract::Contract;
use crossover_core::explain::{Explanation, Next};
use crossover_core::facts::{Caches, Cap, Caps, GroupProfile, Topology};
use crossover_core::plan::{Offer, OfferState, Plan};
use crossover_core::policy::{CacheLevel, ParamValue, Policy};
use crossover_policy::explain::{Record, text};
use support::{HOST, IPC, NVLS, isolated};

/// The seed's routing rule, over a rule for another op.
const POLICY: &str = r#"schema = 1
[rule.small-all-gather]
match = { op = "all_gather", group = "tp", topology = ["nvlink_full", "mnnvl"] }
chain = [
  { use = "nvls/lamport_all_gather", bytes = "1B..=64KiB" },
  { use = "ipc/all_gather", bytes = "1B..=64KiB" },
]
evidence = { kind = "ported", device = "B200", world = 4, mode = "graph" }
[rule.all-reduce]
match = { op = "all_reduce" }
chain = [{ use = "ipc/one_shot_push", bytes = "..128KiB" }, { use = "ipc/two_shot_pull" }]
"#;

fn group() -> GroupProfile {
    GroupProfile {
        arch: "sm100".to_owned(),
        device: "NVIDIA B200".to_owned(),
        world: 4,
        nodes: 1,
        topology: Topology::NvlinkFull,
        tag: "tp".to_owned(),
        caps: Caps::of(&[Cap::P2p, Cap::Multicast]),
        caches: Default::default(),
    }
}

fn plan() -> Plan {
    let open = |descriptor| Offer { descriptor, state: OfferState::Open { capacity: u64::MAX } };
    let offers = vec![open(&HOST), open(&IPC), open(&NVLS)];
    let policy = isolated(&[POLICY]).unwrap().policy;
    Plan::compile(group(), Contract::DEFAULT, &policy, offers)
}

fn all_gather() -> CallKind {
    CallKind {
        op: Op::AllGather,
        dtype: Dtype::Bf16,
        reduce_op: ReduceOp::Sum,
        mode: Mode::Graph,
        contract: Contract::DEFAULT,
    }
}

/// The text, with the temporary folder taken out. `holds` and `next` are set here: which sizes of
/// other alignments they speak about is the core's affair.
fn told(bytes: u64, holds: (u64, Option<u64>), next: Option<Next>) -> String {
    let explanation = Explanation { holds, next, ..plan().explain_kind(&all_gather(), bytes) };
    let text = text(&group(), &explanation);
    let words = text.split(' ').map(|word| match word.rsplit_once('/') {
        Some((folder, file)) if folder.starts_with('/') => file,
        _ => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_person_reads_the_answer_first_and_then_why() {
    let target = Some("host/one_shot".to_owned());
    let next = Next { at: 65_537, target, params: Vec::new() };
    assert_eq!(
        told(65_536, (1, Some(65_536)), Some(next)),
        "\
all_gather bf16 graph 64KiB (65536 B) per rank
  group tp: sm100 x4 on 1 node, topology nvlink_full, caps p2p, multicast
  -> ipc/all_gather by rule small-all-gather [user] 0.toml:2
     evidence: ported: device B200, world 4, mode graph
     holds for 1B..=64KiB; from 65537 B on host/one_shot
  rule small-all-gather [user] 0.toml:2
     nvls/lamport_all_gather  1B..=64KiB  ineligible: accept: wants accept = [signed_zero_flush], got accept = []
   > ipc/all_gather           1B..=64KiB  chosen
  rule all-reduce [user] 0.toml:9: no match: the rule is not for op = all_gather
  rule floor [builtin] policies/default.toml:4
     nccl           any  not reached: an earlier candidate serves
     host/one_shot  any  not reached: an earlier candidate serves
     host/two_shot  any  not reached: an earlier candidate serves
"
    );
}

#[test]
fn a_program_reads_the_keys_that_the_command_line_promises() {
    let plan = plan();
    let explanation = plan.explain_kind(&all_gather(), 65_537);
    let json = serde_json::to_value(Record::from(&explanation)).unwrap();
    assert_eq!(json["op"], "all_gather");
    assert_eq!(json["dtype"], "bf16");
    assert_eq!(json["bytes"], 65_537);
    let chosen = serde_json::json!({
        "use": "host/one_shot",
        "rule": "floor",
        "layer": "builtin",
        "file": "policies/default.toml",
        "line": 4,
        "evidence": "default: a library or shared memory takes every op, dtype and size",
        "params": {},
    });
    assert_eq!(json["chosen"], chosen);
    let verdicts: Vec<_> = json["considered"].as_array().unwrap().iter().collect();
    let verdict = |at: usize| (&verdicts[at]["use"], &verdicts[at]["verdict"]);
    assert_eq!(verdict(0), (&"nvls/lamport_all_gather".into(), &"size_outside".into()));
    assert_eq!(verdict(2), (&"ipc/one_shot_push".into(), &"no_match".into()));
    assert_eq!(verdict(4), (&"nccl".into(), &"ineligible".into()));
    assert_eq!(verdict(5), (&"host/one_shot".into(), &"chosen".into()));
    assert_eq!(verdict(6), (&"host/two_shot".into(), &"not_reached".into()));
    assert_eq!(json["holds"], serde_json::json!({ "from": 65_537, "to": null }));
    assert_eq!(json["next"], serde_json::Value::Null);
    let keys: Vec<&String> = json.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["op", "dtype", "bytes", "chosen", "considered", "holds", "next"]);

    let nobody = Plan::compile(group(), Contract::DEFAULT, &isolated(&[]).unwrap().policy, vec![]);
    let explanation = nobody.explain_kind(&all_gather(), 64);
    let json = serde_json::to_value(Record::from(&explanation)).unwrap();
    assert_eq!(json["chosen"], serde_json::Value::Null);
    assert!(text(&group(), &explanation).contains("  -> nothing serves this call\n"));
}

const STREAM: Param =
    Param { name: "stream", values: Values::Bytes { min: 64, max: u64::MAX }, default: u64::MAX };

#[test]
fn a_share_of_a_cache_is_a_size_where_the_cache_is_known_and_else_as_written() {
    let algorithm = Algorithm { params: &[STREAM], ..HOST.algorithms[0] };
    let algorithms = vec![algorithm].leak();
    let descriptor: &Descriptor = Box::leak(Box::new(Descriptor { algorithms, ..HOST }));
    let share = ParamValue::Cache { level: CacheLevel::L2, parts: 2, per_world: false };
    let params_with = |caches: Caches| {
        let mut policy = isolated(&[]).unwrap().policy;
        let mut rule = policy.rules()[0].clone();
        for candidate in &mut rule.chain {
            candidate.params = vec![("stream".to_owned(), share.clone())];
        }
        policy = Policy::new(policy.contract, vec![rule]);
        let offer = Offer { descriptor, state: OfferState::Open { capacity: u64::MAX } };
        let group = GroupProfile { caches, ..group() };
        let plan = Plan::compile(group, Contract::DEFAULT, &policy, vec![offer]);
        plan.explain_kind(&all_gather(), 4096).chosen.unwrap().params
    };
    assert_eq!(params_with(Caches { l2: 2 << 20, llc: 0 }), [("stream", "1MiB".to_owned())]);
    assert_eq!(params_with(Caches { l2: 0, llc: 8 << 20 }), [("stream", "l2/2".to_owned())]);
}

#[test]
fn a_rule_that_names_what_the_group_does_not_state_says_so() {
    let rules = "schema = 1
[rule.one-device]
match = { device = 'NVIDIA B200' }
chain = [{ use = 'host' }]
[rule.one-group]
match = { group = 'tp' }
chain = [{ use = 'host' }]
";
    let open = |descriptor| Offer { descriptor, state: OfferState::Open { capacity: u64::MAX } };
    let reasons = |device: &str, tag: &str| -> Vec<String> {
        let group = GroupProfile { device: device.to_owned(), tag: tag.to_owned(), ..group() };
        let policy = isolated(&[rules]).unwrap().policy;
        let plan = Plan::compile(group, Contract::DEFAULT, &policy, vec![open(&HOST)]);
        let told = plan.explain_kind(&all_gather(), 64).considered;
        let of = |rule: &str| told.iter().find(|c| c.rule == rule).unwrap().reason.clone();
        vec![of("one-device"), of("one-group")]
    };
    let unnamed = [
        "the rule names a device, and the group states no device name",
        "the rule names a group, and the group states no name",
    ];
    assert_eq!(reasons("", ""), unnamed);
    let others = ["the rule is not for device = NVIDIA H200", "the rule is not for group = ep"];
    assert_eq!(reasons("NVIDIA H200", "ep"), others);
}
