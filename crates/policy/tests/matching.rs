//! Match keys: for which groups and calls a rule is.

mod support;

use crossover_core::call::{CallKind, Dtype, Mode, Op, ReduceOp};
use crossover_core::contract::Contract;
use crossover_core::facts::{Cap, Caps, GroupProfile, Topology};
use crossover_core::policy::Match;
use support::isolated;

fn parsed(keys: &str) -> Match {
    let text = format!("schema = 1\n[rule.a]\nmatch = {{ {keys} }}\nchain = [{{ use = 'host' }}]");
    let policy = isolated(&[&text]).unwrap_or_else(|told| panic!("{told}")).policy;
    policy.rules().iter().find(|rule| rule.id == "a").unwrap().when.clone()
}

fn group() -> GroupProfile {
    GroupProfile {
        arch: "sm103".to_owned(),
        device: "NVIDIA B300".to_owned(),
        world: 4,
        nodes: 2,
        topology: Topology::Mnnvl,
        tag: "tp".to_owned(),
        caps: Caps::of(&[Cap::P2p]),
        caches: Default::default(),
    }
}

const CALL: CallKind = CallKind {
    op: Op::ReduceScatter,
    dtype: Dtype::Bf16,
    reduce_op: ReduceOp::Max,
    mode: Mode::Graph,
    contract: Contract::DEFAULT,
};

#[test]
fn each_key_lets_through_what_it_says() {
    let cases: &[(&str, Option<&str>)] = &[
        ("", None),
        ("arch = 'sm103'", None),
        ("arch = 'sm10x'", None),
        ("arch = ['sm90', 'sm103']", None),
        ("arch = 'sm100'", Some("arch")),
        ("arch = 'sm9x'", Some("arch")),
        ("device = 'NVIDIA B300'", None),
        ("device = 'B300'", None),
        ("device = 'b300'", None),
        ("device = ['H200', 'B300']", None),
        ("device = 'NVIDIA B200'", Some("device")),
        ("device = 'NVIDIA B300 PCIe'", Some("device")),
        ("device = 'B30'", Some("device")),
        ("device = ''", Some("device")),
        ("topology = ['nvlink_full', 'mnnvl']", None),
        ("topology = 'host'", Some("topology")),
        ("group = 'tp'", None),
        ("group = ['ep', 'dp']", Some("group")),
        ("caps = 'p2p'", None),
        ("caps = ['p2p', 'multicast']", Some("caps")),
        ("op = ['all_reduce', 'reduce_scatter']", None),
        ("op = 'all_reduce'", Some("op")),
        ("dtype = ['f16', 'bf16']", None),
        ("dtype = 'f32'", Some("dtype")),
        ("reduce_op = 'max'", None),
        ("reduce_op = ['sum', 'avg']", Some("reduce_op")),
        ("mode = ['eager', 'graph']", None),
        ("mode = 'eager'", Some("mode")),
        ("fusion = 'none'", None),
        ("nodes = 2", None),
        ("nodes = '..2'", Some("nodes")),
    ];
    for (keys, failing) in cases {
        assert_eq!(parsed(keys).failing(&group(), &CALL), *failing, "{keys}");
    }
}

#[test]
fn counts_are_ranges_of_rust() {
    let cases: &[(&str, &[(u32, u32)])] = &[
        ("8", &[(8, 8)]),
        ("'8'", &[(8, 8)]),
        ("0x10", &[(16, 16)]),
        ("[2, 4, 8]", &[(2, 2), (4, 4), (8, 8)]),
        ("'2..=8'", &[(2, 8)]),
        ("'2..8'", &[(2, 7)]),
        ("'4..'", &[(4, u32::MAX)]),
        ("'..=4'", &[(1, 4)]),
        ("[2, '4..=6']", &[(2, 2), (4, 6)]),
    ];
    for (world, ranges) in cases {
        assert_eq!(parsed(&format!("world = {world}")).world.as_deref(), Some(*ranges), "{world}");
    }
}

#[test]
fn precedence_counts_the_keys_that_constrain() {
    let keys = "op = 'all_reduce', world = [2, 4], fusion = 'none'";
    assert_eq!(parsed(keys).constrained(), 2, "every call has the fusion `none`");
}
