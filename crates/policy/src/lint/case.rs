//! A group and a kind of call, and what of a policy is reached by them.

use crossover_core::call::{CallKind, Op};
use crossover_core::contract::Contract;
use crossover_core::facts::GroupProfile;

use crate::domain::{Book, CallClass, GroupClass, LOOSEST, Reach, points};

/// One kind of call of one group.
pub(crate) struct Case<'d> {
    pub(crate) group: &'d GroupProfile,
    /// Under the loosest contract.
    pub(crate) call: CallKind,
    /// The rules that match, in order.
    pub(crate) matched: Vec<usize>,
    /// Those of them that are tried.
    pub(crate) reached: Vec<usize>,
    /// Who can serve under some contract, in order.
    pub(crate) reach: Vec<Reach>,
    /// Who could if no rule were last: what [`reach`](Case::reach) is the beginning of.
    pub(crate) unclosed: Vec<Reach>,
}

/// All that decisions in a case depend on, in whichever order its rules are.
pub(crate) type Key = (Op, usize, Vec<usize>, Vec<Reach>);

impl<'d> Case<'d> {
    /// The case of the first book that the classes are of.
    pub(crate) fn new(book: &Book<'_>, group: &'d GroupClass, call: &CallClass) -> Self {
        Case::of_book(0, book, group, call)
    }

    /// The case of one of the books that the classes are of.
    pub(crate) fn of_book(
        at: usize,
        book: &Book<'_>,
        group: &'d GroupClass,
        call: &CallClass,
    ) -> Self {
        let both = group.rules[at].iter().zip(&call.rules[at]);
        let matched: Vec<usize> =
            (0..).zip(both).filter(|(_, (g, c))| **g && **c).map(|(rule, _)| rule).collect();
        let reached = book.cut(&matched);
        let unclosed = book.reach(&group.profile, &call.kind, &matched);
        // Rules are in order, and the reached ones are the first of them.
        let tried =
            unclosed.partition_point(|r| reached.last().is_some_and(|last| r.rule <= *last));
        let reach = unclosed[..tried].to_vec();
        Case { group: &group.profile, call: call.kind, matched, reached, reach, unclosed }
    }

    pub(crate) fn key(&self) -> Key {
        (self.call.op, self.call.dtype.size(), self.matched.clone(), self.unclosed.clone())
    }

    /// Sizes that stand for all.
    pub(crate) fn points(&self) -> Vec<u64> {
        points(&self.reach, self.element())
    }

    /// Bytes of an element: sizes are multiples of it.
    pub(crate) fn element(&self) -> u64 {
        self.call.dtype.size() as u64
    }

    /// Who can serve under this contract, in order.
    pub(crate) fn under(&self, book: &Book<'_>, contract: Contract) -> Vec<Reach> {
        admitted(book, self.group, &self.call, &self.reach, contract)
    }
}

/// Those whose algorithms a contract admits.
pub(crate) fn admitted(
    book: &Book<'_>,
    group: &GroupProfile,
    call: &CallKind,
    reach: &[Reach],
    contract: Contract,
) -> Vec<Reach> {
    let call = CallKind { contract, ..*call };
    let admits = |r: &&Reach| {
        let eligibility = &book.known[r.algorithm].algorithm.eligibility;
        contract == LOOSEST || eligibility.failing(group, &call, 0, r.room).is_none()
    };
    reach.iter().filter(admits).cloned().collect()
}

/// The narrowest contract, within `outer`, that admits all of these if any within it does.
///
/// A narrower contract only takes candidates away. So if one of these is first under some contract
/// within `outer`, it is first under this one as well, and no other contract need be asked.
pub(crate) fn narrowest(book: &Book<'_>, outer: Contract, algorithms: &[usize]) -> Contract {
    let mut narrowest: Option<Contract> = None;
    for &algorithm in algorithms {
        let e = &book.known[algorithm].algorithm.eligibility;
        let own = Contract { determinism: e.determinism, accept: e.deviates };
        narrowest = Some(narrowest.map_or(own, |n| Contract {
            determinism: n.determinism.min(own.determinism),
            accept: n.accept.union(own.accept),
        }));
    }
    narrowest.map_or(outer, |n| outer.intersection(n))
}
