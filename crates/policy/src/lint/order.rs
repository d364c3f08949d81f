//! E012: the contract demands the same bits at every size, and the order of additions changes with
//! the size. Eligibility keeps algorithms out that do not claim to be size-invariant; this is about
//! two that claim it, and add in different orders.

use std::collections::BTreeSet;

use crossover_core::contract::{Contract, Determinism, OrderClass};

use super::View;
use super::case::{Case, narrowest};
use super::words::{call_words, group_words};
use crate::bytes::size_text;
use crate::diagnostic::{Code, Diagnostic};
use crate::domain::{Reach, decisions};

pub(super) fn check(view: &View<'_>, case: &Case<'_>) -> Option<Diagnostic> {
    if view.contract.determinism < Determinism::SizeInvariant || !case.call.op.reduces() {
        return None;
    }
    contracts(view, case).into_iter().find_map(|contract| of_contract(view, case, contract))
}

/// Whatever two algorithms serve under some contract also serve under the narrowest that admits
/// both.
fn contracts(view: &View<'_>, case: &Case<'_>) -> Vec<Contract> {
    let mut contracts = vec![view.contract];
    let algorithms: BTreeSet<usize> = case.reach.iter().map(|r| r.algorithm).collect();
    for a in &algorithms {
        for b in algorithms.range(a..) {
            let contract = narrowest(view.book, view.contract, &[*a, *b]);
            if !contracts.contains(&contract) {
                contracts.push(contract);
            }
        }
    }
    contracts
}

fn of_contract(view: &View<'_>, case: &Case<'_>, contract: Contract) -> Option<Diagnostic> {
    let admitted = case.under(view.book, contract);
    let sizes = decisions(&admitted, case.element()).into_iter().filter(|(size, _)| *size > 0);
    let mut served = sizes.filter_map(|(size, at)| Some((size, &admitted[at?])));
    let (from, first) = served.next()?;
    let (to, other) = served.find(|(_, r)| !agree(view, first, r))?;
    let rule = &view.book.rules[other.rule];
    // The finding belongs to whichever of the two is told.
    let (rule, candidate) = match view.tells(rule) {
        true => (rule, other.candidate),
        false => (&view.book.rules[first.rule], first.candidate),
    };
    if !view.tells(rule) {
        return None;
    }
    let order = |r: &Reach| view.book.known[r.algorithm].algorithm.eligibility.order;
    let message = format!(
        "the contract is size_invariant, and {} on {} is added up in another order at {} than at \
         {}: `{}` is {}, `{}` is {}",
        call_words(&case.call),
        group_words(case.group),
        size_text(to),
        size_text(from),
        view.book.target(first.algorithm),
        order(first),
        view.book.target(other.algorithm),
        order(other),
    );
    let help = "leave the op to algorithms that are rank_ordered".to_owned();
    Some(view.effective.finding(Code::OrderChanges, rule, Some(candidate), message, Some(help)))
}

/// Do two algorithms give the same bits? The one does with itself; two do if they are
/// rank-ordered, which is the only order that is written down.
fn agree(view: &View<'_>, a: &Reach, b: &Reach) -> bool {
    let rank_ordered = |r: &Reach| {
        let known = &view.book.known[r.algorithm];
        known.algorithm.eligibility.order == OrderClass::RankOrdered
    };
    a.algorithm == b.algorithm || (rank_ordered(a) && rank_ordered(b))
}
