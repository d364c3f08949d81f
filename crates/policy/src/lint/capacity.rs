//! E010: a range that goes beyond what there is room for. A threshold that outlives the buffer it
//! was measured with is a promise that nobody keeps; a range without a bound promises nothing.

use std::collections::BTreeMap;

use super::View;
use super::case::Case;
use super::words::target_of_rule;
use crate::bytes::{range_text, size_text};
use crate::diagnostic::{Code, Diagnostic};
use crate::domain::{Reach, decide};

pub(super) fn check(view: &View<'_>, case: &Case<'_>) -> Vec<Diagnostic> {
    // A bare backend's range is kept by any of its algorithms.
    let mut roomiest: BTreeMap<(usize, usize), &Reach> = BTreeMap::new();
    for r in &case.reach {
        let roomier = roomiest.entry((r.rule, r.candidate)).or_insert(r);
        if roomier.room < r.room {
            *roomier = r;
        }
    }
    let beyond = roomiest.into_values().filter(|r| {
        let promised = r.range.high.is_some_and(|high| high - 1 > r.room);
        promised && view.tells(&view.book.rules[r.rule])
    });
    beyond.map(|r| tell(view, case, r)).collect()
}

fn tell(view: &View<'_>, case: &Case<'_>, r: &Reach) -> Diagnostic {
    let rule = &view.book.rules[r.rule];
    let coarsest = case.reach.iter().map(|r| r.multiple_of).max().unwrap_or(1);
    let size = r.room.saturating_add(1).next_multiple_of(coarsest.max(case.element()));
    let admitted = case.under(view.book, view.usual);
    let beyond = match decide(&admitted, size).map(|at| &admitted[at]) {
        Some(next) => {
            let by = &view.book.rules[next.rule];
            target_of_rule(&view.book.target(next.algorithm), by) + " serves"
        }
        None => "nothing serves".to_owned(),
    };
    let message = format!(
        "the range `{}` goes beyond the room that `{}` has, {} of input per rank: {beyond} beyond \
         that",
        range_text(rule.chain[r.candidate].bytes),
        view.book.target(r.algorithm),
        size_text(r.room),
    );
    let help = format!("end the range at `..={}`, or leave its end open", size_text(r.room));
    view.effective.finding(Code::OverCapacity, rule, Some(r.candidate), message, Some(help))
}
