//! How the group ends: a kernel's failure put into words, and the first verdict, which all repeat.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64, fence};
use std::time::{Duration, Instant};

use crossover_core::backend::{DeviceWait, EnqueueError};
use crossover_core::verdict::Verdict;
use crossover_kernel_abi::{Failure, code, step};

use super::Board;

const WRITING: u32 = 1;
const WRITTEN: u32 = 2;
/// A rank that writes for longer has died meanwhile.
const LONGEST_WRITING: Duration = Duration::from_secs(1);

/// What a rank's kernel reported when it gave up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Why, one of [`code`].
    pub(crate) code: u32,
    /// The awaited rank.
    pub(crate) awaited: u32,
    /// What it waited for and where, in words.
    where_: Failure,
}

impl Fault {
    /// What was awaited, for a message.
    pub(crate) fn step(&self) -> String {
        let what = awaited_in_words(self.where_.step);
        let Failure { block, thread, flag, epoch, observed, .. } = self.where_;
        format!(
            "ipc, {what} (epoch {epoch}, flag {flag:#x}, block {block}, thread {thread}, saw {observed:#x})"
        )
    }
}

/// One of [`step`].
fn awaited_in_words(step: u32) -> &'static str {
    match step {
        step::DATA => "data",
        step::SHARE => "a reduced share",
        step::BARRIER => "the barrier",
        step::SECOND_BARRIER => "the second barrier",
        step::TOKEN => "a token",
        step::LAMPORT => "Lamport data",
        _ => "something unknown",
    }
}

impl Board {
    /// What a kernel of this rank says that it has been awaiting for long.
    pub(crate) fn waits(&self, rank: u32) -> Option<DeviceWait> {
        // SAFETY: aligned, inside the mapping for as long as this is borrowed, and only ever
        // written whole.
        let word =
            unsafe { AtomicU64::from_ptr((&raw const (*self.failure(rank)).waiting).cast_mut()) };
        let word = word.load(Relaxed);
        let byte = |shift: u32| (word >> shift & 0xFF) as u32;
        (word != 0).then(|| DeviceWait {
            call: (word >> 32) as u32,
            awaited: byte(8),
            what: awaited_in_words(byte(0)),
            moment: (word >> 16) as u16,
        })
    }

    /// Has this group ended, or has a kernel of this rank given up? One look each, for every call.
    #[inline]
    pub(crate) fn is_well(&self, rank: u32) -> bool {
        let pages = self.pages();
        pages.ended.load(Relaxed) == 0 && self.code(rank).load(Relaxed) == code::NONE
    }

    /// What a kernel of this rank reported.
    pub(crate) fn fault(&self, rank: u32) -> Option<Fault> {
        let code = self.code(rank).load(Acquire);
        // The device wrote it before the code.
        fence(Acquire);
        // SAFETY: inside the mapping; once the code is there nobody writes it again.
        let where_ = unsafe { std::ptr::read_volatile(self.failure(rank)) };
        (code != code::NONE).then_some(Fault { code, awaited: where_.awaited, where_ })
    }

    /// The verdict, if there is one, for `rank`, which is at `step` of call `seq`. One that is being
    /// written is waited for: else this rank would tell a story of its own.
    pub(crate) fn verdict(&self, rank: u32, step: &str, seq: u64) -> Option<EnqueueError> {
        let began = Instant::now();
        while self.pages().ended.load(Acquire) == WRITING && began.elapsed() < LONGEST_WRITING {
            std::thread::yield_now();
        }
        if self.pages().ended.load(Acquire) != WRITTEN {
            return None;
        }
        // SAFETY: it was written before the word that says so, and never is again.
        let bytes = unsafe { &*self.pages().verdict.get() };
        Some(Verdict::decode(bytes, rank).into_error(step, seq))
    }

    /// Ends the group: every kernel's waits, and every later call. The first verdict stays.
    pub(crate) fn end(&self, verdict: &Verdict) {
        let pages = self.pages();
        if pages.ended.compare_exchange(0, WRITING, AcqRel, Acquire).is_ok() {
            // SAFETY: inside the mapping, and this rank alone was given the right to write here.
            unsafe { pages.verdict.get().write(verdict.encode()) };
            pages.ended.store(WRITTEN, Release);
        }
        pages.abort.store(1, Release);
    }

    fn failure(&self, rank: u32) -> *const Failure {
        &raw const self.pages().failures[rank as usize]
    }

    /// The device writes it: an atomic of ours at its place.
    fn code(&self, rank: u32) -> &AtomicU32 {
        // SAFETY: aligned, inside the mapping for as long as this is borrowed, and only ever
        // written whole.
        unsafe { AtomicU32::from_ptr((&raw const (*self.failure(rank)).code).cast_mut()) }
    }
}
