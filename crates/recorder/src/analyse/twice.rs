//! Two looks: what moved between them does not hang, whatever it looked like.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::diagnosis::{Class, Diagnosis, Verdict};
use crate::image::{Image, Life};

use super::group::failed;
use crate::words;

/// A call that took as long as this and came to its end is slow: collectives of any size that
/// engines make take a thousandth of it.
const SLOW_MS: u64 = 1000;

/// Judges images taken later, and of waits keeps those that an earlier look showed as well. Where
/// calls that hung in the earlier look have ended since, after a long time, transport is slow.
pub fn analyse_twice(before: &[Image], after: &[Image]) -> Vec<Diagnosis> {
    let earlier = super::analyse(before);
    let apart = taken(after).saturating_sub(taken(before));
    let look = |mut diagnosis: Diagnosis| {
        let known = earlier.iter().find(|known| known.job == diagnosis.job);
        let known: &[Verdict] = known.map_or(&[], |known| &known.verdicts);
        diagnosis.verdicts.retain_mut(|verdict| match Devices::of(verdict, before, after) {
            devices if devices.are_asked() => devices.confirm(verdict, known, apart),
            _ => confirm(verdict, known, apart),
        });
        let moved = |hung: &&Verdict| match Devices::of(hung, before, after) {
            devices if devices.are_asked() => devices.have_moved() && are_well(hung, after),
            _ => has_moved(hung, after) && are_well(hung, after),
        };
        let slow: Vec<Verdict> = known.iter().filter(moved).filter_map(slow).collect();
        diagnosis.verdicts.extend(slow);
        diagnosis.verdicts.sort_by_key(|verdict| verdict.class);
        diagnosis
    };
    super::analyse(after).into_iter().map(look).collect()
}

fn taken(images: &[Image]) -> Duration {
    let latest = images.iter().map(|image| image.progress.taken).max();
    Duration::from_nanos(latest.unwrap_or(0))
}

/// Was it so before? Only of waits is that asked.
fn confirm(verdict: &mut Verdict, known: &[Verdict], apart: Duration) -> bool {
    if !verdict.class.is_wait() {
        return true;
    }
    let same = |other: &Verdict| {
        let of = |v: &Verdict| (v.class, v.group, v.number, v.ranks.clone());
        of(other) == of(verdict)
    };
    let confirmed = known.iter().any(same);
    let apart = words::span(u64::try_from(apart.as_millis()).unwrap_or(u64::MAX));
    verdict.evidence.push(format!("nothing moved in {apart} between two looks"));
    confirmed
}

/// Have all ranks that were in a call come back from it?
fn has_moved(hung: &Verdict, after: &[Image]) -> bool {
    let mut group = after.iter().filter(|image| image.about.group == hung.group).peekable();
    let number = hung.number.unwrap_or(u64::MAX);
    let back = |image: &Image| image.progress.finished >= number;
    hung.class == Class::StuckTransport && group.peek().is_some() && group.all(back)
}

/// Can all ranks of that group still go on? Where not, what ended did not come to its end.
fn are_well(hung: &Verdict, after: &[Image]) -> bool {
    let well =
        |image: &Image| !failed(image) && matches!(image.life, Life::Running | Life::Unknown);
    let mut group = after.iter().filter(|image| image.about.group == hung.group).peekable();
    group.peek().is_some() && group.all(well)
}

/// The calls that devices of a verdict's group waited in, by rank, at both looks.
struct Devices {
    class: Class,
    before: BTreeMap<u32, u64>,
    after: BTreeMap<u32, u64>,
}

impl Devices {
    fn of(verdict: &Verdict, before: &[Image], after: &[Image]) -> Devices {
        let calls = |images: &[Image]| {
            let group = images.iter().filter(|image| image.about.group == verdict.group);
            group
                .filter_map(|image| Some((image.about.rank, image.progress.device.as_ref()?.call)))
                .collect()
        };
        Devices { class: verdict.class, before: calls(before), after: calls(after) }
    }

    /// Is it about what devices wait in? Hosts that only enqueue may well go on meanwhile.
    fn are_asked(&self) -> bool {
        let wait = !self.before.is_empty() || !self.after.is_empty();
        self.class == Class::DeviceBehind || self.class == Class::StuckTransport && wait
    }

    /// Was it so before? Whom a device waits for is learnt bit by bit, so that some of the ranks
    /// are enough.
    fn confirm(&self, verdict: &mut Verdict, known: &[Verdict], apart: Duration) -> bool {
        let common = |other: &Verdict| verdict.ranks.iter().any(|rank| other.ranks.contains(rank));
        let same = |other: &Verdict| {
            (other.class, other.group) == (verdict.class, verdict.group) && common(other)
        };
        let confirmed = known.iter().any(same) && !self.have_moved();
        let apart = words::span(u64::try_from(apart.as_millis()).unwrap_or(u64::MAX));
        verdict.evidence.push(format!("devices wait in the same call in two looks, {apart} apart"));
        confirmed
    }

    /// Has every wait come to its end?
    fn have_moved(&self) -> bool {
        self.before.iter().all(|(rank, call)| self.after.get(rank) != Some(call))
    }
}

fn slow(hung: &Verdict) -> Option<Verdict> {
    let lasted = hung.age_ms.filter(|age| *age >= SLOW_MS)?;
    let mut verdict = Verdict { class: Class::SlowTransport, ..hung.clone() };
    verdict.sentence = match hung.class {
        Class::DeviceBehind => format!(
            "group `{}` is slow: {} came to a call {} or more after the others",
            hung.tag,
            words::devices(&hung.ranks),
            words::span(lasted)
        ),
        _ => format!(
            "transport in group `{}` is slow: {} took {} or more, and came to its end",
            hung.tag,
            hung.expected.as_deref().unwrap_or("a call"),
            words::span(lasted)
        ),
    };
    Some(verdict)
}
