//! Streams run side by side, and events order them.

use std::time::{Duration, Instant};

use crossover_device::memory::Buffer;
use crossover_device::stream::{Event, Stream};

use crate::device;

/// size: 256 MiB take long enough to fill that a stream that waits for it is seen to wait.
const LARGE: usize = 256 << 20;

#[test]
fn a_stream_waits_for_an_event_of_another() {
    let Some(device) = device() else { return };
    let (first, second) = (Stream::new(&device).unwrap(), Stream::new(&device).unwrap());
    let (buffer, copy) = (Buffer::new(&device, LARGE).unwrap(), Buffer::new(&device, 4).unwrap());
    buffer.fill(1, &first).unwrap();
    let filled = Event::new(&device).unwrap();
    let last = buffer.address() + LARGE as u64 - 4;
    for round in 2..50 {
        // SAFETY: the ranges are the buffers', and both streams are waited for below.
        unsafe {
            device.fill(buffer.address(), round, LARGE / 4, first.raw()).unwrap();
            filled.record(first.raw()).unwrap();
            second.wait(&filled).unwrap();
            device.copy(copy.address(), last, 4, second.raw()).unwrap();
        }
        let mut seen = [0; 4];
        copy.download(0, &mut seen, &second).unwrap();
        assert_eq!(u32::from_ne_bytes(seen), round, "the copy waited for the fill");
    }
    first.synchronize().unwrap();
}

#[test]
fn events_take_times() {
    let Some(device) = device() else { return };
    let stream = Stream::new(&device).unwrap();
    let buffer = Buffer::new(&device, LARGE).unwrap();
    let (before, after) = (Event::new(&device).unwrap(), Event::new(&device).unwrap());
    assert!(after.since(&before).is_err(), "neither was recorded");
    before.record(stream.raw()).unwrap();
    // SAFETY: the range is the buffer's, and it is waited for.
    unsafe { device.fill(buffer.address(), 5, LARGE / 4, stream.raw()) }.unwrap();
    after.record(stream.raw()).unwrap();
    stream.synchronize().unwrap();
    let milliseconds = after.since(&before).unwrap();
    let bytes_per_second = LARGE as f64 / (f64::from(milliseconds) / 1e3);
    eprintln!("256 MiB filled in {milliseconds} ms");
    assert!((1e9..1e14).contains(&bytes_per_second), "{milliseconds} ms");
}

#[test]
fn a_stream_is_asked_without_waiting() {
    let Some(device) = device() else { return };
    let stream = Stream::new(&device).unwrap();
    let buffer = Buffer::new(&device, LARGE).unwrap();
    assert_eq!(stream.is_done(), Ok(true), "nothing was ever in it");
    for word in 0..200 {
        // SAFETY: the range is the buffer's, and it is waited for.
        unsafe { device.fill(buffer.address(), word, LARGE / 4, stream.raw()) }.unwrap();
    }
    assert_eq!(stream.is_done(), Ok(false), "50 GiB are not written in the time of a call");
    let deadline = Instant::now() + Duration::from_secs(60);
    while !stream.is_done().unwrap() {
        assert!(Instant::now() < deadline, "200 fills are not done after a minute");
        std::thread::yield_now();
    }
    device.synchronize().unwrap();
}
