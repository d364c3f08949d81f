//! Memory of this rank's own, for reductions of tensors whose address is no multiple of their
//! element's size: the library's kernels read whole elements, and fault. Only this rank is concerned
//! and only this rank knows: peers see the same call. Copies are made of bytes and go anywhere.

use std::sync::{Mutex, PoisonError};

use crossover_core::call::{CallSig, Mode, Op, Split};
use crossover_device::device::Device;
use crossover_device::error::DeviceError;
use crossover_device::memory::Buffer;

use super::Made;

/// What was allocated so far. It is freed with the session and no sooner: to free may wait for the
/// device, and so for peers.
#[derive(Default)]
pub(super) struct Detours {
    /// One after the other, each larger than the one before: the last is in use. Eager calls run in
    /// order, and share it.
    eager: Mutex<Vec<Buffer>>,
    /// One for each captured call: graphs may replay it at any time.
    captured: Mutex<Vec<Buffer>>,
}

/// The way of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Detour {
    /// Where the call reads and writes.
    pub(super) from: u64,
    pub(super) to: u64,
    /// To be copied to `from` before; zero if it is where the caller has it.
    pub(super) input: usize,
    /// To be copied from `to` behind; likewise.
    pub(super) output: usize,
}

/// What a detour is worth beginning with, so that it is not grown again and again.
const LEAST: usize = 64 * 1024; // size: of no policy's concern, any is right

impl Detours {
    /// The way of a reduction, unless it can go straight.
    ///
    /// # Errors
    ///
    /// There is no memory.
    pub(super) fn of(
        &self,
        made: &Made<'_>,
        device: &Device,
        rank: u32,
        world: u32,
    ) -> Result<Option<Detour>, DeviceError> {
        let Some(way) = Way::of(made, rank, world) else { return Ok(None) };
        let bytes = way.input.max(way.output);
        let kept = match made.call.mode {
            Mode::Eager => &self.eager,
            Mode::Graph => &self.captured,
        };
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |last: &Buffer| made.call.mode == Mode::Eager && last.bytes() >= bytes;
        let base = match kept.last().filter(|last| fits(last)) {
            Some(last) => last.address(),
            None => {
                // Twice what there was, at least: all that ever was is less than what is in use.
                let room = match made.call.mode {
                    Mode::Eager => bytes.max(LEAST).checked_next_power_of_two().unwrap_or(bytes),
                    Mode::Graph => bytes,
                };
                let made = Buffer::new(device, room).map_err(|e| explained(e, room))?;
                let base = made.address();
                kept.push(made);
                base
            }
        };
        Ok(Some(way.through(made, base)))
    }
}

/// Which tensors of a call leave the straight way.
#[derive(Clone, Copy)]
struct Way {
    input: usize,
    output: usize,
    /// Where the output is within the input, in place.
    within: u64,
}

impl Way {
    fn of(made: &Made<'_>, rank: u32, world: u32) -> Option<Way> {
        let CallSig { op, dtype, .. } = *made.call;
        let size = dtype.size();
        let is_off = |at: u64| !at.is_multiple_of(size as u64);
        if !op.reduces() || !(is_off(made.from) || is_off(made.to)) {
            return None;
        }
        let input = made.call.bytes() as usize;
        let (before, output) = match (op, made.call.split) {
            (Op::ReduceScatter, Split::PerRank(counts)) => {
                let mine = rank as usize;
                (counts[..mine].iter().sum::<usize>() * size, counts[mine] * size)
            }
            (Op::ReduceScatter, Split::Even) => {
                let part = input / world as usize;
                (rank as usize * part, part)
            }
            _ => (0, input),
        };
        let input = if is_off(made.from) { input } else { 0 };
        let output = if is_off(made.to) { output } else { 0 };
        // A part that is empty is written nowhere.
        (input + output > 0).then_some(Way { input, output, within: before as u64 })
    }

    /// With both in the memory, the call is made in place there.
    fn through(self, made: &Made<'_>, base: u64) -> Detour {
        let Way { input, output, within } = self;
        let (from, to) = match (input > 0, output > 0) {
            (true, true) => (base, base + within),
            (true, false) => (base, made.to),
            (false, _) => (made.from, base),
        };
        Detour { from, to, input, output }
    }
}

fn explained(error: DeviceError, bytes: usize) -> DeviceError {
    let why = format!("{bytes} B for a tensor whose address is no multiple of its element's size");
    match error {
        DeviceError::Call { call, code, text } => {
            DeviceError::Call { call, code, text: format!("{text}: {why}") }
        }
        other => DeviceError::Invalid(format!("{other}: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossover_core::call::{Dtype, ReduceOp};
    use crossover_core::contract::Contract;

    fn detour(op: Op, split: Split<'_>, from: u64, to: u64) -> Option<Detour> {
        let (dtype, reduce_op, contract) = (Dtype::F32, ReduceOp::Sum, Contract::DEFAULT);
        let (count, mode, root) = (12, Mode::Eager, 0);
        let call = CallSig { op, dtype, reduce_op, count, mode, root, split, contract };
        let made = Made { call: &call, from, to, stream: 0, pins: None };
        Way::of(&made, 2, 3).map(|way| way.through(&made, 0x1000))
    }

    #[test]
    fn only_what_is_off_leaves_its_place() {
        let sum = |from, to| detour(Op::AllReduce, Split::Even, from, to);
        assert_eq!(sum(64, 128), None);
        assert_eq!(detour(Op::AllGather, Split::Even, 1, 3), None, "copies are of bytes");
        let way = |from, to, input, output| Some(Detour { from, to, input, output });
        assert_eq!(sum(66, 128), way(0x1000, 128, 48, 0));
        assert_eq!(sum(64, 129), way(64, 0x1000, 0, 48));
        assert_eq!(sum(67, 67), way(0x1000, 0x1000, 48, 48));
        let parts = |split, from, to| detour(Op::ReduceScatter, split, from, to);
        assert_eq!(parts(Split::Even, 65, 129), way(0x1000, 0x1020, 48, 16));
        assert_eq!(parts(Split::Even, 64, 129), way(64, 0x1000, 0, 16));
        let uneven = [1, 4, 7];
        assert_eq!(parts(Split::PerRank(&uneven), 65, 129), way(0x1000, 0x1014, 48, 28));
        // This rank's part is empty: it is written nowhere.
        let nothing = [6, 6, 0];
        assert_eq!(parts(Split::PerRank(&nothing), 64, 129), None);
        assert_eq!(parts(Split::PerRank(&nothing), 65, 129), way(0x1000, 129, 48, 0));
    }

    #[test]
    fn memory_that_is_not_there_is_told_with_what_it_was_for() {
        let text = "out of memory".to_owned();
        let told = explained(DeviceError::Call { call: "cuMemAlloc", code: 2, text }, 65_536);
        let words = "cuMemAlloc failed: out of memory: 65536 B for a tensor whose address is no \
                     multiple of its element's size (2)";
        assert_eq!(told.to_string(), words);
    }
}
