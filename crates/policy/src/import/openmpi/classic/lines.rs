//! The numbers of a classic file, line by line.

use std::ops::Range;

use crate::import::findings::{Findings, short};

/// What is wrong has been told, and what follows cannot be made out.
pub(super) struct Stop;

pub(super) struct Number {
    pub(super) value: u64,
    pub(super) span: Range<usize>,
}

/// A count of something, and where it stands.
pub(super) struct Announced {
    pub(super) count: u64,
    what: &'static str,
    line: u32,
}

/// The lines that have something on them.
pub(super) struct Lines {
    lines: std::vec::IntoIter<Line>,
    /// How many numbers a rule may have.
    rule: usize,
    /// Of the text.
    end: usize,
}

struct Line {
    /// Byte and text of each word.
    words: Vec<(usize, String)>,
}

impl Lines {
    pub(super) fn of(findings: &mut Findings<'_>) -> Lines {
        let mut lines = Vec::new();
        let mut rule = 4; // size, algorithm, fan in/out, segment size
        for (start, text) in findings.lines() {
            let code = text.split('#').next().unwrap_or("");
            let words: Vec<(usize, String)> = words(start, code).collect();
            match &words[..] {
                [] => {}
                [(at, word)] if lines.is_empty() && word.starts_with(HEADER) => {
                    if version(findings, *at, word) >= 2 {
                        rule = 5; // the number of requests too
                    }
                }
                _ => lines.push(Line { words }),
            }
        }
        Lines { lines: lines.into_iter(), rule, end: findings.text().len() }
    }

    /// How many of something follow.
    pub(super) fn count(
        &mut self,
        findings: &mut Findings<'_>,
        what: &'static str,
        within: Option<&Announced>,
    ) -> Result<Announced, Stop> {
        let number = self.one(findings, &format!("the number of {what}"), within)?;
        Ok(Announced { count: number.value, what, line: findings.line(number.span.start) })
    }

    /// A line with one number.
    pub(super) fn one(
        &mut self,
        findings: &mut Findings<'_>,
        what: &str,
        within: Option<&Announced>,
    ) -> Result<Number, Stop> {
        let mut numbers = self.numbers(findings, &format!("{what}, alone on its line"), within)?;
        match (numbers.len(), numbers.pop()) {
            (1, Some(number)) => Ok(number),
            (found, last) => {
                let span = last.map_or(0..0, |last| last.span);
                let message = format!("{what} belongs here, alone on its line; here are {found}");
                findings.error(span, message, why(within));
                Err(Stop)
            }
        }
    }

    /// A line with a rule; four numbers at least.
    pub(super) fn rule(
        &mut self,
        findings: &mut Findings<'_>,
        within: &Announced,
    ) -> Result<Vec<Number>, Stop> {
        let most = self.rule;
        let shape = match most {
            4 => "size, algorithm, fan in/out and segment size",
            _ => "size, algorithm, fan in/out, segment size and, if need be, max requests",
        };
        let numbers = self.numbers(findings, &format!("a rule ({shape})"), Some(within))?;
        if !(4..=most).contains(&numbers.len()) {
            let found = numbers.len();
            let span = numbers.last().map_or(0..0, |last| last.span.clone());
            let message = format!("a rule belongs here ({shape}); the line's numbers: {found}");
            let help = match found {
                5 => "max requests needs `rule-file-version-2` on the first line".to_owned(),
                _ => why(Some(within)),
            };
            findings.error(span, message, help);
            return Err(Stop);
        }
        Ok(numbers)
    }

    /// Nothing may be left.
    pub(super) fn end(
        &mut self,
        findings: &mut Findings<'_>,
        within: &Announced,
    ) -> Result<(), Stop> {
        match self.lines.next().map(|line| line.words) {
            Some(words) if !words.is_empty() => {
                let (at, word) = &words[0];
                let message = "the file goes on behind all that it announces";
                findings.error(*at..at + word.len(), message, why(Some(within)));
                Err(Stop)
            }
            _ => Ok(()),
        }
    }

    fn numbers(
        &mut self,
        findings: &mut Findings<'_>,
        what: &str,
        within: Option<&Announced>,
    ) -> Result<Vec<Number>, Stop> {
        let Some(line) = self.lines.next() else {
            let message = format!("the file ends where it must have {what}");
            findings.error(self.end..self.end, message, why(within));
            return Err(Stop);
        };
        let mut numbers = Vec::new();
        for (at, word) in line.words {
            let span = at..at + word.len();
            let plain = word == "0" || !word.starts_with('0');
            let digits = word.bytes().all(|b| b.is_ascii_digit());
            match word.parse() {
                Ok(value) if digits && plain => numbers.push(Number { value, span }),
                _ if digits && !plain => {
                    let word = short(&word);
                    let message = format!("`{word}` begins with 0: Open MPI takes it for octal");
                    findings.error(span, message, "write it in decimal, without the 0");
                    return Err(Stop);
                }
                _ => {
                    let message = format!("`{}` is no whole number", short(&word));
                    let help = "Open MPI would skip it, sign by sign; comments begin with `#`, and \
                                sizes have no units";
                    findings.error(span, message, help);
                    return Err(Stop);
                }
            }
        }
        Ok(numbers)
    }
}

const HEADER: &str = "rule-file-version-";

/// The version in the header; 1 if it is wrong, which is told.
fn version(findings: &mut Findings<'_>, at: usize, word: &str) -> u32 {
    match word[HEADER.len()..].parse() {
        Ok(version @ 1..=2) => version,
        _ => {
            let message = format!("`{}` is no version of the classic format", short(word));
            let help = "there are `rule-file-version-1` and `rule-file-version-2`; 3 is JSON";
            findings.error(at..at + word.len(), message, help);
            1
        }
    }
}

/// Why something is expected.
fn why(within: Option<&Announced>) -> String {
    match within {
        None => "the file begins with the number of collectives".to_owned(),
        Some(Announced { count, what, line }) => {
            format!("line {line} says {count} for the number of {what}: are there as many?")
        }
    }
}

/// The words of a line that starts at this byte.
fn words(start: usize, code: &str) -> impl Iterator<Item = (usize, String)> {
    let mut at = start;
    code.split(|c: char| c.is_ascii_whitespace())
        .map(move |word| {
            let from = at;
            at += word.len() + 1; // such a blank is one byte
            (from, word.to_owned())
        })
        .filter(|(_, word)| !word.is_empty())
}
