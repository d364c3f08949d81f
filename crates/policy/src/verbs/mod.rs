//! The operators' verbs: `use` forces a backend or an algorithm, `disable` takes some away, and
//! `enable` and `disable` switch rules on and off. They are a few words in a variable or an option,
//! not a second policy language.

mod disabled;
mod forced;
mod rules;

use std::ops::Range;

use crossover_core::backend::Algorithm;
use crossover_core::registry::Registry;

use crate::diagnostic::{Code, Diagnostic, Source};
use crate::settings::Stated;
use crate::target::Target;

pub(crate) use disabled::{disable, parse_disabled};
pub use forced::Forced;
pub(crate) use rules::{NamedRule, parse_disabled_rules, parse_enabled};

/// What is wrong with one word.
struct Mistake {
    code: Code,
    message: String,
    help: String,
}

impl Mistake {
    fn of_target(message: String, help: String) -> Mistake {
        Mistake { code: Code::Backend, message, help }
    }
}

fn resolve(target: &Target, registry: &Registry) -> Result<Vec<&'static Algorithm>, Mistake> {
    target.resolve(registry).map_err(|no| Mistake::of_target(no.message, no.help))
}

/// Reads each of the words between commas, or says of all that are wrong where in the value they
/// stand.
fn each_word<T>(
    stated: &Stated<String>,
    mut read: impl FnMut(&str) -> Result<T, Mistake>,
) -> Result<Vec<T>, Vec<Diagnostic>> {
    each_word_at(stated, |word, _| read(word))
}

/// As [`each_word`], of words and the bytes of the value that they are.
fn each_word_at<T>(
    stated: &Stated<String>,
    mut read: impl FnMut(&str, Range<usize>) -> Result<T, Mistake>,
) -> Result<Vec<T>, Vec<Diagnostic>> {
    let source = Source { name: stated.origin.to_string(), text: stated.value.clone() };
    let mut values = Vec::new();
    let mut problems = Vec::new();
    let mut start = 0;
    for part in stated.value.split(',') {
        let word = part.trim();
        let at = start + part.len() - part.trim_start().len();
        start += part.len() + 1;
        if word.is_empty() {
            continue;
        }
        let span = at..at + word.len();
        match read(word, span.clone()) {
            Ok(value) => values.push(value),
            Err(Mistake { code, message, help }) => {
                problems.push(source.diagnostic(code, span, message, Some(help)));
            }
        }
    }
    if problems.is_empty() { Ok(values) } else { Err(problems) }
}
