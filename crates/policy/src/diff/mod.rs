//! Which decisions differ between two policies: what a review of a change wants to know, rather
//! than which text differs.

mod fold;

use std::collections::BTreeMap;
use std::fmt;

use crossover_core::call::{Dtypes, Modes, Op, ReduceOps};
use crossover_core::contract::Contract;
use crossover_core::policy::{ByteRange, Rule};
use crossover_core::registry::Registry;

use crate::bytes::range_text;
use crate::domain::{Book, CallClass, Domain, GroupClass, Laws, Reach, Values, cuts};
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
    /// Which of these sizes: those that are multiples of this where that is `true`, and where it is
    /// `false` those that are multiples of no more than an element; all of them if `None`.
    pub multiples: Option<(u64, bool)>,
    /// Who served, with the params that the policy set; `None` if nobody.
    pub old: Option<String>,
    /// Who serves.
    pub new: Option<String>,
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
        match self.multiples {
            None => {}
            Some((of, true)) => write!(f, " in multiples of {of} B")?,
            Some((of, false)) => write!(f, " but multiples of {of} B")?,
        }
        let [old, new] = [&self.old, &self.new].map(|t| t.as_deref().unwrap_or("nothing"));
        write!(f, "  {old} -> {new}")
    }
}

/// The decisions that `new` makes otherwise than `old`, over all groups and calls that either
/// tells apart. The contract is the options', or the usual one, within what each policy accepts;
/// capacities and the group are the options' as well.
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
    let laws = Laws::new(registry);
    let mut pieces = Pieces::default();
    let archs = match &options.group {
        Some(group) => vec![group.arch.clone()],
        None => architectures_of(&[old, new], registry)?,
    };
    for arch in archs {
        let [old, new] = [old.on_arch(&arch).load(registry)?, new.on_arch(&arch).load(registry)?];
        let [a, b] =
            [&old, &new].map(|e| Book::new(e.policy.rules(), registry, &options.capacities));
        let rules: Vec<&Rule> = a.rules.iter().chain(b.rules).collect();
        let values = Values::new(&rules, vec![arch], registry);
        let domain = Domain::new(&[&a, &b], &values, &laws, options.group.as_ref());
        pieces.see(&domain.groups, &values.worlds);
        let engine = options.contract.unwrap_or_default();
        let sides = [(&a, &old), (&b, &new)].map(|(book, effective)| Side {
            book,
            contract: effective.policy.contract.intersection(engine),
        });
        for (group, call) in domain.pairs() {
            let changes = compare(&sides, group, call);
            pieces.add(changes, group, call, &values.worlds);
        }
    }
    Ok(pieces.changes())
}

/// One of the two policies.
struct Side<'s> {
    book: &'s Book<'s>,
    contract: Contract,
}

/// What differs in a class of groups and a class of calls.
fn compare(sides: &[Side<'_>; 2], group: &GroupClass, call: &CallClass) -> Vec<What> {
    let reach = [0, 1].map(|at| {
        let Side { book, contract } = &sides[at];
        Case::of_book(at, book, group, call).under(book, *contract)
    });
    let both: Vec<Reach> = reach.iter().flatten().cloned().collect();
    let coarsest = both.iter().map(|r| r.multiple_of).max().unwrap_or(1);
    let bounds = cuts(&both);
    // Sizes that are multiples of all that is wanted, and those of an element and of nothing more.
    let likes = [0, call.kind.dtype.size() as u64];
    let [whole, ragged] = likes.map(|like| {
        let mut bands: Vec<What> = Vec::new();
        let ends = bounds.iter().skip(1).map(|end| Some(end - 1)).chain([None]);
        for (&from, to) in bounds.iter().zip(ends) {
            let [old, new] = [0, 1].map(|at| {
                let serves = |r: &&Reach| r.covers(from) && like % r.multiple_of == 0;
                reach[at].iter().find(serves).map(|r| target(sides[at].book, r))
            });
            match bands.last_mut() {
                Some(last) if last.old == old && last.new == new => last.to = to,
                _ => bands.push(What { op: call.kind.op, from, to, multiples: None, old, new }),
            }
        }
        bands.retain(|band| band.old != band.new);
        bands
    });
    let (alike, whole): (Vec<What>, Vec<What>) =
        whole.into_iter().partition(|band| ragged.contains(band));
    let ragged = ragged.into_iter().filter(|band| !alike.contains(band));
    let whole = whole.into_iter().map(|w| What { multiples: Some((coarsest, true)), ..w });
    let ragged: Vec<What> =
        ragged.map(|w| What { multiples: Some((coarsest, false)), ..w }).collect();
    alike.into_iter().chain(whole).chain(ragged).collect()
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
