//! The loop believes nobody: right contenders are found right, and wrong ones wrong.

use std::thread;

use anyhow::Result;

use crate::bare::Bare;
use crate::call::{Cell, Dtype, Op};
use crate::contender::Contender;
use crate::measure::measure;
use crate::page::{Page, Seat};
use crate::wait::Wait;

const OPS: [Op; 4] = [Op::AllReduce, Op::AllGather, Op::ReduceScatter, Op::Broadcast];

/// Each kind of protocol, ends of chunks and lines included.
const SIZES: [usize; 6] = [8, 280, 284, 8 << 10, (8 << 10) + 4, (192 << 10) + 20];

#[test]
fn bare_memory_is_right() {
    for op in OPS {
        for (dtype, world) in [(Dtype::F32, 3), (Dtype::Bf16, 2)] {
            for bytes in SIZES {
                let cell = Cell { op, dtype, world, bytes };
                assert!(is_right(cell, |bare| Box::new(bare)), "{cell:?}");
            }
        }
    }
}

#[test]
fn a_dropped_rank_is_found() {
    for op in OPS {
        let cell = Cell { op, dtype: Dtype::F32, world: 2, bytes: 1 << 10 };
        assert!(!is_right(cell, |bare| Box::new(Faulty { bare, fault: drop_rank_0 })), "{op:?}");
    }
}

#[test]
fn one_wrong_element_is_found() {
    for op in OPS {
        let cell = Cell { op, dtype: Dtype::Bf16, world: 2, bytes: 1 << 10 };
        assert!(!is_right(cell, |bare| Box::new(Faulty { bare, fault: spoil_one })), "{op:?}");
    }
}

/// Measures on ranks that are threads; the verdict, on which all must agree.
fn is_right(cell: Cell, wrap: for<'p> fn(Bare<'p>) -> Box<dyn Contender + 'p>) -> bool {
    let page = Page::anonymous();
    let rank = |rank: usize| {
        // As if there were one processor, since tests run beside one another.
        let mut contender = wrap(Bare::new(&page, (rank, cell.world), 1));
        let mut seat = Seat::new(&page, rank, cell.world, Wait { crowded: true })?;
        Ok::<bool, anyhow::Error>(measure(&mut *contender, &mut seat, &cell, 0.1)?.right)
    };
    let verdicts: Vec<bool> = thread::scope(|scope| {
        let ranks: Vec<_> = (0..cell.world).map(|at| scope.spawn(move || rank(at))).collect();
        ranks.into_iter().map(|rank| rank.join().unwrap().unwrap()).collect()
    });
    assert!(verdicts.iter().all(|verdict| *verdict == verdicts[0]), "{verdicts:?}");
    verdicts[0]
}

/// Does to an input, on its way, what a broken library would.
struct Faulty<'p> {
    bare: Bare<'p>,
    fault: fn(rank: usize, input: &mut [u8]),
}

fn drop_rank_0(rank: usize, input: &mut [u8]) {
    if rank == 0 {
        input.fill(0);
    }
}

fn spoil_one(rank: usize, input: &mut [u8]) {
    if rank == 0 {
        let last = input.len() - 1; // of bf16 it has the sign
        input[last] ^= 0x80;
        input[(last / 2) | 1] ^= 0x80;
    }
}

impl Faulty<'_> {
    unsafe fn spoilt(&self, dtype: Dtype, count: usize, input: *const u8) -> Vec<u8> {
        // SAFETY: the caller's promise about the input.
        let input = unsafe { std::slice::from_raw_parts(input, count * dtype.size()) };
        let mut input = input.to_vec();
        (self.fault)(self.bare.rank(), &mut input);
        input
    }
}

impl Contender for Faulty<'_> {
    fn rank(&self) -> usize {
        self.bare.rank()
    }

    fn world(&self) -> usize {
        self.bare.world()
    }

    unsafe fn all_reduce(
        &mut self,
        dtype: Dtype,
        count: usize,
        input: *const u8,
        output: *mut u8,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe {
            let input = self.spoilt(dtype, count, input);
            self.bare.all_reduce(dtype, count, input.as_ptr(), output)
        }
    }

    unsafe fn all_gather(
        &mut self,
        dtype: Dtype,
        count: usize,
        input: *const u8,
        output: *mut u8,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe {
            let input = self.spoilt(dtype, count, input);
            self.bare.all_gather(dtype, count, input.as_ptr(), output)
        }
    }

    unsafe fn reduce_scatter(
        &mut self,
        dtype: Dtype,
        count: usize,
        input: *const u8,
        output: *mut u8,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe {
            let input = self.spoilt(dtype, count, input);
            self.bare.reduce_scatter(dtype, count, input.as_ptr(), output)
        }
    }

    unsafe fn broadcast(&mut self, dtype: Dtype, count: usize, buffer: *mut u8) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe {
            let input = self.spoilt(dtype, count, buffer);
            buffer.copy_from(input.as_ptr(), input.len());
            self.bare.broadcast(dtype, count, buffer)
        }
    }

    fn finish(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
