//! E016: `[[expect]]` blocks, a policy's own tests.

use crossover_core::call::CallKind;
use crossover_core::explain::{Considered, Explanation};
use crossover_core::facts::GroupProfile;
use crossover_core::plan::{Offer, OfferState, Plan};
use crossover_core::policy::{Match, Rule};

use super::View;
use super::stack::Stack;
use super::words::{call_words, group_words};
use crate::bytes::size_text;
use crate::diagnostic::{Code, Diagnostic};
use crate::file::Expect;

/// What the blocks of one stack came to.
pub(super) struct Outcome {
    pub(super) run: usize,
    pub(super) failed: Vec<Diagnostic>,
}

/// Runs the blocks that are about the stack's architecture; all of them where there is no pack.
/// What a shipped file expects, it expects of itself, unless somebody named it: who lays a file over
/// it means to change something.
pub(super) fn check(view: &View<'_>, stack: &Stack) -> Outcome {
    let told = |e: &Expect| view.tells_layer(e.layer) && !(view.has_user_files && e.included);
    let arch = stack.arch.as_deref();
    let here = |e: &&Expect| told(e) && arch.is_none_or(|arch| arch == e.group.arch);
    let expects: Vec<&Expect> = view.effective.expects.iter().filter(here).collect();
    let failed = expects.iter().filter_map(|expect| run(view, expect)).collect();
    Outcome { run: expects.len(), failed }
}

fn run(view: &View<'_>, expect: &Expect) -> Option<Diagnostic> {
    let plan = plan(view, expect);
    let call = CallKind { contract: plan.contract(), ..expect.call };
    let told = plan.explain_kind(&call, expect.bytes);
    let got = told.chosen.as_ref().map(|chosen| chosen.target.as_str());
    let met = match (&expect.target, got) {
        (None, None) => true,
        (Some(wanted), Some(got)) => {
            let wanted = wanted.to_string();
            got == wanted || got.strip_prefix(&wanted).is_some_and(|rest| rest.starts_with('/'))
        }
        _ => false,
    };
    if met {
        return None;
    }
    let wanted = expect.target.as_ref().map_or("nothing".to_owned(), |t| format!("`{t}`"));
    let message = format!(
        "expected {wanted} for {} of {} on {}, got {}",
        call_words(&call),
        size_text(expect.bytes),
        group_words(&expect.group),
        got_words(&told),
    );
    Some(view.effective.finding_of_expect(
        Code::Expectation,
        expect,
        message,
        help(view, expect, &told),
    ))
}

/// The plan of the block's group, every backend set up with the room that is known.
fn plan(view: &View<'_>, expect: &Expect) -> Plan {
    let mut offers: Vec<Offer> = Vec::new();
    for known in &view.book.known {
        let descriptor = known.descriptor;
        match offers.last_mut().filter(|offer| offer.descriptor.id == descriptor.id) {
            // A plan knows one number for a backend: that of its roomiest algorithm.
            Some(Offer { state: OfferState::Open { capacity }, .. }) => {
                *capacity = (*capacity).max(known.room);
            }
            _ => {
                offers.push(Offer { descriptor, state: OfferState::Open { capacity: known.room } })
            }
        }
    }
    let policy = &view.effective.policy;
    let contract = policy.contract.intersection(expect.call.contract);
    Plan::compile(expect.group.clone(), contract, policy, offers)
}

fn got_words(told: &Explanation) -> String {
    match &told.chosen {
        None => "nothing".to_owned(),
        Some(chosen) if chosen.rule.is_empty() => format!("`{}`", chosen.target),
        Some(chosen) => {
            format!("`{}` of rule `{}` ({})", chosen.target, chosen.rule, chosen.origin)
        }
    }
}

/// Why what was expected does not serve: by which rule it was considered, and which of the told rules
/// that name it do not match.
fn help(view: &View<'_>, expect: &Expect, told: &Explanation) -> Option<String> {
    let wanted = expect.target.as_ref()?.to_string();
    let of_wanted = |target: &str| target == wanted || target.starts_with(&format!("{wanted}/"));
    let considered = told.considered.iter().filter(|c| of_wanted(&c.target));
    let matched = considered.clone().find(|c| !c.reason.starts_with("the rule is not for"));
    let considered_by =
        |c: &Considered| format!("`{}` of rule `{}`: {}", c.target, c.rule, c.reason);
    let named = |rule: &Rule| rule.chain.iter().any(|c| of_wanted(&c.target()));
    let mut unmatched: Vec<(Vec<&'static str>, &Rule)> = view
        .book
        .rules
        .iter()
        .filter(|rule| view.tells(rule) && named(rule))
        .map(|rule| (missed(&rule.when, &expect.group, &expect.call), rule))
        .filter(|(keys, _)| !keys.is_empty())
        .collect();
    unmatched.sort_by_key(|(keys, _)| keys.len());
    let unmatched = unmatched.into_iter().take(MOST_UNMATCHED).map(|(keys, rule)| {
        format!("rule `{}` ({}) does not match: {}", rule.id, rule.origin, keys.join(", "))
    });
    let reasons: Vec<String> = matched.map(considered_by).into_iter().chain(unmatched).collect();
    match (reasons.is_empty(), considered.clone().next()) {
        (false, _) => Some(reasons.join("; ")),
        (true, Some(c)) => Some(considered_by(c)),
        (true, None) => Some(format!("no rule names `{wanted}`")),
    }
}

/// Rules that nearly match are worth a word; more than these are a list.
const MOST_UNMATCHED: usize = 2;

/// All keys that a group and a call do not meet.
fn missed(when: &Match, group: &GroupProfile, call: &CallKind) -> Vec<&'static str> {
    let mut when = when.clone();
    let mut missed = Vec::new();
    while let Some(key) = when.failing(group, call) {
        missed.push(key);
        match key {
            "op" => when.op = None,
            "arch" => when.arch = None,
            "device" => when.device = None,
            "world" => when.world = None,
            "nodes" => when.nodes = None,
            "topology" => when.topology = None,
            "group" => when.group = None,
            "caps" => when.caps = None,
            "dtype" => when.dtype = None,
            "reduce_op" => when.reduce_op = None,
            "mode" => when.mode = None,
            // A key of which nothing is known here: the others are told.
            _ => break,
        }
    }
    missed
}
