//! A dump is about the moment at which it was written: what was the matter then, who lived, and how
//! long ranks had waited.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crossover_core::bootstrap::ranks_in_words;
use crossover_recorder::{Diagnosis, Found, Image, Life, in_folder};
use serde::Deserialize as _;
use serde_json::Value;

/// What the watchdog writes beside the rings: what it found, and what it knew and rings do not tell.
const VERDICT: &str = "verdict.json";
/// With which dumps' names begin.
const PREFIX: &str = "crossover.";
/// More is no verdict.
const VERDICT_BYTES: u64 = 16 << 20; // size: a hundred groups of a hundred ranks take 4 MiB

/// What a folder holds that was written when a group ended.
pub(super) struct Dump {
    /// What was found then, if it can be read. Rings were copied after it, some of them when ranks
    /// had already been freed, so that they are no match for it.
    pub(super) told: Option<Diagnosis>,
    /// Copies of rings, set to the time of the dump.
    pub(super) images: Vec<Image>,
    /// What is to be said of it.
    pub(super) notes: Vec<String>,
    /// The launcher's attempt at the job; 0 where no ring tells.
    pub(super) attempt: u32,
    /// When it was written, since 1970: a tenth of a second or so before. It outlives that dumps are
    /// copied.
    pub(super) at: Duration,
    /// The verdict's time as a file's: of several dumps in one place it tells which was first.
    pub(super) modified: Duration,
}

impl Dump {
    /// What was the matter, if it says so.
    pub(super) fn verdict(&self) -> Option<&Diagnosis> {
        self.told.as_ref().filter(|told| !told.verdicts.is_empty())
    }
}

/// Takes a folder's copies of rings for a dump. Other rings are left to whoever asks.
pub(super) fn take(folder: &Path, found: &mut Found) -> Dump {
    let mut images: Vec<Image> = found.images.extract_if(.., |image| is_copy(image)).collect();
    let written = written(&images);
    let value = read(folder);
    let told = Diagnosis::deserialize(&value).ok();
    let is_told = told.as_ref().is_some_and(|told| !told.verdicts.is_empty());
    let notes = lost(folder, &value, &images, is_told).into_iter().collect();
    let lives = lives(&value);
    for image in &mut images {
        let (group, rank) = (image.about.group, image.about.rank);
        if let Some(life) = lives.get(&(group, rank)) {
            image.life = *life;
        }
        image.progress.taken = written.get(&group).copied().unwrap_or(image.progress.taken);
    }
    let modified = modified(&folder.join(VERDICT)).unwrap_or_default();
    let at = written.values().max().map_or(modified, |at| Duration::from_nanos(*at));
    let attempt = images.iter().map(|image| image.about.attempt).max().unwrap_or(0);
    Dump { told, images, notes, attempt, at, modified }
}

/// Is it a dump, even if all its rings are lost?
pub(super) fn is_one(folder: &Path) -> bool {
    Diagnosis::deserialize(&read(folder)).is_ok()
}

/// Is it a dump of this job?
pub(super) fn is_of(folder: &Path, job: &str) -> bool {
    let is_told = Diagnosis::deserialize(&read(folder)).is_ok_and(|told| told.job == job);
    let is_its = |image: &Image| is_copy(image) && image.about.job == job;
    is_told || in_folder(folder).is_ok_and(|found| found.images.iter().any(is_its))
}

fn is_copy(image: &Image) -> bool {
    image.life == Life::Unknown
}

/// By group, the last sign of life of any rank: one of them wrote the dump, and its watchdog looks
/// ten times a second. The file's own time is that of its last copy.
fn written(images: &[Image]) -> BTreeMap<u64, u64> {
    let mut written = BTreeMap::new();
    for image in images {
        let recorded = image.records.values().map(|record| record.at).max().unwrap_or(0);
        let sign = image.progress.beat.max(recorded);
        let latest = written.entry(image.about.group).or_insert(sign);
        *latest = sign.max(*latest);
    }
    written
}

/// By group and rank, who lived.
fn lives(told: &Value) -> BTreeMap<(u64, u32), Life> {
    let of = |(key, rank): (_, Value)| Some((key, life(rank["life"].as_str()?)?));
    ranks(told).into_iter().filter_map(of).collect()
}

/// Where rings that a dump was made of are not in it, since there was no room for them; and what it
/// said, unless that is told anyway.
fn lost(folder: &Path, told: &Value, images: &[Image], is_told: bool) -> Option<String> {
    let is_here = |key: (u64, u32)| images.iter().any(|i| (i.about.group, i.about.rank) == key);
    let copied = copied(folder, told, images);
    let mut lost: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    for ((group, number), rank) in ranks(told) {
        if rank["seen"] == true && copied.contains(&group) && !is_here((group, number)) {
            lost.entry(group).or_default().push(number);
        }
    }
    let of_group = |(group, ranks): (&u64, &mut Vec<u32>)| {
        ranks.sort_unstable();
        format!("{} of {}", ranks_in_words(ranks), called(*group, told))
    };
    let lost: Vec<String> = lost.iter_mut().map(of_group).collect();
    let verdicts = told["verdicts"].as_array().into_iter().flatten();
    let said: Vec<&str> = verdicts.filter_map(|verdict| verdict["sentence"].as_str()).collect();
    let lost = match lost.as_slice() {
        [] => return None,
        lost => format!("the dump has lost the rings of {}", lost.join(", and of ")),
    };
    Some(match is_told || said.is_empty() {
        true => lost,
        false => format!("{lost}; when it was written it said: {}", said.join("; ")),
    })
}

/// The groups whose rings a dump is to have. A verdict tells of others too, at which the watchdog only
/// looked: copied were those of the group that the folder is called after and, where groups wait for
/// each other in a circle, of all in which somebody is in a call.
fn copied(folder: &Path, told: &Value, images: &[Image]) -> BTreeSet<u64> {
    let verdicts = || told["verdicts"].as_array().into_iter().flatten();
    let mut copied: BTreeSet<u64> = images.iter().map(|image| image.about.group).collect();
    match group_in_name(folder) {
        Some(group) => copied.extend([group]),
        None => copied.extend(verdicts().filter_map(number_of)),
    }
    if verdicts().any(|verdict| verdict["class"] == "cross_group_deadlock") {
        let in_a_call = |rank: &Value| rank["issued"].as_u64() > rank["finished"].as_u64();
        let stuck = ranks(told).into_iter().filter(|(_, rank)| in_a_call(rank));
        copied.extend(stuck.map(|((group, _), _)| group));
    }
    copied
}

/// The last part of a dump's name, unless its group spans nodes: then the node's follows.
fn group_in_name(folder: &Path) -> Option<u64> {
    let name = folder.canonicalize().ok()?.file_name()?.to_str()?.to_owned();
    let name = name.rsplit_once(".node-of-").map_or(name.as_str(), |(before, _)| before);
    let (_, group) = name.strip_prefix(PREFIX)?.rsplit_once('.')?;
    u64::from_str_radix(group, 16).ok()
}

/// A group's tag in the verdict, or its number.
fn called(group: u64, told: &Value) -> String {
    let mut groups = told["groups"].as_array().into_iter().flatten();
    let told = groups.find(|told| number_of(told) == Some(group));
    let tag = told.and_then(|told| told["tag"].as_str());
    tag.map_or_else(|| format!("group {group:016x}"), |tag| format!("`{tag}`"))
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

/// A folder's verdict, or nothing.
fn read(folder: &Path) -> Value {
    let bytes = bytes(&folder.join(VERDICT)).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

/// What a file holds, if it is one: in a folder where everybody writes it may be a pipe, or have no end.
fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if fs::metadata(path)?.is_file() {
        fs::File::open(path)?.take(VERDICT_BYTES).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

fn modified(path: &Path) -> Option<Duration> {
    let modified: SystemTime = fs::metadata(path).ok()?.modified().ok()?;
    modified.duration_since(UNIX_EPOCH).ok()
}

fn life(name: &str) -> Option<Life> {
    match name {
        "running" => Some(Life::Running),
        "stopped" => Some(Life::Stopped),
        "gone" => Some(Life::Gone),
        _ => None,
    }
}

/// A group's number, as verdicts and groups have it.
fn number_of(group: &Value) -> Option<u64> {
    u64::from_str_radix(group["group"].as_str()?, 16).ok()
}
