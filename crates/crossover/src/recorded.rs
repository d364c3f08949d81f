//! Every group has a flight recorder.

use crossover_bootstrap::Launch;
use crossover_core::bootstrap::Bootstrap;
use crossover_core::communicator::Communicator;
use crossover_core::form::FormError;
use crossover_core::registry::Registry;
use crossover_policy::{DumpFolder, Settings};
use crossover_recorder::{Dumps, GroupRecorder, Job, Options};

/// Gives a group that has just been formed its recorder, on this rank. Collective.
pub(crate) fn recorded(
    group: Communicator,
    channel: &dyn Bootstrap,
    launch: &Launch,
    settings: &Settings,
    device: String,
    registry: &Registry,
) -> Result<Communicator, FormError> {
    let job = Job { launch: launch.clone(), device, backends: format!("{:#}", registry.digest()) };
    let set = &settings.recording;
    let options = Options {
        rings: set.rings.clone(),
        dumps: dumps(&set.dumps),
        on_hang: set.on_hang,
        warn_after: set.hang_warning,
        hang_after: set.hang_timeout.unwrap_or_else(|| settings.group("").backends.call_deadline),
    };
    Ok(match GroupRecorder::open(channel, &group, &job, options)? {
        Some(recorder) => group.with_recorder(recorder),
        None => group,
    })
}

/// Where dumps go by the settings.
pub fn dumps(set: &DumpFolder) -> Dumps {
    match set {
        DumpFolder::None => Dumps::None,
        DumpFolder::Temporary(folder) => Dumps::Temporary(folder.clone()),
        DumpFolder::In(folder) => Dumps::In(folder.clone()),
    }
}
