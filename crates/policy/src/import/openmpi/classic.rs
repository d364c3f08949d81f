//! The classic format: counted integers, one meaning a position, `#` before comments.
//!
//! Open MPI reads on until it has as many as were announced, across lines, and skips whatever is no
//! number. Here a rule stands on a line of its own, and so does a count, so that a wrong count is
//! found where it is.

mod lines;

use super::collective::{COLLECTIVES, Collective};
use super::{Algorithm, Part, Rule, Set};
use crate::import::findings::Findings;
use crate::import::ranges::{Counts, inclusive};
use lines::{Announced, Lines, Number, Stop};

pub(super) fn read(findings: &mut Findings<'_>) -> Vec<Set> {
    let mut sets = Vec::new();
    let mut lines = Lines::of(findings);
    // What stopped it has been told.
    let _ = all(findings, &mut lines, &mut sets);
    sets
}

fn all(findings: &mut Findings<'_>, lines: &mut Lines, sets: &mut Vec<Set>) -> Result<(), Stop> {
    let collectives = lines.count(findings, "collectives", None)?;
    for _ in 0..collectives.count {
        let id = lines.one(findings, "the number of a collective", Some(&collectives))?;
        let known = usize::try_from(id.value).ok().and_then(|at| COLLECTIVES.get(at));
        let Some(collective) = known else {
            let message = format!("no collective of Open MPI has the number {}", id.value);
            let known = (0..).zip(&COLLECTIVES).filter(|(_, c)| !c.algorithms.is_empty());
            let known: Vec<String> = known.map(|(at, c)| format!("{at} {}", c.name)).collect();
            findings.error(id.span, message, format!("known: {}", known.join(", ")));
            return Err(Stop);
        };
        let communicators = lines.count(findings, "communicator sizes", Some(&collectives))?;
        let mut before: Option<u64> = None;
        for _ in 0..communicators.count {
            let size = lines.one(findings, "a communicator size", Some(&communicators))?;
            let rules = rules(findings, lines, collective, &communicators)?;
            let low = match before {
                None => smallest(findings, &size),
                Some(before) => follow(findings, sets.last_mut(), before, &size),
            };
            before = Some(size.value);
            let parts = vec![Part { world: Counts { low, high: u32::MAX }, nodes: Counts::ANY }];
            sets.push(Set { span: id.span.clone(), collective, parts, rules });
        }
    }
    lines.end(findings, &collectives)
}

/// The least size that a collective's first set is for.
fn smallest(findings: &mut Findings<'_>, size: &Number) -> u32 {
    if size.value > 1 {
        let message = "the first communicator size is no bound in Open MPI: its rules are for \
                       smaller groups too";
        findings.note_once(size.span.clone(), message);
    }
    0
}

/// The least size that a set behind another is for, and with it where that one ends.
fn follow(findings: &mut Findings<'_>, set: Option<&mut Set>, before: u64, size: &Number) -> u32 {
    if size.value <= before {
        let message = format!("communicator size {} does not follow {before}", size.value);
        let help = "sizes ascend: Open MPI takes the nearest that is not greater";
        findings.error(size.span.clone(), message, help);
    }
    let message = "a further communicator size is the least that its rules are for, as in Open MPI \
                   up to 5.0; 6.0 has the set before end at its own size, and this one begin there";
    findings.note_once(size.span.clone(), message);
    let low = u32::try_from(size.value).unwrap_or(u32::MAX);
    if let Some(part) = set.and_then(|set| set.parts.last_mut()) {
        part.world.high = low.saturating_sub(1);
    }
    low
}

/// What stands behind a rule's algorithm.
const KNOBS: [&str; 3] = ["fan in/out", "segment size", "max requests"];

fn rules(
    findings: &mut Findings<'_>,
    lines: &mut Lines,
    collective: &'static Collective,
    communicators: &Announced,
) -> Result<Vec<Rule>, Stop> {
    let announced = lines.count(findings, "rules", Some(communicators))?;
    let mut rules: Vec<Rule> = Vec::new();
    for _ in 0..announced.count {
        let numbers = lines.rule(findings, &announced)?;
        let [size, algorithm, knobs @ ..] = &numbers[..] else { return Err(Stop) };
        ascending(findings, rules.last_mut(), size);
        let set = KNOBS.iter().zip(knobs).filter(|(_, number)| number.value != 0);
        rules.push(Rule {
            span: size.span.start..numbers[numbers.len() - 1].span.end,
            bytes: inclusive(size.value, u64::MAX),
            algorithm: Algorithm::of(findings, collective, algorithm.value, &algorithm.span),
            knobs: set.map(|(name, number)| (*name, number.span.clone())).collect(),
        });
    }
    Ok(rules)
}

/// A rule is for sizes up to the next rule's, and the first is for size 0.
fn ascending(findings: &mut Findings<'_>, before: Option<&mut Rule>, size: &Number) {
    match before {
        None if size.value == 0 => {}
        None => {
            let message = format!("the first rule is for size {}, and not for 0", size.value);
            let help = "Open MPI drops the whole file; put `0 0 0 0` before it, which leaves smaller \
                        sizes to its own choice";
            findings.error(size.span.clone(), message, help);
        }
        Some(rule) if rule.bytes.low < size.value => rule.bytes.high = Some(size.value),
        Some(rule) => {
            let (line, low) = (findings.line(rule.span.start), rule.bytes.low);
            let message = format!("size {} does not follow {low} of line {line}", size.value);
            let help = "sizes ascend: Open MPI takes the nearest that is not greater, and one of the \
                        two rules never";
            findings.error(size.span.clone(), message, help);
        }
    }
}
