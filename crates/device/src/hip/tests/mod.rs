//! The driver against a runtime of the same interface whose memory is the host's (`runtime.c`), in
//! several releases; and against the real one without a device, where there is one.

mod runtime;

use std::os::fd::AsFd as _;

use crate::driver::{Capture, Driver, Launch, Sharing, Vendor};
use crate::error::DeviceError;
use crate::hip::Hip;
use crate::hip::tests::runtime::{RELEASES, each_release, say, with};

/// A kernel of `runtime.c`: sets the word to `value` * blocks * threads.
fn parameter(to: &u64, value: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&(std::ptr::from_ref(to) as u64).to_ne_bytes());
    bytes[8..].copy_from_slice(&value.to_ne_bytes());
    bytes
}

/// What an engine would find in the thread's last error.
fn last_error(hip: &Hip) -> i32 {
    // SAFETY: no pointer.
    unsafe { (hip.api.calls().get_last_error)() }
}

#[test]
fn the_real_runtime_without_a_device_says_so() {
    match Hip::load(None) {
        Ok(hip) => say(&format!("skipped: this machine has {:?}", hip.devices())),
        Err(DeviceError::Absent(why)) => {
            say(&why);
            let told = why.contains("sees no device (hipGetDeviceCount failed: ")
                || why.starts_with("no HIP runtime: ");
            assert!(told, "{why}");
        }
        Err(why) => panic!("{why}"),
    }
}

#[test]
fn a_device_is_described() {
    each_release(|hip, release| {
        assert_eq!(hip.vendor(), Vendor::Hip);
        assert_eq!(hip.version().unwrap(), release.version);
        let [device] = &hip.devices().unwrap()[..] else { panic!("one device") };
        assert_eq!(device.arch, "gfx942");
        assert_eq!(device.uuid, "GPU-b3f9a1c2d4e5f601");
        assert_eq!(device.pci, "0000:c1:00.0");
        assert_eq!((device.multiprocessors, device.l2), (304, 4 << 20));
        assert_eq!(device.memory, 192 << 30);
        assert_eq!(hip.current(), Ok(Some(0)));
        let context = hip.retain(0).unwrap();
        hip.make_current(context).unwrap();
        let said = hip.retain(1).unwrap_err().to_string();
        assert_eq!(said, "there is no device hip:1: HIP sees 1");
    });
}

#[test]
fn a_failure_is_told_and_not_left_behind() {
    each_release(|hip, _| {
        let why = hip.free(8).unwrap_err();
        assert_eq!(why.to_string(), "hipFree failed: invalid argument (1)");
        assert_eq!(last_error(hip), 0);
        for _ in 0..2 {
            hip.enable_peer(1).unwrap(); // the second time it is enabled already
        }
        assert_eq!(last_error(hip), 0);
    });
}

#[test]
fn memory_is_copied_and_shared() {
    each_release(|hip, _| {
        let memory = hip.alloc(4096).unwrap();
        let mut back = [0_u32; 4];
        // SAFETY: the ranges are valid, and this runtime copies at once.
        unsafe {
            hip.fill(memory, 0xdead_beef, 1024, 0).unwrap();
            hip.copy(back.as_mut_ptr() as u64, memory + 4080, 16, 0).unwrap();
        }
        assert_eq!(back, [0xdead_beef; 4]);
        let from = hip.provenance(memory + 100).unwrap();
        assert_eq!((from.base, from.bytes, from.ordinal), (memory, 4096, 0));
        assert_eq!(from.sharing, Sharing::LegacyIpc);
        let handle = hip.export(memory).unwrap();
        let mapped = hip.import(&handle).unwrap();
        assert_eq!(mapped, memory);
        hip.unimport(mapped).unwrap();
        assert!(hip.import(&[0; 64]).is_err());
        hip.free(memory).unwrap();
        assert!(hip.provenance(memory).is_err());
        let again = hip.alloc(4096).unwrap();
        assert_ne!(hip.provenance(again).unwrap().id, from.id);
        hip.free(again).unwrap();
        assert_eq!(last_error(hip), 0);
    });
}

#[test]
fn host_pages_are_registered() {
    each_release(|hip, _| {
        let mut pages = vec![0_u8; 8192];
        // SAFETY: the pages live past their registration.
        let device = unsafe { hip.register_host(pages.as_mut_ptr(), pages.len()) }.unwrap();
        assert_eq!(device, pages.as_ptr() as u64);
        hip.unregister_host(pages.as_mut_ptr()).unwrap();
    });
}

#[test]
fn virtual_memory_goes_through_a_descriptor() {
    each_release(|hip, release| {
        if !release.vmm {
            let said = hip.alloc_virtual(0, 1).unwrap_err().to_string();
            assert_eq!(said, "HIP has no virtual memory before ROCm 6");
            return;
        }
        let (memory, bytes) = hip.alloc_virtual(0, 100).unwrap();
        assert_eq!(bytes, 65536);
        assert_eq!(hip.provenance(memory + 5).unwrap().sharing, Sharing::PosixFd);
        let fd = hip.export_fd(memory + 5).unwrap();
        let other = hip.import_fd(0, fd.as_fd(), bytes).unwrap();
        assert_ne!(other, memory);
        // SAFETY: both are mapped here, and are the same memory.
        unsafe {
            hip.fill(memory, 7, bytes / 4, 0).unwrap();
            assert_eq!(*(other as *const u32).add(bytes / 4 - 1), 7);
        }
        hip.free_virtual(memory, bytes).unwrap();
        // SAFETY: this mapping remains.
        assert_eq!(unsafe { *(other as *const u32) }, 7);
        hip.free_virtual(other, bytes).unwrap();
        let said = hip.free_virtual(other, bytes).unwrap_err().to_string();
        assert!(said.contains("in no virtual memory"), "{said}");
        let ordinary = hip.alloc(64).unwrap();
        assert!(hip.export_fd(ordinary).is_err());
        hip.free(ordinary).unwrap();
    });
}

#[test]
fn streams_and_events() {
    each_release(|hip, _| {
        let stream = hip.create_stream().unwrap();
        assert_eq!(hip.is_done(stream.0), Ok(true));
        let (from, to) = (hip.create_event().unwrap(), hip.create_event().unwrap());
        hip.record(from, stream.0).unwrap();
        hip.wait(stream.0, from).unwrap();
        hip.record(to, stream.0).unwrap();
        hip.synchronize_stream(stream.0).unwrap();
        assert_eq!(hip.elapsed(from, to), Ok(0.25));
        hip.destroy_event(from).unwrap();
        hip.destroy_event(to).unwrap();
        hip.destroy_stream(stream).unwrap();
    });
}

#[test]
fn a_kernel_is_launched_and_recorded() {
    each_release(|hip, _| {
        let module = {
            let image = b"\x7fELFkernel\0".to_vec();
            hip.load(&image).unwrap() // HIP reads it later, when this one is gone
        };
        let function = hip.function(module, "kernel").unwrap();
        assert!(hip.function(module, "other").is_err());
        assert!(hip.function(module, "a\0b").is_err());
        let used = hip.function_use(function).unwrap();
        assert_eq!((used.registers, used.local, used.shared, used.threads), (37, 0, 64, 512));
        assert_eq!(hip.occupancy(function, 256), Ok(8));

        let stream = hip.create_stream().unwrap();
        let launch =
            Launch { function, blocks: 3, threads: 64, stream: stream.0, programmatic: true };
        let word = 0_u64;
        let read = || {
            // SAFETY: the word is read as what another may have written.
            unsafe { std::ptr::from_ref(&word).read_volatile() }
        };
        // SAFETY: the parameter is that of the kernel, and the word outlives it.
        unsafe { hip.launch(&launch, &parameter(&word, 2)) }.unwrap();
        assert_eq!(read(), 2 * 3 * 64);
        assert_eq!(hip.is_done(stream.0), Ok(false));
        assert_eq!(last_error(hip), 0);
        hip.synchronize_stream(stream.0).unwrap();

        assert_eq!(hip.capture(stream.0), Ok(Capture::None));
        hip.begin_capture(stream.0).unwrap();
        assert_eq!(hip.capture(stream.0), Ok(Capture::Active));
        // SAFETY: as above.
        unsafe { hip.launch(&launch, &parameter(&word, 5)) }.unwrap();
        let memory = hip.alloc(16).unwrap(); // a group may be set up while an engine records
        assert_eq!(read(), 2 * 3 * 64);
        let graph = hip.end_capture(stream.0).unwrap();
        hip.free(memory).unwrap();
        hip.replay(graph, stream.0).unwrap();
        assert_eq!(read(), 5 * 3 * 64);
        hip.destroy_graph(graph).unwrap();
        hip.synchronize_stream(stream.0).unwrap();
        hip.destroy_stream(stream).unwrap();
        hip.unload(module).unwrap();
    });
}

#[test]
fn what_is_no_image_is_refused_before_hip_reads_it() {
    with(&RELEASES[0], |hip| {
        let said = hip.load(b"not an image").unwrap_err().to_string();
        assert!(said.contains("no AMD code object"), "{said}");
    });
}
