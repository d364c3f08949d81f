//! Threads as ranks: a group of sessions.

mod calls;
mod data;
mod distance;
mod ends;
mod numerics;
mod places;
mod sequences;
mod waits;

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crossover_bootstrap::threads;
use crossover_core::agreement::{SetupError, with_setup};
use crossover_core::settings::BackendSettings;

use crate::session::HostSession;
use crate::setup::open;

/// Settings with this chunk, a ring so short that data soon come round again, ranks that are called far
/// from one another, and a deadline that no healthy test comes near.
fn settings(chunk: &str) -> BackendSettings {
    let mut settings = BackendSettings::default();
    settings.values.insert("host.chunk".to_owned(), chunk.to_owned());
    settings.values.insert("host.ring".to_owned(), "3KiB".to_owned());
    settings.values.insert("host.distance".to_owned(), "far".to_owned());
    settings
}

/// Is this so at last? For what takes ranks that run at the same time, which they do not always where a
/// machine does something else: each try is a new one.
pub(crate) fn is_seen(attempt: impl Fn() -> bool) -> bool {
    let since = Instant::now();
    while since.elapsed() < Duration::from_secs(60) {
        if attempt() {
            return true;
        }
    }
    false
}

/// Runs `rank` on a thread per rank, each with a session of one group; results in rank order.
fn group<R: Send>(
    world: u32,
    settings: &BackendSettings,
    rank: impl Fn(u32, HostSession) -> R + Sync,
) -> Vec<R> {
    try_group(world, &|_| settings.clone(), |r, session| rank(r, session.unwrap()))
}

/// The same for set-ups that may fail, with settings of each rank's own.
fn try_group<R: Send>(
    world: u32,
    settings: &(dyn Fn(u32) -> BackendSettings + Sync),
    rank: impl Fn(u32, Result<HostSession, SetupError>) -> R + Sync,
) -> Vec<R> {
    let channels = threads(world, Duration::from_secs(60));
    std::thread::scope(|scope| {
        let ranks: Vec<_> = (0..)
            .zip(channels)
            .map(|(r, boot)| {
                let rank = &rank;
                scope.spawn(move || {
                    let session = with_setup(&boot, &settings(r), |setup| {
                        // What no backend should do: a way around `Local`, to test a session.
                        let out = Rc::new(Cell::new(None));
                        let inside = Rc::clone(&out);
                        let (local, _) = open(setup)?;
                        local.map(move |session| inside.set(Some(session)));
                        Ok(out.take().unwrap())
                    });
                    rank(r, session)
                })
            })
            .collect();
        ranks.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}
