//! What an importer has to say about its input.

use std::ops::Range;

use crate::diagnostic::{Code, Diagnostic, Source};
use crate::suggest;

/// Errors, losses and notes, as they are found.
pub(super) struct Findings<'s> {
    source: &'s Source,
    errors: Vec<Diagnostic>,
    told: Vec<Told>,
}

/// A loss or a note.
struct Told {
    said: Diagnostic,
    /// Further lines of which the same is true.
    lines: Vec<u32>,
}

impl<'s> Findings<'s> {
    pub(super) fn new(source: &'s Source) -> Self {
        Findings { source, errors: Vec::new(), told: Vec::new() }
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
        self.source.line(at)
    }

    pub(super) fn error(
        &mut self,
        span: Range<usize>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        let help = Some(help.into());
        self.errors.push(self.source.diagnostic(Code::Foreign, span, message, help));
    }

    /// A word that is none of those that the other system has.
    pub(super) fn unknown<'k>(
        &mut self,
        span: Range<usize>,
        message: impl Into<String>,
        word: &str,
        known: impl IntoIterator<Item = &'k str>,
    ) {
        self.error(span, message, suggest::help(word, known));
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
        let said = self.source.diagnostic(code, span, message, None);
        self.told.push(Told { said, lines: Vec::new() });
    }

    fn tell_once(&mut self, code: Code, span: Range<usize>, message: String) {
        match self.told.iter().position(|told| told.said.message == message) {
            None => self.tell(code, span, message),
            Some(at) => {
                let line = self.source.line(span.start);
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
