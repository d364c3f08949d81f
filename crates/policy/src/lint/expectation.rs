//! E016: `[[expect]]` blocks, a policy's own tests.

use crossover_core::call::CallKind;
use crossover_core::explain::Explanation;
use crossover_core::plan::{Offer, OfferState, Plan};

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
/// What a shipped file beneath the user's expects, it expects of itself: who lays a file over it
/// means to change something.
pub(super) fn check(view: &View<'_>, stack: &Stack) -> Outcome {
    let provenance = &view.effective.provenance;
    let told = |e: &Expect| !provenance.has_user_files() || !provenance.is_beneath(&e.origin.file);
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
    Some(view.effective.finding_of_expect(Code::Expectation, expect, message, help(expect, &told)))
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

/// Why what was expected does not serve, where it was considered at all.
fn help(expect: &Expect, told: &Explanation) -> Option<String> {
    let wanted = expect.target.as_ref()?.to_string();
    let of_wanted = |target: &str| target == wanted || target.starts_with(&format!("{wanted}/"));
    let considered = told.considered.iter().filter(|c| of_wanted(&c.target));
    let nearest = considered.clone().find(|c| !c.reason.starts_with("the rule is not for"));
    match nearest.or_else(|| considered.clone().next()) {
        Some(c) => Some(format!("`{}` of rule `{}`: {}", c.target, c.rule, c.reason)),
        None => Some(format!("no rule names `{wanted}`")),
    }
}
