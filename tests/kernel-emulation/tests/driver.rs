//! The driver over the emulator: what a backend does with a device, done without one.

mod common;

use std::ffi::c_void;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossover_device::driver::{Capture, Driver, Handle, Launch, Sharing};
use crossover_kernel_emulation::compile::Make;
use crossover_kernel_emulation::driver::{Allocations, Emulated, Entry, Options};

use common::{build, probe};

fn driver() -> Arc<Emulated> {
    let driver = Emulated::new(Options { hang: Duration::from_millis(300), ..Options::default() });
    let context = driver.retain(0).expect("there is a device");
    driver.make_current(context).expect("it was retained");
    driver
}

fn read(driver: &Emulated, from: u64, words: usize, stream: u64) -> Vec<u32> {
    let mut found = vec![0u32; words];
    // SAFETY: both ranges are valid, and the copy is awaited.
    unsafe { driver.copy(found.as_mut_ptr() as u64, from, words * 4, stream) }.expect("a copy");
    driver.synchronize_stream(stream).expect("nothing hangs");
    found
}

fn fill(driver: &Emulated, to: u64, word: u32, words: usize, stream: u64) {
    // SAFETY: the tests' ranges outlive their streams' work.
    unsafe { driver.fill(to, word, words, stream) }.expect("a fill");
}

/// The kernel of the probe with this name, unless there is no compiler.
fn kernel(driver: &Emulated, name: &str) -> Option<Handle> {
    let image = Emulated::image(&build(Make::Image, &[probe()], &[])?).expect("it was built");
    let module = driver.load(&image).expect("it loads");
    Some(driver.function(module, name).expect("it is there"))
}

fn step(driver: &Emulated, function: Handle, stream: u64, cell: u64, programmatic: bool) {
    let launch = Launch { function, blocks: 1, threads: 64, stream, programmatic };
    let parameter = [cell.to_le_bytes(), (1u64 << 32).to_le_bytes()].concat();
    // SAFETY: the parameter is probe_step's, and the cell outlives the stream's work.
    unsafe { driver.launch(&launch, &parameter) }.expect("a launch");
}

#[test]
fn kernels_copies_and_fills_come_in_stream_order() {
    let driver = driver();
    let Some(function) = kernel(&driver, "probe_step") else { return };
    assert_eq!(driver.function_use(function).expect("a function").threads, 64);
    let stream = driver.create_stream().expect("a stream").0;
    let cell = driver.alloc(256).expect("memory");
    assert_eq!(read(&driver, cell, 64, stream), [0xa5a5_a5a5; 64]);
    fill(&driver, cell, 40, 64, stream);
    step(&driver, function, stream, cell, false);
    step(&driver, function, stream, cell, true);
    assert_eq!(read(&driver, cell, 64, stream), [42; 64]);
    assert!(driver.is_done(stream).expect("no error"));
    driver.free(cell).expect("it was allocated");
    assert!(driver.free(cell).is_err());
}

#[test]
fn a_stream_waits_for_an_event_of_another() {
    let driver = driver();
    let Some(function) = kernel(&driver, "probe_step") else { return };
    let (first, second) = (driver.create_stream().unwrap(), driver.create_stream().unwrap());
    let (from, to) = (driver.create_event().unwrap(), driver.create_event().unwrap());
    let cell = driver.alloc(256).unwrap();
    driver.delay(first.0, Duration::from_millis(20)).unwrap();
    fill(&driver, cell, 1, 64, first.0);
    driver.record(from, first.0).unwrap();
    for _ in 0..5 {
        step(&driver, function, first.0, cell, false);
    }
    driver.record(to, first.0).unwrap();
    driver.wait(second.0, to).unwrap();
    assert_eq!(read(&driver, cell, 64, second.0), [6; 64]);
    assert!(driver.elapsed(from, to).unwrap() > 0.0);
}

#[test]
fn a_graph_is_replayed_as_it_was_captured() {
    let driver = driver();
    let Some(function) = kernel(&driver, "probe_step") else { return };
    let (origin, side) = (driver.create_stream().unwrap().0, driver.create_stream().unwrap().0);
    let event = driver.create_event().unwrap();
    let cell = driver.alloc(256).unwrap();
    fill(&driver, cell, 0, 64, origin);
    driver.begin_capture(origin).unwrap();
    assert_eq!(driver.capture(origin).unwrap(), Capture::Active);
    step(&driver, function, origin, cell, false);
    // A second stream takes part, and the first goes on after it.
    driver.record(event, origin).unwrap();
    driver.wait(side, event).unwrap();
    assert_eq!(driver.capture(side).unwrap(), Capture::Active);
    step(&driver, function, side, cell, false);
    driver.record(event, side).unwrap();
    driver.wait(origin, event).unwrap();
    let graph = driver.end_capture(origin).unwrap();
    assert_eq!(driver.capture(side).unwrap(), Capture::None);
    assert_eq!(read(&driver, cell, 64, origin), [0; 64]);
    for _ in 0..3 {
        driver.replay(graph, origin).unwrap();
    }
    assert_eq!(read(&driver, cell, 64, origin), [6; 64]);

    driver.begin_capture(origin).unwrap();
    assert!(driver.synchronize_stream(origin).is_err());
    assert_eq!(driver.capture(origin).unwrap(), Capture::Invalidated);
    assert!(driver.end_capture(origin).is_err());
    assert_eq!(driver.capture(origin).unwrap(), Capture::None);
}

/// Doubles the first word and adds the second, so that another order has another result.
unsafe extern "C" fn count(cell: *mut c_void) {
    let cell = cell.cast::<u32>();
    // SAFETY: the test's cell has two words and outlives the streams' work.
    unsafe { cell.write(2 * cell.read() + cell.add(1).read()) };
}

#[test]
fn a_function_of_the_host_comes_in_stream_order_and_at_every_replay() {
    let driver = driver();
    let stream = driver.create_stream().unwrap().0;
    let cell = driver.alloc(8).unwrap();
    let call = |entry: Entry| {
        // SAFETY: the cell lives as long as the driver.
        unsafe { entry(stream, count, cell as *mut c_void) }
    };
    let entry = driver.host_function_entry();
    fill(&driver, cell, 1, 2, stream);
    assert_eq!(call(entry), 0);
    fill(&driver, cell + 4, 5, 1, stream);
    // SAFETY: as above.
    unsafe { driver.host_function(stream, count, cell as *mut c_void) }.unwrap();
    assert_eq!(read(&driver, cell, 2, stream), [2 * 3 + 5, 5]);

    driver.begin_capture(stream).unwrap();
    assert_eq!(call(entry), 1);
    fill(&driver, cell + 4, 0, 1, stream);
    assert_eq!(call(entry), 1);
    let graph = driver.end_capture(stream).unwrap();
    assert_eq!(read(&driver, cell, 2, stream), [11, 5]);
    driver.replay(graph, stream).unwrap();
    driver.replay(graph, stream).unwrap();
    assert_eq!(read(&driver, cell, 2, stream), [(2 * (2 * 11 + 5)) * 2 * 2, 0]);
    // SAFETY: refused: there is no such stream.
    assert!(unsafe { entry(987, count, cell as *mut c_void) } < 0);
}

#[test]
fn a_kernel_that_hangs_fails_its_stream_and_says_where() {
    let driver = driver();
    let Some(function) = kernel(&driver, "probe_hang") else { return };
    let stream = driver.create_stream().unwrap().0;
    let flag = driver.alloc(8).unwrap();
    fill(&driver, flag, 0, 2, stream);
    let launch = Launch { function, blocks: 1, threads: 8, stream, programmatic: false };
    // SAFETY: the parameter is probe_hang's.
    unsafe { driver.launch(&launch, &flag.to_le_bytes()) }.unwrap();
    // SAFETY: refused: the parameter is too short.
    assert!(unsafe { driver.launch(&launch, &[0; 4]) }.is_err());
    let began = Instant::now();
    let error = driver.synchronize_stream(stream).unwrap_err().to_string();
    assert!(error.contains("probe_hang block 0: thread 5 in the wait of"), "{error}");
    assert!(error.contains("device 0 stream"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[test]
fn pointers_say_where_they_come_from() {
    let driver = driver();
    let plain = driver.alloc(1000).unwrap();
    let (fd, rounded) = driver.alloc_virtual(3, 1000).unwrap();
    Emulated::set_allocations(Allocations::Expandable);
    let grown = driver.alloc(1000).unwrap();
    for (base, bytes, ordinal, sharing) in [
        (plain, 1000, 0, Sharing::LegacyIpc),
        (fd, rounded as u64, 3, Sharing::PosixFd),
        (grown, 1000, 0, Sharing::None),
    ] {
        let found = driver.provenance(base + 999).unwrap();
        let expected = (base, bytes, ordinal, sharing);
        assert_eq!((found.base, found.bytes, found.ordinal, found.sharing), expected);
    }
    assert_eq!(driver.provenance(&raw const rounded as u64).unwrap().sharing, Sharing::None);
    assert!(driver.export(grown).is_err());
    assert!(driver.export(plain + 8).is_err());
    let first = driver.provenance(plain).unwrap().id;
    driver.free(plain).unwrap();
    let again = driver.alloc(1000).unwrap();
    assert_ne!(driver.provenance(again).unwrap().id, first);
}

#[test]
fn exported_memory_is_the_same_memory() {
    let driver = driver();
    let stream = driver.create_stream().unwrap().0;
    let plain = driver.alloc(64).unwrap();
    let handle = driver.export(plain).unwrap();
    assert_eq!(driver.import(&handle).unwrap(), plain);
    driver.unimport(plain).unwrap();
    let (virtual_memory, bytes) = driver.alloc_virtual(0, 64).unwrap();
    let file = driver.export_fd(virtual_memory + 8).unwrap();
    let imported = driver.import_fd(1, std::os::fd::AsFd::as_fd(&file), bytes).unwrap();
    fill(&driver, imported, 7, 16, stream);
    assert_eq!(read(&driver, virtual_memory, 16, stream), [7; 16]);
    driver.unimport(imported).unwrap();
    driver.free_virtual(virtual_memory, bytes).unwrap();
}

/// Where [`other_process`] finds the handle.
const HANDLE: &str = "CROSSOVER_TEST_HANDLE";

#[test]
fn another_process_writes_what_it_imports() {
    let driver = driver();
    let stream = driver.create_stream().unwrap().0;
    let memory = driver.alloc(64).unwrap();
    let handle: String =
        driver.export(memory).unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "other_process", "--ignored"])
        .env(HANDLE, handle)
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(read(&driver, memory, 16, stream), [11; 16]);
}

#[test]
#[ignore = "the other process of another_process_writes_what_it_imports"]
fn other_process() {
    let text = std::env::var(HANDLE).expect("started by the other test");
    let handle = std::array::from_fn(|at| {
        u8::from_str_radix(&text[2 * at..2 * at + 2], 16).expect("hexadecimal")
    });
    let driver = driver();
    let stream = driver.create_stream().unwrap().0;
    let memory = driver.import(&handle).unwrap();
    fill(&driver, memory, 11, 16, stream);
    driver.synchronize_stream(stream).unwrap();
    driver.unimport(memory).unwrap();
}
