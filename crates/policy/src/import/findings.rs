//! What an importer has to say about its input.

use std::ops::Range;

use crate::diagnostic::{Code, Diagnostic, Source};
use crate::suggest;

/// Errors and losses, as they are found.
pub(super) struct Findings<'s> {
    source: &'s Source,
    errors: Vec<Diagnostic>,
    losses: Vec<Loss>,
}

struct Loss {
    said: Diagnostic,
    /// Further lines of which the same is true.
    lines: Vec<u32>,
}

impl<'s> Findings<'s> {
    pub(super) fn new(source: &'s Source) -> Self {
        Findings { source, errors: Vec::new(), losses: Vec::new() }
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

    /// Said of one place.
    pub(super) fn loss(&mut self, span: Range<usize>, message: impl Into<String>) {
        let said = self.source.diagnostic(Code::Loss, span, message, None);
        self.losses.push(Loss { said, lines: Vec::new() });
    }

    /// Said of the first place of which it is true; the others are counted.
    pub(super) fn loss_once(&mut self, span: Range<usize>, message: impl Into<String>) {
        let message = message.into();
        match self.losses.iter().position(|loss| loss.said.message == message) {
            None => self.loss(span, message),
            Some(at) => {
                let line = self.source.line(span.start);
                let loss = &mut self.losses[at];
                if loss.lines.last().unwrap_or(&loss.said.line) != &line {
                    loss.lines.push(line);
                }
            }
        }
    }

    /// The losses, in the order of the input; or the errors.
    pub(super) fn finish(mut self) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
        if !self.errors.is_empty() {
            self.errors.sort_by_key(|error| (error.line, error.column));
            return Err(self.errors);
        }
        let mut losses: Vec<Diagnostic> = self.losses.into_iter().map(Loss::told).collect();
        losses.sort_by_key(|loss| (loss.line, loss.column));
        Ok(losses)
    }
}

impl Loss {
    fn told(self) -> Diagnostic {
        let Loss { mut said, lines } = self;
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
