//! Two looks: what moved between them does not hang, whatever it looked like.

use std::time::Duration;

use crate::diagnosis::{Class, Diagnosis, Verdict};
use crate::image::Image;

use super::words;

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
        diagnosis.verdicts.retain_mut(|verdict| confirm(verdict, known, apart));
        let slow: Vec<Verdict> =
            known.iter().filter(|hung| has_moved(hung, after)).filter_map(slow).collect();
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

fn slow(hung: &Verdict) -> Option<Verdict> {
    let lasted = hung.age_ms.filter(|age| *age >= SLOW_MS)?;
    let mut verdict = Verdict { class: Class::SlowTransport, ..hung.clone() };
    verdict.sentence = format!(
        "transport in group `{}` is slow: {} took {} or more, and came to its end",
        hung.tag,
        hung.expected.as_deref().unwrap_or("a call"),
        words::span(lasted)
    );
    Some(verdict)
}
