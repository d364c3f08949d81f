//! What was found out, remembered between runs.
//!
//! A file a key, in a folder that the caller names. A file is complete or not there: it is written
//! beside, made durable and renamed. Whatever else is found is passed over with a reason.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::platform::Platform;
use super::verdicts::Verdicts;
use super::{Pair, Verdict};

/// Of what the file says, and how. Another number is another program's.
const FORMAT: u32 = 1;

/// For what a memory holds: the same devices under the same driver since the same start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    format: u32,
    devices: Vec<String>,
    driver: String,
    boot: String,
    iommu: String,
}

impl Key {
    /// The key for these devices, in any order. `None` for a machine whose kernel gives its starts
    /// no identity: yesterday's memory would look like today's.
    pub fn new(devices: &[String], driver_version: &str, platform: &Platform) -> Option<Key> {
        let mut devices = devices.to_vec();
        devices.sort_unstable();
        devices.dedup();
        (!platform.boot.is_empty()).then(|| Key {
            format: FORMAT,
            devices,
            driver: driver_version.to_owned(),
            boot: platform.boot.clone(),
            iommu: platform.iommu.clone(),
        })
    }

    /// Does it hold under this driver on this machine as it is now?
    pub fn holds(&self, driver_version: &str, platform: &Platform) -> bool {
        Key::new(&self.devices, driver_version, platform).is_some_and(|now| now == *self)
    }

    fn name(&self) -> String {
        // Names that collide are told apart by the key in the file.
        let Key { format, devices, driver, boot, iommu } = self;
        let text = format!("{format}\n{}\n{driver}\n{boot}\n{iommu}", devices.join(","));
        format!("{PREFIX}{:016x}", xxh3_64(text.as_bytes()))
    }
}

/// What names of files begin with.
const PREFIX: &str = "p2p-";

/// A folder of memories.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
}

/// What a file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// For what it holds.
    pub key: Key,
    /// What was found: proven or broken.
    pub verdicts: Verdicts,
    /// When, in seconds since 1970.
    pub found: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    key: Key,
    found: u64,
    pairs: Vec<(Pair, Verdict)>,
}

impl Remembered {
    /// The day on which it was found (UTC), such as `2026-11-30`.
    pub fn day(&self) -> String {
        day(self.found)
    }
}

impl Cache {
    /// The memories in `folder`, which is made when something is to be remembered.
    pub fn new(folder: impl Into<PathBuf>) -> Cache {
        Cache { folder: folder.into() }
    }

    /// What is remembered for `key`; nothing if there is no file.
    ///
    /// # Errors
    /// One sentence why the file that is there was not used.
    pub fn load(&self, key: &Key) -> Result<Option<Remembered>, String> {
        let path = self.path(key);
        match read(&path)? {
            Some(found) if found.key != *key => Err(ignored(&path, ABOUT_OTHERS)),
            found => Ok(found),
        }
    }

    /// All that is remembered, by file, and why a file is not used.
    pub fn all(&self) -> Vec<(PathBuf, Result<Remembered, String>)> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.retain(|path| {
            let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
            name.starts_with(PREFIX) && name.ends_with(".json")
        });
        paths.sort_unstable();
        let read = |path: PathBuf| {
            let found = read(&path).transpose()?;
            Some((path, found))
        };
        paths.into_iter().filter_map(read).collect()
    }

    /// Remembers what of these verdicts lasts, in place of what was remembered for `key`. What the
    /// driver says is cheap to ask again, and what was not found out is not known: where nothing
    /// lasts, nothing is written.
    ///
    /// # Errors
    /// One sentence why nothing is remembered.
    pub fn store(&self, key: &Key, verdicts: &Verdicts) -> Result<(), String> {
        let lasting = verdicts.pairs.iter().filter(|(_, verdict)| verdict.is_lasting());
        let pairs: Vec<(Pair, Verdict)> = lasting.cloned().collect();
        if pairs.is_empty() {
            return Ok(());
        }
        let path = self.path(key);
        let forgotten = |error: io::Error| format!("{} is not written: {error}", path.display());
        let found = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let text = serde_json::to_vec_pretty(&Record { key: key.clone(), found, pairs })
            .map_err(|error| forgotten(error.into()))?;
        fs::create_dir_all(&self.folder).map_err(forgotten)?;
        let beside = self.beside(key);
        let written = write_durably(&beside, &text)
            .and_then(|()| fs::rename(&beside, &path))
            .and_then(|()| File::open(&self.folder)?.sync_all());
        if written.is_err() {
            // Nothing is left over; an error here would hide the one that matters.
            let _ = fs::remove_file(&beside);
        }
        written.map_err(forgotten)
    }

    /// The file for `key`: who deletes it has its devices tried anew.
    pub fn path(&self, key: &Key) -> PathBuf {
        self.folder.join(format!("{}.json", key.name()))
    }

    /// A name that no other writer has: of this process, or of one in another container.
    fn beside(&self, key: &Key) -> PathBuf {
        static WRITERS: AtomicU64 = AtomicU64::new(0);
        let number = WRITERS.fetch_add(1, Ordering::Relaxed);
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        self.folder.join(format!(".{}-{}-{time}-{number}", key.name(), process::id()))
    }
}

const ABOUT_OTHERS: &str = "it is about other devices, or another driver or start";

fn ignored(path: &Path, why: &str) -> String {
    format!("{} is not used: {why}", path.display())
}

fn read(path: &Path) -> Result<Option<Remembered>, String> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ignored(path, &error.to_string())),
    };
    let record: Record =
        serde_json::from_str(&text).map_err(|error| ignored(path, &error.to_string()))?;
    let Record { key, found, pairs } = record;
    if key.format != FORMAT {
        return Err(ignored(path, "it is of another version of this program"));
    }
    let strange = pairs.iter().any(|(pair, verdict)| {
        let known = |uuid| key.devices.contains(uuid);
        !verdict.is_lasting() || !known(&pair.user) || !known(&pair.owner)
    });
    if strange {
        return Err(ignored(path, "it has verdicts that are never remembered"));
    }
    Ok(Some(Remembered { key, verdicts: Verdicts::of(pairs), found }))
}

fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::options().create_new(true).write(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// The day of the Gregorian calendar that a moment is on. Years are counted from a March, so that
/// the day of a leap year is the last.
fn day(seconds: u64) -> String {
    // From 0000-03-01 to 1970-01-01 there are 719468 days; a calendar repeats after 400 years.
    let days = seconds / 86_400 + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    // Months from March on have 153 days in every five.
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (month, over) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{of_month:02}", era * 400 + year + over)
}

#[cfg(test)]
mod tests {
    use super::day;

    #[test]
    fn days_follow_the_calendar() {
        let days = [
            (0, "1970-01-01"),
            (86_399, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_735_689_599, "2024-12-31"),
            (1_735_689_600, "2025-01-01"),
            (4_107_542_400, "2100-03-01"),
        ];
        for (seconds, want) in days {
            assert_eq!(day(seconds), want);
        }
    }
}
