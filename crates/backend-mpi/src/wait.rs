//! How a rank waits: it asks MPI a few times, then gives its processor away between two questions,
//! then sleeps; and what it looks at meanwhile, so that no wait outlasts its reason.

use std::time::{Duration, Instant};

use crossover_core::verdict::Verdict;

use crate::watch::{News, Watch};

/// Questions at once: MPI's functions take some hundred nanoseconds each.
const SPINS: u32 = 64;
/// How often one looks around: every so many questions.
const LOOKS: u32 = 16;
/// Until then a processor is only given away.
const YIELDING: Duration = Duration::from_millis(1);
/// Afterwards: what a message is late by, at most.
const NAP: Duration = Duration::from_micros(50);
/// What a rank has sent may arrive after its end was seen.
pub(crate) const GRACE: Duration = Duration::from_millis(300);

/// One wait.
pub(crate) struct Wait<'a> {
    watch: &'a Watch,
    deadline: Duration,
    questions: u32,
    since: Option<Instant>,
    gone: Option<(Instant, u32, &'static str)>,
}

/// Why a wait ended before what was waited for.
pub(crate) enum Ended {
    /// The group has.
    Verdict(Verdict),
    /// A rank is gone.
    Lost { rank: u32, how: &'static str },
    /// The deadline has passed.
    Late(Duration),
}

impl<'a> Wait<'a> {
    pub(crate) fn new(watch: &'a Watch, deadline: Duration) -> Self {
        Wait { watch, deadline, questions: 0, since: None, gone: None }
    }

    /// Between two questions.
    #[inline]
    pub(crate) fn pause(&mut self) -> Result<(), Ended> {
        self.questions = self.questions.wrapping_add(1);
        if self.questions < SPINS && self.since.is_none() {
            std::hint::spin_loop();
            return Ok(());
        }
        self.slow()
    }

    #[cold]
    fn slow(&mut self) -> Result<(), Ended> {
        let waited = self.since.get_or_insert_with(Instant::now).elapsed();
        if self.questions.is_multiple_of(LOOKS) || waited >= YIELDING {
            self.look()?;
        }
        if waited >= self.deadline {
            return Err(Ended::Late(waited));
        }
        match waited < YIELDING {
            true => rustix::thread::sched_yield(),
            false => std::thread::sleep(NAP),
        }
        Ok(())
    }

    fn look(&mut self) -> Result<(), Ended> {
        match self.watch.look() {
            Some(News::Ended(verdict)) => return Err(Ended::Verdict(verdict)),
            Some(News::Gone { rank, how }) if self.gone.is_none() => {
                self.gone = Some((Instant::now(), rank, how));
            }
            _ => {}
        }
        match self.gone {
            Some((since, rank, how)) if since.elapsed() >= GRACE => Err(Ended::Lost { rank, how }),
            _ => Ok(()),
        }
    }
}
