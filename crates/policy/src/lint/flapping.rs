//! W013: an algorithm that returns after another took over, or many changes in few sizes. That is
//! what noise looks like when it is written into a table.

use std::collections::HashMap;

use crossover_core::policy::Layer;

use super::View;
use super::case::Case;
use super::words::{call_words, group_words};
use crate::bytes::size_text;
use crate::diagnostic::{Code, Diagnostic};
use crate::domain::{Reach, decisions};

/// More changes than this within a tenfold growth of the size are too many.
const MOST_CHANGES: usize = 4;

pub(super) fn check(view: &View<'_>, case: &Case<'_>) -> Option<Diagnostic> {
    let admitted = case.under(view.book, view.usual);
    let bands = bands(&admitted, case.element());
    let (band, what) = returning(view, &bands).or_else(|| restless(view, &bands))?;
    let rule = &view.book.rules[band.rule];
    let (call, group) = (call_words(&case.call), group_words(case.group));
    let message = format!("for {call} on {group}, {what}");
    let help = "a change that does not pay is noise: give neighbouring sizes one algorithm";
    let (help, candidate) = (Some(help.to_owned()), Some(band.candidate));
    Some(view.effective.finding(Code::Flapping, rule, candidate, message, help))
}

/// From which size on, who serves: of sizes that are multiples of whatever anybody wants, since
/// what serves the rest is not a matter of tables. No bytes are no size here.
fn bands(admitted: &[Reach], element: u64) -> Vec<(u64, &Reach)> {
    let coarsest = admitted.iter().map(|r| r.multiple_of).max().unwrap_or(1).max(element);
    let sizes = decisions(admitted, element).into_iter();
    let sizes = sizes.filter(|(size, _)| *size > 0 && size.is_multiple_of(coarsest));
    let served = sizes.filter_map(|(size, at)| Some((size, &admitted[at?])));
    let mut bands: Vec<(u64, &Reach)> = Vec::new();
    for (size, r) in served {
        if bands.last().is_none_or(|(_, last)| last.algorithm != r.algorithm) {
            bands.push((size, r));
        }
    }
    bands
}

/// The first algorithm that serves again, by another candidate. By the same one is something else:
/// a range that somebody laid into a wider one. And the floor serves what no range covers, which is
/// no choice.
fn returning<'b>(view: &View<'_>, bands: &[(u64, &'b Reach)]) -> Option<(&'b Reach, String)> {
    let mut latest = HashMap::new();
    for (at, (size, r)) in bands.iter().enumerate() {
        let Some(before) = latest.insert(r.algorithm, at) else { continue };
        let rule = &view.book.rules[r.rule];
        let place = |r: &Reach| (r.rule, r.candidate);
        if rule.layer == Layer::Builtin || !view.tells(rule) || place(bands[before].1) == place(r) {
            continue;
        }
        let (left, between) = bands[before + 1];
        let (name, other) = (view.book.target(r.algorithm), view.book.target(between.algorithm));
        let (left, size) = (size_text(left), size_text(*size));
        return Some((
            r,
            format!("`{name}` gives way to `{other}` at {left} and returns at {size}"),
        ));
    }
    None
}

/// The first changes that are one too many; told at the last of them that is anybody's.
fn restless<'b>(view: &View<'_>, bands: &[(u64, &'b Reach)]) -> Option<(&'b Reach, String)> {
    let changes = bands.get(1..)?;
    let crowded = changes.windows(MOST_CHANGES + 1).find(|window| {
        let (first, last) = (window[0].0, window[MOST_CHANGES].0);
        last <= first.saturating_mul(10)
    })?;
    let sizes: Vec<String> = crowded.iter().map(|(size, _)| size_text(*size)).collect();
    let what = format!("the algorithm changes {} times: at {}", sizes.len(), sizes.join(", "));
    let told = crowded.iter().rev().find(|(_, r)| view.tells(&view.book.rules[r.rule]));
    told.map(|(_, r)| (*r, what))
}
