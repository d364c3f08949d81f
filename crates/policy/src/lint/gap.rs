//! E008: a call that nothing serves. Where files of the user's lie over shipped ones, it is told of
//! calls that a rule of theirs matches, and of those that no rule is left for.

use super::View;
use super::case::Case;
use super::words::{call_words, group_words};
use crate::bytes::size_text;
use crate::diagnostic::{Code, Diagnostic, Source};
use crate::domain::decisions;

/// The sizes that nothing serves.
pub(super) fn unserved(case: &Case<'_>) -> Vec<u64> {
    let decisions = decisions(&case.reach, case.element()).into_iter();
    decisions.filter(|(_, at)| at.is_none()).map(|(size, _)| size).collect()
}

/// What no backend that is known could serve is no fault of the policy.
pub(super) fn check(view: &View<'_>, case: &Case<'_>, unserved: &[u64]) -> Option<Diagnostic> {
    let could = |size: &&u64| {
        view.book.known.iter().any(|k| {
            let e = &k.algorithm.eligibility;
            e.failing(case.group, &case.call, **size, k.room).is_none()
                && size.is_multiple_of(e.multiple_of)
        })
    };
    let size = *unserved.iter().find(could)?;
    let rules = view.book.rules;
    let closing = case.reached.last().filter(|rule| rules[**rule].last);
    let weakest_told = case.matched.iter().rev().map(|rule| &rules[*rule]).find(|r| view.tells(r));
    let (place, why, help) = match (closing, weakest_told) {
        (Some(closing), _) => (
            Some(&rules[*closing]),
            ", and no rule after this one is tried",
            "take `last` away, or end the chain in a backend that takes all",
        ),
        (None, Some(weakest)) => (
            Some(weakest),
            ", neither by this rule nor by another",
            "end the chain in a backend that takes all",
        ),
        (None, None) if !case.matched.is_empty() => return None,
        (None, None) => (
            rules.iter().rfind(|rule| view.tells(rule)),
            ", and no rule matches it",
            "add a rule without `match` whose chain ends in a backend that takes all",
        ),
    };
    let (call, group) = (call_words(&case.call), group_words(case.group));
    let message = format!("nothing serves {call} of {} on {group}{why}", size_text(size));
    let help = Some(help.to_owned());
    match place {
        Some(rule) if view.tells(rule) => {
            Some(view.effective.finding(Code::Gap, rule, None, message, help))
        }
        Some(_) => None,
        None => {
            let nowhere = Source { name: "policy".to_owned(), text: String::new() };
            Some(nowhere.diagnostic(Code::Gap, 0..0, message, help))
        }
    }
}
