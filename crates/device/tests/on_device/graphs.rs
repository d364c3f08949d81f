//! Recording and replaying, and what may be done meanwhile.

use crossover_device::device::Device;
use crossover_device::driver::Capture;
use crossover_device::error::DeviceError;
use crossover_device::memory::Buffer;
use crossover_device::stream::{Event, Stream};

use crate::device;

/// Records that a buffer's first word becomes that of another.
fn copy(device: &Device, to: &Buffer, from: &Buffer, stream: &Stream) -> Result<(), DeviceError> {
    // SAFETY: the tests keep both buffers for as long as they replay.
    unsafe { device.copy(to.address(), from.address(), 4, stream.raw()) }
}

fn word(buffer: &Buffer, stream: &Stream) -> u32 {
    let mut word = [0; 4];
    buffer.download(0, &mut word, stream).unwrap();
    u32::from_ne_bytes(word)
}

#[test]
fn what_is_recorded_is_done_when_it_is_replayed() {
    let Some(device) = device() else { return };
    let (stream, other) = (Stream::new(&device).unwrap(), Stream::new(&device).unwrap());
    let (to, from) = (Buffer::new(&device, 4).unwrap(), Buffer::new(&device, 4).unwrap());
    to.fill(0, &stream).unwrap();
    from.fill(1, &stream).unwrap();
    assert_eq!(device.capture(stream.raw()), Ok(Capture::None));
    let graph = stream
        .capture(|| {
            assert_eq!(device.capture(stream.raw()), Ok(Capture::Active));
            assert_eq!(device.capture(other.raw()), Ok(Capture::None));
            copy(&device, &to, &from, &stream)
        })
        .unwrap();
    assert_eq!(device.capture(stream.raw()), Ok(Capture::None));
    assert_eq!(word(&to, &stream), 0, "it was recorded and not done");
    for round in [7, 8, 9] {
        from.fill(round, &other).unwrap();
        graph.replay(other.raw()).unwrap();
        assert_eq!(word(&to, &other), round);
    }
}

#[test]
fn setting_up_beside_a_recording_does_not_disturb_it() {
    let Some(device) = device() else { return };
    let (stream, other) = (Stream::new(&device).unwrap(), Stream::new(&device).unwrap());
    let (to, from) = (Buffer::new(&device, 4).unwrap(), Buffer::new(&device, 4).unwrap());
    from.fill(3, &stream).unwrap();
    let graph = stream
        .capture(|| {
            copy(&device, &to, &from, &stream)?;
            let buffer = Buffer::new(&device, 4096)?;
            buffer.fill(1, &other)?;
            buffer.share()?;
            device.provenance(buffer.address())?;
            let exported = Buffer::new_virtual(&device, 4096)?;
            exported.share()?;
            let event = Event::new(&device)?;
            event.record(other.raw())?;
            other.is_done()?;
            drop((buffer, exported, event));
            assert_eq!(device.capture(stream.raw()), Ok(Capture::Active));
            Ok::<(), DeviceError>(())
        })
        .unwrap();
    graph.replay(stream.raw()).unwrap();
    assert_eq!(word(&to, &stream), 3);
}

#[test]
fn a_recording_that_is_given_up_leaves_the_stream_as_it_was() {
    let Some(device) = device() else { return };
    let stream = Stream::new(&device).unwrap();
    let why = DeviceError::Invalid("given up".into());
    assert_eq!(stream.capture(|| Err(why.clone())).map(drop), Err(why));
    // Waiting for the stream that is recorded is never allowed.
    let said = stream.capture(|| stream.synchronize()).map(drop).unwrap_err();
    assert!(matches!(said, DeviceError::Call { .. }), "{said:?}");
    assert_eq!(device.capture(stream.raw()), Ok(Capture::None));
    let (to, from) = (Buffer::new(&device, 4).unwrap(), Buffer::new(&device, 4).unwrap());
    from.fill(5, &stream).unwrap();
    let graph = stream.capture(|| copy(&device, &to, &from, &stream)).unwrap();
    graph.replay(stream.raw()).unwrap();
    assert_eq!(word(&to, &stream), 5);
}
