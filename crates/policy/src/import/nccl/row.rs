//! A row of the file as a row of the draft.

use crossover_core::call::Op;
use crossover_core::policy::{Basis, ByteRange};

use super::fields::{COLUMNS, Field, REQUIRED};
use crate::import::draft::{Groups, Memory, Row, Target};
use crate::import::findings::{Findings, short};
use crate::import::ranges::{Counts, inclusive};

/// By NCCL's name, which op it is and whose bytes NCCL counts: the greater of what a rank sends and
/// what it receives.
const COLLECTIVES: [(&str, Option<(Op, Basis)>); 5] = [
    ("broadcast", Some((Op::Broadcast, Basis::Input))),
    ("reduce", None),
    ("allgather", Some((Op::AllGather, Basis::Output))),
    ("reducescatter", Some((Op::ReduceScatter, Basis::Input))),
    ("allreduce", Some((Op::AllReduce, Basis::Input))),
];

const ALGORITHMS: [&str; 7] =
    ["tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"];

const PROTOCOLS: [&str; 3] = ["ll", "ll128", "simple"];

/// What files mean by "the greatest size", where NCCL's own example has it.
const GREATEST: u64 = u32::MAX as u64;

/// The most channels that NCCL has.
const CHANNELS: u32 = 64;

/// Reads a row; `None` if it is wrong, or says nothing that a policy can say.
pub(super) fn read(findings: &mut Findings<'_>, fields: &[Field<'_>]) -> Option<Row> {
    if !whole(findings, fields) {
        return None;
    }
    let span = fields[0].span.start..fields[fields.len() - 1].span.end;
    let collective = collective(findings, &fields[0]);
    let bytes = bytes(findings, &fields[1], &fields[2]);
    let algorithm = word(findings, "algorithm", &ALGORITHMS, "ring", &fields[3]);
    let protocol = word(findings, "protocol", &PROTOCOLS, "simple", &fields[4]);
    let channels = fields[5].count(findings, COLUMNS[5], 0, CHANNELS);
    let nodes = fields[6].count(findings, COLUMNS[6], 1, u32::MAX);
    let world = fields[7].count(findings, COLUMNS[7], 1, u32::MAX);
    let pipe_ops = optional(findings, fields, 8, 1, u32::MAX);
    let registered = optional(findings, fields, 9, 0, 1);
    // Only now, so that all mistakes of a row are told at once.
    let (collective, bytes) = (collective?, bytes?);
    let (algorithm, protocol, channels) = (algorithm?, protocol?, channels?);
    let (world, nodes, pipe_ops, registered) = (world?, nodes?, pipe_ops?, registered?);

    let Some((op, basis)) = collective else {
        let message =
            format!("there is no collective `{}` here: the row is left out", fields[0].text);
        findings.loss_once(fields[0].span.clone(), message);
        return None;
    };
    if !possible(op, algorithm, protocol) {
        let message = format!(
            "NCCL has no `{algorithm}` with `{protocol}` for {op}, and goes on to the next row: \
             the row is left out"
        );
        findings.note(fields[3].span.clone(), message);
        return None;
    }
    if let Some(count) = pipe_ops
        && count != 1
    {
        let message = format!(
            "the row is for {count} calls in one group of NCCL's, and calls come one by one here: \
             it is left out"
        );
        findings.loss(fields[8].span.clone(), message);
        return None;
    }
    if registered.is_some() {
        let message = "whether a buffer is registered may differ between ranks, and ranks that \
                       choose by it hang: the row holds for both kinds";
        findings.loss_once(fields[9].span.clone(), message);
    }
    // What can be asked of a call: the library takes `LL` for `LL128` too.
    let asked = if protocol == "ll" { "ll_or_ll128" } else { protocol };
    let mut params =
        vec![("algorithm", format!("\"{algorithm}\"")), ("protocol", format!("\"{asked}\""))];
    match channels {
        None => {
            let message = "-1 leaves the channels to the library, as NCCL's documentation has it; \
                           its example plug-in pins such a row to one channel";
            findings.note_once(fields[5].span.clone(), message);
        }
        Some(0) => {}
        Some(count) => params.push(("channels", count.to_string())),
    }
    let groups = Groups { memory: Memory::Any, world: counts(world), nodes: counts(nodes) };
    let target = Some(Target { backend: "nccl/pinned".to_owned(), params });
    Some(Row { span, op, groups, basis, bytes, target })
}

/// Does a line name its columns? It has no number, and no row is without.
pub(super) fn is_header(fields: &[Field<'_>]) -> bool {
    let is_row = COLLECTIVES.iter().any(|(name, _)| *name == fields[0].text);
    let is_number = |field: &Field<'_>| field.text.parse::<f64>().is_ok();
    fields.len() > 1 && !is_row && !fields.iter().any(is_number)
}

/// Are all fields there, and none beyond them?
fn whole(findings: &mut Findings<'_>, fields: &[Field<'_>]) -> bool {
    let names = |at: usize| COLUMNS.get(at).copied().unwrap_or("the last column");
    if let Some(at) = fields.iter().position(|field| field.text.is_empty()) {
        let span = fields[at].span.clone();
        let message = format!("`{}` is empty", names(at));
        let help = "write -1 for any; NCCL's plug-in drops an empty field, so that those behind it \
                    move to the left";
        findings.error(span, message, help);
        return false;
    }
    if fields.len() < REQUIRED {
        let span = fields[0].span.start..fields[fields.len() - 1].span.end;
        let missing = COLUMNS[fields.len()..REQUIRED].join("`, `");
        let count = fields.len();
        let plural = if count == 1 { "" } else { "s" };
        let message = format!("the row has {count} field{plural}, and no `{missing}`");
        let help = format!("the columns are {}; the last two may be absent", COLUMNS.join(","));
        findings.error(span, message, help);
        return false;
    }
    if fields.len() > COLUMNS.len() {
        let span = fields[COLUMNS.len()].span.clone();
        let message = format!("there is no column after `{}`", COLUMNS[COLUMNS.len() - 1]);
        findings.error(span, message, format!("the columns are {}", COLUMNS.join(",")));
        return false;
    }
    true
}

fn collective(findings: &mut Findings<'_>, field: &Field<'_>) -> Option<Option<(Op, Basis)>> {
    let known = COLLECTIVES.iter().find(|(name, _)| *name == field.text);
    if known.is_none() {
        let message = format!(
            "unknown collective `{}`, which NCCL's plug-in would take for `allreduce`",
            short(field.text)
        );
        let names = COLLECTIVES.iter().map(|(name, _)| *name);
        findings.unknown(field.span.clone(), message, field.text, names);
    }
    known.map(|(_, op)| *op)
}

fn bytes(
    findings: &mut Findings<'_>,
    least: &Field<'_>,
    greatest: &Field<'_>,
) -> Option<ByteRange> {
    let min = least.size(findings, COLUMNS[1]);
    let max = match greatest.text {
        // Read as the greatest number that there is, by the plug-in as well.
        "-1" => Some(u64::MAX),
        _ => greatest.size(findings, COLUMNS[2]),
    };
    let (min, max) = (min?, max?);
    if min > max {
        let span = least.span.start..greatest.span.end;
        let message = format!("`min_bytes` {min} is greater than `max_bytes` {max}");
        findings.error(span, message, "such a row never matches; exchange the two");
        return None;
    }
    if max == GREATEST {
        let message = format!(
            "{GREATEST} is read as no end; NCCL leaves sizes from 4 GiB on to its own choice"
        );
        findings.note_once(greatest.span.clone(), message);
        return Some(inclusive(min, u64::MAX));
    }
    Some(inclusive(min, max))
}

fn word<'w>(
    findings: &mut Findings<'_>,
    column: &str,
    known: &[&'w str],
    instead: &str,
    field: &Field<'_>,
) -> Option<&'w str> {
    let word = known.iter().find(|word| **word == field.text).copied();
    if word.is_none() {
        let message = format!(
            "unknown {column} `{}`, which NCCL's plug-in would take for `{instead}`",
            short(field.text)
        );
        findings.unknown(field.span.clone(), message, field.text, known.iter().copied());
    }
    word
}

/// A column that may be absent, which is any.
fn optional(
    findings: &mut Findings<'_>,
    fields: &[Field<'_>],
    column: usize,
    least: u32,
    greatest: u32,
) -> Option<Option<u32>> {
    match fields.get(column) {
        None => Some(None),
        Some(field) => field.count(findings, COLUMNS[column], least, greatest),
    }
}

fn counts(count: Option<u32>) -> Counts {
    count.map_or(Counts::ANY, |count| Counts { low: count, high: count })
}

/// Does NCCL have this algorithm for this op on any machine?
fn possible(op: Op, algorithm: &str, protocol: &str) -> bool {
    let for_op = match op {
        Op::Broadcast => algorithm == "ring",
        Op::AllGather | Op::ReduceScatter => {
            ["pat", "ring", "nvls", "collnet_direct"].contains(&algorithm)
        }
        _ => algorithm != "pat",
    };
    let simple_alone = ["nvls", "nvls_tree", "pat"].contains(&algorithm);
    for_op && (protocol == "simple" || !simple_alone)
}
