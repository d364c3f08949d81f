//! Devices by name: `cuda:0`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::cuda::Cuda;
use crate::device::Device;
use crate::driver::Driver;
use crate::error::DeviceError;
use crate::hip::Hip;

/// Loads the driver of a vendor that is known.
type Load = fn() -> Result<Arc<dyn Driver>, DeviceError>;

/// The vendors that are known.
const VENDORS: &[(&str, Load)] =
    &[("cuda", || Ok(Arc::new(Cuda::load()?))), ("hip", || Ok(Arc::new(Hip::load(None)?)))];

static DRIVERS: Mutex<BTreeMap<String, Arc<dyn Driver>>> = Mutex::new(BTreeMap::new());

/// Opens a device by its name: the vendor's and an ordinal, `cuda:0`; or the vendor's alone, which
/// is the device that is current on this thread, or the first. Its driver is loaded on first use.
///
/// # Errors
/// The name is none, the driver cannot be had, or it has no such device.
pub fn open(name: &str) -> Result<Device, DeviceError> {
    let (vendor, ordinal) = parse(name)?;
    Device::open(driver(vendor)?, vendor, ordinal)
}

/// Makes a driver known by a name, in place of any that had it: for a vendor that this crate does
/// not know, and for tests.
pub fn install(name: &str, driver: Arc<dyn Driver>) {
    DRIVERS.lock().unwrap_or_else(PoisonError::into_inner).insert(name.into(), driver);
}

/// The vendor's name, and the ordinal where there is one.
fn parse(name: &str) -> Result<(&str, Option<u32>), DeviceError> {
    let (vendor, ordinal) = match name.split_once(':') {
        Some((vendor, ordinal)) => (vendor, Some(ordinal)),
        None => (name, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let parsed = match ordinal {
        None => Some(None),
        Some(text) if digits(text) => text.parse().ok().map(Some),
        Some(_) => None,
    };
    match parsed {
        Some(ordinal) if !vendor.is_empty() => Ok((vendor, ordinal)),
        _ => Err(DeviceError::Invalid(format!(
            "`{name}` is no device: write the vendor and a number, such as cuda:0, \
             or the vendor alone"
        ))),
    }
}

/// A vendor's driver by its name, `cuda`, loaded on first use: who asks what there is opens no
/// device.
///
/// # Errors
/// No driver is called so, or it cannot be had.
pub fn driver(vendor: &str) -> Result<Arc<dyn Driver>, DeviceError> {
    let mut drivers = DRIVERS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(driver) = drivers.get(vendor) {
        return Ok(driver.clone());
    }
    let Some((_, load)) = VENDORS.iter().find(|(name, _)| *name == vendor) else {
        let known = VENDORS.iter().map(|(name, _)| *name).chain(drivers.keys().map(String::as_str));
        return Err(DeviceError::Invalid(format!(
            "no driver is called `{vendor}`: there are {}",
            known.collect::<Vec<_>>().join(", ")
        )));
    };
    let driver = load()?;
    drivers.insert(vendor.into(), driver.clone());
    Ok(driver)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_vendor_and_perhaps_an_ordinal() {
        assert_eq!(parse("cuda:0"), Ok(("cuda", Some(0))));
        assert_eq!(parse("hip:11"), Ok(("hip", Some(11))));
        assert_eq!(parse("cuda"), Ok(("cuda", None)));
    }

    #[test]
    fn what_is_no_name_is_refused_in_words() {
        for name in
            ["", ":0", "cuda:", "cuda:-1", "cuda:+1", "cuda:x", "cuda:0:1", "cuda:99999999999"]
        {
            let said = parse(name).unwrap_err().to_string();
            assert!(said.contains(&format!("`{name}`")) && said.contains("cuda:0"), "{said}");
        }
    }

    #[test]
    fn an_unknown_vendor_is_told_which_are_known() {
        let said = open("tpu:0").unwrap_err().to_string();
        assert!(said.contains("`tpu`") && said.contains("cuda, hip"), "{said}");
    }
}
