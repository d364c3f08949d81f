//! A dump is about the moment at which it was written: who lived then, and how long ranks had
//! waited by then.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use crossover_core::bootstrap::ranks_in_words;
use crossover_recorder::{Found, Image, Life};
use serde_json::Value;

/// What the watchdog writes beside the rings: what it knew and rings do not tell.
const VERDICT: &str = "verdict.json";
/// More is no verdict.
const VERDICT_BYTES: u64 = 16 << 20; // size: a hundred groups of a hundred ranks take 4 MiB

/// Sets a dump's images to the time of the dump. Other images stay as they are.
pub(super) fn as_it_was(folder: &Path, mut found: Found) -> Found {
    let written = written(&found.images);
    let told = read(&folder.join(VERDICT)).unwrap_or_default();
    let told: Value = serde_json::from_slice(&told).unwrap_or_default();
    found.notes.extend(lost(&told, &found.images));
    let lives = lives(&told);
    for image in found.images.iter_mut().filter(|image| is_copy(image)) {
        let (group, rank) = (image.about.group, image.about.rank);
        if let Some(life) = lives.get(&(group, rank)) {
            image.life = *life;
        }
        image.progress.taken = written.get(&group).copied().unwrap_or(image.progress.taken);
    }
    found
}

fn is_copy(image: &Image) -> bool {
    image.life == Life::Unknown
}

/// By group, the last sign of life of any rank: one of them wrote the dump, and its watchdog looks
/// ten times a second. The file's own time is that of its last copy.
fn written(images: &[Image]) -> BTreeMap<u64, u64> {
    let mut written = BTreeMap::new();
    for image in images.iter().filter(|image| is_copy(image)) {
        let recorded = image.records.values().map(|record| record.at).max().unwrap_or(0);
        let sign = image.progress.beat.max(recorded);
        let latest = written.entry(image.about.group).or_insert(sign);
        *latest = sign.max(*latest);
    }
    written
}

/// By group and rank, who lived.
fn lives(told: &Value) -> BTreeMap<(u64, u32), Life> {
    let life = |(key, rank): (_, Value)| Some((key, life(rank["life"].as_str()?)?));
    ranks(told).into_iter().filter_map(life).collect()
}

/// What the dump said, where rings that it was made of are not in it: there was no room for them.
fn lost(told: &Value, images: &[Image]) -> Option<String> {
    let is_here = |key: (u64, u32)| images.iter().any(|i| (i.about.group, i.about.rank) == key);
    let seen = ranks(told).into_iter().filter(|(_, rank)| rank["seen"] == true);
    let lost: Vec<u32> =
        seen.filter(|(key, _)| !is_here(*key)).map(|((_, rank), _)| rank).collect();
    let verdicts = told["verdicts"].as_array().into_iter().flatten();
    let said: Vec<&str> = verdicts.filter_map(|verdict| verdict["sentence"].as_str()).collect();
    (!lost.is_empty()).then(|| {
        let ranks = ranks_in_words(&lost);
        format!(
            "the dump has lost the rings of {ranks}; when it was written it said: {}",
            said.join("; ")
        )
    })
}

/// By group and rank, what a verdict tells of it. Nothing where it is missing or makes no sense.
fn ranks(told: &Value) -> Vec<((u64, u32), Value)> {
    let list = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    let mut ranks = Vec::new();
    for group in list(told, "groups") {
        for rank in list(&group, "ranks") {
            let number = rank["rank"].as_u64().and_then(|rank| u32::try_from(rank).ok());
            if let (Some(group), Some(number)) = (number_of(&group), number) {
                ranks.push(((group, number), rank));
            }
        }
    }
    ranks
}

/// What a file holds, if it is one: in a folder where everybody writes it may be a pipe, or have no end.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if fs::metadata(path)?.is_file() {
        fs::File::open(path)?.take(VERDICT_BYTES).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

fn life(name: &str) -> Option<Life> {
    match name {
        "running" => Some(Life::Running),
        "stopped" => Some(Life::Stopped),
        "gone" => Some(Life::Gone),
        _ => None,
    }
}

/// A group's number, as verdicts have it.
fn number_of(group: &Value) -> Option<u64> {
    u64::from_str_radix(group["group"].as_str()?, 16).ok()
}
