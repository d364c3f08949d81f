//! Which decisions differ between two policies: what a review of a change wants to know, rather
//! than which text differs.

mod fold;

use std::collections::BTreeMap;
use std::fmt;

use crossover_core::call::{Dtypes, Modes, Op, ReduceOps};
use crossover_core::contract::{Contract, Determinism, Deviations};
use crossover_core::policy::{ByteRange, Rule};
use crossover_core::registry::Registry;

use crate::bytes::range_text;
use crate::domain::{
    Book, CallClass, Domain, GroupClass, LOOSEST, Laws, Reach, Values, cuts, multiples, sweep,
};
use crate::lint::{Case, Options, architectures_of};
use crate::sources::{PolicyError, Sources};
use fold::{Pieces, What};

/// Calls that two policies decide differently, in the same way.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Change {
    /// The groups, in words: `sm90 x8 nvlink_full`.
    pub groups: String,
    /// The collective.
    pub op: Op,
    /// The element types.
    pub dtypes: Dtypes,
    /// The modes.
    pub modes: Modes,
    /// The reduce ops; all, for an op that only copies.
    pub reduce_ops: ReduceOps,
    /// The first size, in input bytes per rank.
    pub from: u64,
    /// The last size; `None` if there is no bound.
    pub to: Option<u64>,
    /// Which of these sizes.
    pub multiples: Multiples,
    /// The engine's contract under which it shows; `None` for the one that [`diff`] says. Where a
    /// call is decided differently under that one, no other is told of.
    pub under: Option<Contract>,
    /// Who served, with the params that the policy set; `None` if nobody.
    pub old: Option<String>,
    /// Who serves.
    pub new: Option<String>,
}

/// Some sizes of a range, by what divides them; by default all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Multiples {
    /// Those that are multiples of this.
    pub of: Option<u64>,
    /// Those that are not multiples of this.
    pub not_of: Option<u64>,
}

impl fmt::Display for Change {
    /// `all_reduce f16, bf16 graph, sm90 x8 nvlink_full: ..=256KiB  ipc/two_shot_pull -> nccl`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Change { groups, op, dtypes, modes, reduce_ops, from, to, .. } = self;
        let high = to.and_then(|to| to.checked_add(1));
        let range = range_text(ByteRange { low: *from, high });
        write!(f, "{op} ")?;
        if *dtypes != Dtypes::ALL {
            write!(f, "{dtypes} ")?;
        }
        if op.reduces() && *reduce_ops != ReduceOps::ALL {
            write!(f, "{reduce_ops} ")?;
        }
        write!(f, "{modes}, {groups}: {range}")?;
        if let Some(of) = self.multiples.of {
            write!(f, " in multiples of {of} B")?;
        }
        if let Some(not_of) = self.multiples.not_of {
            write!(f, " but multiples of {not_of} B")?;
        }
        let [old, new] = [&self.old, &self.new].map(|t| t.as_deref().unwrap_or("nothing"));
        write!(f, "  {old} -> {new}")?;
        match self.under {
            None => Ok(()),
            Some(LOOSEST) => f.write_str(" under the loosest contract"),
            Some(contract) => write!(f, " under {}", contract.determinism),
        }
    }
}

/// The decisions that `new` makes otherwise than `old`, over all groups and calls that either
/// tells apart. The contract is the options', within what each policy accepts. If they state none,
/// it is the usual one; and what that does not show is told under the loosest and under
/// `size_invariant`. Capacities and the group are the options' as well.
///
/// # Errors
///
/// One of them cannot be loaded.
pub fn diff(
    old: &Sources,
    new: &Sources,
    registry: &Registry,
    options: &Options,
) -> Result<Vec<Change>, PolicyError> {
    let mut pieces = Pieces::default();
    let engines = match options.contract {
        Some(stated) => vec![(Under::Usual, stated)],
        None => [Under::Usual, Under::Loosest, Under::SizeInvariant]
            .map(|under| (under, under.contract().unwrap_or_default()))
            .to_vec(),
    };
    let archs = match &options.group {
        Some(group) => vec![group.arch.clone()],
        None => architectures_of(&[old, new], registry)?,
    };
    for arch in archs {
        let [old, new] = [old.on_arch(&arch).load(registry)?, new.on_arch(&arch).load(registry)?];
        let [a, b] =
            [&old, &new].map(|e| Book::new(e.policy.rules(), registry, &options.capacities));
        let rules: Vec<&Rule> = a.rules.iter().chain(b.rules).collect();
        let laws = Laws::new(registry, rules.iter().copied());
        let values = Values::new(&[&a, &b], vec![arch]);
        let domain = Domain::new(&[&a, &b], &values, &laws, options.group.as_ref());
        pieces.see(&domain.groups, &values.worlds);
        let sides = [(&a, &old), (&b, &new)]
            .map(|(book, effective)| Side { book, contract: effective.policy.contract });
        for (group, call) in domain.pairs() {
            let changes = compare(&sides, &engines, group, call);
            pieces.add(changes, group, call, &values.worlds);
        }
    }
    Ok(pieces.changes())
}

/// Which of the engine's contracts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Under {
    Usual,
    Loosest,
    SizeInvariant,
}

impl Under {
    /// `None` for the usual one.
    fn contract(self) -> Option<Contract> {
        match self {
            Under::Usual => None,
            Under::Loosest => Some(LOOSEST),
            Under::SizeInvariant => {
                Some(Contract { determinism: Determinism::SizeInvariant, accept: Deviations::NONE })
            }
        }
    }
}

/// One of the two policies.
struct Side<'s> {
    book: &'s Book<'s>,
    /// What it accepts.
    contract: Contract,
}

/// What differs in a class of groups and a class of calls, under each contract only where none
/// before it shows a difference.
fn compare(
    sides: &[Side<'_>; 2],
    engines: &[(Under, Contract)],
    group: &GroupClass,
    call: &CallClass,
) -> Vec<What> {
    let cases = [0, 1].map(|at| Case::of_book(at, sides[at].book, group, call));
    let both: Vec<Reach> = cases.iter().flat_map(|case| &case.reach).cloned().collect();
    let bounds = cuts(&both);
    let multiples = multiples(&both, cases[0].element());
    let mut told = vec![vec![false; bounds.len()]; multiples.len()];
    let mut changes = Vec::new();
    for &(under, engine) in engines {
        let [old, new] = [0, 1].map(|at| {
            let Side { book, contract } = &sides[at];
            let reach = cases[at].under(book, contract.intersection(engine));
            decided(book, &reach, &bounds, &multiples)
        });
        let by_class = old.iter().zip(&new).zip(&mut told).map(|((old, new), told)| {
            let mut bands: Vec<What> = Vec::new();
            let mut goes_on = false;
            for at in 0..bounds.len() {
                let differs = old[at] != new[at] && !told[at];
                told[at] |= differs;
                let to = bounds.get(at + 1).map(|end| end - 1);
                match bands.last_mut() {
                    _ if !differs => {}
                    Some(last) if goes_on && last.old == old[at] && last.new == new[at] => {
                        last.to = to;
                    }
                    _ => bands.push(What {
                        op: call.kind.op,
                        from: bounds[at],
                        to,
                        multiples: Multiples::default(),
                        under,
                        old: old[at].clone(),
                        new: new[at].clone(),
                    }),
                }
                goes_on = differs;
            }
            bands
        });
        changes.extend(of_multiples(&by_class.collect::<Vec<_>>(), &multiples));
    }
    changes
}

/// By multiple and bound, who serves the sizes from this bound to the next that are multiples of
/// this, and of nothing more.
fn decided(
    book: &Book<'_>,
    reach: &[Reach],
    bounds: &[u64],
    multiples: &[u64],
) -> Vec<Vec<Option<String>>> {
    let mut decided = vec![Vec::new(); multiples.len()];
    sweep(reach, bounds, |_, covering| {
        for (multiple, decided) in multiples.iter().zip(&mut decided) {
            let serves = |at: &&usize| multiple.is_multiple_of(reach[**at].multiple_of);
            decided.push(covering.iter().find(serves).map(|at| target(book, &reach[*at])));
        }
    });
    decided
}

/// What is alike for multiples that follow one another, as one.
fn of_multiples(by_class: &[Vec<What>], multiples: &[u64]) -> Vec<What> {
    let mut changes = Vec::new();
    for (first, bands) in by_class.iter().enumerate() {
        for band in bands {
            if first > 0 && by_class[first - 1].contains(band) {
                continue;
            }
            let alike = by_class[first..].iter().take_while(|bands| bands.contains(band)).count();
            let of = (first > 0).then(|| multiples[first]);
            let not_of = multiples.get(first + alike).copied();
            changes.push(What { multiples: Multiples { of, not_of }, ..band.clone() });
        }
    }
    changes
}

/// `ipc/one_shot_push(blocks 16)`: the algorithm, with what the policy sets of it.
fn target(book: &Book<'_>, r: &Reach) -> String {
    let name = book.target(r.algorithm);
    let known = book.known[r.algorithm].algorithm.params;
    let stated = &book.rules[r.rule].chain[r.candidate].params;
    let set: BTreeMap<&str, String> = stated
        .iter()
        .filter(|(param, _)| known.iter().any(|p| p.name == param))
        .map(|(param, value)| (param.as_str(), value.to_string()))
        .collect();
    if set.is_empty() {
        return name;
    }
    let words: Vec<String> = set.iter().map(|(param, value)| format!("{param} {value}")).collect();
    format!("{name}({})", words.join(", "))
}
