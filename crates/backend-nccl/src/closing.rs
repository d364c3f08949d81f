//! The end of a communicator whose calls are in graphs. The library frees it once all of those are gone,
//! which is up to the engine, and an engine may close its groups first. So once every rank has closed, and
//! what they have enqueued is done, the library is left to wait for that by itself.
//!
//! Replays that were not noted are not known of: one that a peer has not made is not awaited.

use std::time::Instant;

use crossover_device::stream::Stream;

use crate::aside::{Aside, Fared};
use crate::board::Board;
use crate::parting::CLOSE;
use crate::watch::{PATIENCE, Shared};

impl Shared {
    /// Waits for the library, or for all that matters of what it waits for.
    ///
    /// # Errors
    ///
    /// The library's, or it is late and not for graphs alone.
    pub(crate) fn close_beside_graphs(
        &self,
        closing: &Aside<()>,
        board: &Board,
    ) -> Result<(), Fared> {
        let (rank, began) = (self.maker.rank, Instant::now());
        // What takes longer may wait for graphs.
        let mut closed = closing.wait(CLOSE.min(self.deadline));
        if !matches!(closed, Err(Fared::Late(_))) {
            return closed;
        }
        board.close(rank);
        let device = &self.maker.device;
        let behind = device.make_current().and_then(|()| Stream::new(device)).and_then(|stream| {
            stream.wait(&self.behind)?;
            Ok(stream)
        });
        // What cannot be told is not so.
        let is_idle = || match &behind {
            _ if self.last.is_none() => true,
            Ok(behind) => behind.is_done().unwrap_or(false),
            Err(_) => false,
        };
        let all_came = || board.open().is_empty() && board.elsewhere(rank).is_empty();
        while matches!(closed, Err(Fared::Late(_)))
            && self.ends.is_well()
            && began.elapsed() < self.deadline
        {
            if all_came() && is_idle() && self.comm.leave() {
                closing.leave();
                tracing::info!("the communicator is freed once the graphs with its calls are gone");
                return Ok(());
            }
            closed = closing.wait(PATIENCE);
        }
        closed
    }
}
