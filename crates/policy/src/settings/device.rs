//! The setting `device`: where a rank's data is.

use super::{SettingsError, Stated, value};
use crate::suggest;

/// Where a rank's data is, as somebody wrote it. What is there only the process can tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// `auto`: a device if there is one, else host memory.
    Auto,
    /// `host`: host memory.
    Host,
    /// `cuda`, `cuda:0`: a device of this driver.
    On {
        /// The driver.
        driver: String,
        /// Its number among those that the process sees; absent for the one of the rank's number on
        /// its node.
        ordinal: Option<u32>,
    },
}

/// Drivers by the names that settings have for them; the last is the kernels' CPU build, which a
/// test installs.
const DRIVERS: [&str; 3] = ["cuda", "hip", "emulated"];

pub(super) fn read(key: &str, stated: &Stated<String>) -> Result<DeviceChoice, SettingsError> {
    let text = stated.value.as_str();
    let (name, ordinal) = match text.split_once(':') {
        None => (text, None),
        Some((name, digits)) => {
            let ordinal =
                digits.parse().ok().filter(|_| digits.bytes().all(|b| b.is_ascii_digit()));
            let want = "after the colon stands a device's number, as in `cuda:0`";
            (name, Some(ordinal.ok_or_else(|| value::refusal(key, stated, want))?))
        }
    };
    match (name, ordinal) {
        ("auto", None) => Ok(DeviceChoice::Auto),
        ("host", None) => Ok(DeviceChoice::Host),
        ("auto" | "host", Some(_)) => {
            Err(value::refusal(key, stated, format!("`{name}` has no number")))
        }
        (driver, ordinal) if DRIVERS.contains(&driver) => {
            Ok(DeviceChoice::On { driver: driver.to_owned(), ordinal })
        }
        (name, _) => {
            let known = ["auto", "host"].into_iter().chain(DRIVERS);
            Err(value::refusal(key, stated, suggest::help(name, known)))
        }
    }
}
