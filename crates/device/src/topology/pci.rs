//! PCI addresses, which every library writes in its own way.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::DeviceError;

/// `domain:bus:device.function`, written as the kernel does: `0000:17:00.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PciAddress {
    /// Which tree of buses.
    pub domain: u32,
    /// The bus.
    pub bus: u8,
    /// The device on it, below 32.
    pub device: u8,
    /// A part of the device, below 8.
    pub function: u8,
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { domain, bus, device, function } = self;
        write!(f, "{domain:04x}:{bus:02x}:{device:02x}.{function:x}")
    }
}

impl std::str::FromStr for PciAddress {
    type Err = DeviceError;

    /// Reads the kernel's form and NVML's, whose domain has eight digits and whose letters are
    /// large; a domain that is left out is 0.
    ///
    /// # Errors
    /// [`DeviceError::Invalid`] if the text is no address.
    fn from_str(text: &str) -> Result<Self, DeviceError> {
        parse(text).ok_or_else(|| {
            DeviceError::Invalid(format!("`{text}` is no PCI address such as 0000:17:00.0"))
        })
    }
}

impl TryFrom<String> for PciAddress {
    type Error = DeviceError;

    fn try_from(text: String) -> Result<Self, DeviceError> {
        text.parse()
    }
}

impl From<PciAddress> for String {
    fn from(address: PciAddress) -> String {
        address.to_string()
    }
}

fn parse(text: &str) -> Option<PciAddress> {
    let (place, function) = text.rsplit_once('.')?;
    let (place, device) = place.rsplit_once(':')?;
    let (domain, bus) = place.rsplit_once(':').unwrap_or(("0", place));
    let address = PciAddress {
        domain: hex(domain)?,
        bus: u8::try_from(hex(bus)?).ok()?,
        device: u8::try_from(hex(device)?).ok()?,
        function: u8::try_from(hex(function)?).ok()?,
    };
    (address.device < 32 && address.function < 8).then_some(address)
}

fn hex(digits: &str) -> Option<u32> {
    // `from_str_radix` would take a sign.
    let all = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    all.then(|| u32::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::PciAddress;

    #[test]
    fn every_form_is_the_same_address() {
        for text in ["0000:af:00.0", "00000000:AF:00.0", "af:00.0"] {
            assert_eq!(text.parse::<PciAddress>().unwrap().to_string(), "0000:af:00.0");
        }
        assert_eq!("10000:01:1f.7".parse::<PciAddress>().unwrap().to_string(), "10000:01:1f.7");
    }

    #[test]
    fn what_is_no_address_is_said() {
        for text in ["", "17", "17:00", "0000:17:20.0", "0000:17:00.8", "0000:+7:00.0", "1:2:3:4.0"]
        {
            let error = text.parse::<PciAddress>().unwrap_err().to_string();
            assert!(error.contains(&format!("`{text}` is no PCI address")), "{error}");
        }
    }
}
