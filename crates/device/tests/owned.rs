//! What is owned on a device is given back once, in the right order, whatever fails.

mod fake;

use std::path::Path;
use std::sync::Arc;

use crossover_device::device::Device;
use crossover_device::driver::Sharing;
use crossover_device::error::DeviceError;
use crossover_device::images::Places;
use crossover_device::library::Library;
use crossover_device::memory::{Buffer, HostPages};
use crossover_device::module::{Module, Shape};
use crossover_device::sharing::{Mapping, Share};
use crossover_device::stream::{Event, Stream};

use fake::Fake;

fn open() -> (Arc<Fake>, Device) {
    let fake = Arc::new(Fake::default());
    let device = Device::open(fake.clone(), "fake", Some(0)).unwrap();
    fake.calls();
    (fake, device)
}

#[test]
fn a_context_is_given_back_after_all_that_is_owned_on_it() {
    let (fake, device) = open();
    let buffer = Buffer::new(&device, 16).unwrap();
    let stream = Stream::new(&device).unwrap();
    drop(device);
    drop(buffer);
    drop(stream);
    let calls = fake.calls();
    let expected = ["alloc -> 2", "create_stream -> 3", "free 2", "destroy_stream 3", "release 1"];
    assert_eq!(calls, expected);
    assert_eq!(fake.alive(), 0);
}

#[test]
fn nothing_is_owned_where_making_it_failed() {
    let (fake, device) = open();
    for call in ["alloc", "alloc_virtual", "create_stream", "create_event", "load", "import"] {
        fake.fail(call);
    }
    assert!(Buffer::new(&device, 16).is_err());
    assert!(Buffer::new_virtual(&device, 16).is_err());
    assert!(Stream::new(&device).is_err());
    assert!(Event::new(&device).is_err());
    assert!(Module::load(&device, b"image").is_err());
    assert!(Mapping::by_handle(&device, &[0; 64], 16).is_err());
    assert_eq!(fake.calls().len(), 6, "nothing was freed that was not made");
    assert_eq!(fake.alive(), 1);
}

#[test]
fn a_context_that_cannot_be_had_is_not_given_back() {
    let fake = Arc::new(Fake::default());
    fake.fail("retain");
    assert!(Device::open(fake.clone(), "fake", Some(0)).is_err());
    assert_eq!(fake.calls(), ["retain -> 1"]);
}

#[test]
fn dropping_never_panics_and_tries_once() {
    let (fake, device) = open();
    let calls = ["free", "destroy_stream", "destroy_event", "unload", "unimport", "release"];
    let owned = (
        Buffer::new(&device, 16).unwrap(),
        Stream::new(&device).unwrap(),
        Event::new(&device).unwrap(),
        Module::load(&device, b"image").unwrap(),
        Mapping::by_handle(&device, &[0; 64], 16).unwrap(),
        device,
    );
    for call in calls {
        fake.fail(call);
    }
    fake.calls();
    drop(owned);
    let made: Vec<String> =
        calls.iter().zip([2, 3, 4, 5, 6, 1]).map(|(call, made)| format!("{call} {made}")).collect();
    assert_eq!(fake.calls(), made);
}

#[test]
fn memory_is_freed_and_shared_as_it_was_allocated() {
    let (fake, device) = open();
    let plain = Buffer::new(&device, 100).unwrap();
    let virtual_memory = Buffer::new_virtual(&device, 100).unwrap();
    assert_eq!((plain.bytes(), virtual_memory.bytes()), (100, 256));
    assert!(matches!(plain.share(), Ok(Share::Handle(handle)) if handle == [7; 64]));
    assert!(matches!(virtual_memory.share(), Ok(Share::Descriptor(_))));
    drop((plain, virtual_memory));
    let calls = fake.calls();
    assert_eq!(calls[2..], ["export 2", "export_fd 3", "free 2", "free_virtual 3"]);
}

#[test]
fn a_mapping_is_unmapped_as_it_was_mapped() {
    let (fake, device) = open();
    let by_handle = Mapping::by_handle(&device, &[7; 64], 100).unwrap();
    let file = tempfile::tempfile().unwrap();
    let by_descriptor =
        Mapping::by_descriptor(&device, std::os::fd::AsFd::as_fd(&file), 256).unwrap();
    assert_eq!((by_handle.bytes(), by_descriptor.bytes()), (100, 256));
    drop((by_handle, by_descriptor));
    assert_eq!(fake.calls(), ["import -> 2", "import_fd -> 3", "unimport 2", "free_virtual 3"]);
}

#[test]
fn a_pointer_is_shared_as_its_provenance_allows() {
    let (_fake, device) = open();
    let share = |pointer| {
        let from = device.provenance(pointer).unwrap();
        (from.sharing, Share::of(&device, &from))
    };
    assert!(matches!(share(1), (Sharing::LegacyIpc, Ok(Share::Handle(_)))));
    assert!(matches!(share(2), (Sharing::PosixFd, Ok(Share::Descriptor(_)))));
    for pointer in [3, 4] {
        let said = share(pointer).1.unwrap_err().to_string();
        assert!(said.contains("stage its data"), "{said}");
    }
}

#[test]
fn locked_pages_are_unlocked() {
    let (fake, device) = open();
    let mut page = vec![0; 4096];
    // SAFETY: the vector outlives the registration.
    let pages = unsafe { HostPages::register(&device, page.as_mut_ptr(), page.len()) }.unwrap();
    assert_eq!((pages.address(), pages.bytes()), (0x1000, page.len()));
    assert_eq!(pages.pages(), page.as_mut_ptr());
    drop(pages);
    assert_eq!(fake.calls(), ["register_host", "unregister_host"]);
}

#[test]
fn what_does_not_fit_a_buffer_is_refused_before_it_is_copied() {
    let (fake, device) = open();
    let buffer = Buffer::new(&device, 16).unwrap();
    let stream = Stream::new(&device).unwrap();
    fake.calls();
    assert!(buffer.upload(15, &[0; 2], &stream).is_err());
    assert!(buffer.download(usize::MAX, &mut [0; 2], &stream).is_err());
    assert!(fake.calls().is_empty());
    buffer.upload(14, &[0; 2], &stream).unwrap();
    buffer.fill(9, &stream).unwrap();
    let expected =
        ["copy 2 to 16", "synchronize_stream", "fill 4 words of 9 at 2", "synchronize_stream"];
    assert_eq!(fake.calls(), expected);
}

#[test]
fn a_recording_ends_whatever_happens_in_it() {
    let (fake, device) = open();
    let stream = Stream::new(&device).unwrap();
    fake.calls();

    let graph = stream.capture(|| Ok::<(), DeviceError>(())).unwrap();
    graph.replay(77).unwrap();
    drop(graph);
    let expected = ["begin_capture", "end_capture -> 3", "replay 3 in 77", "destroy_graph 3"];
    assert_eq!(fake.calls(), expected);

    let refused = DeviceError::Invalid("no".into());
    assert_eq!(stream.capture(|| Err(refused.clone())).map(drop), Err(refused));
    assert_eq!(fake.calls(), ["begin_capture", "end_capture -> 4", "destroy_graph 4"]);

    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        stream.capture::<DeviceError>(|| panic!("within a recording")).map(drop)
    }));
    assert!(panicked.is_err());
    assert_eq!(fake.calls(), ["begin_capture", "end_capture -> 5", "destroy_graph 5"]);

    fake.fail("begin_capture");
    let never = stream.capture::<DeviceError>(|| panic!("nothing is recorded")).map(drop);
    assert!(never.is_err());
    assert_eq!(fake.calls(), ["begin_capture"]);
}

#[test]
fn events_order_streams() {
    let (fake, device) = open();
    let stream = Stream::new(&device).unwrap();
    let (first, second) = (Event::new(&device).unwrap(), Event::new(&device).unwrap());
    fake.calls();
    first.record(77).unwrap();
    stream.wait(&first).unwrap();
    assert_eq!(fake.calls(), ["record 3 in 77", "wait for 3 in 2"]);
    assert_eq!(second.since(&first), Ok(1.0));
    assert_eq!(stream.is_done(), Ok(true));
}

#[test]
fn a_kernel_keeps_its_image_loaded() {
    let (fake, device) = open();
    let module = Module::load(&device, b"image").unwrap();
    let kernel = module.kernel("sum").unwrap();
    drop((module, device));
    assert_eq!(kernel.resident_blocks(512), Ok(4 * 4));
    assert_eq!(kernel.usage().unwrap().registers, 32);
    let shape = Shape { blocks: 3, threads: 512, programmatic: true };
    // SAFETY: the fake runs nothing.
    unsafe { kernel.launch(shape, &[1, 2], 77) }.unwrap();
    drop(kernel);
    let expected =
        ["load -> 2", "function sum", "launch 3x512 true [1, 2]", "unload 2", "release 1"];
    assert_eq!(fake.calls(), expected);
}

#[test]
fn an_image_is_loaded_once_for_all_its_kernels() {
    let (fake, device) = open();
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("host");
    std::fs::create_dir(&folder).unwrap();
    let manifest = r#"{"arch": "host", "abi": "", "files": [
        {"file": "kernels.so", "kernels": [{"name": "a"}, {"name": "b"}]},
        {"file": "gone.so", "kernels": [{"name": "c"}]}]}"#;
    std::fs::write(folder.join("manifest.json"), manifest).unwrap();
    std::fs::write(folder.join("kernels.so"), "image").unwrap();
    let library = Library::open(&device, &Places::new(Some(root.path()))).unwrap();
    let kernels = ["a", "b", "a"].map(|name| library.kernel(name).unwrap());
    assert_eq!(fake.calls(), ["load -> 2", "function a", "function b", "function a"]);
    drop(library);
    assert!(fake.calls().is_empty(), "kernels are still there");
    drop(kernels);
    assert_eq!(fake.calls(), ["unload 2"]);

    let library = Library::open(&device, &Places::new(Some(root.path()))).unwrap();
    let said = library.kernel("c").unwrap_err().to_string();
    assert!(said.contains("gone.so") && said.contains("build"), "{said}");
    let said = Library::open(&device, &Places::new(Some(Path::new("/nowhere")))).unwrap_err();
    assert!(said.to_string().contains("cargo xtask kernels host"), "{said}");
}

#[test]
fn a_peer_out_of_reach_is_named() {
    let (fake, device) = open();
    let peer = Device::open(fake.clone(), "fake", Some(1)).unwrap();
    device.enable_peer(&peer).unwrap();
    let said = peer.enable_peer(&device).unwrap_err().to_string();
    assert_eq!(said, "fake:1 cannot reach the memory of fake:0");
}

#[test]
fn a_device_is_opened_by_name() {
    crossover_device::install("fake", Arc::new(Fake::default()));
    assert_eq!(crossover_device::open("fake:0").unwrap().to_string(), "fake:0");
    let current = crossover_device::open("fake").unwrap();
    assert_eq!(current.ordinal(), 1, "the one that is current on this thread");
    let said = crossover_device::open("fake:2").unwrap_err().to_string();
    assert_eq!(said, "there is no device fake:2: this process sees 2");
}
