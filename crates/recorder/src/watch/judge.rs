//! What two looks at a group say together: the verdict, whether it is worth more than a word, and what calls
//! fail with if it is.

use std::time::Duration;

use crossover_core::backend::EnqueueError;

use super::look::Suspect;
use crate::about::About;
use crate::analyse::{analyse, analyse_twice};
use crate::diagnosis::{Class, Diagnosis, NOTE, Verdict};
use crate::image::Image;

/// A verdict, and what it was found in.
pub(super) struct Judged<'a> {
    pub(super) verdict: Verdict,
    pub(super) images: &'a [Image],
}

/// Judges the group of `about`. None if the second look does not bear out what was suspected.
pub(super) fn judge<'a>(
    suspect: Suspect,
    about: &About,
    before: &'a [Image],
    after: &'a [Image],
) -> Option<Judged<'a>> {
    let second = of_group(suspect, about, analyse_twice(before, after))?;
    if suspect == Suspect::Differs && second.class == Class::DivergedBeforeWindow {
        // A fast engine overwrites all that is kept between two looks, and the cause with it.
        let first = of_group(suspect, about, analyse(before));
        if let Some(verdict) = first.filter(|first| first.class != Class::DivergedBeforeWindow) {
            return Some(Judged { verdict, images: before });
        }
    }
    Some(Judged { verdict: second, images: after })
}

fn of_group(suspect: Suspect, about: &About, found: Vec<Diagnosis>) -> Option<Verdict> {
    let diagnosis = found.into_iter().find(|found| found.job == about.job)?;
    let own = || diagnosis.verdicts.iter().filter(|verdict| verdict.group == about.group);
    // A circle of waits is told in one of its groups.
    let circle = || diagnosis.verdicts.iter().find(|v| v.class == Class::CrossGroupDeadlock);
    let first = own().next();
    let verdict = match first.is_some_and(leads_to_nothing) && suspect != Suspect::Differs {
        // That ranks have parted makes none of them wait, nor go: what does explains more.
        true => own().find(|verdict| !leads_to_nothing(verdict)).or_else(circle).or(first),
        false => first.or_else(circle),
    };
    verdict.filter(|verdict| is_confirmed(suspect, verdict.class)).cloned()
}

/// Have ranks parted, and make the same calls as far as is known?
fn leads_to_nothing(verdict: &Verdict) -> bool {
    // Notes are nobody's wait: calls may match all the same.
    let is_note = |v: &Verdict| v.class == Class::BranchDivergence && v.fields == [NOTE];
    match verdict.class {
        Class::StateDrift => {
            verdict.effect.as_deref().is_none_or(|effect| effect.class.is_wait() || is_note(effect))
        }
        Class::BranchDivergence => is_note(verdict),
        // Calls that differ end their group by themselves, wherever backends compare them.
        Class::DivergedBeforeWindow => true,
        _ => false,
    }
}

/// A look from nearer may find another cause, but not none.
fn is_confirmed(suspect: Suspect, class: Class) -> bool {
    match suspect {
        Suspect::Gone => {
            !matches!(class, Class::NotArrived | Class::DeviceBehind | Class::SlowTransport)
        }
        Suspect::Differs => !class.is_wait(),
        Suspect::Waits => true,
    }
}

/// That ranks have parted is no more than a word while calls still match. That they are a little apart is no
/// effect of it: a wait that is one becomes a hang.
/// Nor is a call that takes long and comes to its end.
pub(super) fn is_harmless(verdict: &Verdict, suspect: Suspect) -> bool {
    let is_drift = verdict.class == Class::StateDrift && verdict.effect.is_none();
    let is_parted = suspect == Suspect::Differs && leads_to_nothing(verdict);
    is_drift || is_parted || verdict.class == Class::SlowTransport
}

/// What calls fail with from now on, on `rank`, after a wait of `waited`.
pub(super) fn error(
    verdict: &Verdict,
    images: &[Image],
    rank: u32,
    waited: Duration,
) -> EnqueueError {
    // A drift of state lets nobody wait; what it has led to does.
    let shown = verdict.effect.as_deref().unwrap_or(verdict);
    // What has no call of its own, as settings that differ, shows in the last one.
    let own = || {
        let is_own = |i: &&Image| (i.about.group, i.about.rank) == (verdict.group, rank);
        let record = images.iter().find(is_own)?.records.values().next_back()?;
        Some(record.seq)
    };
    let step = "the watchdog".to_owned();
    let seq = shown.seq.or(verdict.seq).or_else(own).unwrap_or(0);
    let sentence = verdict.sentence.clone();
    let ranks = shown.ranks.clone();
    let error = match (shown.class, ranks.first()) {
        (Class::CrashedRank | Class::Left, Some(rank)) => {
            EnqueueError::Lost { step, seq, rank: *rank, how: sentence }
        }
        (
            Class::NotArrived
            | Class::StoppedRank
            | Class::Frozen
            | Class::DeviceBehind
            | Class::StuckTransport
            | Class::CrossGroupDeadlock,
            Some(_),
        ) => EnqueueError::Late { step: sentence, seq, ranks, waited },
        (Class::Ended, Some(rank)) => {
            EnqueueError::Aborted { step, seq, rank: *rank, reason: sentence }
        }
        _ => EnqueueError::Mismatch { seq, what: sentence },
    };
    EnqueueError::Found(Box::new(error))
}
