//! Typed access to a parsed file that reports each mistake and goes on, so that a person sees all
//! of them at once.

use std::ops::Range;
use std::str::FromStr;

use crossover_core::registry::Registry;
use crossover_core::vocabulary::UnknownWord;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::{Name, Said, Standing};
use crate::diagnostic::{Code, Diagnostic, Source};
use crate::suggest;

pub(super) struct Reader<'a> {
    source: &'a Source,
    pub(super) standing: Standing,
    pub(super) registry: &'a Registry,
    pub(super) problems: Vec<Diagnostic>,
    /// Where each line begins, in bytes.
    lines: Vec<usize>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(source: &'a Source, standing: Standing, registry: &'a Registry) -> Self {
        let ends = source.text.match_indices('\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(ends).collect();
        Reader { source, standing, registry, problems: Vec::new(), lines }
    }
}

impl Reader<'_> {
    pub(super) fn file(&self) -> &str {
        &self.source.name
    }

    /// The line of a byte, from 1.
    pub(super) fn line(&self, at: usize) -> u32 {
        self.lines.partition_point(|start| *start <= at) as u32
    }

    /// What is written there, on one line.
    pub(super) fn written(&self, span: Range<usize>) -> String {
        let text = self.source.text.get(span).unwrap_or_default();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    pub(super) fn name(&self, key: &Spanned<DeString<'_>>) -> Name {
        let span = key.span();
        Name { text: key.get_ref().to_string(), line: self.line(span.start), span }
    }

    /// What a key states, if its value could be read.
    pub(super) fn said<T>(&self, key: &Spanned<DeString<'_>>, value: Option<T>) -> Option<Said<T>> {
        Some(Said { value: value?, line: self.line(key.span().start) })
    }

    /// The tables below a key that have names, such as each `[rule.<id>]` below `rule`.
    pub(super) fn entries<'v, 'i, T>(
        &mut self,
        key: &str,
        value: &'v Spanned<DeValue<'i>>,
        mut read: impl FnMut(
            &mut Self,
            &'v Spanned<DeString<'i>>,
            &'v Spanned<DeValue<'i>>,
        ) -> Option<T>,
    ) -> Vec<T> {
        let Some(table) = self.table(key, value) else { return Vec::new() };
        in_order(table).into_iter().filter_map(|(id, value)| read(self, id, value)).collect()
    }

    /// As [`Reader::entries`], of what has `keys`, for those who leave the names out.
    pub(super) fn named_entries<'v, 'i, T>(
        &mut self,
        key: &str,
        value: &'v Spanned<DeValue<'i>>,
        keys: &[&str],
        read: impl FnMut(&mut Self, &'v Spanned<DeString<'i>>, &'v Spanned<DeValue<'i>>) -> Option<T>,
    ) -> Vec<T> {
        // `[[rule]]`, and what stands directly below `[rule]`.
        let nameless = match value.get_ref() {
            DeValue::Array(_) => Some(value.span()),
            DeValue::Table(table) => in_order(table).into_iter().find_map(|(name, value)| {
                let is_field = keys.contains(&name.get_ref().as_ref());
                (is_field && !value.get_ref().is_table()).then(|| name.span())
            }),
            _ => None,
        };
        let Some(span) = nameless else { return self.entries(key, value, read) };
        let help = format!("write `[{key}.NAME]` above what it states");
        self.refuse_with_help(Code::Unknown, span, format!("a {key} has a name"), help);
        Vec::new()
    }

    pub(super) fn refuse(&mut self, code: Code, span: Range<usize>, message: impl Into<String>) {
        self.problems.push(self.source.diagnostic(code, span, message, None));
    }

    pub(super) fn refuse_with_help(
        &mut self,
        code: Code,
        span: Range<usize>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.problems.push(self.source.diagnostic(code, span, message, Some(help.into())));
    }

    pub(super) fn unknown_key(
        &mut self,
        key: &Spanned<DeString<'_>>,
        place: &str,
        known: &[&'static str],
    ) {
        let word = key.get_ref();
        let help = suggest::help(word, known.iter().copied());
        self.refuse_with_help(
            Code::Unknown,
            key.span(),
            format!("unknown key `{word}` in {place}"),
            help,
        );
    }

    pub(super) fn text<'v>(
        &mut self,
        key: &str,
        value: &'v Spanned<DeValue<'_>>,
    ) -> Option<&'v str> {
        let text = value.get_ref().as_str();
        text.or_else(|| self.mistyped(key, "a string", value))
    }

    pub(super) fn boolean(&mut self, key: &str, value: &Spanned<DeValue<'_>>) -> Option<bool> {
        let boolean = value.get_ref().as_bool();
        boolean.or_else(|| self.mistyped(key, "true or false", value))
    }

    pub(super) fn integer(&mut self, key: &str, value: &Spanned<DeValue<'_>>) -> Option<i32> {
        let Some(integer) = value.get_ref().as_integer() else {
            return self.mistyped(key, "an integer", value);
        };
        let parsed = i32::from_str_radix(integer.as_str(), integer.radix());
        if parsed.is_err() {
            let message = format!("`{key}` takes 32 bits; {integer} is beyond them");
            self.refuse(Code::Unknown, value.span(), message);
        }
        parsed.ok()
    }

    pub(super) fn table<'v, 'i>(
        &mut self,
        key: &str,
        value: &'v Spanned<DeValue<'i>>,
    ) -> Option<&'v DeTable<'i>> {
        let table = value.get_ref().as_table();
        table.or_else(|| self.mistyped(key, "a table", value))
    }

    /// A value, or a list of at least one, to match by.
    pub(super) fn list<'v, 'i>(
        &mut self,
        key: &str,
        value: &'v Spanned<DeValue<'i>>,
    ) -> &'v [Spanned<DeValue<'i>>] {
        self.list_of(key, value, "nothing would match; leave the key out")
    }

    /// A value, or a list of at least one; `help` is for whoever writes an empty one.
    pub(super) fn list_of<'v, 'i>(
        &mut self,
        key: &str,
        value: &'v Spanned<DeValue<'i>>,
        help: &str,
    ) -> &'v [Spanned<DeValue<'i>>] {
        match value.get_ref().as_array() {
            Some(array) if array.is_empty() => {
                let message = format!("`{key}` is an empty list");
                self.refuse_with_help(Code::Unknown, value.span(), message, help);
                &[]
            }
            Some(array) => array,
            None => std::slice::from_ref(value),
        }
    }

    /// A word of a vocabulary.
    pub(super) fn word<W: FromStr<Err = UnknownWord>>(
        &mut self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Option<W> {
        match self.text(key, value)?.parse() {
            Ok(word) => Some(word),
            Err(UnknownWord { kind, word, known }) => {
                let help = suggest::help(&word, known.iter().copied());
                let message = format!("unknown {kind} `{word}`");
                self.refuse_with_help(Code::Unknown, value.span(), message, help);
                None
            }
        }
    }

    /// A word of a vocabulary, or a list of them, as a set.
    pub(super) fn words<W, S>(&mut self, key: &str, value: &Spanned<DeValue<'_>>) -> S
    where
        W: FromStr<Err = UnknownWord>,
        S: FromIterator<W>,
    {
        self.list(key, value).iter().filter_map(|item| self.word(key, item)).collect()
    }

    /// As [`Reader::words`], where an empty list means something: nothing is accepted, or can be
    /// done.
    pub(super) fn any_words<W, S>(&mut self, key: &str, value: &Spanned<DeValue<'_>>) -> S
    where
        W: FromStr<Err = UnknownWord>,
        S: FromIterator<W>,
    {
        match value.get_ref().as_array() {
            Some(array) => array.iter().filter_map(|item| self.word(key, item)).collect(),
            None => self.words(key, value),
        }
    }

    /// Says what stands where something else is wanted.
    pub(super) fn mistyped<T>(
        &mut self,
        key: &str,
        want: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Option<T> {
        let found = value.get_ref().type_str();
        self.refuse(Code::Unknown, value.span(), format!("`{key}` takes {want}, not this {found}"));
        None
    }
}

/// The entries of a table as the file has them: the parser's own order is that of the alphabet.
pub(super) fn in_order<'t, 'i>(
    table: &'t DeTable<'i>,
) -> Vec<(&'t Spanned<DeString<'i>>, &'t Spanned<DeValue<'i>>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}
