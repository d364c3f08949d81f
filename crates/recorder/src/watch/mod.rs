//! The watchdog: one thread a process looks at the rings of all its groups ten times a second. It calls no
//! vendor and reads memory and `/proc` alone, so that nothing that hangs can take it along.

mod device;
mod judge;
mod look;
mod patience;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use crossover_core::backend::Watch as DeviceWatch;
use crossover_core::communicator::AbortHandle;

use crate::forked::PerProcess;
use crate::group::GroupRecorder;
use look::Look;

/// Between two looks.
const PERIOD: Duration = Duration::from_millis(100);

/// A group of this process, and how its calls are ended.
#[derive(Clone)]
struct Group {
    recorder: Arc<GroupRecorder>,
    aborts: AbortHandle,
}

/// A group that is watched.
struct Watched {
    recorder: Weak<GroupRecorder>,
    aborts: AbortHandle,
    look: Look,
}

impl Watched {
    fn group(&self) -> Option<Group> {
        Some(Group { recorder: self.recorder.upgrade()?, aborts: self.aborts.clone() })
    }
}

/// What a process has of the watchdog.
#[derive(Default)]
struct Own {
    watch: Mutex<Watch>,
    /// Has it a handler for its end?
    last_word: OnceLock<()>,
}

/// The groups of this process, and whether a thread watches them.
#[derive(Default)]
struct Watch {
    groups: Vec<Watched>,
    is_watched: bool,
}

static OWN: PerProcess<Own> = PerProcess::new(Own::default);

/// Watches a group until its recorder is dropped.
pub(crate) fn add(
    recorder: &Arc<GroupRecorder>,
    aborts: AbortHandle,
    watches: &[Arc<dyn DeviceWatch>],
) {
    let mut watch = lock();
    watch.groups.push(Watched {
        recorder: Arc::downgrade(recorder),
        aborts,
        look: Look::new(recorder, watches),
    });
    if !watch.is_watched {
        let named = std::thread::Builder::new().name("crossover-watch".to_owned());
        match named.spawn(run) {
            Ok(_) => watch.is_watched = true,
            Err(e) => {
                tracing::warn!(target: "crossover::watch", "no thread for the watchdog: {e}");
            }
        }
        // Only once: a process that ends by itself leaves no names behind.
        OWN.get().last_word.get_or_init(|| {
            if let Err(e) = crossover_bootstrap::exit::before_exit(|_| leave_all()) {
                tracing::debug!(target: "crossover::watch", "no handler for the process's end: {e}");
            }
        });
    }
}

/// The groups of this process.
pub(crate) fn groups() -> Vec<Arc<GroupRecorder>> {
    lock().groups.iter().filter_map(|group| group.recorder.upgrade()).collect()
}

/// Looks until there is nothing to look at.
fn run() {
    let _successor = Successor;
    loop {
        std::thread::sleep(PERIOD);
        let mut watch = lock();
        watch.groups.retain(|group| group.recorder.strong_count() > 0);
        if watch.groups.is_empty() {
            watch.is_watched = false;
            return;
        }
        // Who is awaited in one group may wait in another: a look at one may need them all.
        let all: Vec<Group> = watch.groups.iter().filter_map(Watched::group).collect();
        // What was found is acted upon without the lock: a group may be added meanwhile.
        let mut found = Vec::new();
        for group in &mut watch.groups {
            if let Some(recorder) = group.recorder.upgrade()
                && let Some(finding) = group.look.at(&recorder, &all)
            {
                found.push((recorder, finding));
            }
        }
        drop(watch);
        for (recorder, finding) in found {
            if !look::act(&recorder, &all, &finding) {
                let is_it = |group: &&mut Watched| {
                    std::ptr::eq(group.recorder.as_ptr(), Arc::as_ptr(&recorder))
                };
                if let Some(group) = lock().groups.iter_mut().find(is_it) {
                    group.look.again(&finding);
                }
            }
        }
    }
}

/// The process ends.
fn leave_all() {
    crate::dump::await_written();
    // A look takes milliseconds; who holds the lock for longer is in a thread that is no more.
    for _ in 0..TRIES {
        if let Ok(watch) = OWN.get().watch.try_lock() {
            let groups = watch.groups.iter().filter_map(|group| group.recorder.upgrade());
            groups.for_each(|recorder| recorder.leave());
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// How often the lock is tried when the process ends, once a millisecond.
const TRIES: u32 = 1000;

/// A watchdog that panics is followed by another with the next group.
struct Successor;

impl Drop for Successor {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock().is_watched = false;
            tracing::error!(
                target: "crossover::watch",
                "the watchdog panicked: no group is watched until the next one is formed"
            );
        }
    }
}

fn lock() -> std::sync::MutexGuard<'static, Watch> {
    OWN.get().watch.lock().unwrap_or_else(PoisonError::into_inner)
}
