//! A picture that a person opens in a browser: what each rank did last, number by number, and
//! where they part. One file that fetches nothing and runs nothing; it is XML as well as HTML.

mod escape;
mod lanes;
mod window;

use std::fmt::Write as _;

use crossover_core::call::Op;

use self::escape::escaped;
use super::places::groups;
use super::word;
use crate::diagnosis::{Diagnosis, Verdict};
use crate::image::{Image, What};

const STYLE: &str = include_str!("style.css");

/// What lanes of ranks that were not seen are filled with.
const HATCH: &str = "<svg width=\"0\" height=\"0\"><defs><pattern id=\"hatch\" width=\"6\" \
                     height=\"6\" patternUnits=\"userSpaceOnUse\"><path d=\"M0 6L6 0\"/></pattern>\
                     </defs></svg>\n";

/// What a record can be, and its letter in the picture.
const KINDS: [(What, char); 9] = [
    (What::Call(Op::AllReduce), 'R'),
    (What::Call(Op::AllGather), 'G'),
    (What::Call(Op::ReduceScatter), 'S'),
    (What::Call(Op::Broadcast), 'B'),
    (What::Call(Op::AllToAll), 'A'),
    (What::State, 'd'),
    (What::Replay, 'P'),
    (What::Commit, 'C'),
    (What::Close, 'x'),
];

/// Writes an HTML page: the verdicts; then for each group a lane a rank, in which records of one
/// number stand under one another: the last ones, and those around the first that differs.
pub fn timeline(images: &[Image], diagnosis: &Diagnosis) -> String {
    let mut page = String::new();
    // Nothing is fetched and no script runs, whatever a name may hold: the page says so itself.
    let _ = write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'\"/>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\
         <title>crossover: job {job}</title>\n<style>\n{STYLE}</style></head>\n<body>\n\
         <h1>Job {job}</h1>\n",
        job = escaped(&diagnosis.job)
    );
    verdicts(&mut page, &diagnosis.verdicts);
    let groups = groups(images);
    if groups.is_empty() {
        page.push_str("<p>No rank's ring was found.</p>\n");
    } else {
        page.push_str(HATCH);
        legend(&mut page);
    }
    for group in &groups {
        let of_it = diagnosis.verdicts.iter().filter(|v| v.group == group.number);
        let of_it: Vec<&Verdict> = of_it.collect();
        lanes::draw(&mut page, group, &of_it);
    }
    list(&mut page, "Notes", &diagnosis.notes);
    page.push_str("</body></html>\n");
    page
}

fn verdicts(page: &mut String, verdicts: &[Verdict]) {
    if verdicts.is_empty() {
        page.push_str("<p class=\"well\">Nothing wrong was found.</p>\n");
        return;
    }
    page.push_str("<ol class=\"verdicts\">\n");
    for verdict in verdicts {
        let _ = write!(page, "<li><b>{}</b>", escaped(&verdict.sentence));
        list(page, "What was seen", &verdict.evidence);
        list(page, "What to do", &verdict.advice);
        page.push_str("</li>\n");
    }
    page.push_str("</ol>\n");
}

fn list(page: &mut String, heading: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let _ = write!(page, "<p class=\"head\">{heading}</p><ul>");
    for line in lines {
        let _ = write!(page, "<li>{}</li>", escaped(line));
    }
    page.push_str("</ul>\n");
}

fn legend(page: &mut String) {
    page.push_str("<p class=\"legend\">");
    for (what, letter) in KINDS {
        let word = word(what);
        let _ = write!(page, "<span class=\"key {word}\">{letter}</span> {word} ");
    }
    page.push_str(
        "<span class=\"key wait\"> </span> has not come back \
         <span class=\"key ahead\"> </span> not come to it \
         <span class=\"key lost\"> </span> not kept \
         <span class=\"key first\"> </span> a verdict's record, on the ranks that it names; \
         ← ranks that a device waits for</p>\n",
    );
}

fn letter(what: What) -> char {
    KINDS.iter().find(|(kind, _)| *kind == what).map_or('?', |(_, letter)| *letter)
}
