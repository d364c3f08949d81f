//! A diagnosis as an operator reads it: what is the matter, what speaks for it, what to do; then
//! every group, a line a rank.

use std::fmt::Write;

use crate::analyse::state_in_words;
use crate::diagnosis::{Diagnosis, GroupState, RankState, Verdict, life_name};

/// Writes a diagnosis.
pub fn text(diagnosis: &Diagnosis) -> String {
    let mut out = format!("job {}\n", diagnosis.job);
    if diagnosis.verdicts.is_empty() {
        out += "nothing wrong was found\n";
    }
    for verdict in &diagnosis.verdicts {
        out.push('\n');
        write_verdict(&mut out, verdict);
    }
    for group in &diagnosis.groups {
        out.push('\n');
        write_group(&mut out, group);
    }
    if !diagnosis.notes.is_empty() {
        out.push('\n');
    }
    for note in &diagnosis.notes {
        line(&mut out, "note: ", note);
    }
    out
}

fn write_verdict(out: &mut String, verdict: &Verdict) {
    line(out, &format!("{}: ", verdict.class.name()), &verdict.sentence);
    for evidence in &verdict.evidence {
        line(out, "   ", evidence);
    }
    for advice in &verdict.advice {
        line(out, "-> ", advice);
    }
}

fn write_group(out: &mut String, group: &GroupState) {
    let head = ["rank", "process", "state", "records", "done", "step", "last"];
    let rows: Vec<[String; 7]> = group.ranks.iter().map(row).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([head[column].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    line(out, "", &format!("group `{}` ({:x}), {} ranks", group.tag, group.group, group.world));
    let mut write = |cells: &[&str]| {
        let cells = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        line(out, "  ", cells.collect::<Vec<_>>().join("  ").trim_end());
    };
    write(&head);
    for row in &rows {
        write(&row.each_ref().map(String::as_str));
    }
    for wait in group.ranks.iter().filter_map(state_in_words) {
        line(out, "  ", &wait);
    }
    for rank in &group.ranks {
        if let Some(end) = &rank.end {
            line(out, "  ", &format!("rank {} ended with: {end}", rank.rank));
        }
    }
}

fn row(rank: &RankState) -> [String; 7] {
    let state = match (rank.life, rank.phase) {
        (Some(life), Some(phase)) => format!("{}, {}", life_name(life), phase.name()),
        _ => "not seen".to_owned(),
    };
    let number = |number: u64| if rank.seen { number.to_string() } else { "-".to_owned() };
    [
        rank.rank.to_string(),
        rank.member.clone(),
        state,
        number(rank.issued),
        number(rank.finished),
        number(u64::from(rank.step)),
        rank.last.clone().unwrap_or_else(|| "-".to_owned()),
    ]
}

/// One line: what comes out of a ring may hold anything, also what moves a terminal's cursor.
fn line(out: &mut String, start: &str, text: &str) {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let text: String = text.chars().map(plain).collect();
    // Writing to a string does not fail.
    let _ = writeln!(out, "{start}{text}");
}
