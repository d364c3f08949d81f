//! Bare shared memory: no library, no checks, no errors; for each size the most obvious protocol that is
//! good. It is what a library is compared with: what it adds on top is what it costs.
//!
//! - tiny: flag and data in one 64-byte line, so that one line travels;
//! - middle: the input in the own slot, one flag after it, and everyone reads everyone's;
//! - large: the same by chunks that stay in the caches; an all-reduce in two shots.
//!
//! Every step of a call, on all ranks, is an epoch. Slots form a ring, by epoch.

mod kernel;
mod memory;

use std::ptr::copy_nonoverlapping as copy;
use std::sync::atomic::Ordering::{Acquire, Release};

use anyhow::Result;

pub(crate) use self::kernel::{Isa, add};
use self::memory::{CHUNK, Memory, RING, TINY, TINY_LINES};
use crate::call::Dtype;
use crate::contender::Contender;
use crate::page::Page;
use crate::wait::Wait;

/// The greatest all-reduce that every rank sums up by itself.
const ONE_SHOT: usize = 8 << 10;

pub(crate) struct Bare<'p> {
    memory: Memory<'p>,
    rank: usize,
    world: usize,
    wait: Wait,
    isa: Isa,
    epoch: u64,
    /// Every rank is through with the epochs up to this one.
    known: u64,
}

impl<'p> Bare<'p> {
    pub(crate) fn new(
        page: &'p Page,
        (rank, world): (usize, usize),
        processors: usize,
    ) -> Bare<'p> {
        let wait = Wait { crowded: world > processors };
        let isa = Isa::detect();
        Bare { memory: Memory::new(page), rank, world, wait, isa, epoch: 0, known: 0 }
    }

    /// The next epoch.
    #[inline]
    fn begin(&mut self) -> u64 {
        self.epoch += 1;
        self.epoch
    }

    /// Makes sure that what this rank wrote a ring ago was read. Only broadcasts ever wait here:
    /// where all wait for all, the epoch before last is known to be over.
    #[inline]
    fn reserve(&mut self, epoch: u64) {
        if self.known + RING < epoch {
            let wanted = epoch - RING;
            self.known = u64::MAX;
            for rank in 0..self.world {
                let done = self.memory.done(rank);
                self.wait.until(|| done.load(Acquire) >= wanted);
                self.known = self.known.min(done.load(Acquire));
            }
        }
    }

    /// This rank is through with the epoch.
    #[inline]
    fn end(&self, epoch: u64) {
        self.memory.done(self.rank).store(epoch, Release);
    }

    #[inline]
    fn post(&self, epoch: u64) {
        self.memory.posted(self.rank).store(epoch, Release);
    }

    #[inline]
    fn await_post(&self, rank: usize, epoch: u64) {
        let posted = self.memory.posted(rank);
        self.wait.until(|| posted.load(Acquire) >= epoch);
    }

    /// The other ranks, the next one first: no two ranks start at the same one.
    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let (rank, world) = (self.rank, self.world);
        (1..world).map(move |step| (rank + step) % world)
    }

    /// Writes the own lines, and has everyone's brought to `take(rank, offset, data, bytes)`.
    #[inline]
    unsafe fn tiny(
        &mut self,
        input: *const u8,
        bytes: usize,
        mut take: impl FnMut(usize, usize, *const u8, usize),
    ) {
        let epoch = self.begin();
        self.reserve(epoch);
        // SAFETY: the caller's input; at most TINY bytes, so that the lines suffice.
        unsafe { self.memory.write_lines(self.rank, epoch, input, bytes) };
        for rank in self.others() {
            let mut offset = 0;
            for line in 0..TINY_LINES {
                if offset >= bytes {
                    break;
                }
                let data = self.memory.line(self.wait, rank, epoch, line);
                let here = (bytes - offset).min(memory::LINE_DATA);
                take(rank, offset, data.as_ptr().cast(), here);
                offset += here;
            }
        }
        self.known = epoch - 1;
        self.end(epoch);
    }

    /// Sums one part over the ranks: the own from `input`, the others' at `offset` in their slots.
    /// The sum is also written to `also`.
    #[inline]
    unsafe fn sum(
        &self,
        dtype: Dtype,
        epoch: u64,
        (offset, bytes): (usize, usize),
        input: *const u8,
        output: *mut u8,
        also: Option<*mut u8>,
    ) {
        let mut so_far = input;
        for (at, rank) in (1..).zip(self.others()) {
            self.await_post(rank, epoch);
            let also = also.filter(|_| at + 1 == self.world);
            // SAFETY: the slot was posted, and is at least so long; the rest is the caller's.
            unsafe {
                let slot = self.memory.slot(rank, epoch).add(offset);
                add(self.isa, dtype, so_far, slot, output, also, bytes);
            }
            so_far = output;
        }
    }
}

impl Contender for Bare<'_> {
    fn rank(&self) -> usize {
        self.rank
    }

    fn world(&self) -> usize {
        self.world
    }

    unsafe fn all_reduce(
        &mut self,
        dtype: Dtype,
        count: usize,
        input: *const u8,
        output: *mut u8,
    ) -> Result<()> {
        let bytes = count * dtype.size();
        let isa = self.isa;
        // SAFETY: offsets stay within the buffers and slots; slots are read between post and end.
        unsafe {
            if bytes <= TINY {
                let mut sources = 0;
                self.tiny(input, bytes, |_, offset, data, here| {
                    let first = sources * memory::LINE_DATA < bytes;
                    sources += 1;
                    let so_far = if first { input.add(offset) } else { output.add(offset) };
                    add(isa, dtype, so_far, data, output.add(offset), None, here);
                });
                return Ok(());
            }
            if bytes <= ONE_SHOT {
                let epoch = self.begin();
                self.reserve(epoch);
                copy(input, self.memory.slot(self.rank, epoch), bytes);
                self.post(epoch);
                self.sum(dtype, epoch, (0, bytes), input, output, None);
                self.known = epoch - 1;
                self.end(epoch);
                return Ok(());
            }
            for start in (0..bytes).step_by(CHUNK) {
                let here = (bytes - start).min(CHUNK);
                self.two_shot(dtype, input.add(start), output.add(start), here);
            }
        }
        Ok(())
    }

    unsafe fn all_gather(
        &mut self,
        dtype: Dtype,
        count: usize,
        input: *const u8,
        output: *mut u8,
    ) -> Result<()> {
        let bytes = count * dtype.size();
        // SAFETY: as in all_reduce.
        unsafe {
            let own = output.add(self.rank * bytes);
            if bytes <= TINY {
                self.tiny(input, bytes, |rank, offset, data, here| {
                    copy(data, output.add(rank * bytes + offset), here);
                });
                copy(input, own, bytes);
                return Ok(());
            }
            for start in (0..bytes).step_by(CHUNK) {
                let here = (bytes - start).min(CHUNK);
                let epoch = self.begin();
                self.reserve(epoch);
                copy(input.add(start), self.memory.slot(self.rank, epoch), here);
                self.post(epoch);
                copy(input.add(start), own.add(start), here);
                for rank in self.others() {
                    self.await_post(rank, epoch);
                    let to = output.add(rank * bytes + start);
                    copy(self.memory.slot(rank, epoch), to, here);
                }
                self.known = epoch - 1;
                self.end(epoch);
            }
        }
        Ok(())
    }

    unsafe fn reduce_scatter(
        &mut self,
        dtype: Dtype,
        count: usize,
        input: *const u8,
        output: *mut u8,
    ) -> Result<()> {
        let bytes = count * dtype.size();
        let part = bytes / self.world;
        let (isa, mine) = (self.isa, self.rank * part);
        // SAFETY: as in all_reduce.
        unsafe {
            if bytes <= TINY {
                let mut whole = [0u8; TINY];
                copy(input, whole.as_mut_ptr(), bytes);
                self.tiny(input, bytes, |_, offset, data, here| {
                    let at = whole.as_mut_ptr().add(offset);
                    add(isa, dtype, at, data, at, None, here);
                });
                copy(whole.as_ptr().add(mine), output, part);
                return Ok(());
            }
            let most = CHUNK / self.world / 64 * 64;
            for start in (0..part).step_by(most) {
                let here = (part - start).min(most);
                let epoch = self.begin();
                self.reserve(epoch);
                let slot = self.memory.slot(self.rank, epoch);
                for rank in self.others() {
                    copy(input.add(rank * part + start), slot.add(rank * most), here);
                }
                self.post(epoch);
                let own = input.add(mine + start);
                let place = (self.rank * most, here);
                self.sum(dtype, epoch, place, own, output.add(start), None);
                self.known = epoch - 1;
                self.end(epoch);
            }
        }
        Ok(())
    }

    unsafe fn broadcast(&mut self, dtype: Dtype, count: usize, buffer: *mut u8) -> Result<()> {
        let bytes = count * dtype.size();
        // SAFETY: as in all_reduce.
        unsafe {
            if bytes <= TINY {
                let epoch = self.begin();
                if self.rank == 0 {
                    self.reserve(epoch);
                    self.memory.write_lines(0, epoch, buffer, bytes);
                } else {
                    for (line, offset) in (0..bytes).step_by(memory::LINE_DATA).enumerate() {
                        let data = self.memory.line(self.wait, 0, epoch, line);
                        let here = (bytes - offset).min(memory::LINE_DATA);
                        copy(data.as_ptr().cast(), buffer.add(offset), here);
                    }
                }
                self.end(epoch);
                return Ok(());
            }
            for start in (0..bytes).step_by(CHUNK) {
                let here = (bytes - start).min(CHUNK);
                let epoch = self.begin();
                if self.rank == 0 {
                    self.reserve(epoch);
                    copy(buffer.add(start), self.memory.slot(0, epoch), here);
                    self.post(epoch);
                } else {
                    self.await_post(0, epoch);
                    copy(self.memory.slot(0, epoch), buffer.add(start), here);
                }
                self.end(epoch);
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

impl Bare<'_> {
    /// One chunk of an all-reduce: each rank sums up a part of it, and fetches the others' sums.
    unsafe fn two_shot(&mut self, dtype: Dtype, input: *const u8, output: *mut u8, bytes: usize) {
        let part = (bytes / self.world).next_multiple_of(64);
        let place = |rank: usize| {
            let start = (rank * part).min(bytes);
            (start, (bytes - start).min(part))
        };
        let epoch = self.begin();
        self.reserve(epoch);
        // SAFETY: places are within the chunk, and the chunk within slot and buffers.
        unsafe {
            let slot = self.memory.slot(self.rank, epoch);
            for rank in self.others() {
                let (start, here) = place(rank);
                copy(input.add(start), slot.add(start), here);
            }
            self.post(epoch);
            let (start, here) = place(self.rank);
            let result = self.memory.result(self.rank, epoch);
            let (from, to) = (input.add(start), output.add(start));
            self.sum(dtype, epoch, (start, here), from, to, Some(result));
            self.memory.summed(self.rank).store(epoch, Release);
            for rank in self.others() {
                let summed = self.memory.summed(rank);
                self.wait.until(|| summed.load(Acquire) >= epoch);
                let (start, here) = place(rank);
                copy(self.memory.result(rank, epoch), output.add(start), here);
            }
        }
        self.known = epoch - 1;
        self.end(epoch);
    }
}
