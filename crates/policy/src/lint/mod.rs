//! What is wrong with a policy that can be read: found by deciding every call of every group that
//! the policy tells apart.
//!
//! Decisions are piecewise constant, so that this is a proof and no sample: see `domain`.
//! The checks, one a file, are told of each case in turn; what is found first of a kind at a
//! place is reported, and cases come simplest first.

mod capacity;
mod case;
mod chosen;
mod contract;
mod evidence;
mod expectation;
mod flapping;
mod gap;
mod order;
mod reason;
mod refused;
mod stack;
mod tie;
mod words;

use std::collections::{BTreeMap, HashMap, HashSet};

use crossover_core::contract::Contract;
use crossover_core::facts::GroupProfile;
use crossover_core::policy::{Layer, Rule};
use crossover_core::registry::Registry;

use crate::diagnostic::{Code, Diagnostic};
use crate::domain::{Book, Domain, Laws};
use crate::effective::Effective;
use crate::provenance::Place;
use crate::sources::{PolicyError, Sources};
pub(crate) use case::Case;
pub(crate) use stack::architectures_of;
use stack::{Stack, stacks};

/// What is known beside the files.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The engine's contract. If it is not stated, an engine may accept whatever the files do.
    pub contract: Option<Contract>,
    /// The most input bytes per rank that a set-up group had room for, by backend (`ipc`) or by
    /// backend and algorithm (`ipc/lamport`). Others have what they state.
    pub capacities: BTreeMap<String, u64>,
    /// The name of the group's devices, to compare evidence with.
    pub device: Option<String>,
    /// Only this group is looked at. Whether a candidate is ever chosen (W006) is then not asked,
    /// since it is a question about all groups.
    pub group: Option<GroupProfile>,
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// By file, line and column: at most one of a kind at a place. Those in the user's files; in
    /// all, if there are none of the user's.
    pub findings: Vec<Diagnostic>,
    /// How many decisions were looked at. Each stands for all that are decided alike.
    pub decisions: u64,
    /// Calls that something would serve, but for the contract; in words, such as
    /// `all_reduce, reduce_scatter on multi_node`. `in part` where it depends on more than the op
    /// and the topology.
    pub refused_by_contract: Vec<String>,
    /// How many `[[expect]]` blocks were run.
    pub expectations: usize,
}

/// Looks for mistakes in a policy that only show when it decides.
///
/// Where the sources have an architecture, the stack of files is looked at as it is on each
/// architecture that the files or the shipped packs name, and on others.
///
/// # Errors
///
/// The policy cannot be loaded.
pub fn lint(
    sources: &Sources,
    registry: &Registry,
    options: &Options,
) -> Result<Report, PolicyError> {
    Ok(lint_stacks(&stacks(sources, registry, options)?, registry, options))
}

/// As [`lint`], of a policy that has been loaded for one group: only that group is looked at.
pub fn lint_for_group(
    effective: &Effective,
    group: GroupProfile,
    registry: &Registry,
    options: &Options,
) -> Report {
    let stack = Stack { arch: Some(group.arch.clone()), effective: effective.clone() };
    let options = Options { group: Some(group), ..options.clone() };
    lint_stacks(&[stack], registry, &options)
}

fn lint_stacks(stacks: &[Stack], registry: &Registry, options: &Options) -> Report {
    let mut report = Report::default();
    let mut findings = Findings::default();
    let mut chosen = chosen::Chosen::default();
    let mut refused = refused::Refused::default();
    for stack in stacks {
        let rules = stack.effective.policy.rules();
        let laws = Laws::new(registry, rules);
        let book = Book::new(rules, registry, &options.capacities);
        let domain = stack.domain(&book, &laws, options);
        let view = View::new(&stack.effective, &book, options);
        walk(&view, &domain, &mut report.decisions, &mut chosen, &mut refused, &mut findings);
        findings.extend(contract::check(&view, options));
        findings.extend(evidence::check(&view, options));
        let expectations = expectation::check(&view, stack);
        report.expectations += expectations.run;
        findings.extend(expectations.failed);
    }
    if options.group.is_none() {
        let mut reasons = reason::Reasons::default();
        for stack in stacks {
            let book = Book::new(stack.effective.policy.rules(), registry, &options.capacities);
            let laws = Laws::new(registry, book.rules);
            let domain = stack.domain(&book, &laws, options);
            reasons.look(&View::new(&stack.effective, &book, options), &domain, &chosen);
        }
        findings.extend(reasons.findings());
    }
    report.findings = findings.sorted();
    report.refused_by_contract = refused.in_words();
    report
}

/// A loaded policy as the checks see it.
struct View<'v> {
    effective: &'v Effective,
    book: &'v Book<'v>,
    /// What the files accept of what the engine does: all that can be in force is this or narrower.
    contract: Contract,
    /// What is in force for an engine that states nothing.
    usual: Contract,
    /// Is the engine's contract known?
    is_stated: bool,
    /// Are there files of the user's?
    has_user_files: bool,
}

impl<'v> View<'v> {
    fn new(effective: &'v Effective, book: &'v Book<'v>, options: &Options) -> Self {
        let stated = effective.policy.contract;
        View {
            effective,
            book,
            contract: options.contract.map_or(stated, |engine| stated.intersection(engine)),
            usual: stated.intersection(options.contract.unwrap_or_default()),
            is_stated: options.contract.is_some(),
            has_user_files: effective.provenance.has_user_files(),
        }
    }

    /// The contract under which it shows whether this algorithm is ever first: the stated one, or
    /// the narrowest that admits it.
    fn showing(&self, algorithm: usize) -> Contract {
        match self.is_stated {
            true => self.contract,
            false => case::narrowest(self.book, self.contract, &[algorithm]),
        }
    }

    /// Is what is found at this rule told? Somebody who lints a file wants to know about that
    /// file; and a choice forced by a variable has no place in any.
    fn tells(&self, rule: &Rule) -> bool {
        // A rule that a verb forces stands in no file; and of a shipped file that the user's only
        // include, nothing is theirs to change.
        let provenance = &self.effective.provenance;
        let borrowed = |place: &Place| provenance.sources[place.document].0.is_borrowed();
        self.tells_layer(rule.layer)
            && provenance.rules.get(&rule.id).is_some_and(|places| !borrowed(&places.name))
    }

    fn tells_layer(&self, layer: Layer) -> bool {
        match layer {
            Layer::Builtin | Layer::Pack => !self.has_user_files,
            _ => true,
        }
    }
}

/// Shows every case to every check. Cases in which the same candidates are reached, for the same
/// sizes, are one.
fn walk(
    view: &View<'_>,
    domain: &Domain,
    decisions: &mut u64,
    chosen: &mut chosen::Chosen,
    refused: &mut refused::Refused,
    findings: &mut Findings,
) {
    let mut ties = tie::Ties::new(view.book.rules);
    let mut seen: HashMap<case::Key, Seen> = HashMap::new();
    for (group, call) in domain.pairs() {
        let case = Case::new(view.book, group, call);
        let known = seen.entry(case.key()).or_insert_with(|| {
            *decisions += case.points().len() as u64;
            chosen.see(view, &case);
            findings.extend(ties.check(view, &case));
            findings.extend(capacity::check(view, &case));
            findings.extend(order::check(view, &case));
            findings.extend(flapping::check(view, &case));
            let refused = refused::by_contract(view, &case);
            findings.extend(refused.and_then(|size| refused::by_closing(view, &case, size)));
            Seen { refused: refused.is_some(), unserved: gap::unserved(&case) }
        });
        if !case.reach.is_empty() {
            refused.add(group, call, known.refused);
        }
        // Who else could serve is another question for each group.
        if let Some(gap) = gap::check(view, &case, &known.unserved) {
            findings.extend([gap]);
            known.unserved.clear();
        }
    }
}

/// What is known of cases that are one.
struct Seen {
    refused: bool,
    /// Sizes that nothing serves, for as long as no gap is told.
    unserved: Vec<u64>,
}

/// At most one finding of a kind at a place: the first.
#[derive(Default)]
struct Findings {
    found: Vec<Diagnostic>,
    places: HashSet<(Code, String, u32, u32)>,
}

impl Findings {
    fn extend(&mut self, more: impl IntoIterator<Item = Diagnostic>) {
        for new in more {
            if self.places.insert((new.code, new.file.clone(), new.line, new.column)) {
                self.found.push(new);
            }
        }
    }

    fn sorted(self) -> Vec<Diagnostic> {
        let mut findings = self.found;
        findings.sort_by(|a, b| {
            (&a.file, a.line, a.column, a.code).cmp(&(&b.file, b.line, b.column, b.code))
        });
        findings
    }
}
