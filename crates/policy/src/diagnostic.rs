//! What is wrong in a policy, where, and what to write instead.

use std::fmt;
use std::ops::Range;

/// The kind of a finding. Numbers are stable: people search for them. Those from 6 on are found by
/// the lint alone, which knows how a policy decides; the others by whoever reads a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Code {
    /// E000: the text is not TOML.
    Syntax,
    /// E001: an unknown key or word, or a value of the wrong type.
    Unknown,
    /// E002: a backend or algorithm that this program does not know.
    Backend,
    /// E003: a size without a unit, or with an ambiguous one.
    Size,
    /// E004: a range without any size in it.
    EmptyRange,
    /// E005: a key that differs between the ranks of one group.
    RankVariant,
    /// W006: a candidate that is never chosen.
    NeverChosen,
    /// E008: a call that nothing serves.
    Gap,
    /// E009: two rules of equal precedence, and a decision that depends on which goes first.
    Tie,
    /// E010: a range that goes beyond what the backend has room for.
    OverCapacity,
    /// E012: the order of additions changes with the size although the contract forbids it.
    OrderChanges,
    /// W013: an algorithm that returns after another took over, or many changes in few sizes.
    Flapping,
    /// W014: numbers that were measured on another device.
    ForeignEvidence,
    /// E015: deviations or determinism that the engine's contract does not agree to.
    Contract,
    /// E016: an `[[expect]]` that is not met.
    Expectation,
    /// W017: a call that the usual contract refuses, since a rule that is marked last leaves nothing
    /// else.
    RefusedByContract,
    /// E020: what another system's file says is malformed, or names what that system does not have.
    Foreign,
    /// W021: what another system's file says, and the policy made of it does not do, or does
    /// otherwise.
    Loss,
    /// N022: how something of another system's file was read; nothing of it is lost.
    Note,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Nothing is wrong, and it may be good to know.
    Note,
    /// The policy works, and probably does not do what was meant.
    Warning,
    /// The policy is refused.
    Error,
}

impl Code {
    /// As messages write it: `E001`, `W006`.
    pub const fn name(self) -> &'static str {
        match self {
            Code::Syntax => "E000",
            Code::Unknown => "E001",
            Code::Backend => "E002",
            Code::Size => "E003",
            Code::EmptyRange => "E004",
            Code::RankVariant => "E005",
            Code::NeverChosen => "W006",
            Code::Gap => "E008",
            Code::Tie => "E009",
            Code::OverCapacity => "E010",
            Code::OrderChanges => "E012",
            Code::Flapping => "W013",
            Code::ForeignEvidence => "W014",
            Code::Contract => "E015",
            Code::Expectation => "E016",
            Code::RefusedByContract => "W017",
            Code::Foreign => "E020",
            Code::Loss => "W021",
            Code::Note => "N022",
        }
    }

    /// How bad it is.
    pub const fn severity(self) -> Severity {
        match self {
            Code::NeverChosen
            | Code::Flapping
            | Code::ForeignEvidence
            | Code::RefusedByContract
            | Code::Loss => Severity::Warning,
            Code::Note => Severity::Note,
            _ => Severity::Error,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One mistake. `Display` is what a person reads: the sentence, the place, the line with a caret
/// under the culprit, and the way out; without colours, since it ends up in logs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// What kind.
    pub code: Code,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
    /// The file's path, or the name of another source such as `CROSSOVER_USE`.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Of the line, what stands around the mistake.
    excerpt: String,
    /// Characters of the excerpt before the mistake.
    indent: usize,
    width: usize,
}

/// The most characters of a line that are shown, and kept: a line may be a whole file.
const WINDOW: usize = 160;

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Diagnostic { code, message, file, line, column, excerpt, indent, width, .. } = self;
        let margin = line.to_string().len();
        let severity = match code.severity() {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        writeln!(f, "{severity}[{code}]: {message}")?;
        writeln!(f, "{:margin$}--> {file}:{line}:{column}", "")?;
        writeln!(f, "{:margin$} |", "")?;
        writeln!(f, "{line} | {excerpt}")?;
        write!(f, "{:margin$} | {:indent$}{:^<width$}", "", "", "")?;
        match &self.help {
            Some(help) => write!(f, "\n{:margin$} = help: {help}", ""),
            None => Ok(()),
        }
    }
}

/// Line and column, from 1.
#[derive(Clone, Copy)]
pub(crate) struct Position {
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// A text to be parsed, and the name by which people know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) text: String,
}

impl Source {
    /// A mistake in this text. `span` is in bytes.
    pub(crate) fn diagnostic(
        &self,
        code: Code,
        span: Range<usize>,
        message: impl Into<String>,
        help: Option<String>,
    ) -> Diagnostic {
        let start = self.boundary(span.start);
        let line_start = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
        let column = self.text[line_start..start].chars().count() as u32 + 1;
        let position = Position { line: self.line(start), column };
        self.diagnostic_at(position, code, span, message, help)
    }

    /// As [`Self::diagnostic`], of a span whose position is known. However long the line is, this
    /// looks at what is shown of it alone.
    pub(crate) fn diagnostic_at(
        &self,
        position: Position,
        code: Code,
        span: Range<usize>,
        message: impl Into<String>,
        help: Option<String>,
    ) -> Diagnostic {
        let start = self.boundary(span.start);
        let end = self.boundary(span.end.max(start));
        let Position { line, column } = position;
        let shown = |text: &str| -> String {
            let on_this_line = text.chars().take_while(|c| *c != '\n');
            on_this_line.take(WINDOW).collect::<String>().trim_end().to_owned()
        };
        let (behind, marked) = (shown(&self.text[start..]), shown(&self.text[start..end]));
        let before = column as usize - 1;
        let spare = (before + behind.chars().count()).saturating_sub(WINDOW);
        let indent = before - before.saturating_sub(WINDOW / 2).min(spare);
        let mut ahead: Vec<char> = self.text[..start].chars().rev().take(indent).collect();
        ahead.reverse();
        let excerpt = ahead.into_iter().chain(behind.chars()).take(WINDOW);
        // One column a character: a tab or an escape sequence would push the caret away.
        let excerpt: String = excerpt.map(|c| if c.is_control() { ' ' } else { c }).collect();
        Diagnostic {
            code,
            message: message.into(),
            help,
            file: self.name.clone(),
            line,
            column,
            excerpt: excerpt.trim_end().to_owned(),
            indent,
            width: marked.chars().count().clamp(1, WINDOW.saturating_sub(indent).max(1)),
        }
    }

    /// The line of a byte, from 1.
    pub(crate) fn line(&self, at: usize) -> u32 {
        let before = &self.text.as_bytes()[..self.boundary(at)];
        before.iter().filter(|b| **b == b'\n').count() as u32 + 1
    }

    /// The start of the character that holds this byte; the end of the text, if beyond it.
    pub(crate) fn boundary(&self, at: usize) -> usize {
        let at = at.min(self.text.len());
        (0..=at).rev().find(|i| self.text.is_char_boundary(*i)).unwrap_or(0)
    }
}
