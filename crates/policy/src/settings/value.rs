//! Texts to values. An empty text never arrives here: it means "not set".

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crossover_core::call::{Op, Ops};
use crossover_core::vocabulary::UnknownWord;

use super::{SettingsError, Stated};
use crate::suggest;

/// A variable that is tested for its presence turns on at `=0`; this one is read.
pub(super) fn boolean(key: &str, stated: &Stated<String>) -> Result<bool, SettingsError> {
    match stated.value.to_ascii_lowercase().as_str() {
        "1" | "true" | "on" | "yes" => Ok(true),
        "0" | "false" | "off" | "no" => Ok(false),
        _ => Err(refusal(key, stated, "write 1, true, on or yes, or 0, false, off or no")),
    }
}

/// `500ms`, `10s`, `2m`.
pub(super) fn duration(key: &str, stated: &Stated<String>) -> Result<Duration, SettingsError> {
    let text = stated.value.as_str();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "" if !number.is_empty() => {
            let want = format!("it has no unit; write `{number}s` or `{number}ms`");
            return Err(refusal(key, stated, want));
        }
        _ => return Err(refusal(key, stated, "write a duration such as `500ms`, `10s` or `2m`")),
    };
    match number.parse::<u64>().ok().and_then(|n| n.checked_mul(milliseconds)) {
        Some(0) => Err(refusal(key, stated, "nothing can be done in no time")),
        Some(milliseconds) => Ok(Duration::from_millis(milliseconds)),
        None => Err(refusal(key, stated, "write a duration such as `500ms`, `10s` or `2m`")),
    }
}

/// Paths, with colons between. The colon of `shipped:ported/vllm.toml` is part of the path.
pub(super) fn paths(stated: &Stated<String>) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for part in stated.value.split(':').filter(|part| !part.is_empty()) {
        match paths.last_mut() {
            Some(last) if last.as_os_str() == "shipped" => *last = format!("shipped:{part}").into(),
            _ => paths.push(part.into()),
        }
    }
    paths
}

/// A folder that somebody names must be there: a typo in its path would take its files away.
pub(super) fn folder(key: &str, stated: &Stated<String>) -> Result<PathBuf, SettingsError> {
    let path = PathBuf::from(&stated.value);
    match path.is_dir() {
        true => Ok(path),
        false => Err(refusal(key, stated, "there is no such folder")),
    }
}

/// Ops, with commas between, or `all`.
pub(super) fn ops(key: &str, stated: &Stated<String>) -> Result<Ops, SettingsError> {
    words_of(stated)
        .map(|word| match (word, word.parse::<Op>()) {
            (EVERY_OP, _) => Ok(Ops::ALL),
            (_, Ok(op)) => Ok(Ops::of(&[op])),
            (_, Err(_)) => {
                let known = Op::NAMES.iter().copied().chain([EVERY_OP]);
                Err(refusal(key, stated, suggest::help(word, known)))
            }
        })
        .try_fold(Ops::NONE, |ops, more| Ok(ops.union(more?)))
}

/// Stands for every op.
const EVERY_OP: &str = "all";

/// A word of a vocabulary.
pub(super) fn word<W: FromStr<Err = UnknownWord>>(
    key: &str,
    stated: &Stated<String>,
) -> Result<W, SettingsError> {
    parse_word(key, stated, &stated.value)
}

/// Words of a vocabulary, with commas between, as a set.
pub(super) fn words<W, S>(key: &str, stated: &Stated<String>) -> Result<S, SettingsError>
where
    W: FromStr<Err = UnknownWord>,
    S: FromIterator<W>,
{
    words_of(stated).map(|word| parse_word(key, stated, word)).collect()
}

fn words_of(stated: &Stated<String>) -> impl Iterator<Item = &str> {
    stated.value.split(',').map(str::trim).filter(|word| !word.is_empty())
}

fn parse_word<W: FromStr<Err = UnknownWord>>(
    key: &str,
    stated: &Stated<String>,
    word: &str,
) -> Result<W, SettingsError> {
    word.parse().map_err(|e: UnknownWord| {
        refusal(key, stated, suggest::help(&e.word, e.known.iter().copied()))
    })
}

pub(super) fn refusal(
    key: &str,
    stated: &Stated<String>,
    want: impl Into<String>,
) -> SettingsError {
    SettingsError::Value {
        origin: stated.origin.to_string(),
        key: key.to_owned(),
        value: stated.value.clone(),
        want: want.into(),
    }
}
