//! Which devices a process sees, and in what order, by its environment.
//!
//! Pure: the variables' texts and the machine's devices in, UUIDs out. A vendor's driver reads the
//! same variables by itself; this says beforehand what it will make of them, and why a device is
//! not among those that it counts. None of the drivers takes a wrong list for an error: a list ends
//! at its first entry that names nothing, and that is said in [`Visible::ended`].

mod amd;
mod cuda;

pub use amd::{hip, rocr};
pub use cuda::{Order, UnknownOrder, cuda};

/// The devices that a process sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Visible {
    /// Their UUIDs; the place of each is its ordinal.
    pub uuids: Vec<String>,
    /// Why the list is shorter than it is written, if it is: one sentence.
    pub ended: Option<String>,
}

impl Visible {
    fn all(uuids: impl IntoIterator<Item = String>) -> Visible {
        Visible { uuids: uuids.into_iter().collect(), ended: None }
    }

    fn cut(uuids: Vec<String>, why: String) -> Visible {
        Visible { uuids, ended: Some(why) }
    }
}

/// The device of `uuids` that starts with `prefix`; an error in words if none or several do.
fn by_prefix<'a>(
    uuids: impl IntoIterator<Item = &'a str>,
    prefix: &str,
    starts: impl Fn(&str, &str) -> bool,
) -> Result<usize, &'static str> {
    let mut found = None;
    for (at, uuid) in uuids.into_iter().enumerate() {
        if starts(uuid, prefix) {
            if found.is_some() {
                return Err("more than one device starts so");
            }
            found = Some(at);
        }
    }
    found.ok_or("no device of this machine starts so")
}
