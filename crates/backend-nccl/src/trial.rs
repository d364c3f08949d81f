//! The first calls of a group, whose results are compared with what they must be: a library may
//! join without a word of complaint and fail at the first collective. They also make the library
//! connect what it connects at first use, which belongs before any capture.

use std::time::Instant;

use crossover_core::agreement::StepError;
use crossover_core::call::{CallBuffers, CallSig, Dtype, Mode, Op, ReduceOp, Split};
use crossover_core::contract::Contract;
use crossover_device::memory::Buffer;
use crossover_device::stream::Stream;

use crate::aside::Fared;
use crate::calls::{Made, Maker};
use crate::setup::Joined;
use crate::window::Windows;

/// Elements of a small call, and of a large one, 1 MiB: the library takes other algorithms for it,
/// and, where several ranks share a device, needs more room there.
const COUNTS: [usize; 2] = [64, 256 * 1024]; // size: a megabyte of four-byte elements
/// Numbers up to this add up exactly in all that is summed here.
const BELOW: u64 = 1000;

/// Why calls were not proven, and what one that is not done may still use: to be dropped when the
/// communicator has ended, since to free memory waits for what runs.
pub(crate) struct Unproven {
    pub(crate) why: Fared,
    pub(crate) used: Option<(Buffer, Stream)>,
}

impl From<StepError> for Unproven {
    fn from(why: StepError) -> Self {
        Unproven { why: why.into(), used: None }
    }
}

/// Makes the calls and compares their results; through the windows, if they are given.
///
/// # Errors
///
/// A call failed, or a result is wrong; or a call is not done in time. It is left as it is.
pub(crate) fn run(
    joined: &Joined,
    maker: &Maker,
    windows: Option<&Windows>,
    nonce: u64,
    until: Instant,
) -> Result<(), Unproven> {
    let stream = Stream::new(&joined.device).map_err(StepError::new)?;
    let world = joined.world as usize;
    for count in COUNTS {
        let part = count.div_ceil(world);
        let room = part * world * 4;
        let both = Buffer::new(&joined.device, 2 * room).map_err(StepError::new)?;
        for &op in Op::ALL {
            let taken = matches!(op, Op::AllReduce | Op::AllGather | Op::ReduceScatter);
            let bytes = if op == Op::AllGather { part * 4 } else { part * world * 4 };
            if windows.is_some_and(|windows| !taken || bytes > windows.bytes()) {
                continue;
            }
            let seed = nonce ^ (count as u64) << 8 ^ op as u64;
            let trial = Trial { joined, maker, windows, both: &both, stream: &stream, until };
            if let Err(why) = trial.one(op, part, seed) {
                return Err(Unproven { why, used: Some((both, stream)) });
            }
        }
    }
    Ok(())
}

struct Trial<'a> {
    joined: &'a Joined,
    maker: &'a Maker,
    windows: Option<&'a Windows>,
    /// Input, and then output.
    both: &'a Buffer,
    stream: &'a Stream,
    until: Instant,
}

impl Trial<'_> {
    fn one(&self, op: Op, part: usize, seed: u64) -> Result<(), Fared> {
        let Joined { rank, world, .. } = *self.joined;
        let all = part * world as usize;
        let count = if op == Op::AllGather { part } else { all };
        // The last rank: the first one may be special in what is broken.
        let root = if op == Op::Broadcast { world - 1 } else { 0 };
        let call = CallSig {
            op,
            // Windows are for floats.
            dtype: if self.windows.is_some() { Dtype::F32 } else { Dtype::I32 },
            reduce_op: ReduceOp::Sum,
            count,
            mode: Mode::Eager,
            root,
            split: Split::Even,
            contract: Contract::DEFAULT,
        };
        let input: Vec<u64> = (0..count).map(|at| number(seed, rank, at)).collect();
        let middle = self.both.bytes() / 2;
        let upload = |at, bytes: &[u8]| self.both.upload(at, bytes, self.stream);
        upload(0, &written(call.dtype, &input)).map_err(StepError::new)?;
        upload(middle, &vec![0xA5; middle]).map_err(StepError::new)?;
        let buffers = CallBuffers {
            input: self.both.address() as *const u8,
            output: (self.both.address() + middle as u64) as *mut u8,
            stream: self.stream.raw(),
        };
        let made = Made::new(&call, &buffers);
        // SAFETY: both halves have room for the call, and live until the stream is done, or the
        // communicator was aborted.
        let enqueued = unsafe {
            match self.windows {
                Some(windows) => windows.make(self.maker, &self.joined.comm, &made),
                None => self.maker.make(&self.joined.comm, &made),
            }
        };
        enqueued.map_err(|trouble| Fared::Failed(format!("a first {op} failed: {trouble}")))?;
        self.await_done(op)?;
        let want = expected(op, rank, world, part, seed, root);
        let mut got = vec![0; want.len() * 4];
        self.both.download(middle, &mut got, self.stream).map_err(StepError::new)?;
        let want = written(call.dtype, &want);
        match want.chunks(4).zip(got.chunks(4)).position(|(want, got)| want != got) {
            None => Ok(()),
            Some(at) => Err(Fared::Failed(format!(
                "a first {op} of {count} x {} is wrong from element {at} on",
                call.dtype
            ))),
        }
    }

    /// Until the stream has come to the end. The library's kernels wait for peers for ever.
    fn await_done(&self, op: Op) -> Result<(), Fared> {
        loop {
            if let Some(failed) = self.joined.comm.error() {
                return Err(Fared::Failed(format!("a first {op} failed: {failed}")));
            }
            if self.stream.is_done().map_err(StepError::new)? {
                return Ok(());
            }
            if Instant::now() > self.until {
                let waited = self.joined.deadline;
                return Err(Fared::Late(format!("a first {op} is not done after {waited:.1?}")));
            }
            std::thread::sleep(crate::watch::PATIENCE);
        }
    }
}

/// Element `at` of a rank's input.
fn number(seed: u64, rank: u32, at: usize) -> u64 {
    let mixed = (seed ^ u64::from(rank) << 32 ^ at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 40) % BELOW
}

/// A rank's output. `part` is the elements of one rank's share.
fn expected(op: Op, rank: u32, world: u32, part: usize, seed: u64, root: u32) -> Vec<u64> {
    let sum = |at: usize| (0..world).map(|r| number(seed, r, at)).sum();
    let share = rank as usize * part;
    let all = part * world as usize;
    match op {
        Op::AllReduce => (0..all).map(sum).collect(),
        Op::ReduceScatter => (share..share + part).map(sum).collect(),
        Op::AllGather => (0..all).map(|at| number(seed, (at / part) as u32, at % part)).collect(),
        Op::Broadcast => (0..all).map(|at| number(seed, root, at)).collect(),
        Op::AllToAll => {
            (0..all).map(|at| number(seed, (at / part) as u32, share + at % part)).collect()
        }
    }
}

fn written(dtype: Dtype, numbers: &[u64]) -> Vec<u8> {
    match dtype {
        Dtype::F32 => numbers.iter().flat_map(|n| (*n as f32).to_ne_bytes()).collect(),
        _ => numbers.iter().flat_map(|n| (*n as i32).to_ne_bytes()).collect(),
    }
}
