//! The JSON format of Open MPI 6: of the sets of a collective the first that suits a communicator
//! is taken, of its rules the first that suits a size. Overlaps are allowed there without a word.

mod value;

use std::ops::Range;

use jsonc_parser::ast::{Object, Value};
use jsonc_parser::errors::ParseErrorKind;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::collective::{self, Collective};
use super::{Algorithm, Part, Rule, Set};
use crate::import::findings::{Findings, short};
use crate::import::ranges::{Counts, inclusive};
use value::{array, keys, number, object, span, text};

/// JSON, and nothing that readers of other dialects let pass.
const STRICT: ParseOptions = ParseOptions {
    allow_comments: false,
    allow_loose_object_property_names: false,
    allow_trailing_commas: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

pub(super) fn read(findings: &mut Findings<'_>) -> Vec<Set> {
    let mut sets = Vec::new();
    match parse_to_ast(findings.text(), &CollectOptions::default(), &STRICT) {
        Err(error) => {
            let range = error.range();
            let (message, help) = not_json(error.kind());
            findings.error(range.start..range.end, message, help);
        }
        Ok(parsed) => {
            if let Some(root) = parsed.value.as_ref().and_then(|v| object(findings, "the file", v))
            {
                file(findings, root, &mut sets);
            }
        }
    }
    sets
}

fn not_json(kind: &ParseErrorKind) -> (String, &'static str) {
    match kind {
        ParseErrorKind::TrailingCommasNotAllowed => (
            "a comma before a closing bracket: JSON has none there".to_owned(),
            "take it out (an example in Open MPI's documentation has one); Open MPI would drop the \
             whole file, without a word",
        ),
        kind => (
            format!("not JSON: {}", kind.to_string().to_lowercase()),
            "Open MPI would try the classic format next, and then drop the file without a word",
        ),
    }
}

fn file(findings: &mut Findings<'_>, root: &Object<'_>, sets: &mut Vec<Set>) {
    let known = ["rule_file_version", "module", "collectives", "$schema"];
    keys(findings, root, "the file", &known, &known[..3]);
    for property in &root.properties {
        match property.name.as_str() {
            "rule_file_version" => {
                let version = number(findings, "rule_file_version", &property.value);
                if version.is_some_and(|version| version != 3) {
                    let message = "the JSON format is `rule_file_version` 3";
                    findings.error(span(&property.value), message, "versions 1 and 2 are no JSON");
                }
            }
            "module" => {
                let module = text(findings, "module", &property.value);
                if module.is_some_and(|module| module != "tuned") {
                    let message = "these rules are for another module than `tuned`";
                    let help = "only rules of `coll/tuned` can be read";
                    findings.error(span(&property.value), message, help);
                }
            }
            "collectives" => {
                let Some(collectives) = object(findings, "collectives", &property.value) else {
                    continue;
                };
                keys(findings, collectives, "`collectives`", &[], &[]);
                for property in &collectives.properties {
                    let name = property.name.as_str();
                    let at = property.range.start..property.range.start + name.len() + 2;
                    let Some(collective) = collective::by_name(name) else {
                        let message = format!("unknown collective `{}`", short(name));
                        findings.unknown(at, message, name, collective::names());
                        continue;
                    };
                    collective_sets(findings, collective, at, &property.value, sets);
                }
            }
            _ => {}
        }
    }
}

fn collective_sets(
    findings: &mut Findings<'_>,
    collective: &'static Collective,
    at: Range<usize>,
    value: &Value<'_>,
    sets: &mut Vec<Set>,
) {
    // What earlier sets have taken, and on which line.
    let mut taken: Vec<(u32, Part)> = Vec::new();
    for value in array(findings, collective.name, value) {
        let Some(object) = object(findings, "an entry", value) else { continue };
        if findings.is_too_much(taken.len(), &span(value)) {
            return;
        }
        let known = ["comm_size_min", "comm_size_max", "comm_rank_distribution", "rules"];
        keys(findings, object, "an entry", &known, &["rules"]);
        let nodes = distribution(findings, object);
        let worlds = range(findings, object, "comm_size_min", "comm_size_max");
        let mut rules = Vec::new();
        if let Some(property) = object.get("rules") {
            for value in array(findings, "rules", &property.value) {
                rules.extend(rule(findings, collective, value));
            }
        }
        let (Some(nodes), Some((low, high))) = (nodes, worlds) else { continue };
        let no_group = match (low, high) {
            (_, ..=1) => Some("a group of one rank copies, and none is smaller"),
            (low, _) if low > u64::from(u32::MAX) => Some("no group has so many ranks"),
            _ => None,
        };
        if let Some(why) = no_group {
            let at = object.range.start..object.range.start + 1;
            findings.loss(at, format!("{why}: these rules are left out"));
            continue;
        }
        let count = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        let whole = Part { world: Counts { low: count(low), high: count(high) }, nodes };
        let parts = left(findings, object, whole, &taken);
        taken.push((findings.line(object.range.start), whole));
        sets.push(Set { span: at.clone(), collective, parts, rules });
    }
}

/// What earlier sets leave of one.
fn left(
    findings: &mut Findings<'_>,
    object: &Object<'_>,
    whole: Part,
    taken: &[(u32, Part)],
) -> Vec<Part> {
    let mut parts = vec![whole];
    for (line, before) in taken {
        if parts.is_empty() {
            break; // nothing is left that another could take
        }
        if !before.world.intersect(whole.world) || !before.nodes.intersect(whole.nodes) {
            continue;
        }
        parts = parts.iter().flat_map(|part| part.without(*before)).collect();
        // One node before any number of them is how an exception is written.
        if before.nodes.covers(whole.nodes) {
            let at = object.range.start..object.range.start + 1;
            let message = match parts.is_empty() {
                true => format!("shadowed: line {line} takes all of these communicators first"),
                false => format!("overlaps line {line}, which takes the communicators of both"),
            };
            findings.note(at, message);
        }
    }
    parts
}

impl Part {
    fn without(self, other: Part) -> Vec<Part> {
        let (inside, beside) = self.world.split(other.world);
        let beside = beside.into_iter().map(|world| Part { world, ..self });
        let inside = inside.into_iter().flat_map(|world| {
            let nodes = self.nodes.split(other.nodes).1;
            nodes.into_iter().map(move |nodes| Part { world, nodes })
        });
        beside.chain(inside).collect()
    }
}

/// `comm_rank_distribution` as numbers of nodes; `None` if the set cannot be taken.
fn distribution(findings: &mut Findings<'_>, object: &Object<'_>) -> Option<Counts> {
    let Some(property) = object.get("comm_rank_distribution") else { return Some(Counts::ANY) };
    let known = ["any", "one-per-node", "single-node"];
    match text(findings, "comm_rank_distribution", &property.value)? {
        "any" => Some(Counts::ANY),
        "single-node" => Some(Counts { low: 1, high: 1 }),
        "one-per-node" => {
            let message = "`one-per-node` cannot be matched, and `host` serves the ranks of one \
                           node alone: these rules are left out";
            findings.loss(span(&property.value), message);
            None
        }
        other => {
            let message = format!(
                "unknown comm_rank_distribution `{}`, which Open MPI would take for `any`",
                short(other)
            );
            findings.unknown(span(&property.value), message, other, known);
            None
        }
    }
}

fn rule(findings: &mut Findings<'_>, collective: &Collective, value: &Value<'_>) -> Option<Rule> {
    let object = object(findings, "a rule", value)?;
    let known = ["msg_size_min", "msg_size_max", "alg", "reqs", "faninout", "seg_size"];
    keys(findings, object, "a rule", &known, &["alg"]);
    let bytes = range(findings, object, "msg_size_min", "msg_size_max");
    let mut knobs = Vec::new();
    for knob in ["reqs", "faninout", "seg_size"] {
        if let Some(property) = object.get(knob)
            && number(findings, knob, &property.value).is_some_and(|value| value != 0)
        {
            knobs.push((knob, span(&property.value)));
        }
    }
    let algorithm = algorithm(findings, collective, &object.get("alg")?.value)?;
    let (low, high) = bytes?;
    Some(Rule {
        span: object.range.start..object.range.end,
        bytes: inclusive(low, high),
        algorithm,
        knobs,
    })
}

fn algorithm(
    findings: &mut Findings<'_>,
    collective: &Collective,
    value: &Value<'_>,
) -> Option<Algorithm> {
    let Some(name) = value.as_string_lit() else {
        let id = number(findings, "alg, if not a name,", value)?;
        return Some(Algorithm::of(findings, collective, id, &span(value)));
    };
    let id = collective.algorithms.iter().position(|known| *known == name.value);
    if id.is_none() {
        let message = format!(
            "`{}` has no algorithm `{}`; Open MPI would drop the rule without a word",
            collective.name,
            short(&name.value)
        );
        findings.unknown(span(value), message, &name.value, collective.algorithms.iter().copied());
    }
    Some(Algorithm { span: span(value), id: id? })
}

/// A least and a greatest number, both optional.
fn range(
    findings: &mut Findings<'_>,
    object: &Object<'_>,
    least: &str,
    greatest: &str,
) -> Option<(u64, u64)> {
    let low = object.get(least).map(|p| number(findings, least, &p.value));
    let high = object.get(greatest).map(|p| number(findings, greatest, &p.value));
    let (low, high) = (low.unwrap_or(Some(0))?, high.unwrap_or(Some(u64::MAX))?);
    if low > high {
        let at = object.get(least).map_or(0..0, |p| p.range.start..p.range.end);
        let message = format!("`{least}` {low} is greater than `{greatest}` {high}");
        findings.error(at, message, "such a range holds nothing; exchange the two");
        return None;
    }
    Some((low, high))
}
