//! `match`: for which groups and calls a rule is. Only what is the same on every rank can be a
//! key.

use std::ops::Range;

use crossover_core::call::{Dtype, Mode, Op, ReduceOp};
use crossover_core::facts::{Cap, HOST_ARCH, Topology};
use crossover_core::policy::Match;
use toml::Spanned;
use toml::de::DeValue;

use super::reader::{Reader, in_order};
use crate::diagnostic::Code;
use crate::suggest;

pub(super) const KEYS: [&str; 12] = [
    "arch",
    "device",
    "world",
    "nodes",
    "topology",
    "group",
    "op",
    "dtype",
    "reduce_op",
    "mode",
    "fusion",
    "caps",
];

/// Keys that other systems have, or that come to mind, and that differ between ranks. Ranks that
/// choose by one of them choose differently, and hang.
const RANK_VARIANT: [(&str, &str); 14] = [
    ("alignment", "a buffer's address differs between ranks"),
    ("cpu_vendor", "ranks may run on different processors (NVIDIA/nccl#1136 hung on exactly this)"),
    ("data_ptr_align", "a buffer's address differs between ranks"),
    ("device_id", "it names one rank's device"),
    ("device_index", "it names one rank's device"),
    ("env", "each process has an environment of its own"),
    ("free_memory", "each device has its own, and it changes while the program runs"),
    ("host", "it names one node"),
    ("hostname", "it names one node"),
    ("local_rank", "it names one rank"),
    ("node_id", "it names one node"),
    ("pid", "it names one process"),
    ("rank", "it names one rank"),
    ("registered", "each rank registers its own buffers"),
];

pub(super) fn read(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) -> Option<Match> {
    let mut when = Match::default();
    for (key, value) in in_order(reader.table("match", value)?) {
        if is_key(reader, key.get_ref(), key.span(), "`match`") {
            read_key(reader, key.get_ref(), value, &mut when);
        }
    }
    Some(when)
}

/// Is it a key that groups and calls can be matched by? If not, that is told.
pub(super) fn is_key(reader: &mut Reader<'_>, name: &str, span: Range<usize>, place: &str) -> bool {
    if KEYS.contains(&name) {
        return true;
    }
    match RANK_VARIANT.iter().find(|(variant, _)| *variant == name) {
        Some((_, why)) => reader.refuse_with_help(
            Code::RankVariant,
            span,
            format!("`{name}` may differ between the ranks of one group: {why}"),
            "ranks that match by it choose differently, and hang; match by `arch`, `topology` or \
             `caps`, on which all ranks agree",
        ),
        None => {
            let message = format!("unknown key `{name}` in {place}");
            reader.refuse_with_help(Code::Unknown, span, message, suggest::help(name, KEYS));
        }
    }
    false
}

/// Reads what one of the keys demands.
pub(super) fn read_key(
    reader: &mut Reader<'_>,
    name: &str,
    value: &Spanned<DeValue<'_>>,
    when: &mut Match,
) {
    match name {
        "arch" => when.arch = Some(architectures(reader, value)),
        "device" => when.device = Some(names(reader, "device", value)),
        "world" => when.world = Some(counts(reader, "world", value)),
        "nodes" => when.nodes = Some(counts(reader, "nodes", value)),
        "topology" => when.topology = Some(reader.words::<Topology, _>("topology", value)),
        "group" => when.group = Some(names(reader, "group", value)),
        "op" => when.op = Some(reader.words::<Op, _>("op", value)),
        "dtype" => when.dtype = Some(reader.words::<Dtype, _>("dtype", value)),
        "reduce_op" => when.reduce_op = Some(reader.words::<ReduceOp, _>("reduce_op", value)),
        "mode" => when.mode = Some(reader.words::<Mode, _>("mode", value)),
        "caps" => when.caps = Some(reader.words::<Cap, _>("caps", value)),
        _ => no_fusion(reader, value),
    }
}

/// Does it constrain this key?
pub(super) fn constrains(when: &Match, name: &str) -> bool {
    match name {
        "arch" => when.arch.is_some(),
        "device" => when.device.is_some(),
        "world" => when.world.is_some(),
        "nodes" => when.nodes.is_some(),
        "topology" => when.topology.is_some(),
        "group" => when.group.is_some(),
        "op" => when.op.is_some(),
        "dtype" => when.dtype.is_some(),
        "reduce_op" => when.reduce_op.is_some(),
        "mode" => when.mode.is_some(),
        "caps" => when.caps.is_some(),
        _ => false,
    }
}

fn names(reader: &mut Reader<'_>, key: &str, value: &Spanned<DeValue<'_>>) -> Vec<String> {
    let list = reader.list(key, value);
    list.iter().filter_map(|item| reader.text(key, item)).map(str::to_owned).collect()
}

/// `sm90`, `gfx942`, `host`, or a family: `sm10x`, `gfx94x`.
fn architectures(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) -> Vec<String> {
    let mut architectures = Vec::new();
    for item in reader.list("arch", value) {
        let message = match item.get_ref().as_str() {
            Some(name) if is_architecture(name) => {
                architectures.push(name.to_owned());
                continue;
            }
            Some(name) => format!("`{name}` is no architecture"),
            None => format!("`arch` takes a string, not this {}", item.get_ref().type_str()),
        };
        let help =
            "write `\"sm90\"`, `\"gfx942\"` or `\"host\"`, or a family: `\"sm10x\"`, `\"gfx94x\"`";
        reader.refuse_with_help(Code::Unknown, item.span(), message, help);
    }
    architectures
}

pub(super) fn is_architecture(name: &str) -> bool {
    let stem = name.strip_suffix('x').unwrap_or(name);
    let numbered = |prefix: &str, legal: fn(&char) -> bool| {
        stem.strip_prefix(prefix).is_some_and(|n| !n.is_empty() && n.chars().all(|c| legal(&c)))
    };
    name == HOST_ARCH
        || numbered("sm", char::is_ascii_digit)
        || numbered("gfx", |c| c.is_ascii_digit() || ('a'..='f').contains(c))
}

/// Counts of ranks or nodes: `8`, `"2..=8"`, or a list of them; as inclusive ranges.
fn counts(reader: &mut Reader<'_>, key: &str, value: &Spanned<DeValue<'_>>) -> Vec<(u32, u32)> {
    let mut ranges = Vec::new();
    for item in reader.list(key, value) {
        let range = match item.get_ref() {
            DeValue::Integer(n) => u32::from_str_radix(n.as_str(), n.radix()).ok().map(|n| (n, n)),
            DeValue::String(text) => count_range(text),
            _ => None,
        };
        match range {
            Some((low, high)) if 1 <= low && low <= high => ranges.push((low, high)),
            _ => {
                let message = format!("`{key}` takes counts from 1: `8`, `\"2..=8\"` or a list");
                match item.get_ref().as_str().and_then(as_range) {
                    Some(range) => {
                        let help = format!("write `\"{range}\"`");
                        reader.refuse_with_help(Code::Unknown, item.span(), message, help);
                    }
                    None => reader.refuse(Code::Unknown, item.span(), message),
                }
            }
        }
    }
    ranges
}

/// `2..=8`, `2..8`, `..=8`, `2..` or `8`.
fn count_range(text: &str) -> Option<(u32, u32)> {
    let Some((low, high)) = text.split_once("..") else {
        return text.parse().ok().map(|n| (n, n));
    };
    let low = if low.is_empty() { 1 } else { low.parse().ok()? };
    let high = match high.strip_prefix('=') {
        Some(high) => high.parse().ok()?,
        None if high.is_empty() => u32::MAX,
        None => high.parse::<u32>().ok()?.checked_sub(1)?,
    };
    Some((low, high))
}

/// What one who writes `2-8`, `<=8` or `>=2` means.
fn as_range(text: &str) -> Option<String> {
    let range = crate::bytes::as_range(text)?;
    let is_right = |(low, high): (u32, u32)| 1 <= low && low <= high;
    count_range(&range).is_some_and(is_right).then_some(range)
}

/// Fused calls are not part of the interface, so that every call has the fusion `none`.
fn no_fusion(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) {
    for item in reader.list("fusion", value) {
        if let Some(fusion) = reader.text("fusion", item)
            && fusion != "none"
        {
            let message = format!("unknown fusion `{fusion}`; the only one is `none`");
            reader.refuse(Code::Unknown, item.span(), message);
        }
    }
}
