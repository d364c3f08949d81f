//! A backend that is the host's, with a step more in its set-up and a link that can die: after a call
//! has been recorded, and without a word.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crossover_core::agreement::{Setup, SetupError, StepError};
use crossover_core::backend::{Abort, Backend, Descriptor, EnqueueError, Ready, Session};
use crossover_core::call::{CallBuffers, CallSig};
use crossover_core::facts::GroupFacts;
use crossover_core::registry::{Registration, Registry};
use crossover_core::verdict::Verdict;

use super::fault::{Change, Faults, Point};

/// Its name in policies.
pub(super) const WIRE: &str = "wire";

/// A backend is made by a function that is told nothing.
static FAULTS: OnceLock<Faults> = OnceLock::new();

/// A registry of this backend alone, in this version.
pub(super) fn registry(version: &str, faults: &Faults) -> Registry {
    FAULTS.get_or_init(|| faults.clone());
    let host = host();
    let descriptor =
        Descriptor { id: WIRE, version: version.to_owned().leak(), ..*host.descriptor };
    let descriptor = Box::leak(Box::new(descriptor));
    let entry = Registration { descriptor, make: || Box::new(Wire) };
    Registry::empty().with(entry).expect("it is as well formed as the host's")
}

fn host() -> Registration {
    let linked = crossover_backends::registry().expect("linked backends have distinct ids");
    let host = linked.entries().iter().find(|entry| entry.descriptor.id == "host");
    *host.expect("the host's backend is linked")
}

fn at(point: Point, step: u32) -> Option<Change> {
    FAULTS.get().and_then(|faults| faults.at(point, step))
}

struct Wire;

impl Backend for Wire {
    fn set_up<'g>(
        &self,
        setup: &mut Setup<'g>,
        facts: &GroupFacts,
    ) -> Result<Ready<'g>, SetupError> {
        let nothing = setup.rank().map(drop);
        setup.step("raise the wire", nothing, |_, ()| match at(Point::Vote, 0) {
            Some(_) => Err(StepError("the wire is cut".to_owned())),
            None => Ok(()),
        })?;
        let Ready { session, capacity } = (host().make)().set_up(setup, facts)?;
        let session = session.map(|session| {
            let is_ended = Arc::new(AtomicBool::new(false));
            Box::new(Wired { session, is_ended }) as Box<dyn Session>
        });
        Ok(Ready { session, capacity })
    }
}

struct Wired {
    session: Box<dyn Session>,
    is_ended: Arc<AtomicBool>,
}

impl Session for Wired {
    unsafe fn enqueue(
        &mut self,
        algorithm: usize,
        params: &[u64],
        seq: u64,
        call: &CallSig<'_>,
        buffers: &CallBuffers,
    ) -> Result<(), EnqueueError> {
        if at(Point::Wire, seq as u32) == Some(Change::Hang) {
            let start = Instant::now();
            while !self.is_ended.load(Relaxed) {
                // A test that waits in vain is to fail, not to hang.
                assert!(start.elapsed() < Duration::from_secs(60), "nobody ended the wait");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        // SAFETY: the caller's contract is the same.
        unsafe { self.session.enqueue(algorithm, params, seq, call, buffers) }
    }

    fn check(&mut self, seq: u64) -> Result<(), EnqueueError> {
        self.session.check(seq)
    }

    fn abort_handle(&self) -> Arc<dyn Abort> {
        let (session, is_ended) = (self.session.abort_handle(), Arc::clone(&self.is_ended));
        Arc::new(Cut { session, is_ended })
    }

    fn close(&mut self, seq: u64) -> Result<(), EnqueueError> {
        self.session.close(seq)
    }
}

struct Cut {
    session: Arc<dyn Abort>,
    is_ended: Arc<AtomicBool>,
}

impl Abort for Cut {
    fn abort(&self, verdict: &Verdict) {
        self.session.abort(verdict);
        self.is_ended.store(true, Relaxed);
    }
}
