//! What is told to the flight recorder, and what only it is told: the engine's notes.

use std::panic::Location;
use std::sync::Arc;

use super::{CallError, Communicator, Inner};
use crate::ablation::{Guarantee, is_off};
use crate::backend::Watch;
use crate::record::{Entry, Event, Recorder};

impl Communicator {
    /// Tells this recorder all that the group does from now on. To be given on every rank, before
    /// the first call.
    #[must_use]
    pub fn with_recorder(mut self, recorder: Arc<dyn Recorder>) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// What can serve calls, such as `host/one_shot`, and `copy` for a group of one: in the order by
    /// which a recorder is told who served a call.
    pub fn targets(&self) -> &[String] {
        self.counters.targets()
    }

    /// What a watchdog can look at while calls run.
    pub fn watches(&self) -> &[Arc<dyn Watch>] {
        &self.watches
    }

    /// Notes the engine's state: `digest` is of all that must be equal on every rank in this step,
    /// such as the requests of the batch, their lengths and what was accepted. Where ranks' states
    /// part, the first step in which they do is named, before or after what it leads to. Every rank
    /// notes in the same steps. Costs as much as recording a call, and compares nothing by itself. Once
    /// the group has ended nothing is noted: what it ended in stays the last that is kept.
    #[track_caller]
    pub fn note_state(&self, step: u32, digest: u64) {
        let site = Location::caller();
        let inner = self.lock();
        let Some(recorder) = self.recorder.as_ref().filter(|_| inner.usable().is_ok()) else {
            return;
        };
        let event = Event::State { step, digest };
        if recorder.begin(&Entry { event, seq: inner.seq, target: 0, site }) {
            recorder.end();
        }
    }

    /// Says what the engine calls the place of the calls to come, such as `L31.o_proj`: reports name
    /// it instead of the place in the program, until it says otherwise; an empty name ends that.
    pub fn note_site(&self, name: &str) {
        let _inner = self.lock();
        if let Some(recorder) = &self.recorder {
            recorder.name_site(name);
        }
    }

    /// To be called before the engine replays a graph that holds calls of this group; `graph` is what
    /// the engine knows it by, equal on all ranks, such as the batch size it was captured for. A replay
    /// takes a number as a call does. Ranks that replay different graphs are told so where the
    /// backends can see it, instead of waiting for one another inside the graphs.
    ///
    /// # Errors
    ///
    /// The group has ended, or ranks do different things.
    #[track_caller]
    pub fn note_replay(&self, graph: u64) -> Result<(), CallError> {
        let site = Location::caller();
        let mut inner = self.lock();
        inner.usable()?;
        inner.seq += 1;
        let seq = inner.seq;
        self.begin(&mut inner, Entry { event: Event::Replay { graph }, seq, target: 0, site })?;
        let told = inner.sessions.iter_mut().flatten().try_for_each(|s| s.replay(graph, seq));
        told.map_err(|e| self.poison(&mut inner, e))?;
        self.done();
        Ok(())
    }

    /// Records what is about to be done, which is not done if the group is to end: for what its ranks
    /// were told first, or for what was found here.
    #[inline]
    pub(super) fn begin(&self, inner: &mut Inner, entry: Entry<'_>) -> Result<(), CallError> {
        match &self.recorder {
            Some(recorder) if !is_off(Guarantee::Record) && !recorder.begin(&entry) => {
                let error = inner.ended().unwrap_or_else(|| recorder.trouble(entry.seq));
                Err(self.poison(inner, error))
            }
            _ => Ok(()),
        }
    }

    /// What was begun is done.
    #[inline]
    pub(super) fn done(&self) {
        if let Some(recorder) = &self.recorder
            && !is_off(Guarantee::Record)
        {
            recorder.end();
        }
    }
}

impl Drop for Communicator {
    /// Before the sessions are dropped: a peer that they tell looks at once into what is recorded here.
    fn drop(&mut self) {
        if let Some(recorder) = &self.recorder {
            recorder.left();
        }
    }
}
