//! W014: numbers that were measured on another device than the one at hand.

use crossover_core::policy::{EvidenceKind, Rule};

use super::{Options, View};
use crate::device::same;
use crate::diagnostic::{Code, Diagnostic};

pub(super) fn check(view: &View<'_>, options: &Options) -> Vec<Diagnostic> {
    let of_group = options.group.as_ref().map(|group| group.device.as_str());
    let here = options.device.as_deref().or(of_group).filter(|device| !device.is_empty());
    let Some(here) = here else { return Vec::new() };
    let matches = match &options.group {
        Some(group) => view.book.rules_for_group(group),
        None => vec![true; view.book.rules.len()],
    };
    let rules = view.book.rules.iter().zip(matches).filter(|(_, matches)| *matches);
    rules.filter_map(|(rule, _)| of_rule(view, rule, here)).collect()
}

fn of_rule(view: &View<'_>, rule: &Rule, here: &str) -> Option<Diagnostic> {
    let evidence = rule.evidence.as_ref()?;
    let kind = evidence.kind?;
    let measured = matches!(kind, EvidenceKind::Measured | EvidenceKind::Tuned);
    let there = evidence.get("device")?;
    if !measured || same(there, here) || !view.tells(rule) {
        return None;
    }
    let message = format!("the numbers of rule `{}` are {kind} on {there}, not on {here}", rule.id);
    let help = "measure again here, or say which device the rule is for: `match = { device = .. }`";
    Some(view.effective.finding(Code::ForeignEvidence, rule, None, message, Some(help.to_owned())))
}
