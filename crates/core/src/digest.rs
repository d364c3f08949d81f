//! Digests that are the same in every build, process and run.

use std::fmt;

use serde::{Deserialize, Serialize};

/// 128 bits of XXH3 over a value's canonical bytes (postcard).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Digest(u128);

/// The digest of a value.
///
/// # Panics
///
/// If the value cannot be serialised (a map of unknown length): a mistake in its type.
pub fn digest<T: Serialize + ?Sized>(value: &T) -> Digest {
    let bytes = postcard::to_stdvec(value).expect("every digested type has a fixed shape");
    Digest(xxhash_rust::xxh3::xxh3_128(&bytes))
}

/// Of counts per rank: equal where they are, never 0.
#[cold]
pub(crate) fn of_counts(counts: &[usize]) -> u64 {
    // SAFETY: numbers have no padding, and any bytes may be read as `u8`.
    let bytes = unsafe { std::slice::from_raw_parts(counts.as_ptr().cast(), size_of_val(counts)) };
    xxhash_rust::xxh3::xxh3_64(bytes).max(1)
}

impl fmt::Display for Digest {
    /// The first 8 hex digits: enough to tell two policies apart by eye. `{:#}` gives all 32.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            write!(f, "{:032x}", self.0)
        } else {
            write!(f, "{:08x}", (self.0 >> 96) as u32)
        }
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
