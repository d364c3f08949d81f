//! Vocabularies of the core as option values, so that `--help` and mistakes name every word.

use std::ffi::OsStr;
use std::fmt;
use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Command};

/// Reads a word of a vocabulary; `all-reduce` is as good as `all_reduce`.
pub(crate) fn one_of<W>(names: &'static [&'static str]) -> impl TypedValueParser<Value = W>
where
    W: FromStr + Clone + Send + Sync + 'static,
{
    let words = Underscored(PossibleValuesParser::new(names));
    words.try_map(|word| word.parse::<W>().map_err(|_| NoSuchWord))
}

/// Reads an architecture of a group: `sm90`, `gfx942` (features may follow a colon), `host`.
pub(crate) fn architecture(text: &str) -> Result<String, String> {
    let name = text.split(':').next().unwrap_or(text);
    let numbered = |prefix: &str, digit: fn(char) -> bool| {
        name.strip_prefix(prefix).is_some_and(|n| !n.is_empty() && n.chars().all(digit))
    };
    let known = name == "host"
        || numbered("sm", |c| c.is_ascii_digit())
        || numbered("gfx", |c| c.is_ascii_digit() || ('a'..='f').contains(&c));
    match known {
        true => Ok(text.to_owned()),
        false => Err("write an architecture such as `sm90`, `gfx942` or `host`".to_owned()),
    }
}

/// Takes dashes for underscores.
#[derive(Clone)]
struct Underscored(PossibleValuesParser);

impl TypedValueParser for Underscored {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        let word = value.to_string_lossy().replace('-', "_");
        self.0.parse_ref(command, arg, OsStr::new(&word))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.0.possible_values()
    }
}

/// Not seen: only words of the vocabulary get as far as the parser behind it.
#[derive(Debug)]
struct NoSuchWord;

impl fmt::Display for NoSuchWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no such word")
    }
}

impl std::error::Error for NoSuchWord {}
