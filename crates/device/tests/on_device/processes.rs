//! Memory between processes: this test program starts itself once more, as the peer.

use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};

use crossover_device::device::Device;
use crossover_device::memory::Buffer;
use crossover_device::sharing::{Mapping, Share};
use crossover_device::stream::Stream;

use crate::device;

/// Tells the peer what it is, and what to map: a handle in hexadecimal, or the bytes behind its
/// standard input.
const HANDLE: &str = "CROSSOVER_TEST_HANDLE";
const BYTES: &str = "CROSSOVER_TEST_BYTES";
const WORDS: usize = 1024;

#[test]
fn a_peer_maps_memory_by_its_handle() {
    let Some(device) = device() else { return };
    let buffer = Buffer::new(&device, WORDS * 4).unwrap();
    let Ok(Share::Handle(handle)) = buffer.share() else { panic!("plain memory has a handle") };
    let own = Mapping::by_handle(&device, &handle, buffer.bytes());
    assert!(own.is_err(), "the process that made a handle cannot map it");
    let written: String = handle.iter().map(|byte| format!("{byte:02x}")).collect();
    exchange(&device, &buffer, &written, Stdio::null());
}

#[test]
fn a_peer_maps_memory_by_its_descriptor() {
    let Some(device) = device() else { return };
    let buffer = Buffer::new_virtual(&device, WORDS * 4).unwrap();
    let Ok(Share::Descriptor(descriptor)) = buffer.share() else {
        panic!("virtual memory has a descriptor")
    };
    exchange(&device, &buffer, "", Stdio::from(descriptor));
}

/// The peer reads what is written here, and writes what is read here.
fn exchange(device: &Device, buffer: &Buffer, handle: &str, stdin: Stdio) {
    let stream = Stream::new(device).unwrap();
    buffer.fill(11, &stream).unwrap();
    let peer = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::the_peer", "--nocapture"])
        .env(HANDLE, handle)
        .env(BYTES, buffer.bytes().to_string())
        .stdin(stdin)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&peer.stderr);
    assert!(peer.status.success(), "the peer failed: {said}");
    assert!(said.contains("the peer is done"), "{said}");
    let mut read = [0; 4];
    buffer.download((WORDS - 1) * 4, &mut read, &stream).unwrap();
    assert_eq!(u32::from_ne_bytes(read), 22);
}

/// Not a test by itself: what the other process does.
#[test]
fn the_peer() {
    let (Ok(handle), Ok(bytes)) = (std::env::var(HANDLE), std::env::var(BYTES)) else { return };
    let device = crossover_device::open("cuda:0").unwrap();
    let bytes = bytes.parse().unwrap();
    let mapping = if handle.is_empty() {
        let descriptor: OwnedFd = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
        Mapping::by_descriptor(&device, descriptor.as_fd(), bytes).unwrap()
    } else {
        let digit = |at: usize| u8::from_str_radix(&handle[2 * at..2 * at + 2], 16).unwrap();
        Mapping::by_handle(&device, &std::array::from_fn(digit), bytes).unwrap()
    };
    let stream = Stream::new(&device).unwrap();
    let copy = Buffer::new(&device, WORDS * 4).unwrap();
    // SAFETY: both ranges are mapped, and it is waited for.
    unsafe { device.copy(copy.address(), mapping.address(), WORDS * 4, stream.raw()) }.unwrap();
    let mut read = vec![0; WORDS * 4];
    copy.download(0, &mut read, &stream).unwrap();
    assert!(read.chunks_exact(4).all(|word| word == 11_u32.to_ne_bytes()));
    // SAFETY: likewise.
    unsafe { device.fill(mapping.address(), 22, WORDS, stream.raw()) }.unwrap();
    stream.synchronize().unwrap();
    eprintln!("the peer is done");
}
