//! Which backends this process has.

use serde::{Deserialize, Serialize};

use crate::backend::{Backend, Descriptor, Param, Values};
use crate::digest::{Digest, digest};

/// One entry: submitted at link time by [`register_backend!`](crate::register_backend), or given
/// to [`Registry::with`].
#[derive(Clone, Copy)]
pub struct Registration {
    /// What it is.
    pub descriptor: &'static Descriptor,
    /// Makes it. Cheap: all work is in [`Backend::set_up`].
    pub make: fn() -> Box<dyn Backend>,
}

inventory::collect!(Registration);

/// Registers a backend of this crate. Its descriptor is evaluated at compile time: only what a
/// `const` can hold can be in it. The final program must also name the crate (`use x as _;`), or
/// the linker never sees it; `crossover-backends` does that.
#[macro_export]
macro_rules! register_backend {
    ($descriptor:expr, $make:expr $(,)?) => {
        const _: () = {
            const DESCRIPTOR: &$crate::backend::Descriptor = &$descriptor;
            $crate::inventory::submit! {
                $crate::registry::Registration { descriptor: DESCRIPTOR, make: $make }
            }
        };
    };
}

/// The backends of this process, sorted by id: link order does not show. And those that are known
/// by what they state although they are not linked: policies may name them, and explanations and
/// lints reckon with them; a group never has them.
#[derive(Clone, Default)]
pub struct Registry {
    entries: Vec<Registration>,
    declared: Vec<&'static Descriptor>,
}

impl Registry {
    /// No backend.
    pub fn empty() -> Self {
        Registry::default()
    }

    /// Every backend that is linked into this program.
    ///
    /// # Errors
    ///
    /// Two of them have the same id.
    pub fn linked() -> Result<Self, RegistryError> {
        inventory::iter::<Registration>
            .into_iter()
            .try_fold(Registry::empty(), |registry, entry| registry.with(*entry))
    }

    /// Adds a backend.
    ///
    /// # Errors
    ///
    /// Its id is taken, it has no algorithm or two of one name, one wants a multiple of what is no
    /// power of two, or a param's default is none of its values.
    pub fn with(mut self, entry: Registration) -> Result<Self, RegistryError> {
        let new = entry.descriptor;
        match self.entries.binary_search_by(|e| e.descriptor.id.cmp(new.id)) {
            Ok(at) => Err(RegistryError::Duplicate {
                id: new.id,
                first: self.entries[at].descriptor.version,
                second: new.version,
            }),
            Err(at) => {
                well_formed(new)?;
                self.entries.insert(at, entry);
                Ok(self)
            }
        }
    }

    /// Makes a backend known that may not be linked. No effect if it is.
    ///
    /// # Errors
    ///
    /// Its algorithms are malformed, as for [`Registry::with`].
    pub fn declaring(mut self, descriptor: &'static Descriptor) -> Result<Self, RegistryError> {
        well_formed(descriptor)?;
        if let Err(at) = self.declared.binary_search_by(|d| d.id.cmp(descriptor.id)) {
            self.declared.insert(at, descriptor);
        }
        Ok(self)
    }

    /// The entries, sorted by id.
    pub fn entries(&self) -> &[Registration] {
        &self.entries
    }

    /// What every backend states, linked or only declared, sorted by id.
    pub fn descriptors(&self) -> Vec<&'static Descriptor> {
        let unlinked = self.declared.iter().filter(|d| !self.is_linked(d.id));
        let linked = self.entries.iter().map(|e| e.descriptor);
        let mut all: Vec<_> = linked.chain(unlinked.copied()).collect();
        all.sort_by_key(|d| d.id);
        all
    }

    /// What the backend of this id states, linked or only declared.
    pub fn find(&self, id: &str) -> Option<&'static Descriptor> {
        let linked = self.entries.iter().map(|e| e.descriptor);
        linked.chain(self.declared.iter().copied()).find(|d| d.id == id)
    }

    /// Can a group have this backend?
    pub fn is_linked(&self, id: &str) -> bool {
        self.entries.binary_search_by(|e| e.descriptor.id.cmp(id)).is_ok()
    }

    /// Of all linked backends: equal digests, equal backends.
    pub fn digest(&self) -> Digest {
        digest(&self.stamps())
    }

    /// What ranks compare at formation.
    pub(crate) fn stamps(&self) -> Vec<BackendStamp> {
        let stamp = |e: &Registration| BackendStamp {
            id: e.descriptor.id.to_owned(),
            version: e.descriptor.version.to_owned(),
            digest: digest(e.descriptor),
        };
        self.entries.iter().map(stamp).collect()
    }
}

fn well_formed(descriptor: &Descriptor) -> Result<(), RegistryError> {
    let distinct = |names: Vec<&str>| {
        let mut sorted = names.clone();
        sorted.sort_unstable();
        sorted.dedup();
        sorted.len() == names.len()
    };
    let fits = |p: &Param| match p.values {
        Values::Count { min, max } => (min..=max).contains(&p.default),
        Values::Bytes { min, max } => (min..=max).contains(&p.default) || p.default == u64::MAX,
        Values::Words(words) => (p.default as usize) < words.len(),
        Values::Flag => p.default <= 1,
    };
    let algorithms = descriptor.algorithms;
    let good = !algorithms.is_empty()
        && distinct(algorithms.iter().map(|a| a.name).collect())
        && algorithms.iter().all(|a| {
            a.eligibility.multiple_of.is_power_of_two()
                && distinct(a.params.iter().map(|p| p.name).collect())
                && a.params.iter().all(fits)
        });
    if good { Ok(()) } else { Err(RegistryError::Algorithms { id: descriptor.id }) }
}

/// One backend as ranks compare it: the digest covers every clause it states.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BackendStamp {
    pub(crate) id: String,
    pub(crate) version: String,
    pub(crate) digest: Digest,
}

/// The registry could not be put together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// A backend with no algorithm, two of one name, a multiple that is no power of two, or a
    /// param whose default is none of its values.
    #[error(
        "backend `{id}` must have at least one algorithm, distinct names, powers of two as \
         multiples, and params whose defaults are values of theirs"
    )]
    Algorithms {
        /// Which.
        id: &'static str,
    },
    /// Two backends of one id.
    #[error("two backends are called `{id}` (versions {first} and {second}): link one of them")]
    Duplicate {
        /// The id.
        id: &'static str,
        /// Version of the one that came first.
        first: &'static str,
        /// Version of the other.
        second: &'static str,
    },
}
