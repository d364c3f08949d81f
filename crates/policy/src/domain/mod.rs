//! All groups and calls that a policy can tell apart, one of each: so that a walk over them is a
//! walk over everything.
//!
//! Which rules match a group depends on the group alone, and so does what of an algorithm's
//! clauses is about the group. Groups that are alike in all of that are one class; likewise kinds
//! of calls. Within a class only the size is left, and [`Reach::points`] has one size for each
//! way in which a size can be decided.

mod book;
mod calls;
mod groups;
mod laws;
mod sizes;
mod values;
mod worlds;

pub(crate) use book::{Book, LOOSEST, Reach};
pub(crate) use calls::CallClass;
pub(crate) use groups::GroupClass;
pub(crate) use laws::Laws;
pub(crate) use sizes::{cuts, decide, decisions, multiples, points, sweep};
pub(crate) use values::{Values, architectures};

use crossover_core::facts::GroupProfile;

/// The classes of groups and of calls that some policies tell apart.
pub(crate) struct Domain {
    pub(crate) groups: Vec<GroupClass>,
    pub(crate) calls: Vec<CallClass>,
}

impl Domain {
    /// What these books tell apart. `only` limits it to one group.
    pub(crate) fn new(
        books: &[&Book<'_>],
        values: &Values,
        laws: &Laws,
        only: Option<&GroupProfile>,
    ) -> Domain {
        let groups = match only {
            Some(group) => groups::classes(books, std::iter::once(group.clone())),
            None => groups::classes(books, values.groups(laws)),
        };
        Domain { groups, calls: calls::classes(books) }
    }

    /// Every pair of classes that can occur.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&GroupClass, &CallClass)> {
        self.groups.iter().flat_map(move |group| {
            let possible = |call: &&CallClass| laws::call_is_possible(&group.profile, &call.kind);
            self.calls.iter().filter(possible).map(move |call| (group, call))
        })
    }
}
