//! UCC's `TUNE` strings, as UCC 1.10 reads them: entries with `#` between, each of words with `:`
//! between, in any order. Sizes are those of a rank's receive buffer, a broadcast's of the buffer.
//!
//! Every transport layer has a string of its own; for a call the layer of the highest score serves,
//! of equal ones the later.

mod entry;
mod order;
mod size;
mod transport;

use std::ops::Range;

use super::draft::{Draft, Overlaps};
use super::findings::{Findings, short};
use entry::Entry;
use transport::{Transport, UCP};

/// Are there entries, whatever becomes of them?
pub(super) fn read(findings: &mut Findings<'_>, draft: &mut Draft) -> bool {
    let mut entries = Vec::new();
    let mut in_section = false;
    for (start, line) in findings.lines() {
        let written = line.trim();
        let at = start + (line.len() - line.trim_start().len());
        let span = at..at + written.len();
        if written.is_empty() || written.starts_with('#') {
            continue;
        }
        if written.starts_with('[') && written.contains('=') {
            let message = "a section holds on some processors alone, which may differ between \
                           ranks: what is in it is left out";
            findings.loss(span, message);
            in_section = true;
        } else if !in_section {
            line_of(findings, written, at, &mut entries);
        }
    }
    let has_entries = !entries.is_empty();
    for row in order::rows(findings, entries) {
        draft.push(findings, row, Overlaps::Meant);
    }
    if !draft.rules.is_empty() {
        let message = "a size that no entry names goes on to the policy's layers below; in UCC its \
                       transport layers have scores of their own";
        findings.note(0..0, message);
    }
    has_entries
}

/// A string alone, or a variable with one.
fn line_of(findings: &mut Findings<'_>, written: &str, at: usize, entries: &mut Vec<Entry>) {
    let Some((name, value)) = written.split_once('=') else {
        let message = "no variable says which transport layer this is for: it is read as `ucp`'s";
        findings.note(at..at + written.len(), message);
        string(findings, &UCP, written, at, entries);
        return;
    };
    let value_at = at + name.len() + 1;
    let variable = name.trim().strip_prefix("export ").unwrap_or(name).trim();
    let name_span = at..at + name.len();
    let value_trimmed = value.trim_start();
    let value_at = value_at + (value.len() - value_trimmed.len());
    let (value, value_at) = unquoted(value_trimmed.trim_end(), value_at);
    let layer = variable.strip_prefix("UCC_").and_then(|v| v.strip_suffix("_TUNE"));
    let Some(layer) = layer else {
        let message = format!("`{}` is no `TUNE` string: it is left out", short(variable));
        findings.loss(name_span, message);
        return;
    };
    let transport = layer.strip_prefix("TL_");
    let named = |t: &&Transport| transport.is_some_and(|name| t.name.eq_ignore_ascii_case(name));
    match Transport::all().find(named) {
        Some(transport) => string(findings, transport, value, value_at, entries),
        None if transport.is_none() && layer.starts_with("CL_") => {
            let variable = short(variable);
            let message = format!("collective layers have no equal here: `{variable}` is left out");
            findings.loss(name_span, message);
        }
        None => {
            let message = format!("`{}` names no transport layer of UCC's", short(variable));
            let known: Vec<String> = Transport::all().map(Transport::variable).collect();
            findings.unknown(name_span, message, variable, known.iter().map(String::as_str));
        }
    }
}

fn string(
    findings: &mut Findings<'_>,
    transport: &'static Transport,
    text: &str,
    at: usize,
    entries: &mut Vec<Entry>,
) {
    for (at, text) in pieces(text, at, '#') {
        if findings.is_too_much(entries.len(), &span(at, text)) {
            return;
        }
        entries.extend(entry::read(findings, transport, text, at));
    }
}

/// The pieces of a text between separators, each with the byte at which it starts.
fn pieces(text: &str, start: usize, separator: char) -> impl Iterator<Item = (usize, &str)> {
    let mut at = start;
    text.split(separator).map(move |piece| {
        let from = at;
        at += piece.len() + separator.len_utf8();
        (from, piece)
    })
}

/// The place of a piece.
fn span(at: usize, text: &str) -> Range<usize> {
    at..at + text.len()
}

/// Without the quotes of a shell around it.
fn unquoted(value: &str, at: usize) -> (&str, usize) {
    for quote in ['"', '\''] {
        if let Some(inner) = value.strip_prefix(quote).and_then(|v| v.strip_suffix(quote)) {
            return (inner, at + 1);
        }
    }
    (value, at)
}
