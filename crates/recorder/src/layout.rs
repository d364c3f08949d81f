//! Where things are in a ring's memory: a page of words that move, what does not change after the
//! group was formed, the call sites met so far, and the records.

use std::sync::atomic::{AtomicU32, AtomicU64};

/// The first eight bytes, `crossrec`.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"crossrec");
/// Of what follows. A reader refuses any other.
pub(crate) const VERSION: u32 = 2;
/// Records that are kept: at 80 calls a decode step, the last fifty steps.
pub(crate) const SLOTS: usize = 4096; // size: 256 KiB, which fits a container's 64 MiB of /dev/shm 200 times
/// Call sites that are told apart; the rest have number 0, "elsewhere".
pub(crate) const SITES: usize = 256; // size: an engine has a few dozen
/// Bytes of a site's name; a longer one loses its beginning.
pub(crate) const SITE_BYTES: usize = 120; // size: with its length, two cache lines
/// Room for the description of the group and of the rank.
pub(crate) const ABOUT_BYTES: usize = 16_320; // size: with the page of words, 20 KiB
/// Room for the sentence that ended the group on this rank.
pub(crate) const END_BYTES: usize = 2048; // size: an abort's reason and some more

/// All of it.
#[repr(C, align(4096))]
pub(crate) struct Memory {
    /// [`MAGIC`]; written last, when the ring can be read.
    pub(crate) magic: AtomicU64,
    /// [`VERSION`].
    pub(crate) version: AtomicU32,
    /// Bytes of `about` that count.
    pub(crate) about_bytes: AtomicU32,
    /// Sites that count.
    pub(crate) site_count: AtomicU32,
    pub(crate) _pad: [u32; 11],
    /// Written by the thread that calls.
    pub(crate) progress: ProgressLine,
    /// Written by the watchdog.
    pub(crate) beat: BeatLine,
    /// Written by the watchdog.
    pub(crate) device: DeviceLine,
    /// Written once, when the group ends badly.
    pub(crate) end: EndText,
    pub(crate) _rest: [u64; 216],
    /// A [`About`](crate::about::About), as postcard has it.
    pub(crate) about: [AtomicU64; ABOUT_BYTES / 8],
    pub(crate) _gap: [u64; 8],
    /// Names of call sites, by number; the first is number 1.
    pub(crate) sites: [SiteText; SITES],
    /// Record n is in slot n % [`SLOTS`].
    pub(crate) slots: [Slot; SLOTS],
}

impl Memory {
    /// Where record `number` is, while it is kept.
    #[inline(always)]
    pub(crate) fn slot(&self, number: u64) -> &Slot {
        &self.slots[number as usize % SLOTS]
    }
}

/// One cache line that moves with every call.
#[repr(C, align(64))]
pub(crate) struct ProgressLine {
    /// Records so far: the last one's number.
    pub(crate) issued: AtomicU64,
    /// The last record whose call has come back to its caller.
    pub(crate) finished: AtomicU64,
    /// The digest of all records up to `issued`.
    pub(crate) chain: AtomicU64,
    /// The engine's step, as it noted it last.
    pub(crate) step: AtomicU64,
    /// A [`Phase`](crate::image::Phase).
    pub(crate) phase: AtomicU64,
    /// The site that the engine named for the calls to come; 0 for none.
    pub(crate) named_site: AtomicU64,
    /// When the phase began, nanoseconds since 1970. Of phases that records tell of, when the one before did.
    pub(crate) entered: AtomicU64,
}

/// Signs of life, and two moments on three clocks, by which records' ticks are told as times.
#[repr(C, align(64))]
pub(crate) struct BeatLine {
    /// The watchdog's last look, nanoseconds of the monotonic clock.
    pub(crate) at: AtomicU64,
    /// When the ring was made: ticks, nanoseconds of the monotonic clock, and since 1970.
    pub(crate) first: [AtomicU64; 3],
    /// At the watchdog's last look: the same.
    pub(crate) last: [AtomicU64; 3],
}

/// What the rank's device waits for.
#[repr(C, align(64))]
pub(crate) struct DeviceLine {
    /// The call, as the device counts.
    pub(crate) call: AtomicU64,
    /// The awaited ranks, a bit each.
    pub(crate) awaited: AtomicU64,
    /// Since when, and when it was seen last, nanoseconds since 1970.
    pub(crate) since: AtomicU64,
    pub(crate) seen: AtomicU64,
    /// What for: UTF-8, up to the first 0.
    pub(crate) what: [AtomicU64; 4],
}

/// The sentence that ended the group.
#[repr(C, align(64))]
pub(crate) struct EndText {
    /// Its bytes; 0 while there is none. Written last.
    pub(crate) bytes: AtomicU64,
    /// UTF-8.
    pub(crate) text: [AtomicU64; END_BYTES / 8],
}

/// A site's name.
#[repr(C, align(64))]
pub(crate) struct SiteText {
    /// Bytes that count; written last.
    pub(crate) bytes: AtomicU64,
    /// UTF-8.
    pub(crate) text: [AtomicU64; SITE_BYTES / 8],
}

/// A record: one cache line. While it is written its tag is 0.
#[repr(C, align(64))]
pub(crate) struct Slot {
    /// The record's number, from 1.
    pub(crate) tag: AtomicU64,
    /// A digest of all that must be equal on every rank.
    pub(crate) fingerprint: AtomicU64,
    /// The digest of all fingerprints up to this one.
    pub(crate) chain: AtomicU64,
    /// Elements of a call; the digest of a state; a graph's key.
    pub(crate) count: AtomicU64,
    /// When, in ticks.
    pub(crate) ticks: AtomicU64,
    /// The call's number in its group.
    pub(crate) seq: AtomicU64,
    /// Step (32 bits), site (16), target (16), from the top.
    pub(crate) place: AtomicU64,
    /// Root (32 bits, from bit 32), mode, reduce op, dtype and what it is (8 each, down to bit 0).
    pub(crate) what: AtomicU64,
}

/// Bytes of a ring.
pub const BYTES: usize = size_of::<Memory>();

const _: () = {
    assert!(size_of::<Slot>() == 64);
    assert!(size_of::<SiteText>() == 128);
    assert!(std::mem::offset_of!(Memory, about).is_multiple_of(4096));
    assert!(std::mem::offset_of!(Memory, slots).is_multiple_of(4096));
    assert!(SLOTS.is_power_of_two());
};
