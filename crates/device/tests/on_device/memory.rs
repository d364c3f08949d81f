//! Memory: allocated, copied, filled, where it comes from, and pages of the host.

use std::os::fd::AsFd;

use crossover_device::device::Device;
use crossover_device::driver::{Provenance, Sharing};
use crossover_device::memory::{Buffer, HostPages};
use crossover_device::sharing::{Mapping, Share};
use crossover_device::stream::Stream;
use rustix::mm::{MapFlags, ProtFlags};

use crate::{bytes, device};

const WORDS: usize = 1000;

fn words(buffer: &Buffer, stream: &Stream) -> Vec<u32> {
    let mut read = vec![0; WORDS * 4];
    buffer.download(0, &mut read, stream).unwrap();
    read.chunks_exact(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap())).collect()
}

#[test]
fn what_is_written_is_read() {
    let Some(device) = device() else { return };
    let stream = Stream::new(&device).unwrap();
    let written: Vec<u32> = (0..WORDS as u32).map(|word| word.wrapping_mul(0x9e37_79b9)).collect();
    for buffer in [Buffer::new(&device, WORDS * 4), Buffer::new_virtual(&device, WORDS * 4)] {
        let buffer = buffer.unwrap();
        buffer.upload(0, &bytes(&written), &stream).unwrap();
        assert_eq!(words(&buffer, &stream), written);
        buffer.upload(8, &bytes(&[7, 9]), &stream).unwrap();
        assert_eq!(words(&buffer, &stream)[..5], [written[0], written[1], 7, 9, written[4]]);
        buffer.fill(0xffff_fff5, &stream).unwrap();
        assert_eq!(words(&buffer, &stream), [0xffff_fff5; WORDS]);
    }
}

#[test]
fn too_much_memory_is_an_error_and_not_the_end() {
    let Some(device) = device() else { return };
    let more = usize::try_from(device.description().memory).unwrap() * 2;
    let said = Buffer::new(&device, more).unwrap_err().to_string();
    assert!(said.contains("cuMemAlloc_v2") && said.contains("memory"), "{said}");
    let said = Buffer::new_virtual(&device, more).unwrap_err().to_string();
    assert!(said.contains("cuMemCreate") && said.contains("memory"), "{said}");
    assert!(Buffer::new(&device, 16).is_ok());
}

#[test]
fn an_allocation_is_known_from_any_pointer_into_it() {
    let Some(device) = device() else { return };
    let at = |pointer| device.provenance(pointer).unwrap();
    let plain = Buffer::new(&device, WORDS).unwrap();
    let Provenance { base, bytes, ordinal, sharing, id } = at(plain.address() + 500);
    assert_eq!((base, ordinal, sharing), (plain.address(), 0, Sharing::LegacyIpc));
    assert!(bytes >= WORDS as u64, "{bytes}");
    let virtual_memory = Buffer::new_virtual(&device, WORDS).unwrap();
    let from = at(virtual_memory.address() + 500);
    assert_eq!(from.base, virtual_memory.address());
    assert_eq!(from.bytes, virtual_memory.bytes() as u64);
    assert_eq!(from.sharing, Sharing::PosixFd);
    assert_ne!(from.id, id);
}

#[test]
fn an_address_that_is_used_again_is_another_allocation() {
    let Some(device) = device() else { return };
    let mut seen = std::collections::HashSet::new();
    for _ in 0..8 {
        let buffer = Buffer::new(&device, 4096).unwrap();
        assert!(seen.insert(device.provenance(buffer.address()).unwrap().id));
    }
}

#[test]
fn what_is_no_device_memory_is_not_shared() {
    let Some(device) = device() else { return };
    let here = [0_u8; 64];
    let said = device.provenance(here.as_ptr() as u64).unwrap_err().to_string();
    assert!(said.contains("no memory that the CUDA driver knows"), "{said}");
    let page = Page::new();
    // SAFETY: the page outlives the registration.
    let pages = unsafe { HostPages::register(&device, page.0, Page::BYTES) }.unwrap();
    let from = device.provenance(pages.address()).unwrap();
    assert_eq!(from.sharing, Sharing::None);
    assert!(Share::of(&device, &from).is_err());
}

#[test]
fn two_mappings_of_one_allocation_are_the_same_memory() {
    let Some(device) = device() else { return };
    let stream = Stream::new(&device).unwrap();
    let buffer = Buffer::new_virtual(&device, WORDS * 4).unwrap();
    let from = device.provenance(buffer.address()).unwrap();
    let Ok(Share::Descriptor(descriptor)) = Share::of(&device, &from) else {
        panic!("virtual memory is shared by descriptor")
    };
    let mapped = usize::try_from(from.bytes).unwrap();
    let mapping = Mapping::by_descriptor(&device, descriptor.as_fd(), mapped).unwrap();
    drop(descriptor);
    assert_ne!(mapping.address(), buffer.address());
    // SAFETY: the range is the mapping's, and it is waited for.
    unsafe { device.fill(mapping.address(), 41, WORDS, stream.raw()) }.unwrap();
    stream.synchronize().unwrap();
    assert_eq!(words(&buffer, &stream), [41; WORDS]);

    // The allocation lives as long as a mapping of it.
    drop(buffer);
    let copy = Buffer::new(&device, WORDS * 4).unwrap();
    // SAFETY: both ranges are alive, and it is waited for.
    unsafe { device.copy(copy.address(), mapping.address(), WORDS * 4, stream.raw()) }.unwrap();
    assert_eq!(words(&copy, &stream), [41; WORDS]);
}

#[test]
fn a_descriptor_that_is_none_is_refused() {
    let Some(device) = device() else { return };
    let file = std::fs::File::open("/dev/null").unwrap();
    assert!(Mapping::by_descriptor(&device, file.as_fd(), 4096).is_err());
}

#[test]
fn host_and_device_see_each_others_writes_to_locked_pages() {
    let Some(device) = device() else { return };
    let stream = Stream::new(&device).unwrap();
    let page = Page::new();
    // SAFETY: the page outlives the registration.
    let pages = unsafe { HostPages::register(&device, page.0, Page::BYTES) }.unwrap();
    // SAFETY: the range is the page's, and it is waited for.
    unsafe { device.fill(pages.address(), 0x0102_0304, 4, stream.raw()) }.unwrap();
    stream.synchronize().unwrap();
    // SAFETY: the page is mapped and aligned, and the device is done with it.
    unsafe {
        assert_eq!(page.0.cast::<u32>().add(3).read_volatile(), 0x0102_0304);
        page.0.cast::<u32>().write_volatile(77);
    }
    let buffer = Buffer::new(&device, WORDS * 4).unwrap();
    // SAFETY: both ranges are alive, and it is waited for.
    unsafe { device.copy(buffer.address(), pages.address(), 16, stream.raw()) }.unwrap();
    assert_eq!(words(&buffer, &stream)[..4], [77, 0x0102_0304, 0x0102_0304, 0x0102_0304]);
    again(&device, &page, pages);
}

/// Pages that are locked are refused, and can be locked once they are not.
fn again(device: &Device, page: &Page, pages: HostPages) {
    // SAFETY: the page outlives the registration.
    let twice = unsafe { HostPages::register(device, page.0, Page::BYTES) };
    assert!(twice.is_err(), "they are locked already");
    drop(pages);
    // SAFETY: likewise.
    assert!(unsafe { HostPages::register(device, page.0, Page::BYTES) }.is_ok());
}

/// A page of this process.
struct Page(*mut u8);

impl Page {
    const BYTES: usize = 4096;

    fn new() -> Page {
        let (rights, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping.
        let page =
            unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), Page::BYTES, rights, flags) };
        Page(page.unwrap().cast())
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's, and nothing points into it any more.
        unsafe { rustix::mm::munmap(self.0.cast(), Page::BYTES) }.unwrap();
    }
}
