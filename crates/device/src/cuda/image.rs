//! Is an image whole? The driver is given its address alone, and reads as far as the image says.

use crate::error::DeviceError;

/// How a fat binary begins.
const FAT_BINARY: [u8; 4] = 0xba55_ed50_u32.to_le_bytes();
const ELF: [u8; 4] = *b"\x7fELF";

/// Refuses an image that the driver would read past its end.
///
/// # Errors
/// It is cut off, or of no known kind.
pub(super) fn check(image: &[u8]) -> Result<(), DeviceError> {
    match extent(image) {
        Some(bytes) if bytes <= image.len() as u64 => Ok(()),
        Some(bytes) => Err(DeviceError::Invalid(format!(
            "a kernel image of {} bytes is cut off: it says that it has {bytes}; build the kernels \
             again",
            image.len()
        ))),
        None => Err(DeviceError::Invalid(format!(
            "{} bytes are no kernel image: neither a fat binary nor an ELF file nor PTX that ends in \
             a zero; build the kernels again",
            image.len()
        ))),
    }
}

/// The bytes that the driver reads, by the image's own account.
fn extent(image: &[u8]) -> Option<u64> {
    if image.starts_with(&FAT_BINARY) {
        // A header, whose size is in it, and what it tells the size of.
        let (header, rest) = (number::<2>(image, 6)?, number::<8>(image, 8)?);
        Some(header.saturating_add(rest))
    } else if image.starts_with(&ELF) {
        // The tables of sections and of segments are behind all that they tell of.
        let table = |offset, size, count| {
            let bytes = number::<2>(image, size)? * number::<2>(image, count)?;
            Some(number::<8>(image, offset)?.saturating_add(bytes))
        };
        Some(table(0x28, 0x3a, 0x3c)?.max(table(0x20, 0x36, 0x38)?))
    } else {
        let end = image.iter().position(|byte| *byte == 0)?;
        std::str::from_utf8(&image[..end]).ok()?.contains(".version").then_some(end as u64 + 1)
    }
}

/// A little-endian number of so many bytes.
fn number<const BYTES: usize>(image: &[u8], at: usize) -> Option<u64> {
    let mut wide = [0; 8];
    wide[..BYTES].copy_from_slice(image.get(at..at + BYTES)?);
    Some(u64::from_le_bytes(wide))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fat_binary(rest: usize) -> Vec<u8> {
        let mut image = FAT_BINARY.to_vec();
        image.extend(1_u16.to_le_bytes());
        image.extend(16_u16.to_le_bytes());
        image.extend((rest as u64).to_le_bytes());
        image.extend(vec![0; rest]);
        image
    }

    fn elf(sections: usize) -> Vec<u8> {
        let mut image = vec![0; 64 + 64 * sections];
        image[..4].copy_from_slice(&ELF);
        image[0x28..0x30].copy_from_slice(&64_u64.to_le_bytes());
        image[0x3a..0x3c].copy_from_slice(&64_u16.to_le_bytes());
        image[0x3c..0x3e].copy_from_slice(&(sections as u16).to_le_bytes());
        image
    }

    #[test]
    fn whole_images_pass_and_every_shorter_one_is_refused() {
        let ptx = b".version 7.0\n.target sm_80\n\0".to_vec();
        for image in [fat_binary(48), elf(3), ptx] {
            assert_eq!(check(&image), Ok(()));
            for end in 0..image.len() {
                assert!(check(&image[..end]).is_err(), "{end} of {}", image.len());
            }
        }
    }

    #[test]
    fn a_cut_image_is_told_from_what_is_none() {
        let cut = check(&fat_binary(48)[..32]).unwrap_err().to_string();
        assert!(cut.contains("cut off") && cut.contains("64"), "{cut}");
        let none = check(b"#!/bin/sh\n\0").unwrap_err().to_string();
        assert!(none.contains("no kernel image"), "{none}");
    }
}
