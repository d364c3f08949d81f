//! What a communicator tells its recorder, and what no longer once its group has ended: the last that is
//! kept is what a group ended in.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crossover_backend_host as _;
use crossover_core::backend::EnqueueError;
use crossover_core::call::ReduceOp;
use crossover_core::record::{Entry, Event, Recorder};
use crossover_core::registry::Registry;

mod group;

/// Writes down in words what it is told.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Notes {
    fn add(&self, word: &str) {
        self.0.lock().expect("nobody panics").push(word.to_owned());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().expect("nobody panics"))
    }
}

impl Recorder for Notes {
    fn begin(&self, entry: &Entry<'_>) -> bool {
        self.add(match entry.event {
            Event::Call(_) => "call",
            Event::State { .. } => "state",
            Event::Replay { .. } => "replay",
            Event::Commit => "commit",
            Event::Close => "close",
        });
        true
    }

    fn end(&self) {
        self.add("end");
    }

    fn trouble(&self, _: u64) -> EnqueueError {
        panic!("nothing is refused");
    }

    fn failed(&self, _: &EnqueueError) {
        self.add("failed");
    }

    fn closed(&self) {
        self.add("closed");
    }

    fn left(&self) {
        self.add("left");
    }

    fn name_site(&self, _: &str) {
        self.add("site");
    }
}

#[test]
fn a_group_that_has_ended_tells_nothing_more() {
    let channel = crossover_bootstrap::threads(1, Duration::from_secs(20)).remove(0);
    let notes = Arc::new(Notes::default());
    let group = group::form(&channel, &Registry::empty());
    let group = group.with_recorder(notes.clone());

    group.note_state(1, 2);
    let mut output = [0.0];
    group.all_reduce(&[1.0f32], &mut output, ReduceOp::Sum).expect("a copy");
    group.note_replay(16).expect("nobody disagrees");
    group.commit_over(&channel).expect("nothing was captured");
    group.close().expect("nobody is awaited");
    let told = ["state", "end", "call", "end", "replay", "end", "commit", "end", "close", "closed"];
    assert_eq!(notes.take(), told);

    group.note_state(2, 3);
    group.commit_over(&channel).expect_err("the group is closed");
    group.note_replay(16).expect_err("the group is closed");
    group.close().expect("a second close does nothing");
    assert_eq!(notes.take(), [""; 0]);
}

#[test]
fn who_learns_from_backends_that_a_rank_has_left_finds_it_told() {
    let registry = Registry::linked().expect("the host's backend");
    let mut channels = crossover_bootstrap::threads(2, Duration::from_secs(20));
    // As a watchdog does, that looks at this moment.
    let held = Arc::new(Notes::default());
    std::thread::scope(|scope| {
        let channel = channels.remove(1);
        scope.spawn({
            let (registry, held) = (&registry, held.clone());
            move || drop(group::form(&channel, registry).with_recorder(held))
        });
        let group = group::form(&channels[0], &registry);
        let mut output = [0.0];
        let error = group.all_reduce(&[1.0f32], &mut output, ReduceOp::Sum).expect_err("it left");
        assert_eq!(held.take(), ["left"], "{error}");
        assert!(error.to_string().contains("rank 1"), "{error}");
    });
}
