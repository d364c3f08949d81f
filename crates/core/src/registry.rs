//! Which backends this process has.

use serde::{Deserialize, Serialize};

use crate::backend::{Backend, Descriptor};
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

/// The backends of this process, sorted by id: link order does not show.
#[derive(Clone, Default)]
pub struct Registry {
    entries: Vec<Registration>,
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
    /// Its id is taken, it has no algorithm or two of one name, or one wants a multiple of what
    /// is no power of two.
    pub fn with(mut self, entry: Registration) -> Result<Self, RegistryError> {
        let new = entry.descriptor;
        match self.entries.binary_search_by(|e| e.descriptor.id.cmp(new.id)) {
            Ok(at) => Err(RegistryError::Duplicate {
                id: new.id,
                first: self.entries[at].descriptor.version,
                second: new.version,
            }),
            Err(at) => {
                let mut names: Vec<_> = new.algorithms.iter().map(|a| a.name).collect();
                names.sort_unstable();
                let distinct = !names.windows(2).any(|pair| pair[0] == pair[1]);
                let powers =
                    new.algorithms.iter().all(|a| a.eligibility.multiple_of.is_power_of_two());
                if names.is_empty() || !distinct || !powers {
                    return Err(RegistryError::Algorithms { id: new.id });
                }
                self.entries.insert(at, entry);
                Ok(self)
            }
        }
    }

    /// The entries, sorted by id.
    pub fn entries(&self) -> &[Registration] {
        &self.entries
    }

    /// The entry of this id.
    pub fn find(&self, id: &str) -> Option<&Registration> {
        self.entries.iter().find(|e| e.descriptor.id == id)
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
    /// A backend with no algorithm, two of one name, or a multiple that is no power of two.
    #[error(
        "backend `{id}` must have at least one algorithm, distinct names, and powers of two as \
         multiples"
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
