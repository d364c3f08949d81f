//! Each code of the lint: a policy that shows it, and the nearest one that does not.

mod support;

use std::collections::BTreeMap;

use crossover_core::backend::{Algorithm, Descriptor};
use crossover_core::call::{Op, Ops};
use crossover_core::contract::{Contract, Determinism, Deviation, Deviations, OrderClass};
use crossover_core::eligibility::Eligibility;
use crossover_core::registry::Registry;
use crossover_policy::lint::{Options, Report, lint};
use crossover_policy::{Sources, StatedGroup};
use support::Files;

/// The report on a file over the floor, with the backends of this workspace.
#[track_caller]
fn report(text: &str, options: &Options) -> Report {
    report_with(&crossover_backends::registry().unwrap(), text, options)
}

#[track_caller]
fn report_with(registry: &Registry, text: &str, options: &Options) -> Report {
    let files = Files::of(&[text]);
    let report = lint(&Sources::isolated(files.paths()), registry, options);
    report.unwrap_or_else(|e| panic!("{}", files.shown(&e)))
}

/// What is found, as `W006@7:3`.
fn places(report: &Report) -> Vec<String> {
    let place = |d: &crossover_policy::Diagnostic| format!("{}@{}:{}", d.code, d.line, d.column);
    report.findings.iter().map(place).collect()
}

#[track_caller]
fn found(text: &str, expected: &[&str]) {
    found_with(text, &Options::default(), expected);
}

#[track_caller]
fn found_with(text: &str, options: &Options, expected: &[&str]) {
    let report = report(text, options);
    assert_eq!(places(&report), expected, "{:#?}", report.findings);
}

/// A rule for all-reduce over NVLink with this chain.
fn reducing(chain: &str) -> String {
    format!(
        "schema = 1
[rule.r]
match = {{ op = 'all_reduce', arch = 'sm90', topology = 'nvlink_full' }}
chain = [
{chain}
]"
    )
}

#[test]
fn never_chosen() {
    let two = |range: &str| {
        reducing(&format!(
            "{{ use = 'ipc/one_shot_push', bytes = '..64KiB' }},
{{ use = 'ipc/one_shot_pull', bytes = '{range}' }},"
        ))
    };
    found(&two("1KiB..64KiB"), &["W006@6:1"]);
    found(&two("1KiB..=64KiB"), &[]);
    // A size that no element divides is none: there is no call of 65537 bytes.
    found(&two("1KiB..=65537B"), &[]);
    found(&two("65535B..64KiB"), &["W006@6:1"]);
    // The misaligned are somebody's as well: the switch takes 16 bytes at a time, and sums alone.
    found(&reducing("{ use = 'nvls/two_shot' },\n{ use = 'ipc/two_shot_push' },"), &[]);
    // A bare backend is chosen if any of its algorithms is.
    found(&reducing("{ use = 'ipc/one_shot_push' },\n{ use = 'ipc' },"), &["W006@6:1"]);
    found(&reducing("{ use = 'ipc/one_shot_push', bytes = '..1MiB' },\n{ use = 'ipc' },"), &[]);
    // What another program's backend would take is not known.
    let unknown = "{ use = 'ipc/one_shot_push' },\n{ use = 'their/own', optional = true },";
    found(&reducing(unknown), &[]);
}

#[test]
fn a_deviation_needs_a_contract_that_accepts_it() {
    let rule = "[rule.g]\nmatch = { op = 'all_gather', topology = 'nvlink_full' }\n\
                chain = [{ use = 'ipc/lamport_all_gather', bytes = '..=64KiB' }]";
    // Some engine may accept it, unless the file does not.
    found(&format!("schema = 1\n{rule}"), &[]);
    found(&format!("schema = 1\n[contract]\naccept = []\n{rule}"), &["W006@6:10"]);
    // Or unless the engine is known.
    let exact = Options { contract: Some(Contract::DEFAULT), ..Options::default() };
    found_with(&format!("schema = 1\n{rule}"), &exact, &["W006@4:10"]);
    // The codecs of one op go before one another only under contracts that accept both.
    let codecs = "{ use = 'quick_reduce/int4' },\n{ use = 'quick_reduce/int8' },";
    found(&reducing(codecs), &[]);
    found(
        &reducing("{ use = 'ipc/one_shot_push' },\n{ use = 'quick_reduce/int8' },"),
        &["W006@6:1"],
    );
}

#[test]
fn gaps() {
    let rows = |second: &str| {
        format!(
            "schema = 1
[table.t]
match = {{ arch = 'sm90', op = 'all_reduce' }}
last = true
key = ['world']
columns = ['ipc/one_shot_push', 'nccl']
rows.2 = ['..=1MiB', 'any']
rows.4 = ['..=1MiB', '{second}']"
        )
    };
    found(&rows("any"), &[]);
    // Peers take floats alone: the rest has nobody up to there.
    found(&rows("1MiB.."), &["E008@8:6"]);
    // A call may have no bytes.
    found(&rows("1B.."), &["E008@8:6"]);
    found(&rows("..=4MiB"), &["E008@8:6"]);
    let unlast = rows("..=4MiB").replace("last = true\n", "");
    found(&unlast, &[]);
    let off = "schema = 1\n[rule.floor]\nenabled = false";
    let report = report(off, &Options::default());
    assert_eq!(places(&report), ["E008@1:1"]);
}

#[test]
fn calls_that_the_contract_refuses_are_no_gaps() {
    let text = "schema = 1\n[contract]\ndeterminism = 'size_invariant'";
    let files = Files::of(&[text]);
    let registry = crossover_backends::registry().unwrap();
    let report = lint(&Sources::isolated(files.paths()), &registry, &Options::default()).unwrap();
    assert_eq!(places(&report), [""; 0]);
    // The floor has the library alone for devices, and shared memory for the host.
    assert_eq!(
        report.refused_by_contract,
        ["all_reduce of f32/f16/bf16/f64, reduce_scatter of f32/f16/bf16/f64 on nvlink_full, \
          nvlink_partial, xgmi_full, pcie, mnnvl, multi_node"]
    );
    let with =
        format!("{text}\n[rule.r]\nmatch = {{ op = 'all_reduce' }}\nchain = [{{ use = 'ipc' }}]");
    // Peers take floats, in groups of up to 16 that reach one another.
    assert_eq!(
        self::report(&with, &Options::default()).refused_by_contract,
        ["all_reduce of f32/f16/bf16/f64, reduce_scatter of f32/f16/bf16/f64 on nvlink_full, \
          nvlink_partial, xgmi_full, pcie, mnnvl, multi_node"]
    );
    let unstated = self::report("schema = 1", &Options::default());
    assert_eq!(unstated.refused_by_contract, [""; 0]);
}

/// A registry whose backend takes all-reduces alone.
#[test]
fn what_no_backend_could_serve_is_no_gap() {
    let registry = Registry::empty().declaring(&CLAIMS).unwrap();
    let text = |op: &str, range: &str| {
        format!(
            "schema = 1\n[rule.r]\nlast = true\nmatch = {{ op = '{op}' }}\n\
             chain = [{{ use = 'claims/in_order', bytes = '{range}' }}]"
        )
    };
    let found = |text: &str| {
        let report = report_with(&registry, text, &Options::default());
        let gaps = report.findings.iter().filter(|f| f.code.name() == "E008");
        gaps.map(|d| format!("{}:{}", d.line, d.column)).collect::<Vec<String>>()
    };
    assert_eq!(found(&text("all_reduce", "any")), [""; 0]);
    assert_eq!(found(&text("broadcast", "any")), [""; 0]);
    assert_eq!(found(&text("all_reduce", "..=1KiB")), ["2:7"]);
}

#[test]
fn a_last_rule_that_the_usual_contract_refuses() {
    let lossy = "{ use = 'quick_reduce/int8', bytes = '..=1MiB' }";
    let closed = |last: bool, more: &str| {
        format!(
            "schema = 1\n[rule.r]\nlast = {last}\nmatch = {{ op = 'all_reduce', \
             dtype = 'f16', reduce_op = 'sum', world = 8, topology = 'xgmi_full', arch = 'gfx942', \
             caps = 'p2p' }}\nchain = [{lossy}{more}]"
        )
    };
    let codes = |text: &str, options: &Options| {
        let report = report(text, options);
        let refused = !report.refused_by_contract.is_empty();
        (report.findings.iter().map(|f| f.code.name()).collect::<Vec<_>>(), refused)
    };
    let unstated = Options::default();
    // What the rule leaves to nobody under any contract is a gap as well.
    assert_eq!(codes(&closed(true, ""), &unstated), (vec!["E008", "W017"], true));
    assert_eq!(codes(&closed(true, ", { use = 'nccl' }"), &unstated), (vec![], false));
    assert_eq!(codes(&closed(false, ""), &unstated), (vec![], false));
    // An engine that accepts the codec is served by it.
    let accept = Deviations::of(&[Deviation::LossyInt8]);
    let contract = Some(Contract { accept, ..Contract::DEFAULT });
    let lossy = Options { contract, ..Options::default() };
    assert_eq!(codes(&closed(true, ""), &lossy), (vec!["E008"], false));
}

#[test]
fn under_a_stated_contract_no_stricter_one_counts() {
    let chain = "{ use = 'nccl' },\n{ use = 'ipc/two_shot_pull' },";
    // Some call may demand the same bits at every size.
    found(&reducing(chain), &[]);
    let stated = |determinism| Options {
        contract: Some(Contract { determinism, ..Contract::DEFAULT }),
        ..Options::default()
    };
    found_with(&reducing(chain), &stated(Determinism::RankConsistent), &["W006@6:1"]);
    // Of the library's reductions, those of integers are alike at every size.
    found_with(&reducing(chain), &stated(Determinism::SizeInvariant), &[]);
}

#[test]
fn ties() {
    let two = |first: &str, second: &str, extra: &str| {
        format!(
            "schema = 1
[rule.a]
match = {{ op = 'all_gather', {first} }}
chain = [{{ use = 'ipc/all_gather', bytes = '..=64KiB' }}]
[rule.b]
match = {{ op = 'all_gather', {second} }}
chain = [{{ use = 'symm/all_gather', bytes = '32KiB..=128KiB' }}]
{extra}"
        )
    };
    let (world, arch) = ("world = 4", "arch = 'sm90'");
    found(&two(world, arch, ""), &["E009@5:7"]);
    found(&two(world, arch, "priority = 1"), &[]);
    found(&two(world, "arch = 'sm90', mode = 'graph'", ""), &[]);
    // They never match one call.
    found(&two(world, "world = '5..=8'", ""), &[]);
    // They match one call, and it does not matter.
    let apart = two(world, arch, "").replace("32KiB..=128KiB", "65KiB..=128KiB");
    found(&apart, &[]);
    let alike = two(world, arch, "").replace("symm", "ipc");
    found(&alike, &[]);
    // The order of two matters where one of them is last, whatever their ranges.
    let last = apart.replace(
        "bytes = '..=64KiB' }]",
        "bytes = '..=64KiB' }, { use = 'nccl', bytes = '1MiB..' }]\nlast = true",
    );
    assert!(places(&report(&last, &Options::default())).contains(&"E009@6:7".to_owned()));
}

#[test]
fn rules_of_two_files_have_an_order() {
    let rule = |id: &str, key: &str, backend: &str| {
        format!(
            "schema = 1\n[rule.{id}]\nmatch = {{ op = 'all_gather', {key} }}\n\
                 chain = [{{ use = '{backend}/all_gather', bytes = '..=64KiB' }}]"
        )
    };
    let files = Files::of(&[&rule("a", "world = 4", "ipc"), &rule("b", "arch = 'sm90'", "symm")]);
    let registry = crossover_backends::registry().unwrap();
    let report = lint(&Sources::isolated(files.paths()), &registry, &Options::default()).unwrap();
    assert_eq!(places(&report), [""; 0]);
}

#[test]
fn room() {
    let gather = |range: &str| {
        format!(
            "schema = 1
[contract]
accept = ['signed_zero_flush']
[rule.g]
match = {{ op = 'all_gather', topology = 'nvlink_full' }}
chain = [
  {{ use = 'nvls/lamport_all_gather', bytes = '{range}' }}
]"
        )
    };
    found(&gather("..=8MiB"), &[]);
    found(&gather("..=8388609B"), &["E010@7:3"]);
    // Without a bound, nothing is promised.
    found(&gather("64KiB.."), &[]);
    let of = |name: &str, room: u64| Options {
        capacities: BTreeMap::from([(name.to_owned(), room)]),
        ..Options::default()
    };
    found_with(&gather("..=64KiB"), &of("nvls", 65_536), &[]);
    found_with(&gather("..=64KiB"), &of("nvls", 65_535), &["E010@7:3"]);
    found_with(&gather("..=64KiB"), &of("nvls/lamport_all_gather", 65_535), &["E010@7:3"]);
    found_with(&gather("..=64KiB"), &of("nvls/two_shot", 65_535), &[]);
    // A bare backend keeps its word by any of its algorithms.
    found(&gather("..=64MiB").replace("nvls/lamport_all_gather", "nvls"), &[]);
}

#[test]
fn flapping() {
    let bands = |last: &str| {
        reducing(&format!(
            "{{ use = 'ipc/one_shot_push', bytes = '..=64KiB' }},
{{ use = 'ipc/two_shot_push', bytes = '..=128KiB' }},
{{ use = '{last}', bytes = '..=256KiB' }},"
        ))
    };
    found(&bands("ipc/one_shot_push"), &["W013@7:1"]);
    found(&bands("ipc/two_shot_pull"), &[]);
    // One range within a wider one is no return.
    let within =
        "{ use = 'nvls/two_shot', bytes = '64KiB..=128KiB' },\n{ use = 'ipc/two_shot_push' },";
    found(&reducing(within), &[]);
    let five = |last: &str| {
        reducing(&format!(
            "{{ use = 'ipc/one_shot_push', bytes = '..=32KiB' }},
{{ use = 'ipc/one_shot_pull', bytes = '..=64KiB' }},
{{ use = 'ipc/two_shot_push', bytes = '..=128KiB' }},
{{ use = 'ipc/two_shot_pull', bytes = '..=256KiB' }},
{{ use = 'symm/two_shot', bytes = '..={last}' }},"
        ))
    };
    // The library's turn is the fifth change: within ten times the first, or not.
    found(&five("319KiB"), &["W013@9:1"]);
    found(&five("321KiB"), &[]);
}

#[test]
fn evidence_of_another_device() {
    let text = |kind: &str| {
        format!(
            "{}\nevidence = {{ kind = '{kind}', device = 'H200' }}",
            reducing("{ use = 'ipc/one_shot_push', bytes = '..=64KiB' },")
        )
    };
    let on = |device: &str| Options { device: Some(device.to_owned()), ..Options::default() };
    found_with(&text("measured"), &on("NVIDIA B200"), &["W014@2:7"]);
    found_with(&text("measured"), &on("NVIDIA H200"), &[]);
    found_with(&text("ported"), &on("NVIDIA B200"), &[]);
    found(&text("measured"), &[]);
    // A group has a device too, and a rule for other groups is not about it.
    let group = |arch: &str| Options {
        group: Some(
            StatedGroup {
                arch: Some(arch.to_owned()),
                device: Some("NVIDIA B200".to_owned()),
                ..StatedGroup::default()
            }
            .profile(),
        ),
        ..Options::default()
    };
    found_with(&text("measured"), &group("sm90"), &["W014@2:7"]);
    found_with(&text("measured"), &group("sm100"), &[]);
}

#[test]
fn the_engines_contract() {
    let text = "schema = 1
[contract]
determinism = 'rank_consistent' # of the file
accept = ['signed_zero_flush']";
    let engine = |determinism, accept: &[Deviation]| Options {
        contract: Some(Contract { determinism, accept: Deviations::of(accept) }),
        ..Options::default()
    };
    use Determinism::{Any, RankConsistent, RunToRun};
    found_with(text, &engine(RankConsistent, &[Deviation::SignedZeroFlush]), &[]);
    found_with(text, &engine(Any, &[Deviation::SignedZeroFlush, Deviation::LossyFp8]), &[]);
    found_with(text, &engine(RankConsistent, &[]), &["E015@4:1"]);
    found_with(text, &engine(RunToRun, &[Deviation::LossyFp8]), &["E015@3:1", "E015@4:1"]);
    found_with("schema = 1", &engine(RunToRun, &[]), &[]);
}

/// Two algorithms that claim the same bits at every size, and add in different orders.
static CLAIMS: Descriptor = Descriptor {
    id: "claims",
    version: "0",
    settings: &[],
    algorithms: &[
        Algorithm { name: "in_order", eligibility: REDUCES, params: &[] },
        Algorithm { name: "in_order_too", eligibility: REDUCES, params: &[] },
        Algorithm {
            name: "in_a_tree",
            eligibility: Eligibility { order: OrderClass::Library, ..REDUCES },
            params: &[],
        },
    ],
};
const REDUCES: Eligibility =
    Eligibility { ops: Ops::of(&[Op::AllReduce]), ..Eligibility::EVERYTHING };

#[test]
fn the_order_of_additions() {
    let registry = support::registry().declaring(&CLAIMS).unwrap();
    let text = |determinism: &str, small: &str, large: &str| {
        format!(
            "schema = 1
[contract]
determinism = '{determinism}'
[rule.r]
last = true
match = {{ op = 'all_reduce' }}
chain = [
{{ use = 'claims/{small}', bytes = '..=64KiB' }},
{{ use = 'claims/{large}' }},
]"
        )
    };
    let found = |text: &str| places(&report_with(&registry, text, &Options::default()));
    assert_eq!(found(&text("size_invariant", "in_order", "in_a_tree")), ["E012@9:1"]);
    assert_eq!(found(&text("run_to_run", "in_order", "in_a_tree")), [""; 0]);
    assert_eq!(found(&text("size_invariant", "in_order", "in_order_too")), [""; 0]);
}

#[test]
fn expectations() {
    let text = |expected: &str| {
        format!(
            "{}\n[[expect]]\nop = 'all_reduce'\narch = 'sm90'\nworld = 8\nbytes = '64KiB'\n\
             use = '{expected}'",
            reducing("{ use = 'ipc/one_shot_push', bytes = '..=64KiB' },")
        )
    };
    found(&text("ipc/one_shot_push"), &[]);
    found(&text("ipc"), &[]);
    found(&text("nccl"), &["E016@12:7"]);
    found(&text("none"), &["E016@12:7"]);
    // What set-up had no room for is not served.
    let small =
        Options { capacities: BTreeMap::from([("ipc".to_owned(), 100)]), ..Options::default() };
    let told = report(&text("ipc"), &small);
    assert_eq!(told.expectations, 1);
    assert!(places(&told).contains(&"E016@12:7".to_owned()), "{:?}", places(&told));
}

#[test]
fn one_group_alone() {
    let options = Options {
        group: Some(StatedGroup { arch: Some("sm100".to_owned()), ..Default::default() }.profile()),
        ..Options::default()
    };
    // Nothing of this is for the group, and a candidate that waits for another group is no mistake.
    let other = reducing("{ use = 'ipc/one_shot_push' },\n{ use = 'ipc/one_shot_pull' },");
    found_with(&other, &options, &[]);
    let last = "schema = 1\n[rule.r]\nlast = true\nmatch = { op = 'all_reduce', arch = 'sm100' }\n\
                chain = [{ use = 'ipc/two_shot_push', bytes = '..=1MiB' }]";
    found_with(last, &options, &["E008@2:7"]);
}

#[test]
fn findings_are_about_the_users_files() {
    let registry = crossover_backends::registry().unwrap();
    // Laid over the packs, a rule of the user's leaves rules of theirs without a call.
    let text = "schema = 1\n[rule.mine]\nlast = true\nchain = [{ use = 'nccl', optional = true }, \
                { use = 'host' }, { use = 'mpi' }]";
    let files = Files::of(&[text]);
    let variables = std::iter::empty::<(std::ffi::OsString, std::ffi::OsString)>();
    let named = crossover_policy::Override {
        key: "policy".to_owned(),
        value: files.paths()[0].display().to_string(),
        origin: "--policy".to_owned(),
    };
    let settings = crossover_policy::Settings::load(variables, &[named], &registry).unwrap();
    let report = lint(&Sources::of(&settings, "sm90"), &registry, &Options::default()).unwrap();
    assert_eq!(places(&report), [""; 0], "{:#?}", report.findings);
}
