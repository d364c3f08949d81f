//! A verdict is begun here, so that every class fills in the same things.

use crate::diagnosis::{Class, Verdict};
use crate::image::Record;

use super::group::Group;

/// A verdict about `ranks` of a group, with nothing said yet.
pub(super) fn finding(group: &Group<'_>, class: Class, ranks: Vec<u32>) -> Verdict {
    Verdict {
        class,
        branch: None,
        fields: Vec::new(),
        tag: group.tag.to_owned(),
        group: group.number,
        number: None,
        seq: None,
        step: None,
        ranks,
        site: None,
        expected: None,
        found: None,
        sentence: String::new(),
        evidence: Vec::new(),
        advice: Vec::new(),
        age_ms: None,
        effect: None,
    }
}

/// Says at which record it shows.
pub(super) fn at(verdict: Verdict, record: &Record) -> Verdict {
    let site = (!record.site.is_empty()).then(|| record.site.clone());
    Verdict {
        number: Some(record.number),
        seq: Some(record.seq),
        step: Some(record.step),
        site,
        ..verdict
    }
}
