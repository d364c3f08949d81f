//! The engine's groups: as the facade forms them, or by hand with a registry of the engine's own.

use std::sync::Arc;

use crossover::bootstrap::{Launch, Options, connect};
use crossover::core::bootstrap::Bootstrap;
use crossover::policy::{DumpFolder, Settings};
use crossover::recorder::{Dumps, GroupRecorder, Job};
use crossover::{Builder, Communicator, Error};
use crossover_core::form::FormError;

use super::fault::{Faults, Point};
use super::{tensors, wire};
use crate::groups::forcing;

/// What an engine holds.
pub struct Groups {
    /// The group of most calls.
    pub tp: Communicator,
    /// The other one, of the same ranks, if the engine has one.
    pub ep: Option<Communicator>,
}

impl Groups {
    /// Both, in the order in which every rank comes to them.
    pub(super) fn all(&self) -> impl Iterator<Item = &Communicator> {
        std::iter::once(&self.tp).chain(&self.ep)
    }
}

/// Forms them. With `wire` the only backend is the test's own, in this version.
///
/// # Errors
///
/// A group does not come about.
pub fn form(
    builder: &Builder,
    settings: &Settings,
    wire: Option<&str>,
    is_double: bool,
    faults: &Faults,
) -> Result<Groups, Error> {
    tensors::install(settings);
    faults.at(Point::Form, 0);
    let one = |tag: &str| match wire {
        Some(version) => by_hand(builder, settings, version, tag, faults),
        None => builder.clone().tag(tag).form(),
    };
    let tp = one("tp")?;
    let ep = is_double.then(|| one("ep")).transpose()?;
    Ok(Groups { tp, ep })
}

/// As an engine does that brings its own registry and policy.
fn by_hand(
    builder: &Builder,
    settings: &Settings,
    version: &str,
    tag: &str,
    faults: &Faults,
) -> Result<Communicator, Error> {
    let launch = builder.launch().cloned().unwrap_or_else(|| Launch::new(0, 1));
    let mut options = Options::default();
    if let Some(deadline) = settings.form_timeout {
        options.deadline = deadline;
    }
    let channel: Arc<dyn Bootstrap> = connect(&launch, &options)?.into();
    let registry = wire::registry(version, faults);
    let (report, policy) = (crossover::report(None), forcing(wire::WIRE));
    let group = settings.group(tag);
    let formed = Communicator::form(&*channel, &registry, &policy, report, &group)?;
    let job = Job {
        launch: launch.clone(),
        device: "host".to_owned(),
        backends: format!("{:#}", registry.digest()),
    };
    let set = &settings.recording;
    let options = crossover::recorder::Options {
        rings: set.rings.clone(),
        dumps: match &set.dumps {
            DumpFolder::In(folder) => Dumps::In(folder.clone()),
            _ => Dumps::None,
        },
        on_hang: set.on_hang,
        warn_after: set.hang_warning,
        hang_after: set.hang_timeout.unwrap_or(group.backends.call_deadline),
    };
    let recorder = GroupRecorder::open(&*channel, &formed, &job, options);
    let formed = match recorder.map_err(FormError::from)? {
        Some(recorder) => formed.with_recorder(recorder),
        None => formed,
    };
    Ok(formed.with_channel(channel))
}
