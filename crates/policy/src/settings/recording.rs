//! What is kept of what ranks do, and what is done where one is awaited for too long.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crossover_core::settings::OnHang;
use figment::Figment;

use super::{SettingsError, entry, value};

/// Where the kernel keeps files in memory.
const RINGS: &str = "/dev/shm";
/// Where files are that nobody keeps, where nobody says.
const TEMPORARY: &str = "/tmp";

/// Settings of the flight recorder and the watchdog.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recording {
    /// `record_dir`: the folder of the flight recorder's rings, 308 KiB for each rank of a group;
    /// `None`, which is written `memfd`, for memory without names.
    pub rings: Option<PathBuf>,
    /// `dump_dir`: where a group that ends badly leaves what its ranks did last.
    pub dumps: DumpFolder,
    /// `on_hang`: what is done where a rank is awaited for longer than `hang_timeout`, is gone, or has
    /// another history than its peers. `abort` if nobody says.
    pub on_hang: OnHang,
    /// `hang_warning`: after how long a wait is told. If nobody says, after 50 times what is usual, and 2 s
    /// at least; half of `hang_timeout` at most.
    pub hang_warning: Option<Duration>,
    /// `hang_timeout`: how long a wait may take; `call_timeout` if nobody says.
    pub hang_timeout: Option<Duration>,
}

/// Where dumps go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DumpFolder {
    /// Nowhere: `none`.
    None,
    /// Into a folder of this user's in this one, `$TMPDIR` or `/tmp`, where the last 16 are kept.
    Temporary(PathBuf),
    /// Into this one.
    In(PathBuf),
}

impl Recording {
    pub(super) fn read(
        figment: &Figment,
        variables: &[(OsString, OsString)],
    ) -> Result<Recording, SettingsError> {
        let text = |key: &str| entry::find(figment, key);
        let duration = |key| text(key).map(|stated| value::duration(key, &stated)).transpose();
        Ok(Recording {
            rings: match text("record_dir") {
                None => Some(PathBuf::from(RINGS)),
                Some(stated) if stated.value == "memfd" => None,
                Some(stated) => Some(value::folder("record_dir", &stated)?),
            },
            dumps: match text("dump_dir") {
                None => DumpFolder::Temporary(temporary(variables)),
                Some(stated) if stated.value == "none" => DumpFolder::None,
                Some(stated) => DumpFolder::In(PathBuf::from(stated.value)),
            },
            on_hang: match text("on_hang") {
                None => OnHang::Abort,
                Some(stated) => value::word("on_hang", &stated)?,
            },
            hang_warning: duration("hang_warning")?,
            hang_timeout: duration("hang_timeout")?,
        })
    }
}

fn temporary(variables: &[(OsString, OsString)]) -> PathBuf {
    let set = variables.iter().find(|(key, value)| key == "TMPDIR" && !value.is_empty());
    set.map_or_else(|| PathBuf::from(TEMPORARY), |(_, value)| PathBuf::from(value))
}
