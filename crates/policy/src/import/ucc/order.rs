//! Entries as rows, in the order in which UCC would take them.

use std::cmp::Reverse;

use crossover_core::call::Op;
use crossover_core::policy::{Basis, ByteRange};

use super::entry::Entry;
use super::transport::{Serves, Transport};
use crate::import::draft::{Groups, Memory, Row, Target};
use crate::import::findings::{Findings, short};
use crate::import::ranges::{Counts, intersect, without};

/// What one entry says of one op, range and number of ranks.
struct Claim {
    entry: usize,
    layer: &'static str,
    host: bool,
    op: Op,
    world: Counts,
    score: u64,
    bytes: ByteRange,
    target: Option<&'static str>,
}

pub(super) fn rows(findings: &mut Findings<'_>, entries: Vec<Entry>) -> Vec<Row> {
    let mut claims: Vec<Claim> = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        let mut refused = false;
        for claim in claims_of(findings, at, entry) {
            if findings.is_too_much(claims.len(), &entry.span) {
                return Vec::new();
            }
            // Once an entry, which may be for all ops.
            refused = refused || overlaps(findings, &entries, &claims, &claim);
            claims.push(claim);
        }
    }
    edges(findings, &entries, &mut claims);
    ties(findings, &entries, &claims);
    unnamed(findings, &entries, &claims);
    // Of equal scores the later layer's goes first.
    let layer = |claim: &Claim| entries.iter().position(|e| e.transport.name == claim.layer);
    claims.sort_by_key(|claim| (Reverse(claim.score), Reverse(layer(claim)), claim.entry));
    let mut rows = Vec::new();
    for claim in claims {
        let Some(target) = claim.target else { continue };
        let groups = Groups {
            memory: if claim.host { Memory::Host } else { Memory::Device },
            world: claim.world,
            ..Groups::ANY
        };
        rows.push(Row {
            span: entries[claim.entry].span.clone(),
            op: claim.op,
            groups,
            basis: basis(claim.op),
            bytes: claim.bytes,
            target: Some(Target::plain(target)),
        });
    }
    rows
}

/// Whose bytes UCC counts: what a rank receives, of a broadcast the buffer.
fn basis(op: Op) -> Basis {
    match op {
        Op::AllGather | Op::ReduceScatter => Basis::Output,
        Op::AllReduce | Op::Broadcast | Op::AllToAll => Basis::Input,
    }
}

fn claims_of(findings: &mut Findings<'_>, at: usize, entry: &Entry) -> Vec<Claim> {
    let mut claims = Vec::new();
    let layer = entry.transport.name;
    for (op, algorithm) in entry.ops.iter().zip(&entry.algorithms) {
        let target = entry.transport.target(*op, *algorithm);
        let whose = match algorithm {
            Some(algorithm) => format!("algorithm `{algorithm}` of `{layer}` for {op}"),
            None => format!("`{layer}` for {op}"),
        };
        match target {
            None => findings
                .loss_once(entry.span.clone(), format!("{whose} has no equal here: left out")),
            Some("nccl") if layer == "nccl" => {}
            Some(target) => findings.loss_once(
                entry.span.clone(),
                format!("{whose} has no equal here; {target} serves instead"),
            ),
        }
        for world in &entry.teams {
            for bytes in &entry.sizes {
                claims.push(Claim {
                    entry: at,
                    layer,
                    host: entry.transport.serves == Serves::Host,
                    op: *op,
                    world: *world,
                    score: entry.score,
                    bytes: *bytes,
                    target,
                });
            }
        }
    }
    claims
}

/// Does a range overlap an earlier one of its layer? UCC refuses it.
fn overlaps(
    findings: &mut Findings<'_>,
    entries: &[Entry],
    claims: &[Claim],
    claim: &Claim,
) -> bool {
    // A shared edge is no overlap.
    let inner = |range: ByteRange| ByteRange { high: range.high.map(|high| high - 1), ..range };
    let mut peers = claims.iter().filter(|c| c.layer == claim.layer && c.op == claim.op);
    let before = peers.find(|before| {
        before.world.intersect(claim.world) && intersect(inner(before.bytes), inner(claim.bytes))
    });
    let Some(before) = before else { return false };
    let span = entries[before.entry].span.clone();
    let (line, text) = (findings.line(span.start), short(&findings.text()[span]));
    let message = format!("overlaps `{text}` of line {line} for {}", claim.op);
    let help = "UCC refuses the later of the two, and mostly the whole string with it, in its log \
                alone; let one end where the other begins";
    findings.error(entries[claim.entry].span.clone(), message, help);
    true
}

/// A size that two ranges share as their edge is the better score's, and of equal ones the upper
/// range's. Around an entry are the layer's own ranges, of its own score.
fn edges(findings: &mut Findings<'_>, entries: &[Entry], claims: &mut Vec<Claim>) {
    let written: Vec<_> =
        claims.iter().map(|c| (c.layer, c.op, c.host, c.world, c.score, c.bytes)).collect();
    for claim in claims.iter_mut() {
        let entry = &entries[claim.entry];
        let own = entry.transport.score;
        let peers = || {
            let peers = written.iter().filter(|(_, op, host, world, ..)| {
                (*op, *host) == (claim.op, claim.host) && world.covers(claim.world)
            });
            peers.map(|(layer, _, _, _, score, bytes)| (*layer == claim.layer, *score, *bytes))
        };
        let (low, score) = (claim.bytes.low, claim.score);
        let last = claim.bytes.high.map(|high| high - 1);
        let above = |(_, _, bytes): &(bool, u64, ByteRange)| Some(bytes.low) == last;
        let named = peers().filter(above).find(|(is_own, ..)| *is_own);
        let equal = peers().filter(above).any(|(_, other, _)| other == score);
        let under = peers().any(|(is_own, _, bytes)| is_own && bytes.high == Some(low + 1));
        let ends = last.is_some() && (equal || score <= named.map_or(own, |(_, other, _)| other));
        let starts = low > 0 && !under && score < own;
        if ends {
            claim.bytes.high = last;
        }
        if starts {
            claim.bytes.low = low + 1;
        }
        if starts || (ends && named.is_none() && !equal) {
            let message = "a size at which two ranges meet is that of the greater score, and of \
                           equal ones the upper's, as in UCC";
            findings.note_once(entry.span.clone(), message);
        }
    }
    claims.retain(|claim| claim.bytes.high.is_none_or(|high| claim.bytes.low < high));
}

/// Layers with the same score.
fn ties(findings: &mut Findings<'_>, entries: &[Entry], claims: &[Claim]) {
    for (at, claim) in claims.iter().enumerate() {
        let rival = claims[..at].iter().find(|c| {
            c.layer != claim.layer
                && (c.op, c.host, c.score) == (claim.op, claim.host, claim.score)
                && c.world.intersect(claim.world)
                && intersect(c.bytes, claim.bytes)
        });
        if let Some(rival) = rival {
            let line = findings.line(entries[rival.entry].span.start);
            let message = format!(
                "the same score as `{}` has on line {line}: UCC does not say who serves; here it is \
                 `{}`, which is later",
                rival.layer, claim.layer
            );
            findings.loss_once(entries[claim.entry].span.clone(), message);
        }
    }
}

/// Layers that score more by themselves than an entry of another, where no entry of theirs holds.
fn unnamed(findings: &mut Findings<'_>, entries: &[Entry], claims: &[Claim]) {
    for claim in claims {
        let entry = &entries[claim.entry];
        let rivals = Transport::all().filter(|rival| {
            rival.serves == entry.transport.serves
                && rival.name != claim.layer
                && rival.has(claim.op)
                && rival.score > claim.score
        });
        for rival in rivals {
            let said = claims.iter().filter(|c| {
                (c.layer, c.op) == (rival.name, claim.op) && c.world.covers(claim.world)
            });
            let left = said.fold(vec![claim.bytes], |left, c| without(&left, c.bytes));
            if !left.is_empty() {
                let message = format!(
                    "`{}` scores {} by itself in UCC, and wins over a score of {} where it is \
                     loaded; here `{}` serves",
                    rival.name, rival.score, claim.score, claim.layer
                );
                findings.loss_once(entry.span.clone(), message);
            }
        }
    }
}
