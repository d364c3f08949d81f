//! How a call's bytes are moved: by one thread or the rank's team, through the caches or past them.
//! Nothing here shows in a result.

use std::ops::Range;

use crossover_core::backend::{Param, Values};
use crossover_core::call::{CallBuffers, CallSig, Op};

use crate::memory::{copy, copy_twice, stream};
use crate::reduce::{Sources, Target, reduce};
use crate::team::{Team, cut};

/// What a policy says about it, for one call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ways {
    /// Results may be written past the caches.
    pub(crate) streams: bool,
    /// What is given goes round the ring.
    pub(crate) circles: bool,
    /// What is given is written past the caches.
    pub(crate) past: bool,
    /// It would be if ranks were far from one another.
    pub(crate) past_if_far: bool,
    /// What a rank gives and keeps is read once for both.
    twice: bool,
    /// Most bytes that one step carries, a multiple of 64.
    pub(crate) window: usize,
    /// The least bytes that are worth a thread.
    split: usize,
}

impl Ways {
    /// From the values of [`PARAMS`].
    #[inline(always)]
    pub(crate) fn of(params: &[u64], world: u32, far: bool, call: &CallSig<'_>) -> Self {
        let &[stream, split, ring, twice, past, window] = params else {
            unreachable!("a session receives a value for each param")
        };
        let results = match call.op {
            Op::AllGather => call.bytes().saturating_mul(world.into()),
            Op::ReduceScatter => call.bytes() / u64::from(world),
            _ => call.bytes(),
        };
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let bytes = call.bytes();
        let past_if_far = bytes >= past;
        let past = far && past_if_far;
        Ways {
            streams: results >= stream,
            circles: bytes <= ring && !past,
            past,
            past_if_far,
            twice: bytes >= twice && !past,
            window: size(window) / 64 * 64,
            split: size(split),
        }
    }
}

/// What a policy can set of each algorithm. None of it shows in a result.
pub(crate) const PARAMS: &[Param] = &[
    // From how many bytes of results on they are written past the caches, unless in place.
    Param { name: "stream", values: Values::Bytes { min: 0, max: NO_LIMIT }, default: NO_LIMIT },
    // The least bytes that are worth a thread of the rank's team.
    Param {
        name: "split",
        values: Values::Bytes { min: 64, max: NO_LIMIT },
        default: 64 * 1024, // size: less is moved in the time of a few hand-overs
    },
    // Up to how many bytes of input a call's data go round the ring, if it takes a step of them.
    Param { name: "ring", values: Values::Bytes { min: 0, max: MOST_ROUND }, default: 0 },
    // From how many bytes of input on an all-gather copies them to the slot and to the output at once:
    // they are read once, and peers see them later.
    Param { name: "twice", values: Values::Bytes { min: 0, max: NO_LIMIT }, default: NO_LIMIT },
    // From how many bytes of input on what ranks give is written past the caches, and not round the ring,
    // where ranks are far from one another: memory is nearer to a peer then than this rank's caches.
    Param { name: "past", values: Values::Bytes { min: 0, max: NO_LIMIT }, default: NO_LIMIT },
    // The most bytes that a step carries, if that is less than a slot: peers read a window while the next
    // is written.
    Param {
        name: "window",
        values: Values::Bytes { min: 4096, max: NO_LIMIT }, // size: a small call takes one step
        default: NO_LIMIT,
    },
];

const NO_LIMIT: u64 = u64::MAX;
/// More than any call has. `none`, which is no bound, would be misread as no ring at all.
const MOST_ROUND: u64 = 1 << 40; // size: any

/// Moves the bytes of one call.
pub(crate) struct Mover<'a> {
    team: &'a mut Team,
    split: usize,
    /// Results are written past the caches.
    stream: bool,
    /// What is given is.
    past: bool,
    /// What a rank gives and keeps is read once for both.
    twice: bool,
}

impl<'a> Mover<'a> {
    #[inline(always)]
    pub(crate) fn new(
        team: &'a mut Team,
        ways: &Ways,
        call: &CallSig<'_>,
        buffers: &CallBuffers,
    ) -> Self {
        // Where a result replaces an input, its place is in the caches already.
        let from = buffers.input as usize;
        let inputs = from..from.saturating_add(call.bytes() as usize);
        let in_place = call.op != Op::AllGather && inputs.contains(&(buffers.output as usize));
        let stream = ways.streams && !in_place;
        Mover { team, split: ways.split, stream, past: ways.past, twice: ways.twice && !stream }
    }

    /// Copies into the own slot, for peers to read soon, wherever they do that best.
    ///
    /// # Safety
    ///
    /// As for [`std::ptr::copy_nonoverlapping`], of bytes.
    #[inline]
    pub(crate) unsafe fn fill(&mut self, from: *const u8, slot: *mut u8, len: usize) {
        // SAFETY: the caller's.
        unsafe { self.copy(from, slot, len, self.past) };
    }

    /// Copies into the own slot and to the own part of the result at once, if that pays and is not
    /// in place; else into the slot alone. Says if the result has been written.
    ///
    /// # Safety
    ///
    /// As for [`Mover::fill`] and [`Mover::keep`].
    #[inline]
    pub(crate) unsafe fn fill_and_keep(
        &mut self,
        from: *const u8,
        slot: *mut u8,
        to: *mut u8,
        len: usize,
    ) -> bool {
        if !self.twice || from == to.cast_const() {
            // SAFETY: the caller's.
            unsafe { self.fill(from, slot, len) };
            return false;
        }
        self.in_parts(len, (from, slot, to), |&(from, slot, to), part| {
            let (at, len) = (part.start, part.len());
            // SAFETY: the caller's promise, of a part.
            unsafe { copy_twice(from.add(at), slot.add(at), to.add(at), len) };
        });
        true
    }

    /// Copies a result from a slot.
    ///
    /// # Safety
    ///
    /// As for [`std::ptr::copy_nonoverlapping`], of bytes.
    #[inline]
    pub(crate) unsafe fn take(&mut self, slot: *const u8, to: *mut u8, len: usize) {
        // SAFETY: the caller's.
        unsafe { self.copy(slot, to, len, self.stream) };
    }

    /// Moves what a rank gives to itself, unless it is in place already.
    ///
    /// # Safety
    ///
    /// As for [`std::ptr::copy_nonoverlapping`], of bytes, but that both may be the same.
    #[inline]
    pub(crate) unsafe fn keep(&mut self, from: *const u8, to: *mut u8, len: usize) {
        if from != to.cast_const() {
            // SAFETY: the caller's.
            unsafe { self.copy(from, to, len, self.stream) };
        }
    }

    /// Reduces every source's `len` bytes to `to` and, a second time, to `also` in the own slot.
    ///
    /// # Safety
    ///
    /// As for [`reduce`].
    #[inline]
    pub(crate) unsafe fn reduce(
        &mut self,
        call: &CallSig<'_>,
        sources: &Sources,
        to: *mut u8,
        also: Option<*mut u8>,
        len: usize,
    ) {
        let (dtype, op) = (call.dtype, call.reduce_op);
        let target = Target { to, also, stream: self.stream, past: self.past };
        self.in_parts(len, (sources, target), |(sources, target), part| {
            // SAFETY: the caller's promise, of a part: whole elements, since no element is longer
            // than a cache line or divides it unevenly.
            unsafe {
                let sources = sources.after(part.start);
                let target = target.after(part.start);
                reduce(dtype, op, &sources, &target, part.len());
            }
        });
    }

    #[inline]
    unsafe fn copy(&mut self, from: *const u8, to: *mut u8, len: usize, past: bool) {
        self.in_parts(len, (from, to), |&(from, to), part| {
            // SAFETY: the caller's promise, of a part.
            unsafe {
                let (from, to) = (from.add(part.start), to.add(part.start));
                if past { stream(from, to, part.len()) } else { copy(from, to, part.len()) }
            }
        });
    }

    /// Does `work`, with the pointers that it shares, on all of `len` bytes, or on parts of them by the
    /// rank's threads.
    #[inline]
    fn in_parts<T>(&mut self, len: usize, shared: T, work: impl Fn(&T, Range<usize>) + Sync) {
        match self.parts(len) {
            1 => work(&shared, 0..len),
            parts => {
                let shared = Shared(shared);
                self.team.run(parts, &|part| work(shared.get(), cut(len, part, parts)));
            }
        }
    }

    /// How many threads so many bytes are worth.
    #[inline]
    fn parts(&self, len: usize) -> usize {
        match self.team.threads() {
            1 => 1,
            threads => threads.min((len / self.split).max(1)),
        }
    }
}

/// Pointers that the threads of a team share for the length of a `run`.
struct Shared<T>(T);

// SAFETY: what the pointers point to is used by parts that do not overlap, while the caller, who
// vouches for them, waits.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    fn get(&self) -> &T {
        &self.0
    }
}
