//! The watchdog: one thread a process looks at the rings of all its groups ten times a second. It calls no
//! vendor and reads memory and `/proc` alone, so that nothing that hangs can take it along.

mod device;
mod look;
mod patience;

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use crossover_core::backend::Watch as DeviceWatch;
use crossover_core::communicator::AbortHandle;

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

/// The groups of this process, and the process whose thread watches them: a child that was forked since
/// has no such thread.
struct Watch {
    groups: Vec<Watched>,
    by: Option<u32>,
}

static WATCH: Mutex<Watch> = Mutex::new(Watch { groups: Vec::new(), by: None });

/// Watches a group until its recorder is dropped.
pub(crate) fn add(
    recorder: &Arc<GroupRecorder>,
    aborts: AbortHandle,
    watches: &[Arc<dyn DeviceWatch>],
) {
    let mut watch = lock();
    let process = std::process::id();
    if watch.by.is_some_and(|by| by != process) {
        watch.groups.clear();
        watch.by = None;
    }
    watch.groups.push(Watched {
        recorder: Arc::downgrade(recorder),
        aborts,
        look: Look::new(recorder, watches),
    });
    if watch.by.is_none() {
        let named = std::thread::Builder::new().name("crossover-watch".to_owned());
        match named.spawn(run) {
            Ok(_) => watch.by = Some(process),
            Err(e) => {
                tracing::warn!(target: "crossover::watch", "no thread for the watchdog: {e}");
            }
        }
        // Only once: a process that ends by itself leaves no names behind.
        static LAST_WORD: std::sync::Once = std::sync::Once::new();
        LAST_WORD.call_once(|| {
            if let Err(e) = crossover_bootstrap::exit::before_exit(|_| leave_all()) {
                tracing::debug!(target: "crossover::watch", "no handler for the process's end: {e}");
            }
        });
    }
}

/// Looks until there is nothing to look at.
fn run() {
    let _successor = Successor;
    loop {
        std::thread::sleep(PERIOD);
        let mut watch = lock();
        watch.groups.retain(|group| group.recorder.strong_count() > 0);
        if watch.groups.is_empty() {
            watch.by = None;
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
            if !look::act(&recorder, &all, finding) {
                let is_it = |group: &&mut Watched| {
                    std::ptr::eq(group.recorder.as_ptr(), Arc::as_ptr(&recorder))
                };
                if let Some(group) = lock().groups.iter_mut().find(is_it) {
                    group.look.again();
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
        if let Ok(watch) = WATCH.try_lock() {
            if watch.by == Some(std::process::id()) {
                let groups = watch.groups.iter().filter_map(|group| group.recorder.upgrade());
                groups.for_each(|recorder| recorder.leave());
            }
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
            lock().by = None;
            tracing::error!(
                target: "crossover::watch",
                "the watchdog panicked: no group is watched until the next one is formed"
            );
        }
    }
}

fn lock() -> std::sync::MutexGuard<'static, Watch> {
    WATCH.lock().unwrap_or_else(PoisonError::into_inner)
}
