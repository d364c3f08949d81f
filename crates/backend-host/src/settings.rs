//! What an operator can set for this backend: `host.chunk`, `host.distance`, `host.ring`, `host.shm_dir`
//! and `host.threads`.

use std::path::PathBuf;

use crossover_core::agreement::StepError;
use crossover_core::bytes::setting_bytes;
use crossover_core::settings::BackendSettings;

use crate::layout::MAX_WORLD;

/// Every rank's region of a slot has at least one cache line.
const LEAST_CHUNK: u64 = 64 * MAX_WORLD as u64;
const MOST_CHUNK: u64 = 64 * MIB;
/// The slots that a core writes and reads in one step stay in its second-level cache.
const DEFAULT_CHUNK: u64 = 256 * KIB;
/// Twice the second-level cache of the processors that gain most, AMD's; the gain is as great with
/// once that of Intel's.
const DEFAULT_RING: u64 = 2 * MIB;
/// All ranks' rings together, unless an operator wants more, and their share of what is free: groups
/// are many, a container's shared memory is often 64 MiB, and a group forms without a ring too.
const DEFAULT_RINGS: u64 = 8 * MIB;
const DEFAULT_SHARE: u64 = 8;
/// The shortest that takes a step.
const LEAST_RING: u64 = 3 * 64;
const MOST_RING: u64 = 64 * MIB;
const MOST_THREADS: usize = 64;
const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// Where the segment lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// An unnamed file in this directory.
    Dir(PathBuf),
    /// Anonymous memory, which needs no directory.
    Memfd,
}

/// `host.chunk`: bytes of a slot, a multiple of 64.
pub(crate) fn chunk(settings: &BackendSettings) -> Result<u64, StepError> {
    let Some(text) = settings.get("host.chunk") else {
        return Ok(DEFAULT_CHUNK);
    };
    match setting_bytes(text) {
        Some(n) if (LEAST_CHUNK..=MOST_CHUNK).contains(&n) && n % 64 == 0 => Ok(n),
        _ => Err(StepError::new(format!(
            "setting host.chunk is `{text}`: it must be bytes with a unit, a multiple of 64 B from \
             {LEAST_CHUNK}B to {}MiB, such as `256KiB`",
            MOST_CHUNK / MIB
        ))),
    }
}

/// `host.distance`: are ranks `far` from one another, and not `near`? `None` where it is not set.
pub(crate) fn are_far(settings: &BackendSettings) -> Result<Option<bool>, StepError> {
    match settings.get("host.distance") {
        None => Ok(None),
        Some("near") => Ok(Some(false)),
        Some("far") => Ok(Some(true)),
        Some(text) => Err(StepError(format!(
            "setting host.distance is `{text}`: it must be `near` or `far`, or not set, to be measured"
        ))),
    }
}

/// What a rank knows of its ring.
pub(crate) enum Ring {
    /// `host.ring`: bytes, a multiple of 64; 0 for none.
    Set(u64),
    /// It is not set. So many bytes are free where shared memory comes from.
    Usual { free: u64 },
}

pub(crate) fn ring(settings: &BackendSettings) -> Result<Ring, StepError> {
    let Some(text) = settings.get("host.ring") else {
        return Ok(Ring::Usual { free: free(&place(settings)) });
    };
    match setting_bytes(text) {
        Some(n) if n == 0 || (LEAST_RING..=MOST_RING).contains(&n) && n % 64 == 0 => {
            Ok(Ring::Set(n))
        }
        _ => Err(StepError::new(format!(
            "setting host.ring is `{text}`: it must be bytes with a unit, a multiple of 64 B from \
             {LEAST_RING}B to {}MiB, such as `2MiB`, or `0B` for none",
            MOST_RING / MIB
        ))),
    }
}

impl Ring {
    /// Bytes of a rank's ring in a group of so many.
    pub(crate) fn bytes(&self, world: u32) -> u64 {
        match self {
            Ring::Set(bytes) => *bytes,
            Ring::Usual { free } => {
                let rings = DEFAULT_RINGS.min(free / DEFAULT_SHARE);
                DEFAULT_RING.min(rings / u64::from(world) / 64 * 64)
            }
        }
    }
}

/// Bytes that are free there; all there are where nothing says so.
fn free(place: &Place) -> u64 {
    let Place::Dir(dir) = place else { return u64::MAX };
    match rustix::fs::statvfs(dir) {
        Ok(stat) if stat.f_blocks > 0 => stat.f_bavail.saturating_mul(stat.f_frsize),
        _ => u64::MAX,
    }
}

/// `host.shm_dir`: a directory, or `memfd`.
pub(crate) fn place(settings: &BackendSettings) -> Place {
    match settings.get("host.shm_dir") {
        Some("memfd") => Place::Memfd,
        Some(dir) => Place::Dir(dir.into()),
        None => Place::Dir("/dev/shm".into()),
    }
}

/// `host.threads`: how many threads of this rank, its caller included, move the bytes of a large
/// message. It affects only speed, so ranks need not agree.
pub(crate) fn threads(settings: &BackendSettings) -> Result<usize, StepError> {
    let Some(text) = settings.get("host.threads") else {
        return Ok(1);
    };
    // `parse` would take a sign.
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(n) if digits && (1..=MOST_THREADS).contains(&n) => Ok(n),
        _ => Err(StepError::new(format!(
            "setting host.threads is `{text}`: it must be a number from 1 to {MOST_THREADS}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use crossover_core::settings::BackendSettings;

    use super::{MIB, Ring, are_far, ring, threads};

    #[test]
    fn rings_take_eight_megabytes_or_an_eighth_unless_more_is_asked_for() {
        let asked = |text: &str| {
            let mut settings = BackendSettings::default();
            settings.values.insert("host.ring".to_owned(), text.to_owned());
            ring(&settings).map(|ring| ring.bytes(4)).map_err(|e| e.0)
        };
        let usual = |world, free| Ring::Usual { free }.bytes(world);
        for (world, most) in [(2, 2 * MIB), (4, 2 * MIB), (8, MIB), (16, MIB / 2)] {
            assert_eq!(usual(world, u64::MAX), most, "{world}");
        }
        assert_eq!((usual(4, 16 * MIB), usual(4, 1000)), (MIB / 2, 0));
        assert!((1..=16).all(|world| usual(world, u64::MAX).is_multiple_of(64)));
        assert!(ring(&BackendSettings::default()).is_ok_and(|ring| ring.bytes(2) <= 2 * MIB));
        assert_eq!((asked("0B"), asked("192B"), asked("4MiB")), (Ok(0), Ok(192), Ok(4 * MIB)));
        for wrong in ["65MiB", "63B", "128B", "2M", "-64B", ""] {
            let error = asked(wrong).unwrap_err();
            assert!(error.contains(&format!("host.ring is `{wrong}`")), "{error}");
        }
    }

    #[test]
    fn a_distance_is_near_or_far() {
        let asked = |text: &str| {
            let mut settings = BackendSettings::default();
            settings.values.insert("host.distance".to_owned(), text.to_owned());
            are_far(&settings).map_err(|e| e.0)
        };
        assert_eq!(are_far(&BackendSettings::default()).ok(), Some(None));
        assert_eq!((asked("near"), asked("far")), (Ok(Some(false)), Ok(Some(true))));
        for wrong in ["Far", "measured", "450", ""] {
            let error = asked(wrong).unwrap_err();
            assert!(error.contains(&format!("host.distance is `{wrong}`: it must be")), "{error}");
        }
    }

    #[test]
    fn threads_are_from_1_to_64() {
        let asked = |text: &str| {
            let mut settings = BackendSettings::default();
            settings.values.insert("host.threads".to_owned(), text.to_owned());
            threads(&settings).map_err(|e| e.0)
        };
        assert_eq!(threads(&BackendSettings::default()).ok(), Some(1));
        assert_eq!((asked("1"), asked("64")), (Ok(1), Ok(64)));
        for wrong in ["0", "65", "-1", "+2", "two", ""] {
            let want =
                format!("setting host.threads is `{wrong}`: it must be a number from 1 to 64");
            assert_eq!(asked(wrong), Err(want));
        }
    }
}
