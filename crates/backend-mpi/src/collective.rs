//! Who gives what to whom, one op after the other. Every tensor travels in windows of at most a
//! chunk; the windows follow from what ranks agree on, so that all have as many.

use std::cmp::min;

use crossover_backend_host::reduce::{Target, reduce_all};
use crossover_core::backend::EnqueueError;
use crossover_core::call::{CallBuffers, CallSig, Op, Split};

use crate::eligibility::ONE_SHOT;
use crate::round::{Pattern, Round};

/// Runs a call. `chunk` is a multiple of 64.
///
/// # Safety
///
/// As for [`Session::enqueue`](crossover_core::backend::Session::enqueue).
pub(crate) unsafe fn run(
    algorithm: usize,
    chunk: usize,
    call: &CallSig<'_>,
    buffers: &CallBuffers,
    round: &mut Round<'_>,
) -> Result<(), EnqueueError> {
    let call = Call { call, buffers, chunk };
    // SAFETY: the caller's promise.
    unsafe {
        match call.call.op {
            Op::AllReduce if algorithm == ONE_SHOT => call.all_reduce_one_shot(round),
            Op::AllReduce => call.all_reduce_two_shot(round),
            Op::AllGather => call.all_gather(round),
            Op::ReduceScatter => call.reduce_scatter(round),
            Op::Broadcast => call.broadcast(round),
            Op::AllToAll => call.all_to_all(round),
        }
    }
}

struct Call<'a> {
    call: &'a CallSig<'a>,
    buffers: &'a CallBuffers,
    chunk: usize,
}

// All of these are unsafe since the buffers must hold what the call says, as for `run`.
impl Call<'_> {
    /// All tensors on all ranks, and everybody reduces them.
    unsafe fn all_reduce_one_shot(&self, round: &mut Round<'_>) -> Result<(), EnqueueError> {
        let bytes = self.call.bytes() as usize;
        for (at, len) in windows(bytes, self.share(round)) {
            round.staging.room(len, len * round.world());
            // SAFETY: inside the input; then, inside the output. What lies there was given away.
            unsafe {
                self.give(round, 0, at, len);
                round.exchange(Pattern::Gather(&vec![len; round.world()]))?;
                self.reduce(round, self.buffers.output.add(at), len);
            }
        }
        Ok(())
    }

    /// A part of all tensors on each rank, which reduces it, and then the results on all.
    unsafe fn all_reduce_two_shot(&self, round: &mut Round<'_>) -> Result<(), EnqueueError> {
        let (bytes, element) = (self.call.bytes() as usize, self.call.dtype.size());
        let (rank, world) = (round.rank(), round.world());
        for (at, len) in windows(bytes, self.chunk) {
            let cut = |nth: usize| len / element * nth / world * element;
            let parts: Vec<usize> = (0..world).map(|nth| cut(nth + 1) - cut(nth)).collect();
            let part = parts[rank];
            round.staging.room(len, len.max(part * world));
            // SAFETY: inside the input; then, inside the output. What lies there was given away. What
            // this rank gave has arrived, so that its results may take the place.
            unsafe {
                self.give(round, 0, at, len);
                round.exchange(Pattern::Scatter { to: &parts, from: &vec![part; world] })?;
                let results = round.staging.given.as_mut_ptr();
                self.reduce(round, results, part);
                round.exchange(Pattern::Gather(&parts))?;
                // The parts lie one after the other, as those of the tensor do.
                self.take(round, 0, at, len);
            }
        }
        Ok(())
    }

    unsafe fn reduce_scatter(&self, round: &mut Round<'_>) -> Result<(), EnqueueError> {
        let (rank, world) = (round.rank(), round.world());
        let (parts, starts) = self.parts(world);
        for (at, most) in windows(largest(&parts), self.share(round)) {
            let to: Vec<usize> = parts.iter().map(|part| piece(*part, at, most)).collect();
            let own = to[rank];
            round.staging.room(to.iter().sum(), own * world);
            let mut place = 0;
            // SAFETY: inside the input's parts; then, inside the output, which may be the own part:
            // what lies there was given away.
            unsafe {
                for (start, len) in starts.iter().zip(&to) {
                    self.give(round, place, start + place_of(*len, at), *len);
                    place += len;
                }
                round.exchange(Pattern::Scatter { to: &to, from: &vec![own; world] })?;
                if own > 0 {
                    self.reduce(round, self.buffers.output.add(at), own);
                }
            }
        }
        Ok(())
    }

    unsafe fn all_gather(&self, round: &mut Round<'_>) -> Result<(), EnqueueError> {
        let (rank, world) = (round.rank(), round.world());
        let (parts, starts) = self.parts(world);
        for (at, most) in windows(largest(&parts), self.share(round)) {
            let lens: Vec<usize> = parts.iter().map(|part| piece(*part, at, most)).collect();
            round.staging.room(lens[rank], lens.iter().sum());
            // SAFETY: inside the input; then, inside the output's parts, of which the own one may be
            // the input, and gets what it has.
            unsafe {
                self.give(round, 0, place_of(lens[rank], at), lens[rank]);
                round.exchange(Pattern::Gather(&lens))?;
                for (from, (start, len)) in starts.iter().zip(&lens).enumerate() {
                    self.take(round, from, start + place_of(*len, at), *len);
                }
            }
        }
        Ok(())
    }

    unsafe fn broadcast(&self, round: &mut Round<'_>) -> Result<(), EnqueueError> {
        let bytes = self.call.bytes() as usize;
        let root = self.call.root;
        let is_root = root as usize == round.rank();
        for (at, len) in windows(bytes, self.chunk) {
            round.staging.room(len, len);
            // SAFETY: inside the root's input; then, inside the others' output.
            unsafe {
                if is_root {
                    self.give(round, 0, at, len);
                }
                round.exchange(Pattern::Broadcast { root, len })?;
                if !is_root {
                    self.take(round, root as usize, at, len);
                }
            }
        }
        if is_root && self.buffers.input != self.buffers.output.cast_const() {
            // SAFETY: both hold the tensor, and do not overlap.
            unsafe {
                self.buffers.output.copy_from_nonoverlapping(self.buffers.input, bytes);
            }
        }
        Ok(())
    }

    unsafe fn all_to_all(&self, round: &mut Round<'_>) -> Result<(), EnqueueError> {
        let world = round.world();
        let part = self.call.bytes() as usize / world;
        for (at, len) in windows(part, self.share(round)) {
            round.staging.room(len * world, len * world);
            let lens = vec![len; world];
            // SAFETY: inside the input's parts; then, inside the output's, which may be the same: what
            // lies there was given away.
            unsafe {
                for to in 0..world {
                    self.give(round, to * len, to * part + at, len);
                }
                round.exchange(Pattern::Scatter { to: &lens, from: &lens })?;
                for from in 0..world {
                    self.take(round, from, from * part + at, len);
                }
            }
        }
        Ok(())
    }

    /// Bytes of a window of which every rank's arrives here.
    fn share(&self, round: &Round<'_>) -> usize {
        self.chunk / round.world() / 64 * 64
    }

    /// Bytes of each rank's part of the larger tensor, and where they begin.
    fn parts(&self, world: usize) -> (Vec<usize>, Vec<usize>) {
        let element = self.call.dtype.size();
        let parts: Vec<usize> = match (self.call.split, self.call.op) {
            (Split::PerRank(counts), _) => counts.iter().map(|count| count * element).collect(),
            (Split::Even, Op::AllGather) => vec![self.call.count * element; world],
            (Split::Even, _) => vec![self.call.count / world * element; world],
        };
        let starts = parts.iter().scan(0, |next, part| {
            let start = *next;
            *next += part;
            Some(start)
        });
        let starts = starts.collect();
        (parts, starts)
    }

    /// Puts `len` bytes of the input, from `at` on, into what is given.
    unsafe fn give(&self, round: &mut Round<'_>, place: usize, at: usize, len: usize) {
        let to = &mut round.staging.given[place..place + len];
        // SAFETY: the input has them; it is an engine's, and so is not what MPI touches.
        unsafe { to.as_mut_ptr().copy_from_nonoverlapping(self.buffers.input.add(at), len) };
    }

    /// Puts `len` bytes that came from a rank into the output, from `at` on.
    unsafe fn take(&self, round: &Round<'_>, from: usize, at: usize, len: usize) {
        // SAFETY: the output has room, and so many came.
        unsafe { self.buffers.output.add(at).copy_from_nonoverlapping(round.came(from), len) };
    }

    /// Reduces `len` bytes of every rank.
    unsafe fn reduce(&self, round: &Round<'_>, to: *mut u8, len: usize) {
        let sources: Vec<*const u8> = (0..round.world()).map(|rank| round.came(rank)).collect();
        let target = Target::one(to);
        // SAFETY: so many bytes of each came, whole elements; the target is none of them.
        unsafe { reduce_all(self.call.dtype, self.call.reduce_op, &sources, &target, len) };
    }
}

/// Where windows begin, and how long they are. One, if there is nothing: a call is told even then.
fn windows(bytes: usize, most: usize) -> impl Iterator<Item = (usize, usize)> {
    let count = bytes.div_ceil(most).max(1);
    (0..count).map(move |nth| (nth * most, min(most, bytes - nth * most)))
}

/// How much of a part lies in the window of `most` bytes at `at`.
fn piece(part: usize, at: usize, most: usize) -> usize {
    min(part.saturating_sub(at), most)
}

/// Where in its part a piece begins: one of a part that has ended already, nowhere.
fn place_of(piece: usize, at: usize) -> usize {
    if piece == 0 { 0 } else { at }
}

fn largest(parts: &[usize]) -> usize {
    parts.iter().copied().max().unwrap_or(0)
}
