//! Worlds that no rule and no algorithm tells apart, as runs.
//!
//! A range over output bytes lies elsewhere in input bytes for each world, so that a bound may pass
//! another from one world to the next, or the sizes between two of them be used up.

use std::collections::BTreeSet;

use crossover_core::call::{Dtype, Op};
use crossover_core::policy::{Basis, ByteRange, Rule};

use super::book::Book;
use super::sizes::first_multiple;
use super::values::{MOST_RANKS, starts_of};

/// Worlds of which bit sets in eligibilities speak one by one.
const EXACT_WORLDS: u32 = 65;

/// Where a run of worlds begins that all rules and all algorithms of these books take alike.
pub(super) fn worlds(books: &[&Book<'_>]) -> Vec<u32> {
    let rules = || books.iter().flat_map(|book| book.rules);
    let mut starts = BTreeSet::from([2]);
    starts.extend(starts_of(rules().filter_map(|r| r.when.world.as_ref()).flatten()));
    let known = books.iter().flat_map(|book| &book.known);
    for worlds in known.map(|k| k.algorithm.eligibility.worlds) {
        starts.extend((3..=EXACT_WORLDS).filter(|w| worlds.contains(*w) != worlds.contains(w - 1)));
    }
    if sizes_follow_world(rules()) {
        // Every small one, since a message about one should tell its own sizes.
        starts.extend(2..EXACT_WORLDS);
        starts.extend(Bounds::of(books).runs(EXACT_WORLDS..MOST_RANKS + 1));
    }
    starts.into_iter().filter(|world| (2..=MOST_RANKS).contains(world)).collect()
}

/// Do some sizes of these rules depend on the world?
pub(super) fn sizes_follow_world<'r>(mut rules: impl Iterator<Item = &'r Rule>) -> bool {
    rules.any(|rule| rule.chain.iter().any(|candidate| candidate.basis == Basis::Output))
}

/// All sizes at which some answer may change.
struct Bounds {
    of_input: BTreeSet<u64>,
    of_output: BTreeSet<u64>,
    /// The powers of two that some algorithm or type tells sizes apart by, ascending.
    multiples: Vec<u64>,
}

/// Which bound comes after which, and what kinds of multiples lie between each and the next.
type Shape = Vec<(usize, Vec<bool>)>;

impl Bounds {
    fn of(books: &[&Book<'_>]) -> Bounds {
        let known = || books.iter().flat_map(|book| &book.known);
        let [mut of_input, mut of_output] = [BTreeSet::from([1]), BTreeSet::new()];
        of_input.extend(known().filter_map(|k| k.room.checked_add(1)));
        for candidate in books.iter().flat_map(|b| b.rules).flat_map(|rule| &rule.chain) {
            let bounds = match candidate.basis {
                Basis::Input => &mut of_input,
                Basis::Output => &mut of_output,
            };
            let ByteRange { low, high } = candidate.bytes;
            bounds.extend([Some(low), high].into_iter().flatten().filter(|bound| *bound > 0));
        }
        let multiples = known().map(|k| k.algorithm.eligibility.multiple_of);
        let elements = Dtype::ALL.iter().map(|dtype| dtype.size() as u64);
        let multiples: BTreeSet<u64> = multiples.chain(elements).collect();
        Bounds { of_input, of_output, multiples: multiples.into_iter().collect() }
    }

    /// The first of these worlds, and each whose shapes differ from those of the one before.
    fn runs(&self, worlds: std::ops::Range<u32>) -> impl Iterator<Item = u32> {
        let mut before = None;
        worlds.filter(move |&world| {
            let shapes = [Op::AllGather, Op::ReduceScatter].map(|op| self.shape(op, world));
            before.replace(shapes.clone()).is_none_or(|before| before != shapes)
        })
    }

    fn shape(&self, op: Op, world: u32) -> Shape {
        let as_input = |bound: &u64| {
            ByteRange { low: *bound, high: None }.of_input(Basis::Output, op, world).low
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
