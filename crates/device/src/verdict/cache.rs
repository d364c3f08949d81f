//! What was proven, remembered between runs.
//!
//! A file a key, in a folder that the caller names. A file is complete or not there: it is written
//! beside, made durable and renamed. Whatever else is found is passed over with a reason.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::platform::Platform;
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
    /// The key for these devices, in any order.
    pub fn new(devices: &[String], driver_version: &str, platform: &Platform) -> Key {
        let mut devices = devices.to_vec();
        devices.sort_unstable();
        devices.dedup();
        Key {
            format: FORMAT,
            devices,
            driver: driver_version.to_owned(),
            boot: platform.boot.clone(),
            iommu: platform.iommu.clone(),
        }
    }

    fn name(&self) -> String {
        // Names that collide are told apart by the key in the file.
        let Key { format, devices, driver, boot, iommu } = self;
        let text = format!("{format}\n{}\n{driver}\n{boot}\n{iommu}", devices.join(","));
        format!("p2p-{:016x}", xxh3_64(text.as_bytes()))
    }
}

/// A folder of memories.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
}

/// What a file holds.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    key: Key,
    pairs: Vec<(Pair, Verdict)>,
}

/// The right to try pairs out, until it is dropped or its process ends.
#[derive(Debug)]
pub struct Turn {
    _lock: File,
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
    pub fn load(&self, key: &Key) -> Result<Vec<(Pair, Verdict)>, String> {
        let path = self.path(key);
        let ignored = |why: &str| format!("{} is not used: {why}", path.display());
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(ignored(&error.to_string())),
        };
        let record: Record =
            serde_json::from_str(&text).map_err(|error| ignored(&error.to_string()))?;
        if record.key != *key {
            return Err(ignored("it is about other devices, or another driver or start"));
        }
        let strange = record.pairs.iter().any(|(pair, verdict)| {
            let known = |uuid| key.devices.contains(uuid);
            !verdict.is_lasting() || !known(&pair.user) || !known(&pair.owner)
        });
        if strange {
            return Err(ignored("it has verdicts that are never remembered"));
        }
        Ok(record.pairs)
    }

    /// Remembers these verdicts in place of what was remembered for `key`.
    ///
    /// # Errors
    /// One sentence why nothing is remembered.
    pub fn store(&self, key: &Key, pairs: Vec<(Pair, Verdict)>) -> Result<(), String> {
        let path = self.path(key);
        let forgotten = |error: io::Error| format!("{} is not written: {error}", path.display());
        let text = serde_json::to_vec_pretty(&Record { key: key.clone(), pairs })
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

    /// Waits until nobody else tries out what `key` is about, at most until the deadline.
    ///
    /// # Errors
    /// One sentence why there is no turn. To go on without is safe, and does the work twice.
    pub fn turn(&self, key: &Key, deadline: Instant) -> Result<Turn, String> {
        let path = self.folder.join(format!("{}.lock", key.name()));
        let failed = |error: io::Error| format!("{} is not locked: {error}", path.display());
        fs::create_dir_all(&self.folder).map_err(failed)?;
        let options = File::options().create(true).truncate(false).write(true).open(&path);
        let file = options.map_err(failed)?;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Turn { _lock: file }),
                Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < deadline => {
                    thread::sleep(BETWEEN_LOOKS);
                }
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    return Err(format!(
                        "another process tries the devices out and holds {}",
                        path.display()
                    ));
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(failed(error.into())),
            }
        }
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.folder.join(format!("{}.json", key.name()))
    }

    /// A name that no other writer has: of this process, or of one in another container.
    fn beside(&self, key: &Key) -> PathBuf {
        static WRITERS: AtomicU64 = AtomicU64::new(0);
        let number = WRITERS.fetch_add(1, Ordering::Relaxed);
        let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let time = time.unwrap_or_default().as_nanos();
        self.folder.join(format!(".{}-{}-{time}-{number}", key.name(), process::id()))
    }
}

/// Between two looks at a lock: short against a probe, which takes a device's start at least.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::options().create_new(true).write(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
