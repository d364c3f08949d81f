//! A small call: one rendezvous, whatever the op; the whole input in one step, by one thread. What
//! larger calls are equipped for, windows and teams, takes as long as such a call's data.
//!
//! If the input fits into the cache line of the arrival word, it travels there, so that a peer that
//! sees the rank arrive has its data already; else in the slot.

use std::sync::atomic::Ordering::Relaxed;

use crossover_core::ablation::{Guarantee, is_off};
use crossover_core::backend::EnqueueError;
use crossover_core::call::{CallBuffers, CallSig, Op, Split};

use crate::eligibility::{ONE_SHOT, TWO_SHOT};
use crate::header::Header;
use crate::layout::{INLINE, MAX_WORLD};
use crate::memory::copy_small;
use crate::mismatch;
use crate::mover::Ways;
use crate::protocol::Met;
use crate::reduce::{Target, reduce_all};
use crate::segment::Segment;
use crate::session::HostSession;
use crate::wait::Wait;

/// Is the call one? A function of what ranks agree on.
#[inline(always)]
pub(crate) fn takes(algorithm: usize, ways: &Ways, chunk: usize, call: &CallSig<'_>) -> bool {
    let one_step = algorithm == ONE_SHOT || algorithm == TWO_SHOT && call.op != Op::AllReduce;
    one_step
        && call.bytes() <= MOST.min(chunk) as u64
        && matches!(call.split, Split::Even)
        && !ways.streams
        && !ways.past
}

/// A page: what a call is equipped with for more costs about 50 ns, 3 % of the time that this takes.
const MOST: usize = 4096; // size: of the input; not a policy's, since it changes no one's work

/// Runs such a call.
///
/// # Safety
///
/// As for [`Session::enqueue`](crossover_core::backend::Session::enqueue).
#[inline(always)]
pub(crate) unsafe fn run(
    session: &mut HostSession,
    header: &Header,
    call: &CallSig<'_>,
    buffers: &CallBuffers,
) -> Result<(), EnqueueError> {
    let HostSession { segment, liveness, steps, habits, .. } = session;
    let (rank, world) = (habits.rank, segment.layout().world);
    let checked = !is_off(Guarantee::Fingerprint);
    let step = steps.begin(if checked { header.tag() } else { 0 });
    let parity = step.parity();
    let bytes = call.bytes() as usize;
    // Nothing comes between the stores to the head: a peer that polls it would take the line away in
    // the middle, and getting it back takes a trip.
    if checked {
        header.write(segment, rank, parity);
    }
    if call.op != Op::Broadcast || rank == call.root {
        // SAFETY: the input, and room for it that nobody else touches now.
        unsafe { copy_small(buffers.input, place_of(segment, rank, parity, bytes), bytes) };
    }
    if checked {
        if bytes > INLINE {
            segment.rest(rank, parity).store(header.rest(), Relaxed);
        }
        segment.seq(rank, parity).store(header.seq(), Relaxed);
    }
    steps.publish(step, &**segment);

    let (part, output) = (bytes / world as usize, buffers.output);
    if call.op == Op::AllGather {
        // While the peers are on their way.
        // SAFETY: the own part of the output, which may be the input itself.
        unsafe { keep(buffers.input, output.add(bytes * rank as usize), bytes) };
    }

    let place = || mismatch::place(header, 1);
    let mut wait = Wait::new(habits, segment, liveness, place, header.seq());
    let met = steps.meet(step, &**segment, &mut wait)?;
    let same = |peer| {
        segment.seq(peer, parity).load(Relaxed) == header.seq()
            && (bytes <= INLINE || segment.rest(peer, parity).load(Relaxed) == header.rest())
    };
    let peers = (1..world).map(|next| (rank + next) % world);
    if checked && (met == Met::Unlike || !peers.clone().all(same)) {
        return Err(mismatch::found(segment, header, 1, parity));
    }

    let given = |peer: u32| place_of(segment, peer, parity, bytes).cast_const();
    let mut starts = [std::ptr::null(); MAX_WORLD as usize];
    // From here on the own place is left alone: its line is on the way to a peer, and a look at it
    // would take it back.
    // SAFETY: every peer's place holds its input until the next step is published. Where the own
    // input is the output, what is overwritten has been given away.
    unsafe {
        match call.op {
            Op::AllReduce => {
                let own = |peer| if peer == rank { buffers.input } else { given(peer) };
                let sources = fill(&mut starts[..world as usize], own);
                reduce_all(call.dtype, call.reduce_op, sources, &Target::one(output), bytes);
            }
            Op::ReduceScatter => {
                let own = |peer| if peer == rank { buffers.input } else { given(peer) };
                let mine = |peer| own(peer).add(part * rank as usize);
                let sources = fill(&mut starts[..world as usize], mine);
                reduce_all(call.dtype, call.reduce_op, sources, &Target::one(output), part);
            }
            Op::AllGather => {
                for peer in peers {
                    copy_small(given(peer), output.add(bytes * peer as usize), bytes);
                }
            }
            Op::Broadcast if rank == call.root => keep(buffers.input, output, bytes),
            Op::Broadcast => copy_small(given(call.root), output, bytes),
            Op::AllToAll => {
                let own = part * rank as usize;
                keep(buffers.input.add(own), output.add(own), part);
                for peer in peers {
                    let theirs = given(peer).add(own);
                    copy_small(theirs, output.add(part * peer as usize), part);
                }
            }
        }
    }
    Ok(())
}

/// Moves what a rank gives to itself, unless it is in place already.
///
/// # Safety
///
/// As for [`copy_small`], but that both may be the same.
#[inline(always)]
unsafe fn keep(from: *const u8, to: *mut u8, len: usize) {
    if from != to.cast_const() {
        // SAFETY: the caller's.
        unsafe { copy_small(from, to, len) };
    }
}

/// Where each rank's contribution begins.
// In place: loads that wait for the stores of a copy take as long as a tiny call's data.
#[inline(always)]
fn fill(starts: &mut [*const u8], start: impl Fn(u32) -> *const u8) -> &[*const u8] {
    for (at, rank) in starts.iter_mut().zip(0..) {
        *at = start(rank);
    }
    starts
}

/// Where a rank puts so many bytes.
#[inline(always)]
fn place_of(segment: &Segment, rank: u32, parity: usize, bytes: usize) -> *mut u8 {
    match bytes <= INLINE {
        true => segment.inline(rank, parity),
        false => segment.data(rank, parity),
    }
}
