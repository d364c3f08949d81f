//! One look at a group: is it well? What seems wrong is looked at again before it is called so, since
//! ranks move while they are looked at.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crossover_core::backend::{EnqueueError, Watch};
use crossover_core::settings::{HOST_DEVICE, OnHang};
use crossover_core::verdict::Verdict;

use super::Group;
use super::device::Device;
use super::judge::{self, Judged};
use super::patience::{Kind, Patience};
use crate::diagnosis::Class;
use crate::dump::{self, Cause};
use crate::group::GroupRecorder;
use crate::image::{Image, Life, Phase};
use crate::reader::Far;

/// After how long a wait is looked at a second time, and a death or a difference.
const SECOND_LOOK_AT_A_WAIT: Duration = Duration::from_millis(500);
const SECOND_LOOK: Duration = Duration::from_millis(200);

/// What was seen of a group so far.
pub(super) struct Look {
    far: Vec<Option<Far>>,
    /// Since when nothing has moved.
    since: Instant,
    device: Device,
    /// For how long the device has been waiting, if it is.
    device_waits: Option<Duration>,
    patience: Patience,
    suspicion: Option<Suspicion>,
    /// The age at which a wait was told last: twice that age is told again.
    told: Option<Duration>,
    /// Has what is to be acted upon been told, since anything moved?
    is_grave_told: bool,
    /// Ranks have other histories, and that was told: it will be so for good.
    is_difference_told: bool,
}

/// What seems wrong, since when, and how it looked then.
struct Suspicion {
    of: Suspect,
    since: Instant,
    images: Vec<Image>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Suspect {
    /// A process is gone, or its group has failed.
    Gone,
    /// Ranks have other histories.
    Differs,
    /// A rank is awaited.
    Waits,
}

/// What is wrong.
pub(super) struct Finding {
    suspect: Suspect,
    before: Vec<Image>,
    /// For how long nothing has moved.
    age: Duration,
    /// Is it time to act, or only to say so?
    is_grave: bool,
}

impl Look {
    pub(super) fn new(recorder: &GroupRecorder, watches: &[Arc<dyn Watch>]) -> Look {
        Look {
            far: recorder.rings().iter().map(|_| None).collect(),
            since: Instant::now(),
            device: Device::new(watches),
            device_waits: None,
            patience: Patience::default(),
            suspicion: None,
            told: None,
            is_grave_told: false,
            is_difference_told: false,
        }
    }

    /// Looks once. Returns what there is to say or to do.
    /// `all` are this process's groups.
    pub(super) fn at(&mut self, recorder: &GroupRecorder, all: &[Group]) -> Option<Finding> {
        self.device_waits = self.device.look(recorder.ring());
        recorder.ring().beat();
        let mine = recorder.ring().phase();
        if matches!(mine, Phase::Closed | Phase::Failed | Phase::Dropped) {
            return None;
        }
        let far: Vec<Option<Far>> =
            recorder.rings().iter().map(|ring| ring.as_ref().and_then(|ring| ring.far())).collect();
        let kind = recorder.ring().last_kind();
        if far != self.far {
            let before = calls(&self.far, recorder);
            let moved = calls(&far, recorder).saturating_sub(before);
            self.patience.note(kind, self.since.elapsed(), moved);
            (self.far, self.since) = (far, Instant::now());
            (self.told, self.is_grave_told) = (None, false);
        }
        let Some(suspect) = self.suspect(recorder, kind) else {
            self.suspicion = None;
            return None;
        };
        self.second_look(suspect, recorder, all)
    }

    fn suspect(&self, recorder: &GroupRecorder, kind: Kind) -> Option<Suspect> {
        let is_gone = |(ring, far): (&Option<crate::reader::Reader>, &Option<Far>)| {
            let is_open = far.is_some_and(|far| is_open(far.phase));
            is_open && ring.as_ref().is_some_and(|ring| ring.life() == Life::Gone)
        };
        let is_pending = self.is_pending();
        // An abort that reaches a rank's backend has let its call come back.
        let has_failed = |far: &Far| far.phase == Phase::Failed;
        if self.is_in_a_call(recorder) && self.far.iter().flatten().any(has_failed) {
            return Some(Suspect::Gone);
        }
        // Kernels of a device may wait for one that is gone though every call has come back.
        let matters = is_pending || recorder.ring().about().device != HOST_DEVICE;
        if matters && recorder.rings().iter().zip(&self.far).any(is_gone) {
            return Some(Suspect::Gone);
        }
        if !self.is_difference_told && self.differs(recorder) {
            return Some(Suspect::Differs);
        }
        let patience = self.soft(recorder, kind);
        (self.age() >= patience).then_some(Suspect::Waits)
    }

    /// For how long nothing has moved that should: calls of the host, or of the device, which come back
    /// to their callers before they are done.
    fn age(&self) -> Duration {
        let host = if self.is_pending() { self.since.elapsed() } else { Duration::ZERO };
        host.max(self.device_waits.unwrap_or_default())
    }

    fn second_look(
        &mut self,
        suspect: Suspect,
        recorder: &GroupRecorder,
        all: &[Group],
    ) -> Option<Finding> {
        let suspicion = match &self.suspicion {
            Some(suspicion) if suspicion.of == suspect => suspicion,
            _ => {
                let (since, images) = (Instant::now(), suspect.images(recorder, all));
                self.suspicion = Some(Suspicion { of: suspect, since, images });
                return None;
            }
        };
        let wait = match suspect {
            Suspect::Waits => SECOND_LOOK_AT_A_WAIT,
            Suspect::Gone | Suspect::Differs => SECOND_LOOK,
        };
        if suspicion.since.elapsed() < wait {
            return None;
        }
        let age = self.age();
        let is_grave = suspect != Suspect::Waits || age >= recorder.options().hang_after;
        let is_new = match is_grave {
            true => !self.is_grave_told,
            false => self.told.is_none_or(|told| age >= 2 * told),
        };
        if !is_new {
            return None;
        }
        self.told = Some(age);
        // A wait after that may still become a hang.
        self.is_grave_told |= is_grave && suspect != Suspect::Differs;
        self.is_difference_told |= suspect == Suspect::Differs;
        let before = suspicion.images.clone();
        Some(Finding { suspect, before, age, is_grave })
    }

    /// What was found was not so: if it is still suspected, it is looked at anew. A difference that was told
    /// stays told.
    pub(super) fn again(&mut self, not_so: &Finding) {
        self.suspicion = None;
        self.told = None;
        self.is_grave_told = false;
        self.is_difference_told &= not_so.suspect != Suspect::Differs;
    }

    /// After how long a wait is suspect, to be told of after a second look. Where it is soon a hang, that is
    /// before it is one.
    fn soft(&self, recorder: &GroupRecorder, kind: Kind) -> Duration {
        let options = recorder.options();
        let latest = (options.hang_after / 2).saturating_sub(SECOND_LOOK_AT_A_WAIT);
        let usual = || self.patience.for_a(kind).min(latest);
        options.warn_after.unwrap_or_else(usual).min(options.hang_after)
    }

    /// Is anybody in a call, or ahead of others? Who has left out a note is behind for good, and nobody waits
    /// for it.
    fn is_pending(&self) -> bool {
        let open = || self.far.iter().flatten().filter(|far| is_open(far.phase));
        let most = open().map(|far| far.issued).max();
        let is_apart = |issued: u64| !self.is_difference_told && Some(issued) != most;
        open().any(|far| far.finished < far.issued || is_apart(far.issued))
    }

    /// Is this rank in a call?
    fn is_in_a_call(&self, recorder: &GroupRecorder) -> bool {
        let own = self.far.get(recorder.ring().about().rank as usize).copied().flatten();
        own.is_some_and(|far| far.finished < far.issued)
    }

    /// Has a rank another history than its peers? Two that differ prove it, wherever a third is: looked at are
    /// the last record that all have, and the last that two have.
    fn differs(&self, recorder: &GroupRecorder) -> bool {
        let mut issued: Vec<u64> = self.far.iter().flatten().map(|far| far.issued).collect();
        issued.sort_unstable();
        let [all, ..] = issued[..] else { return false };
        let two = issued.iter().rev().nth(1).copied().unwrap_or(all);
        let differ_at = |number: u64| {
            let there = recorder.rings().iter().zip(&self.far).filter_map(|(ring, far)| {
                far.is_some_and(|far| far.issued >= number).then_some(ring.as_ref())?
            });
            let mut chains = there.filter_map(|ring| ring.chain(number));
            let first = chains.next();
            number > 0 && chains.any(|chain| Some(chain) != first)
        };
        differ_at(all) || two > all && differ_at(two)
    }
}

/// Looks a second time, says what it is, and does what was set. `false` if nothing is wrong after all.
pub(super) fn act(recorder: &Arc<GroupRecorder>, all: &[Group], finding: &Finding) -> bool {
    let images = finding.suspect.images(recorder, all);
    let about = recorder.ring().about();
    let judged = judge::judge(finding.suspect, about, &finding.before, &images);
    let Some(Judged { verdict, images }) = judged else {
        tracing::debug!(target: "crossover::watch", "a second look found nothing");
        return false;
    };
    if !finding.is_grave || judge::is_harmless(&verdict, finding.suspect) {
        let advice = verdict.advice.first().map(|advice| format!("; {advice}")).unwrap_or_default();
        let age = match finding.suspect {
            Suspect::Waits => format!(" (for {:.1?})", finding.age),
            Suspect::Gone | Suspect::Differs => String::new(),
        };
        tracing::warn!(target: "crossover::watch", "{}{age}{advice}", verdict.sentence);
        return true;
    }
    let is_circle = verdict.class == Class::CrossGroupDeadlock;
    let is_own = |group: &&Group| Arc::ptr_eq(&group.recorder, recorder);
    let ended = || all.iter().filter(|group| is_own(group) || is_circle && is_stuck(group, images));
    let others = |own: &Group| {
        let others = ended().filter(|other| !Arc::ptr_eq(&other.recorder, &own.recorder));
        others.map(|other| Arc::clone(&other.recorder)).collect::<Vec<_>>()
    };
    // All are told of before any is ended: peers that come free end their processes.
    let dumped = |group: &Group| {
        dump::report(&group.recorder, &others(group), || images.to_vec(), &Cause::Watchdog)
    };
    let said: Vec<_> = ended().filter_map(dumped).collect();
    let error = judge::error(&verdict, images, about.rank, finding.age);
    end(ended().collect(), images, &error);
    // Last: a log that nobody reads may keep whoever writes into it.
    said.iter().for_each(dump::Said::log);
    true
}

/// Does to these groups what was set.
fn end(mut groups: Vec<&Group>, images: &[Image], error: &EnqueueError) {
    groups.retain(|group| group.recorder.options().on_hang != OnHang::Log);
    for group in &groups {
        group.recorder.end_with(error.clone());
    }
    // A process whose call comes back may end at once: where it waits itself comes last, so that peers
    // learn of the rest why, and not that it is gone.
    groups.sort_by_key(|group| is_in_a_call(group, images));
    for group in groups {
        if group.recorder.options().on_hang == OnHang::Abort {
            group.aborts.end(&Verdict::of(error, group.recorder.ring().about().rank));
        }
    }
}

/// Was this rank in a call of this group?
fn is_in_a_call(group: &Group, images: &[Image]) -> bool {
    let own = group.recorder.ring().about();
    let is_own = |image: &&Image| (image.about.group, image.about.rank) == (own.group, own.rank);
    images.iter().find(is_own).is_some_and(|i| i.progress.finished < i.progress.issued)
}

/// Is anybody in a call of this group, or ahead of others? Of groups that form a circle somebody is.
fn is_stuck(group: &Group, images: &[Image]) -> bool {
    let number = group.recorder.ring().about().group;
    let own = images.iter().filter(|image| image.about.group == number);
    let open = || own.clone().map(|image| &image.progress).filter(|p| is_open(p.phase));
    let most = open().map(|progress| progress.issued).max();
    open().any(|p| p.finished < p.issued || Some(p.issued) != most)
}

impl Suspect {
    /// What there is to look at: for whom a rank waits may be seen in other groups alone.
    fn images(self, recorder: &GroupRecorder, all: &[Group]) -> Vec<Image> {
        match self {
            Suspect::Waits => all.iter().flat_map(|group| group.recorder.images()).collect(),
            Suspect::Gone | Suspect::Differs => recorder.images(),
        }
    }
}

fn is_open(phase: Phase) -> bool {
    matches!(phase, Phase::Open | Phase::Committing | Phase::Closing)
}

/// The records of this rank.
fn calls(far: &[Option<Far>], recorder: &GroupRecorder) -> u64 {
    let rank = recorder.ring().about().rank as usize;
    far.get(rank).copied().flatten().map_or(0, |far| far.issued)
}
