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
    places: [Numbered; PLACES],
}

/// A site's key and number side by side: one cache line that may have to be fetched, not two.
#[repr(align(16))]
struct Numbered {
    key: AtomicU64,
    number: AtomicU16,
}

impl Numbers {
    pub(crate) fn new() -> Numbers {
        Numbers {
            places: [const { Numbered { key: AtomicU64::new(0), number: AtomicU16::new(0) } };
                PLACES],
        }
    }

    /// Of a place in the program that was met before and is where it is looked for first; 0 for any other.
    #[inline(always)]
    pub(crate) fn known(&self, site: &'static Location<'static>) -> u64 {
        let key = std::ptr::from_ref(site) as u64;
        let place = &self.places[(key >> 3) as usize % PLACES];
        match place.key.load(Relaxed) == key {
            true => place.number.load(Relaxed).into(),
            false => 0,
        }
    }

    /// Of a place in the program.
    pub(crate) fn of(&self, site: &'static Location<'static>, memory: &Memory) -> u16 {
        let key = std::ptr::from_ref(site) as u64;
        // Addresses of locations are multiples of 8, some 24 bytes apart.
        let at = self.find(key, (key >> 3) as usize);
        match self.places[at].key.load(Relaxed) == key {
            true => self.places[at].number.load(Relaxed),
            false => self.add(at, key, site.file(), Some(site.line()), memory),
        }
    }

    /// Of a name that the engine gave.
    pub(crate) fn of_name(&self, name: &str, memory: &Memory) -> u16 {
        // Odd, as no address of a location is.
        let key = xxh3_64(name.as_bytes()) | 1;
        let at = self.find(key, (key >> 3) as usize);
        match self.places[at].key.load(Relaxed) == key {
            true => self.places[at].number.load(Relaxed),
            false => self.add(at, key, name, None, memory),
        }
    }

    /// Where `key` is or would be.
    #[inline]
    fn find(&self, key: u64, from: usize) -> usize {
        (from..)
            .map(|at| at % PLACES)
            .find(|at| [0, key].contains(&self.places[*at].key.load(Relaxed)))
            .unwrap_or(0) // half of all places stay free
    }

    // Allocates nothing: an engine's threads may be where they must not.
    #[cold]
    fn add(&self, at: usize, key: u64, name: &str, line: Option<u32>, memory: &Memory) -> u16 {
        let count = memory.site_count.load(Relaxed) as usize;
        if count == SITES {
            return 0;
        }
        let digits = line.map(digits);
        let digits = digits.as_ref().map_or(&[][..], |(digits, from)| &digits[*from..]);
        let room = SITE_BYTES - digits.len();
        let from = name.len().saturating_sub(room);
        let from = (from..).find(|at| name.is_char_boundary(*at)).unwrap_or(name.len());
        let name = &name.as_bytes()[from..];
        let entry = &memory.sites[count];
        write_bytes(&entry.text, name.iter().chain(digits));
        entry.bytes.store((name.len() + digits.len()) as u64, Release);
        let number = count as u16 + 1;
        memory.site_count.store(u32::from(number), Release);
        self.places[at].number.store(number, Relaxed);
        self.places[at].key.store(key, Relaxed);
        number
    }
}

/// A colon and a number, at the end of an array, and where they begin in it.
fn digits(mut number: u32) -> ([u8; 11], usize) {
    let (mut text, mut from) = ([b':'; 11], 11);
    loop {
        from -= 1;
        text[from] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return (text, from - 1);
        }
    }
}

/// Writes a text that fits into words, eight bytes each.
pub(crate) fn write_text(words: &[AtomicU64], text: &str) {
    write_bytes(words, text.as_bytes());
}

fn write_bytes<'a>(words: &[AtomicU64], bytes: impl IntoIterator<Item = &'a u8>) {
    let mut bytes = bytes.into_iter().copied();
    for word in words {
        let mut eight = [0; 8];
        let mut is_empty = true;
        for (to, byte) in eight.iter_mut().zip(&mut bytes) {
            (*to, is_empty) = (byte, false);
        }
        if is_empty {
            return;
        }
        word.store(u64::from_ne_bytes(eight), Relaxed);
    }
}
