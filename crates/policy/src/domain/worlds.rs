//! Worlds that no rule and no algorithm tells apart, as runs.
//!
//! A range over output bytes lies elsewhere in input bytes for each world, so that a bound may pass
//! another from one world to the next, or the sizes between two of them be used up.

use std::collections::BTreeSet;

use crossover_core::call::{Dtype, Op};
use crossover_core::policy::{Basis, ByteRange, Candidate, Rule};

use super::book::Book;
use super::sizes::first_multiple;
use super::values::{MOST_RANKS, starts_of};

/// Worlds of which bit sets in eligibilities speak one by one.
const EXACT_WORLDS: u32 = 65;

/// Where a run of worlds begins that all rules and all algorithms of these books take alike.
pub(super) fn worlds(books: &[&Book<'_>]) -> Vec<u32> {
    let rules = || books.iter().flat_map(|book| book.rules);
    let mut starts = BTreeSet::from([2]);
    starts.extend(starts_of(rules().filter_map(|rule| rule.when.world.as_ref()).flatten()));
    // A group has as many ranks as nodes at least: with each count of nodes a world begins that can have it.
    starts.extend(starts_of(rules().filter_map(|rule| rule.when.nodes.as_ref()).flatten()));
    let known = books.iter().flat_map(|book| &book.known);
    for worlds in known.map(|k| k.algorithm.eligibility.worlds) {
        starts.extend((3..=EXACT_WORLDS).filter(|w| worlds.contains(*w) != worlds.contains(w - 1)));
    }
    if sizes_follow_world(rules()) {
        // Every small one, since a message about one should tell its own sizes.
        starts.extend(2..EXACT_WORLDS);
        let bounds = [Op::AllGather, Op::ReduceScatter].map(|op| Bounds::of(books, op));
        let large = EXACT_WORLDS..MOST_RANKS + 1;
        starts.extend(bounds.iter().flat_map(|bounds| bounds.runs(large.clone())));
    }
    starts.into_iter().filter(|world| (2..=MOST_RANKS).contains(world)).collect()
}

/// Do some sizes of these rules depend on the world?
pub(super) fn sizes_follow_world<'r>(mut rules: impl Iterator<Item = &'r Rule>) -> bool {
    rules.any(|rule| rule.chain.iter().any(|candidate| candidate.basis == Basis::Output))
}

/// All sizes at which some answer may change for an op whose output has another size than its input.
struct Bounds {
    op: Op,
    of_input: BTreeSet<u64>,
    of_output: BTreeSet<u64>,
    /// The powers of two that some algorithm or type tells sizes apart by, ascending.
    multiples: Vec<u64>,
}

/// Which bound comes after which, and what kinds of multiples lie between each and the next.
type Shape = Vec<(usize, Vec<bool>)>;

impl Bounds {
    fn of(books: &[&Book<'_>], op: Op) -> Bounds {
        let known = || books.iter().flat_map(|book| &book.known);
        let [mut of_input, mut of_output] = [BTreeSet::from([1]), BTreeSet::new()];
        of_input.extend(known().filter_map(|k| k.room.checked_add(1)));
        for Candidate { basis, bytes: ByteRange { low, high }, .. } in candidates(books, op) {
            let bounds = match basis {
                Basis::Input => &mut of_input,
                Basis::Output => &mut of_output,
            };
            bounds.extend([Some(*low), *high].into_iter().flatten().filter(|bound| *bound > 0));
        }
        let multiples = known().map(|k| k.algorithm.eligibility.multiple_of);
        let elements = Dtype::ALL.iter().map(|dtype| dtype.size() as u64);
        let multiples: BTreeSet<u64> = multiples.chain(elements).collect();
        Bounds { op, of_input, of_output, multiples: multiples.into_iter().collect() }
    }

    /// The first of these worlds, and each whose shape differs from that of the one before.
    fn runs(&self, worlds: std::ops::Range<u32>) -> impl Iterator<Item = u32> {
        // Without a bound over output all are alike.
        let many = if self.of_output.is_empty() { 1 } else { worlds.len() };
        let mut before = None;
        worlds.take(many).filter(move |&world| {
            let shape = self.shape(world);
            before.replace(shape.clone()).is_none_or(|before| before != shape)
        })
    }

    fn shape(&self, world: u32) -> Shape {
        let as_input = |bound: &u64| {
            ByteRange { low: *bound, high: None }.of_input(Basis::Output, self.op, world).low
        };
        let bounds = self.of_input.iter().copied().chain(self.of_output.iter().map(as_input));
        let mut cuts: Vec<(u64, usize)> = bounds.zip(0..).collect();
        cuts.sort_unstable();
        let ends = cuts.iter().skip(1).map(|(cut, _)| *cut).chain([u64::MAX]);
        let between = cuts.iter().zip(ends);
        between.map(|(&(from, bound), end)| (bound, self.kinds(from, end))).collect()
    }

    /// By multiple: is one of it, and not of the next, inside?
    fn kinds(&self, from: u64, end: u64) -> Vec<bool> {
        let coarser = self.multiples.iter().skip(1).map(Some).chain([None]);
        let kinds = self.multiples.iter().zip(coarser);
        let first = kinds.map(|(multiple, coarser)| first_multiple(from, *multiple, coarser));
        first.map(|size| size.is_some_and(|size| size < end)).collect()
    }
}

/// What rules for this op, or for any, name.
fn candidates<'b>(books: &[&Book<'b>], op: Op) -> impl Iterator<Item = &'b Candidate> {
    let rules = books.iter().flat_map(|book| book.rules);
    let is_for_op = move |rule: &&Rule| rule.when.op.as_ref().is_none_or(|ops| ops.contains(op));
    rules.filter(is_for_op).flat_map(|rule| &rule.chain)
}
