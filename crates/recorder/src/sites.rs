//! Call sites by number: a place in the program is written down once, when it is met first.

use std::panic::Location;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicU16, AtomicU64};

use xxhash_rust::xxh3::xxh3_64;

use crate::layout::{Memory, SITE_BYTES, SITES};

/// Places of the table: twice what it holds, so that a look-up ends soon.
const PLACES: usize = 2 * SITES;

/// Which number a site has. Asked by one thread at a time.
pub(crate) struct Numbers {
    keys: [AtomicU64; PLACES],
    numbers: [AtomicU16; PLACES],
}

impl Numbers {
    pub(crate) fn new() -> Numbers {
        Numbers {
            keys: [const { AtomicU64::new(0) }; PLACES],
            numbers: [const { AtomicU16::new(0) }; PLACES],
        }
    }

    /// Of a place in the program.
    #[inline]
    pub(crate) fn of(&self, site: &'static Location<'static>, memory: &Memory) -> u16 {
        let key = std::ptr::from_ref(site) as u64;
        // Addresses of locations are multiples of 8, some 24 bytes apart.
        let at = self.find(key, (key >> 3) as usize);
        match self.keys[at].load(Relaxed) == key {
            true => self.numbers[at].load(Relaxed),
            false => self.add(at, key, &format!("{}:{}", site.file(), site.line()), memory),
        }
    }

    /// Of a name that the engine gave.
    pub(crate) fn of_name(&self, name: &str, memory: &Memory) -> u16 {
        // Odd, as no address of a location is.
        let key = xxh3_64(name.as_bytes()) | 1;
        let at = self.find(key, (key >> 3) as usize);
        match self.keys[at].load(Relaxed) == key {
            true => self.numbers[at].load(Relaxed),
            false => self.add(at, key, name, memory),
        }
    }

    /// Where `key` is or would be.
    #[inline]
    fn find(&self, key: u64, from: usize) -> usize {
        (from..)
            .map(|at| at % PLACES)
            .find(|at| [0, key].contains(&self.keys[*at].load(Relaxed)))
            .unwrap_or(0) // half of all places stay free
    }

    #[cold]
    fn add(&self, at: usize, key: u64, name: &str, memory: &Memory) -> u16 {
        let count = memory.site_count.load(Relaxed) as usize;
        if count == SITES {
            return 0;
        }
        let entry = &memory.sites[count];
        let from = name.len().saturating_sub(SITE_BYTES);
        let from = (from..).find(|at| name.is_char_boundary(*at)).unwrap_or(name.len());
        write_text(&entry.text, &name[from..]);
        entry.bytes.store((name.len() - from) as u64, Release);
        let number = count as u16 + 1;
        memory.site_count.store(u32::from(number), Release);
        self.numbers[at].store(number, Relaxed);
        self.keys[at].store(key, Relaxed);
        number
    }
}

/// Writes a text that fits into words, eight bytes each.
pub(crate) fn write_text(words: &[AtomicU64], text: &str) {
    for (word, bytes) in words.iter().zip(text.as_bytes().chunks(8)) {
        let mut eight = [0; 8];
        eight[..bytes.len()].copy_from_slice(bytes);
        word.store(u64::from_ne_bytes(eight), Relaxed);
    }
}
