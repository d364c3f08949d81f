//! What an importer has to say about its input.

use std::collections::HashMap;
use std::ops::Range;

use crate::diagnostic::{Code, Diagnostic, Position, Source};
use crate::suggest;

/// Errors, losses and notes, as they are found.
pub(super) struct Findings<'s> {
    source: &'s Source,
    /// The byte at which each line starts.
    starts: Vec<usize>,
    /// The last byte whose position was asked for: most are asked for in order.
    last: (usize, Position),
    errors: Vec<Diagnostic>,
    /// How many errors are not listed, and where the first of them is.
    unlisted: Option<(usize, Range<usize>)>,
    told: Vec<Told>,
    /// Where in `told` a message is that is told once.
    once: HashMap<String, usize>,
    is_full: bool,
}

/// The most errors that are listed: a file with more of them is something else.
const LISTED: usize = 50;

/// The most rows, entries or remarks of one file. Each is compared with all others, and no table
/// that a person tuned comes near.
const MOST: usize = 4000;

/// The most characters of a word that are quoted.
const QUOTED: usize = 60;

/// A word of the file as messages quote it: of a long one, how it begins.
pub(super) fn short(word: &str) -> String {
    match word.char_indices().nth(QUOTED) {
        None => word.to_owned(),
        Some((end, _)) => format!("{}..", &word[..end]),
    }
}

/// A loss or a note.
struct Told {
    said: Diagnostic,
    /// Further lines of which the same is true.
    lines: Vec<u32>,
}

impl<'s> Findings<'s> {
    pub(super) fn new(source: &'s Source) -> Self {
        let ends = source.text.match_indices('\n').map(|(at, _)| at + 1);
        Findings {
            source,
            starts: std::iter::once(0).chain(ends).collect(),
            last: (0, Position { line: 1, column: 1 }),
            errors: Vec::new(),
            unlisted: None,
            told: Vec::new(),
            once: HashMap::new(),
            is_full: false,
        }
    }

    pub(super) fn text(&self) -> &'s str {
        &self.source.text
    }

    /// Its lines, each with the byte at which it starts. A carriage return is no part of a line.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &'s str)> + use<'s> {
        let mut start = 0;
        self.source.text.split('\n').map(move |line| {
            let at = start;
            start += line.len() + 1;
            (at, line.strip_suffix('\r').unwrap_or(line))
        })
    }

    /// The line of a byte, from 1.
    pub(super) fn line(&self, at: usize) -> u32 {
        self.starts.partition_point(|start| *start <= at) as u32
    }

    fn position(&mut self, at: usize) -> Position {
        let text = &self.source.text;
        let at = self.source.boundary(at);
        let line = self.line(at);
        let (last, known) = self.last;
        let (from, column) = match known.line == line && last <= at {
            true => (last, known.column),
            false => (self.starts[line as usize - 1], 1),
        };
        let column = column + text[from..at].chars().count() as u32;
        self.last = (at, Position { line, column });
        self.last.1
    }

    /// Is this one more than there may be of something? Then that is an error, told once.
    pub(super) fn is_too_much(&mut self, count: usize, span: &Range<usize>) -> bool {
        if count >= MOST && !self.is_full {
            self.is_full = true;
            let message = format!("the file has more than {MOST} rows, entries or ranges");
            let help =
                "is it the file that was meant? take it apart, or leave out what is not used";
            // Beside those that are listed: it says why the rest was not read.
            let position = self.position(span.start);
            let help = Some(help.to_owned());
            let span = span.clone();
            let error = self.source.diagnostic_at(position, Code::Foreign, span, message, help);
            self.errors.push(error);
        }
        self.is_full
    }

    pub(super) fn error(
        &mut self,
        span: Range<usize>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        if self.errors.len() >= LISTED {
            self.unlisted.get_or_insert((0, span)).0 += 1;
            return;
        }
        let position = self.position(span.start);
        let help = Some(help.into());
        let error = self.source.diagnostic_at(position, Code::Foreign, span, message, help);
        self.errors.push(error);
    }

    /// A word that is none of those that the other system has.
    pub(super) fn unknown<'k>(
        &mut self,
        span: Range<usize>,
        message: impl Into<String>,
        word: &str,
        known: impl IntoIterator<Item = &'k str>,
    ) {
        let is_listed = self.errors.len() < LISTED;
        let help = if is_listed { suggest::help(word, known) } else { String::new() };
        self.error(span, message, help);
    }

    /// What the policy does not do, or does otherwise. Said of one place.
    pub(super) fn loss(&mut self, span: Range<usize>, message: impl Into<String>) {
        self.tell(Code::Loss, span, message.into());
    }

    /// As [`Self::loss`], of the first place of which it is true; the others are counted.
    pub(super) fn loss_once(&mut self, span: Range<usize>, message: impl Into<String>) {
        self.tell_once(Code::Loss, span, message.into());
    }

    /// How something was read of which nothing is lost. Said of one place.
    pub(super) fn note(&mut self, span: Range<usize>, message: impl Into<String>) {
        self.tell(Code::Note, span, message.into());
    }

    /// As [`Self::note`], of the first place of which it is true; the others are counted.
    pub(super) fn note_once(&mut self, span: Range<usize>, message: impl Into<String>) {
        self.tell_once(Code::Note, span, message.into());
    }

    fn tell(&mut self, code: Code, span: Range<usize>, message: String) {
        if self.is_too_much(self.told.len(), &span) {
            return;
        }
        let position = self.position(span.start);
        let said = self.source.diagnostic_at(position, code, span, message, None);
        self.told.push(Told { said, lines: Vec::new() });
    }

    fn tell_once(&mut self, code: Code, span: Range<usize>, message: String) {
        match self.once.get(&message).copied().filter(|at| *at < self.told.len()) {
            None => {
                self.once.insert(message.clone(), self.told.len());
                self.tell(code, span, message);
            }
            Some(at) => {
                let line = self.line(span.start);
                let told = &mut self.told[at];
                if told.lines.last().unwrap_or(&told.said.line) != &line {
                    told.lines.push(line);
                }
            }
        }
    }

    /// The losses and the notes, each in the order of the input; or the errors.
    pub(super) fn finish(mut self) -> Result<(Vec<Diagnostic>, Vec<Diagnostic>), Vec<Diagnostic>> {
        if !self.errors.is_empty() {
            if let Some((count, span)) = self.unlisted.take() {
                let position = self.position(span.start);
                let message = format!("{count} more of such errors, from here on");
                let help = Some("is it the file that was meant?".to_owned());
                let more = self.source.diagnostic_at(position, Code::Foreign, span, message, help);
                self.errors.push(more);
            }
            self.errors.sort_by_key(|error| (error.line, error.column));
            return Err(self.errors);
        }
        let mut told: Vec<Diagnostic> = self.told.into_iter().map(Told::whole).collect();
        told.sort_by_key(|told| (told.line, told.column));
        Ok(told.into_iter().partition(|told| told.code == Code::Loss))
    }
}

impl Told {
    fn whole(self) -> Diagnostic {
        let Told { mut said, lines } = self;
        match lines[..] {
            [] => {}
            [line] => said.message += &format!(" (line {line} too)"),
            [first, .., last] => {
                let count = lines.len();
                said.message += &format!(" (and {count} more lines, from {first} to {last})");
            }
        }
        said
    }
}
