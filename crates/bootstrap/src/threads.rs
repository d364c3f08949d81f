//! Ranks as threads of one process.

use std::collections::BTreeMap;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crossover_core::bootstrap::{Bootstrap, BootstrapError};

use crate::exchange::{LOOK, over};

/// Endpoints of one group whose ranks are threads, in rank order: for tests, and for engines that
/// drive several devices from one process. Each exchange may take `deadline`.
pub fn threads(world: u32, deadline: Duration) -> Vec<ThreadChannel> {
    let shared = Arc::new(Shared {
        meeting: Mutex::new(Meeting {
            rounds: BTreeMap::new(),
            gone: vec![false; world as usize],
            broken: None,
            parts: BTreeMap::new(),
        }),
        changed: Condvar::new(),
        world,
        deadline,
    });
    (0..world)
        .map(|rank| ThreadChannel { rank, next: Mutex::new(0), shared: Arc::clone(&shared) })
        .collect()
}

/// One rank's endpoint; see [`threads`]. Dropping it makes the others' exchanges fail.
pub struct ThreadChannel {
    rank: u32,
    next: Mutex<u64>,
    shared: Arc<Shared>,
}

struct Shared {
    meeting: Mutex<Meeting>,
    changed: Condvar,
    world: u32,
    deadline: Duration,
}

struct Meeting {
    /// Rounds that some rank has entered and not all have left.
    rounds: BTreeMap<u64, Round>,
    gone: Vec<bool>,
    /// The first failure is everyone's.
    broken: Option<BootstrapError>,
    /// Endpoints of groups within the group that their ranks have not fetched yet, by rank here.
    parts: BTreeMap<u32, ThreadChannel>,
}

struct Round {
    /// Who named the step first, and how.
    step: (u32, String),
    parcels: Vec<Option<Arc<Parcel>>>,
    left: u32,
}

#[derive(Default)]
struct Parcel {
    body: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

impl Bootstrap for ThreadChannel {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn world(&self) -> u32 {
        self.shared.world
    }

    fn deadline(&self) -> Duration {
        self.shared.deadline
    }

    fn all_gather(&self, step: &str, mine: &[u8]) -> Result<Vec<Vec<u8>>, BootstrapError> {
        self.all_gather_unless(step, mine, &|| None)
    }

    fn all_gather_unless(
        &self,
        step: &str,
        mine: &[u8],
        ended: &dyn Fn() -> Option<String>,
    ) -> Result<Vec<Vec<u8>>, BootstrapError> {
        let mine = Parcel { body: mine.to_vec(), ..Parcel::default() };
        let all = self.exchange(step, mine, ended)?;
        Ok(all.iter().map(|parcel| parcel.body.clone()).collect())
    }

    fn all_gather_fds(
        &self,
        step: &str,
        mine: &[BorrowedFd<'_>],
    ) -> Result<Vec<Vec<OwnedFd>>, BootstrapError> {
        let no_descriptors = |e: std::io::Error| {
            self.shared.fail(BootstrapError::NoDescriptors {
                step: step.to_owned(),
                why: format!("rank {} cannot duplicate one: {e}", self.rank),
            })
        };
        let descriptors: Result<_, _> = mine.iter().map(BorrowedFd::try_clone_to_owned).collect();
        let descriptors = descriptors.map_err(no_descriptors)?;
        let all = self.exchange(step, Parcel { descriptors, ..Parcel::default() }, &|| None)?;
        let duplicate = |parcel: &Arc<Parcel>| {
            parcel.descriptors.iter().map(OwnedFd::try_clone).collect::<Result<Vec<_>, _>>()
        };
        all.iter().map(duplicate).collect::<Result<_, _>>().map_err(no_descriptors)
    }

    fn split(&self, step: &str, color: u32) -> Result<Box<dyn Bootstrap>, BootstrapError> {
        let colors = self.all_gather(step, &color.to_le_bytes())?;
        let mine = color.to_le_bytes();
        let part: Vec<u32> =
            (0..).zip(&colors).filter(|(_, theirs)| **theirs == mine).map(|(r, _)| r).collect();
        if part.first() == Some(&self.rank) {
            let ends = threads(part.len() as u32, self.shared.deadline / 2);
            self.shared.lock().parts.extend(part.into_iter().zip(ends));
        }
        // After this every part is there.
        self.all_gather(step, &[])?;
        let own = self.shared.lock().parts.remove(&self.rank);
        Ok(Box::new(own.expect("the lowest rank of each part has made it")))
    }
}

impl ThreadChannel {
    fn exchange(
        &self,
        step: &str,
        mine: Parcel,
        ended: &dyn Fn() -> Option<String>,
    ) -> Result<Vec<Arc<Parcel>>, BootstrapError> {
        let until = Instant::now() + self.shared.deadline;
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let seq = *next;
        *next += 1;
        let mut meeting = self.shared.lock();
        meeting.enter(seq, self.rank, step, mine)?;
        self.shared.changed.notify_all();
        let mut look = Instant::now() + LOOK;
        loop {
            if let Some(all) = meeting.complete(seq) {
                return Ok(all);
            }
            let now = Instant::now();
            let failure =
                meeting.broken.clone().or_else(|| meeting.lost(seq, step)).or_else(|| {
                    (now >= until).then(|| BootstrapError::Missing {
                        ranks: meeting.awaited(seq),
                        step: step.to_owned(),
                        waited: self.shared.deadline,
                    })
                });
            if let Some(failure) = failure {
                drop(meeting);
                return Err(self.shared.fail(failure));
            }
            if now >= look {
                drop(meeting);
                if let Some(why) = ended() {
                    let (rank, step, how) = (self.rank, step.to_owned(), over(&why));
                    return Err(self.shared.fail(BootstrapError::Lost { rank, step, how }));
                }
                look = now + LOOK;
                meeting = self.shared.lock();
                // It may have changed meanwhile.
                continue;
            }
            meeting = self
                .shared
                .changed
                .wait_timeout(meeting, until.min(look) - now)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

impl Drop for ThreadChannel {
    fn drop(&mut self) {
        self.shared.lock().gone[self.rank as usize] = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    /// A panic of one rank poisons nothing: the meeting is changed in single, complete steps.
    fn lock(&self) -> MutexGuard<'_, Meeting> {
        self.meeting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, failure: BootstrapError) -> BootstrapError {
        let first = self.lock().broken.get_or_insert(failure).clone();
        self.changed.notify_all();
        first
    }
}

impl Meeting {
    fn enter(
        &mut self,
        seq: u64,
        rank: u32,
        step: &str,
        mine: Parcel,
    ) -> Result<(), BootstrapError> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        let world = self.gone.len();
        let round = self.rounds.entry(seq).or_insert_with(|| Round {
            step: (rank, step.to_owned()),
            parcels: (0..world).map(|_| None).collect(),
            left: 0,
        });
        round.parcels[rank as usize] = Some(Arc::new(mine));
        let (first, theirs) = &round.step;
        if theirs != step {
            self.broken = Some(BootstrapError::DifferentSteps {
                me: rank,
                mine: step.to_owned(),
                rank: *first,
                theirs: theirs.clone(),
            });
        }
        Ok(())
    }

    /// Everyone's parcels, once all are there and the step is the same. The last to leave clears the table.
    fn complete(&mut self, seq: u64) -> Option<Vec<Arc<Parcel>>> {
        let round = self.rounds.get_mut(&seq)?;
        let all: Vec<_> = round.parcels.iter().map(Option::clone).collect::<Option<_>>()?;
        if self.broken.is_some() && round.left == 0 {
            return None;
        }
        round.left += 1;
        if round.left as usize == all.len() {
            self.rounds.remove(&seq);
        }
        Some(all)
    }

    fn awaited(&self, seq: u64) -> Vec<u32> {
        let Some(round) = self.rounds.get(&seq) else { return Vec::new() };
        let absent = round.parcels.iter().enumerate().filter(|(_, parcel)| parcel.is_none());
        absent.map(|(rank, _)| rank as u32).collect()
    }

    fn lost(&self, seq: u64, step: &str) -> Option<BootstrapError> {
        let rank = self.awaited(seq).into_iter().find(|rank| self.gone[*rank as usize])?;
        let how = "its endpoint was dropped".to_owned();
        Some(BootstrapError::Lost { rank, step: step.to_owned(), how })
    }
}
