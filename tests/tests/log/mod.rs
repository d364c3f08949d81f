//! What a rank logs: each rank is a thread, and a thread's events can be kept.
#![allow(unreachable_pub, reason = "each test program uses a part of it")]

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// What was logged: `WARN crossover::form: the message`.
pub type Lines = Vec<String>;

/// Runs `work` and returns, beside its result, what this thread logged meanwhile at one of
/// `levels` in any of the project's own targets.
pub fn kept<R>(levels: &'static [Level], work: impl FnOnce() -> R) -> (R, Lines) {
    let lines = Arc::new(Mutex::new(Lines::new()));
    let keeper = Keeper { levels, lines: Arc::clone(&lines) };
    let result = tracing::subscriber::with_default(keeper, work);
    let lines = std::mem::take(&mut *lines.lock().expect("no event panicked"));
    (result, lines)
}

struct Keeper {
    levels: &'static [Level],
    lines: Arc<Mutex<Lines>>,
}

impl Subscriber for Keeper {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("crossover") && self.levels.contains(metadata.level())
    }

    fn event(&self, event: &Event<'_>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        let (level, target) = (event.metadata().level(), event.metadata().target());
        let line = format!("{level} {target}: {}", message.0);
        self.lines.lock().expect("no event panicked").push(line);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            write!(self.0, "{value:?}").expect("a string takes all");
        }
    }
}
