//! The one timing loop. It knows contenders by their trait alone.

use std::time::Instant;

use anyhow::Result;

use crate::call::{Cell, Op};
use crate::contender::Contender;
use crate::data;
use crate::floor;
use crate::memory::Memory;
use crate::page::Seat;

/// Timed calls of a cell: as many as its time allows, and no fewer or more than these.
const CALLS: (usize, usize) = (12, 20_000);
/// Batches of back-to-back calls.
const BATCHES: usize = 5;
/// Bytes that may be compared before a cell's time is taken.
const COMPARED: usize = 16 << 20;

/// What one cell took.
pub(crate) struct Measured {
    /// Timed calls.
    pub(crate) calls: usize,
    /// Microseconds: the greatest of the ranks' own medians.
    pub(crate) p50: f64,
    /// The greatest of the ranks' own 90th percentiles.
    pub(crate) p90: f64,
    /// Microseconds a call in the best batch of calls with nothing between them.
    pub(crate) back_to_back: f64,
    /// A cache line's way before and after, in nanoseconds: a virtual machine's processors move.
    pub(crate) line: [Option<f64>; 2],
    pub(crate) right: bool,
}

/// Measures one cell. Collective.
pub(crate) fn measure(
    contender: &mut dyn Contender,
    seat: &mut Seat<'_>,
    cell: &Cell,
    milliseconds: f64,
) -> Result<Measured> {
    let buffers = Buffers::new(cell);
    let mut run = Run { contender, seat, cell: *cell, buffers, number: 0, right: true };
    run.compare()?;

    // Warm-up, and how long a call takes: all ranks must make the same number.
    let first = run.timed(CALLS.0)?;
    let estimate = run.seat.max(first[first.len() / 2]);
    let allowed = milliseconds * 1e3 / estimate;
    run.timed(((allowed / 10.0) as usize).clamp(2, CALLS.1 / 10))?;

    let calls = (allowed as usize).clamp(CALLS.0, CALLS.1);
    let before = floor::line(run.seat);
    let times = run.timed(calls)?;
    let p50 = run.seat.max(times[calls / 2]);
    let p90 = run.seat.max(times[calls * 9 / 10]);
    let mut back_to_back = f64::MAX;
    for _ in 0..BATCHES {
        let mine = run.batch((calls / BATCHES).max(4))?;
        back_to_back = back_to_back.min(run.seat.max(mine));
    }
    let line = [before, floor::line(run.seat)];
    let right = run.seat.max(if run.right { 0.0 } else { 1.0 }) == 0.0;
    Ok(Measured { calls, p50, p90, back_to_back, line, right })
}

/// One cell on one rank.
struct Run<'r, 'p> {
    contender: &'r mut dyn Contender,
    seat: &'r mut Seat<'p>,
    cell: Cell,
    buffers: Buffers,
    /// Calls with data of their own so far.
    number: usize,
    right: bool,
}

impl Run<'_, '_> {
    /// Calls with new data each, nothing between them but the comparison: a stale or torn slot shows.
    fn compare(&mut self) -> Result<()> {
        let bytes = self.cell.output() * self.cell.dtype.size();
        for _ in 0..(COMPARED / bytes).clamp(3, 50) {
            self.number += 1;
            self.buffers.output.bytes().fill(data::POISON);
            if self.cell.op == Op::Broadcast {
                self.buffers.input.bytes().fill(data::POISON);
            }
            self.buffers.prepare(&self.cell, self.seat.rank, self.number);
            self.call()?;
            let result = self.buffers.result(self.cell.op);
            self.right &= data::is_right(&self.cell, self.seat.rank, self.number, result);
        }
        Ok(())
    }

    /// Microseconds of each of so many calls, ascending. Before each, untimed, new data and a barrier;
    /// after each, untimed, one element is compared.
    fn timed(&mut self, calls: usize) -> Result<Vec<f64>> {
        let mut times = Vec::with_capacity(calls);
        let rank = self.seat.rank;
        for _ in 0..calls {
            self.number += 1;
            let sample = self.number.wrapping_mul(7919) % self.cell.output();
            self.buffers.prepare(&self.cell, rank, self.number);
            self.buffers.spoil(&self.cell, rank, sample);
            self.seat.barrier();
            let start = Instant::now();
            self.call()?;
            times.push(start.elapsed().as_secs_f64() * 1e6);
            let result = self.buffers.result(self.cell.op);
            let got = data::read(self.cell.dtype, result, sample);
            self.right &= got == data::expected(&self.cell, rank, self.number, sample);
        }
        times.sort_by(f64::total_cmp);
        Ok(times)
    }

    /// Microseconds a call, of so many with nothing between them.
    fn batch(&mut self, calls: usize) -> Result<f64> {
        self.seat.barrier();
        let start = Instant::now();
        for _ in 0..calls {
            self.call()?;
        }
        Ok(start.elapsed().as_secs_f64() * 1e6 / calls as f64)
    }

    #[inline(always)]
    fn call(&mut self) -> Result<()> {
        let (dtype, count) = (self.cell.dtype, self.cell.input());
        let (input, output) = (self.buffers.input.start(), self.buffers.output.start());
        // SAFETY: the buffers were made for the cell, and are two.
        unsafe {
            match self.cell.op {
                Op::AllReduce => self.contender.all_reduce(dtype, count, input, output),
                Op::AllGather => self.contender.all_gather(dtype, count, input, output),
                Op::ReduceScatter => self.contender.reduce_scatter(dtype, count, input, output),
                Op::Broadcast => self.contender.broadcast(dtype, count, input),
            }
        }
    }
}

/// A rank's memory for one cell.
struct Buffers {
    input: Memory,
    output: Memory,
}

impl Buffers {
    fn new(cell: &Cell) -> Buffers {
        let size = cell.dtype.size();
        Buffers {
            input: Memory::new(cell.input() * size, 0),
            output: Memory::new(cell.output() * size, 1),
        }
    }

    /// New values where this rank gives any.
    fn prepare(&mut self, cell: &Cell, rank: usize, number: usize) {
        if cell.op != Op::Broadcast || rank == 0 {
            data::fill(cell.dtype, rank, number, self.input.bytes());
        }
    }

    /// Poisons the element that will be compared.
    fn spoil(&mut self, cell: &Cell, rank: usize, at: usize) {
        if cell.op == Op::Broadcast && rank == 0 {
            return; // its result is its input
        }
        let size = cell.dtype.size();
        let memory = if cell.op == Op::Broadcast { &mut self.input } else { &mut self.output };
        memory.bytes()[at * size..(at + 1) * size].fill(data::POISON);
    }

    /// A broadcast is in place.
    fn result(&mut self, op: Op) -> &[u8] {
        if op == Op::Broadcast { self.input.bytes() } else { self.output.bytes() }
    }
}
