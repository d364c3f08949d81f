//! Groups, calls and rules in the words of messages.

use crossover_core::call::CallKind;
use crossover_core::contract::Contract;
use crossover_core::facts::GroupProfile;
use crossover_core::policy::Rule;

/// `sm90 x8 nvlink_full, caps p2p+multicast, group tp`; what is usual is left out.
pub(crate) fn group_words(group: &GroupProfile) -> String {
    let GroupProfile { arch, device, world, nodes, topology, tag, caps, .. } = group;
    let mut words = format!("{arch} x{world} {topology}");
    if *nodes > 1 {
        words += &format!(" on {nodes} nodes");
    }
    if !caps.is_empty() {
        words += &format!(", caps {}", caps.to_string().replace(", ", "+"));
    }
    if tag != "world" {
        words += &format!(", group {tag}");
    }
    if !device.is_empty() {
        words += &format!(", device {device}");
    }
    words
}

/// `all_reduce bf16 sum eager`.
pub(crate) fn call_words(call: &CallKind) -> String {
    let CallKind { op, dtype, reduce_op, mode, .. } = call;
    match op.reduces() {
        true => format!("{op} {dtype} {reduce_op} {mode}"),
        false => format!("{op} {dtype} {mode}"),
    }
}

/// `rank_consistent without deviations`.
pub(crate) fn contract_words(contract: Contract) -> String {
    let Contract { determinism, accept } = contract;
    match accept.is_empty() {
        true => format!("{determinism} without deviations"),
        false => format!("{determinism} with {accept}"),
    }
}

/// `` `ipc/all_gather` of rule `small` (site.toml:12) ``.
pub(crate) fn target_of_rule(target: &str, rule: &Rule) -> String {
    format!("`{target}` of rule `{}` ({})", rule.id, rule.origin)
}
