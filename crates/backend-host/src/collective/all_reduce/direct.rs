//! Every rank reads its shard of its peers' inputs and reduces it, then reads the peers' shards of
//! their outputs.

use crossover_core::backend::EnqueueError;
use crossover_core::call::{CallBuffers, CallSig};

use crate::collective::direct::reduce_from;
use crate::collective::parts::shard;
use crate::exchange::Exchange;
use crate::mover::Mover;

/// # Safety
///
/// As for [`crate::collective::run`].
pub(crate) unsafe fn run(
    call: &CallSig<'_>,
    buffers: &CallBuffers,
    exchange: &mut Exchange<'_>,
    mover: &mut Mover<'_>,
) -> Result<(), EnqueueError> {
    let (total, world) = (call.bytes() as usize, exchange.world());
    let at = exchange.meet_at(buffers.input, buffers.output)?;
    let mine = shard(total, exchange.rank(), world);
    // SAFETY: the own shard of the output. In place, it is the own shard of the input, which no
    // peer reads.
    unsafe {
        let to = buffers.output.add(mine.start);
        reduce_from(exchange, mover, call, buffers.input, |peer| at(peer).0, mine, to)?;
    }
    // From here on nobody reads inputs, and every output has its owner's shard.
    exchange.meet(|_| ())?;
    for peer in exchange.peers() {
        let theirs = shard(total, peer, world);
        // SAFETY: inside the output; a shard that peers do not read from here.
        unsafe {
            let to = buffers.output.add(theirs.start);
            exchange.read(peer, at(peer).1 + theirs.start as u64, to, theirs.len())?;
        }
    }
    // From here on nobody reads this output.
    exchange.meet(|_| ())?;
    Ok(())
}
