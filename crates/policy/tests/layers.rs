//! Which rule goes before which, and what a file changes in the rules below it.

mod support;

use std::ffi::OsString;

use crossover_core::call::{CallKind, Dtype, Mode, Op, ReduceOp};
use crossover_core::contract::{Contract, Determinism, Deviation, Deviations};
use crossover_core::policy::{Basis, Layer, Policy, Rule};
use crossover_policy::{Override, Settings, Sources, StatedGroup};
use support::{Files, isolated, registry};

/// `id layer line: candidates` of the rules before the floor, in the order in which they are tried.
fn outline(policy: &Policy) -> Vec<String> {
    let one = |rule: &Rule| {
        let chain: Vec<String> = rule.chain.iter().map(|c| c.target()).collect();
        format!("{} {} {}: {}", rule.id, rule.layer, rule.origin.line, chain.join(" "))
    };
    let (floor, above): (Vec<&Rule>, _) =
        policy.rules().iter().partition(|rule| rule.layer == Layer::Builtin);
    assert!(!floor.is_empty() && policy.rules()[above.len()..].iter().eq(floor.iter().copied()));
    above.into_iter().map(one).collect()
}

/// What the floor tries first.
fn floor(policy: &Policy) -> Vec<String> {
    let floor = policy.rules().iter().find(|rule| rule.id == "floor");
    floor.expect("a floor").chain.iter().map(|c| c.target()).collect()
}

const CALL: CallKind = CallKind {
    op: Op::AllReduce,
    dtype: Dtype::Bf16,
    reduce_op: ReduceOp::Sum,
    mode: Mode::Eager,
    contract: Contract::DEFAULT,
};

/// An architecture without a pack.
const BARE: &str = "sm75";

/// The policy of a machine of this architecture, with these variables, options and user files.
fn on(arch: &str, pairs: &[(&str, &str)], options: &[(&str, &str)], files: &[&str]) -> Policy {
    load(arch, pairs, options, files).unwrap().policy
}

fn load(
    arch: &str,
    pairs: &[(&str, &str)],
    options: &[(&str, &str)],
    files: &[&str],
) -> Result<crossover_policy::Effective, String> {
    let files = Files::of(files);
    let paths: Vec<String> = files.paths().iter().map(|p| p.display().to_string()).collect();
    let mut variables: Vec<(OsString, OsString)> =
        pairs.iter().map(|(k, v)| (k.into(), v.into())).collect();
    variables.push(("CROSSOVER_POLICY".into(), paths.join(":").into()));
    let options: Vec<Override> = options
        .iter()
        .map(|(key, value)| Override {
            key: key.to_string(),
            value: value.to_string(),
            origin: format!("--{key}"),
        })
        .collect();
    let settings = Settings::load(variables, &options, &registry()).unwrap();
    Sources::of(&settings, arch).load(&registry()).map_err(|e| files.shown(&e))
}

/// Its first rule about one node of any processors, with the line that it stands on now. Those about
/// several nodes, or about AMD's processors, have more keys, and come before.
fn first_of_the_host_pack() -> String {
    let pack = include_str!("../../../policies/host.toml");
    let line = pack.lines().position(|line| line == "[rule.host-all-reduce-2]");
    format!("host-all-reduce-2 pack {}", line.expect("the pack's first rule") + 1)
}

/// The first of these about one node of any processors.
fn on_one_node(rules: &[String]) -> &str {
    let special = |rule: &&String| rule.starts_with("mpi") || rule.starts_with("host-amd");
    rules.iter().find(|rule| !special(rule)).expect("the pack has one")
}

#[test]
fn a_pack_goes_before_the_floor_and_only_on_its_architecture() {
    let host = outline(&on("host", &[], &[], &[]));
    let first = format!("{}: host/one_shot host/two_shot", first_of_the_host_pack());
    assert_eq!(on_one_node(&host), first);
    assert_eq!(outline(&on(BARE, &[], &[], &[])), [""; 0]);
    assert_eq!(floor(&on(BARE, &[], &[], &[])), ["nccl", "host"]);
}

#[test]
fn precedence_is_layer_then_priority_then_keys_then_the_later_file() {
    let first = "schema = 1
[rule.plain]
chain = [{ use = 'ipc' }]
[rule.keyed]
match = { op = 'all_reduce' }
chain = [{ use = 'ipc' }]
[rule.urgent]
priority = 1
chain = [{ use = 'ipc' }]";
    let second = "schema = 1
[rule.zz-plain-too]
chain = [{ use = 'nvls' }]
[rule.aa-plain-too]
chain = [{ use = 'nvls' }]";
    let policy = isolated(&[first, second]).unwrap().policy;
    assert_eq!(
        outline(&policy),
        [
            "urgent user 7: ipc",
            "keyed user 4: ipc",
            "zz-plain-too user 2: nvls",
            "aa-plain-too user 4: nvls",
            "plain user 2: ipc",
        ]
    );
}

#[test]
fn a_rule_stated_again_changes_only_in_what_is_stated() {
    let below = "schema = 1
[rule.small]
match = { op = 'all_gather' }
chain = [{ use = 'ipc/all_gather', bytes = '..=64KiB' }]
priority = 7
last = true
evidence = { kind = 'measured', device = 'B200' }";
    let rule = |above: &str| {
        let policy = isolated(&[below, &format!("schema = 1\n\n[rule.small]\n{above}")]);
        policy.unwrap().policy.rules().iter().find(|rule| rule.id == "small").cloned()
    };
    let original = isolated(&[below]).unwrap().policy.rules()[0].clone();
    let told = |rule: &Rule| rule.evidence.as_ref().map(ToString::to_string).unwrap_or_default();
    assert_eq!(told(&original), "measured: device B200");

    let chain = rule("chain = [{ use = 'host' }]").unwrap();
    assert_eq!((chain.chain[0].target(), chain.origin.line), ("host".to_owned(), 3));
    assert_eq!((chain.priority, chain.last, &chain.when), (7, true, &original.when));
    assert_eq!(told(&chain), "", "evidence is about the numbers that were replaced");

    let priority = rule("priority = 9\nlast = false").unwrap();
    assert_eq!((priority.priority, priority.last), (9, false));
    assert_eq!((&priority.chain, &priority.when), (&original.chain, &original.when));
    assert_eq!(priority.evidence, original.evidence);

    let when = rule("match = { op = 'all_gather', world = 2 }").unwrap();
    assert_eq!((&when.chain, when.when.world), (&original.chain, Some(vec![(2, 2)])));

    assert_eq!(rule("enabled = false"), None);
    let again = "schema = 1\n[rule.small]\nenabled = true";
    let off = "schema = 1\n[rule.small]\nenabled = false";
    let policy = isolated(&[below, off, again]).unwrap().policy;
    assert_eq!(policy.rules()[0].chain, original.chain);
}

#[test]
fn a_shared_file_may_change_packs_that_are_not_in_force() {
    let shared = "schema = 1
[rule.host-all-reduce-2]
chain = [{ use = 'host/two_shot' }]
[rule.host-all-reduce-4]
enabled = false";
    let changed = outline(&on("host", &[], &[], &[shared]));
    assert_eq!(changed[0], "host-all-reduce-2 user 2: host/two_shot");
    assert!(!changed.iter().any(|rule| rule.starts_with("host-all-reduce-4")), "{changed:?}");
    assert_eq!(outline(&on(BARE, &[], &[], &[shared])), [""; 0]);
    assert_eq!(outline(&isolated(&[shared]).unwrap().policy), [""; 0]);
}

#[test]
fn a_contract_that_nobody_states_leaves_it_to_the_engine() {
    let engine = Contract {
        determinism: Determinism::RunToRun,
        accept: Deviations::of(&[Deviation::SignedZeroFlush]),
    };
    let contract = |texts: &[&str]| isolated(texts).unwrap().policy.contract;
    assert_eq!(contract(&[]).intersection(engine), engine);
    let accepts = "schema = 1\n[contract]\naccept = []";
    let demands = "schema = 1\n[contract]\ndeterminism = 'size_invariant'";
    let both = contract(&[accepts, demands]).intersection(engine);
    assert_eq!(both.determinism, Determinism::SizeInvariant);
    assert_eq!(both.accept, Deviations::NONE);
}

#[test]
fn bytes_of_a_rule_is_that_of_its_candidates_unless_they_say() {
    let text = "schema = 1
[rule.small]
chain = [{ use = 'ipc', bytes = '..=64KiB' }, { use = 'host', bytes_of = 'input' }]
bytes_of = 'output'";
    let policy = isolated(&[text]).unwrap().policy;
    let bases: Vec<Basis> = policy.rules()[0].chain.iter().map(|c| c.basis).collect();
    assert_eq!(bases, [Basis::Output, Basis::Input]);
}

#[test]
fn a_forced_choice_is_last_and_before_everything() {
    let user = "schema = 1\n[rule.mine]\npriority = 99\nchain = [{ use = 'ipc' }]";
    let variables = [("CROSSOVER_USE", "host, all_reduce=host/two_shot")];
    let loaded = load("host", &variables, &[], &[user]).unwrap();
    let rules = loaded.policy.rules();
    assert_eq!(
        outline(&loaded.policy)[..3],
        [
            "use:all_gather+reduce_scatter+broadcast+all_to_all=host env 0: host",
            "use:all_reduce=host/two_shot env 0: host/two_shot",
            "mine user 2: ipc",
        ]
    );
    assert!(rules[0].last && rules[1].last && !rules[2].last);
    assert_eq!(rules[0].origin.to_string(), "CROSSOVER_USE");
    let forced: Vec<String> =
        loaded.forced.iter().map(|f| format!("{} for {}", f.target, f.ops)).collect();
    let others = "all_gather, reduce_scatter, broadcast, all_to_all";
    assert_eq!(forced, [format!("host for {others}"), "host/two_shot for all_reduce".to_owned()]);

    // The program is stronger than its environment, and replaces what that says.
    let policy = on("host", &variables, &[("use", "ipc/all_gather")], &[user]);
    assert_eq!(policy.rules()[0].layer, Layer::Program);
    assert_eq!(policy.rules()[0].origin.to_string(), "--use");
    // It can run one op: calls of other ops are not forced to have nobody.
    assert_eq!(policy.rules()[0].when.op.unwrap().to_string(), "all_gather");
    assert_eq!(policy.rules()[1].id, "mine");
}

#[test]
fn what_is_disabled_is_in_no_chain() {
    let chains = |disable| {
        let policy = on("host", &[("CROSSOVER_DISABLE", disable)], &[], &[]);
        (outline(&policy), floor(&policy), policy.digest())
    };
    let (all, _, digest) = chains("");
    let (two_shot, floor, other_digest) = chains("host/one_shot");
    assert_eq!(on_one_node(&two_shot), format!("{}: host/two_shot", first_of_the_host_pack()));
    assert_eq!(floor, ["nccl", "host/two_shot"]);
    assert_eq!(two_shot.len(), all.len());
    assert_ne!(digest, other_digest, "ranks that disable different things must differ");
    let (rest, floor, _) = chains("ipc,host");
    assert!(rest.iter().all(|rule| rule.starts_with("mpi")), "{rest:?}");
    assert_eq!(floor, ["nccl"]);
}

#[test]
fn a_last_rule_keeps_its_calls_though_all_that_it_tries_is_disabled() {
    let user = "schema = 1
[rule.closed]
match = { op = 'all_reduce' }
chain = [{ use = 'ipc' }]
last = true
[rule.open]
chain = [{ use = 'ipc' }]";
    let loaded = load(BARE, &[("CROSSOVER_DISABLE", "ipc")], &[], &[user]).unwrap();
    assert_eq!(outline(&loaded.policy), ["closed user 2: "]);
    assert!(loaded.policy.rules()[0].last);
    let shown = crossover_policy::show::text(&loaded);
    assert!(shown.contains("\n  chain    none: all that it names is disabled\n"), "{shown}");
}

#[test]
fn the_algorithm_without_a_name_is_written_as_its_backend() {
    let registry = crossover_backends::registry().unwrap();
    let variables = [("CROSSOVER_DISABLE".into(), "nccl/symmetric".into())];
    let settings = Settings::load(variables, &[], &registry).unwrap();
    let policy = Sources::of(&settings, BARE).alone().load(&registry).unwrap().policy;
    assert_eq!(floor(&policy)[0], "nccl");
    let nameless = &policy.rules()[0].chain[0];
    assert_eq!(nameless.algorithm.as_deref(), Some(""));
}

#[test]
fn a_tuned_rule_is_for_its_device_however_that_is_written() {
    let tuned = "schema = 1
[rule.found]
chain = [{ use = 'host' }]
evidence = { kind = 'tuned', device = 'H200' }";
    let rule = &isolated(&[tuned]).unwrap().policy.rules()[0].clone();
    let on = |device: &str| {
        let group = StatedGroup { device: Some(device.to_owned()), ..StatedGroup::default() };
        rule.when.failing(&group.profile(), &CALL)
    };
    assert_eq!(on("NVIDIA H200"), None);
    assert_eq!(on("NVIDIA H100"), Some("device"));
    assert_eq!(on(""), Some("device"));
}

#[test]
fn verbs_are_refused_in_words() {
    let told = |key: &str, value: &str| load("host", &[], &[(key, value)], &[]).unwrap_err();
    assert_eq!(
        told("use", "host, all_reduce=host/two_shoot"),
        "error[E002]: backend `host` has no algorithm `two_shoot`
 --> --use:1:7
  |
1 | host, all_reduce=host/two_shoot
  |       ^^^^^^^^^^^^^^^^^^^^^^^^^
  = help: did you mean `host/two_shot`? known: host/one_shot, host/two_shot"
    );
    let cannot = told("use", "all_gather=host/two_shot");
    assert!(cannot.contains("`host/two_shot` cannot run all_gather"), "{cannot}");
    assert!(cannot.contains("it runs: all_reduce"), "{cannot}");
    let op = told("use", "allreduce=host");
    assert!(op.contains("unknown op `allreduce`") && op.contains("`all_reduce`?"), "{op}");
    let twice = told("use", "host,ipc");
    assert!(twice.contains("forces what is forced already: all_reduce, all_gather"), "{twice}");
    assert!(told("use", "all_reduce=host,all_reduce=ipc").contains("--use:1:17"));
    let absent = told("disable", "ipc,nccl");
    assert!(absent.contains("this program knows no backend `nccl`"), "{absent}");
    assert!(absent.contains(" --> --disable:1:5"), "{absent}");
    let slash = told("disable", "host/");
    assert!(slash.contains("no algorithm stands behind the slash of `host/`"), "{slash}");
    assert!(slash.contains("write `host`, or name one of its algorithms"), "{slash}");
    let both = load("host", &[("CROSSOVER_DISABLE", "host")], &[("use", "host/two_shot")], &[]);
    let both = both.unwrap_err();
    assert!(both.contains("`host/two_shot` is forced, and disabled as well"), "{both}");
}

#[test]
fn every_mistake_in_every_file_is_told_at_once() {
    let told = load(
        "host",
        &[("CROSSOVER_USE", "hots")],
        &[],
        &["schema = 1\nrules = 3", "schema = 1\n[rule.a]\nchain = [{ use = 'icp' }]\nlast = 'x'"],
    )
    .unwrap_err();
    for place in ["0.toml:2:1", "1.toml:3:18", "1.toml:4:8", "CROSSOVER_USE:1:1"] {
        assert!(told.contains(place), "{place} in\n{told}");
    }
}

#[test]
fn a_missing_file_is_an_error_that_names_it() {
    let missing = Sources::isolated(vec!["no/such/policy.toml".into()]).load(&registry());
    let told = missing.unwrap_err().to_string();
    assert!(told.starts_with("the policy file no/such/policy.toml cannot be read: "), "{told}");
}

#[test]
fn a_policy_of_the_program_goes_before_every_file() {
    let files = Files::of(&["schema = 1\n[rule.mine]\npriority = 9\nchain = [{ use = 'ipc' }]"]);
    let own = "schema = 1\n[rule.own]\nchain = [{ use = 'host/one_shot' }]";
    let sources = Sources::isolated(files.paths()).with_text("engine.toml", own);
    let policy = sources.load(&registry()).unwrap().policy;
    assert_eq!(outline(&policy), ["own program 2: host/one_shot", "mine user 2: ipc"]);

    let wrong = "schema = 1\ninclude = ['other.toml']\n[rule.own]\nchain = [{ use = 'hots' }]";
    let told = Sources::isolated(vec![]).with_text("engine.toml", wrong).load(&registry());
    let told = told.unwrap_err().to_string();
    assert!(
        told.contains("a policy of the program lies in no folder\n --> engine.toml:2:"),
        "{told}"
    );
    assert!(told.contains("--> engine.toml:4:18\n"), "{told}");
}

#[test]
fn a_file_without_an_end_is_refused() {
    let told = Sources::isolated(vec!["/dev/zero".into()]).load(&registry()).unwrap_err();
    let told = told.to_string();
    assert!(told.contains("/dev/zero cannot be read: it is longer than 64 MiB"), "{told}");
}
