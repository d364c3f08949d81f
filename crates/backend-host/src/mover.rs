//! How a call's bytes are moved: by one thread or the rank's team, through the caches or past them.
//! Nothing here shows in a result.

use crossover_core::backend::{Param, Values};
use crossover_core::call::{CallBuffers, CallSig, Op};

use crate::memory::{copy, stream};
use crate::reduce::{Sources, Target, reduce};
use crate::team::{Team, cut};

/// What a policy says about it, for one call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ways {
    /// Results may be written past the caches.
    pub(crate) streams: bool,
    /// The least bytes that are worth a thread.
    split: usize,
}

impl Ways {
    /// From the values of [`PARAMS`].
    #[inline(always)]
    pub(crate) fn of(params: &[u64], world: u32, call: &CallSig<'_>) -> Self {
        let &[stream, split] = params else {
            unreachable!("a session receives a value for each param")
        };
        let results = match call.op {
            Op::AllGather => call.bytes().saturating_mul(world.into()),
            Op::ReduceScatter => call.bytes() / u64::from(world),
            _ => call.bytes(),
        };
        let split = usize::try_from(split).unwrap_or(usize::MAX);
        Ways { streams: results >= stream, split }
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
];

const NO_LIMIT: u64 = u64::MAX;

/// Moves the bytes of one call.
pub(crate) struct Mover<'a> {
    team: &'a mut Team,
    split: usize,
    /// Results are written past the caches.
    stream: bool,
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
        Mover { team, split: ways.split, stream: ways.streams && !in_place }
    }

    /// Copies into the own slot, for peers to read soon.
    ///
    /// # Safety
    ///
    /// As for [`std::ptr::copy_nonoverlapping`], of bytes.
    #[inline]
    pub(crate) unsafe fn fill(&mut self, from: *const u8, slot: *mut u8, len: usize) {
        // SAFETY: the caller's.
        unsafe { self.copy(from, slot, len, false) };
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

    /// Reduces every source's `len` bytes to `to` and, a second time, to `also`.
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
        let (dtype, op, stream) = (call.dtype, call.reduce_op, self.stream);
        let target = Target { to, also, stream };
        let parts = self.parts(len);
        if parts == 1 {
            // SAFETY: the caller's.
            unsafe { reduce(dtype, op, sources, &target, len) };
            return;
        }
        let shared = Shared((sources, target));
        self.team.run(parts, &|part| {
            let (sources, target) = shared.get();
            let range = cut(len, part, parts);
            // SAFETY: the caller's promise, of a part: whole elements, since no element is longer
            // than a cache line or divides it unevenly.
            unsafe {
                let sources = sources.after(range.start);
                let target = target.after(range.start);
                reduce(dtype, op, &sources, &target, range.len());
            }
        });
    }

    #[inline]
    unsafe fn copy(&mut self, from: *const u8, to: *mut u8, len: usize, past: bool) {
        let parts = self.parts(len);
        if parts == 1 {
            // SAFETY: the caller's.
            unsafe { if past { stream(from, to, len) } else { copy(from, to, len) } };
            return;
        }
        let shared = Shared((from, to));
        self.team.run(parts, &|part| {
            let &(from, to) = shared.get();
            let range = cut(len, part, parts);
            // SAFETY: the caller's promise, of a part.
            unsafe {
                let (from, to) = (from.add(range.start), to.add(range.start));
                if past { stream(from, to, range.len()) } else { copy(from, to, range.len()) }
            }
        });
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
