//! Open MPI's rules for `coll/tuned`, classic or JSON. They are for host memory.
//!
//! A size is that of the whole call: for an all-gather the bytes that a rank receives, for an
//! all-to-all those that it sends to all (open-mpi/ompi#7672).

mod classic;
mod collective;
mod json;

use std::ops::Range;

use crossover_core::call::Op;
use crossover_core::policy::{Basis, ByteRange};

use super::draft::{Draft, Groups, Memory, Overlaps, Row, Target};
use super::findings::Findings;
use super::ranges::Counts;
use collective::Collective;

/// Are there sets of rules, whatever becomes of them?
pub(super) fn read(findings: &mut Findings<'_>, draft: &mut Draft) -> bool {
    let first = findings.text().trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
    let sets = match first.starts_with(['{', '[']) {
        true => json::read(findings),
        false => classic::read(findings),
    };
    let block = |set: &Set| set.collective.name == "reduce_scatter_block";
    let has_sets = !sets.is_empty();
    let has_block = sets.iter().any(block);
    for set in sets {
        if set.collective.name == "reduce_scatter" && has_block {
            let message = "the shares of `reduce_scatter` may differ; those of \
                           `reduce_scatter_block` are alike, as here: its rules alone are taken";
            findings.loss_once(set.span.clone(), message);
            continue;
        }
        take(findings, draft, set);
    }
    if !draft.rules.is_empty() {
        let message = "a size that no rule names goes on to the layers below";
        findings.note(0..0, message);
    }
    has_sets
}

/// The rules of one collective for some communicators.
struct Set {
    /// Where they are announced.
    span: Range<usize>,
    collective: &'static Collective,
    /// For which communicators; several where a set before took some from the middle.
    parts: Vec<Part>,
    rules: Vec<Rule>,
}

/// Communicators of so many ranks on so many nodes.
#[derive(Clone, Copy)]
struct Part {
    world: Counts,
    nodes: Counts,
}

/// One size range of a set.
struct Rule {
    span: Range<usize>,
    bytes: ByteRange,
    algorithm: Algorithm,
    /// Settings of the algorithm that are not 0, with their places.
    knobs: Vec<(&'static str, Range<usize>)>,
}

/// Which algorithm, and where that is written.
struct Algorithm {
    span: Range<usize>,
    /// Its number in Open MPI; 0 leaves the choice to Open MPI.
    id: usize,
}

impl Algorithm {
    /// By its number.
    fn of(
        findings: &mut Findings<'_>,
        collective: &Collective,
        number: u64,
        span: &Range<usize>,
    ) -> Algorithm {
        let id = usize::try_from(number).unwrap_or(usize::MAX);
        if id >= collective.algorithms.len() && !collective.algorithms.is_empty() {
            let message = format!("`{}` has no algorithm {number}", collective.name);
            let known = (0..).zip(collective.algorithms);
            let known: Vec<String> = known.map(|(id, name)| format!("{id} {name}")).collect();
            findings.error(span.clone(), message, format!("known: {}", known.join(", ")));
        }
        Algorithm { span: span.clone(), id }
    }
}

fn take(findings: &mut Findings<'_>, draft: &mut Draft, set: Set) {
    let collective = set.collective;
    let Some((op, basis)) = collective.op else {
        let message =
            format!("there is no collective `{}` here: its rules are left out", collective.name);
        findings.loss_once(set.span, message);
        return;
    };
    let several = |part: &Part| part.nodes.high > 1 && part.world.high > 1;
    let serves = |rule: &Rule| rule.algorithm.id != 0;
    if set.parts.iter().any(several) && set.rules.iter().any(serves) {
        let message = "`host` serves the ranks of one node: groups of several go on to the layers \
                       below";
        findings.loss_once(set.span.clone(), message);
    }
    // A group of no ranks is nobody's, and `host` serves those of one node.
    for part in set.parts.iter().filter(|part| part.world.high > 0 && part.nodes.low == 1) {
        let low = part.world.low.max(1);
        let world = Counts { low, ..part.world };
        let groups = Groups { memory: Memory::Host, world, nodes: part.nodes };
        for rule in &set.rules {
            let row = row(findings, collective, (op, basis), groups, rule);
            draft.push(findings, row, Overlaps::Told);
        }
    }
}

fn row(
    findings: &mut Findings<'_>,
    collective: &Collective,
    (op, basis): (Op, Basis),
    groups: Groups,
    rule: &Rule,
) -> Row {
    for (knob, span) in &rule.knobs {
        let message = format!("nothing here is set by `{knob}`");
        findings.loss_once(span.clone(), message);
    }
    let span = rule.algorithm.span.clone();
    let target = match rule.algorithm.id {
        0 => {
            let message = "algorithm `ignore` leaves these sizes to Open MPI; here they go on to \
                           the layers below";
            findings.note_once(span, message);
            None
        }
        id => {
            let target = target(op, id);
            let name = collective.algorithms.get(id).copied().unwrap_or("?");
            let message =
                format!("algorithm `{name}` of {op} has no equal here; {target} serves instead");
            findings.loss_once(span, message);
            Some(Target::plain(target))
        }
    };
    Row { span: rule.span.clone(), op, groups, basis, bytes: rule.bytes, target }
}

/// What comes nearest: for an all-reduce, whether every rank reduces everything or its share.
fn target(op: Op, id: usize) -> &'static str {
    match (op, id) {
        (Op::AllReduce, 4..=6) => "host/two_shot",
        (Op::AllReduce, _) => "host/one_shot",
        _ => "host",
    }
}
