//! The pinned RCCL itself (`cargo xtask rccl`), as far as it answers without a device. It wants a
//! newer C library than most machines have, so each test starts this program again, for itself alone,
//! by the loader that was fetched with it.

#![allow(clippy::print_stderr, reason = "says why a test skips")]

use std::env;
use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr;

use crossover_nccl_sys::layout::{Config, Status, UniqueId, WINDOW_COLLECTIVE_SYMMETRIC};
use crossover_nccl_sys::{Float8, Library, Vendor, Version};

/// Set where the fetched loader has started the program.
const AGAIN: &str = "CROSSOVER_TEST_RCCL_AGAIN";

#[test]
fn it_is_found_whole_and_says_its_version() {
    let Some(rccl) = rccl("it_is_found_whole_and_says_its_version") else { return };
    assert_eq!(rccl.version, Version::new(2, 27, 7));
    assert_eq!((rccl.version.number(), rccl.version.to_string().as_str()), (22707, "2.27.7"));
    assert_eq!(rccl.path, lib().join("librccl.so.1").canonicalize().unwrap());
    assert_eq!(rccl.float8(), Float8::ByDevice);
    let missing = [
        "ncclAllReduceConfig",
        "ncclAllGatherConfig",
        "ncclReduceScatterConfig",
        "ncclBroadcastConfig",
    ];
    assert_eq!(rccl.optional.missing(), missing);
    assert_eq!(Library::load(None, Vendor::Rccl).unwrap().path, rccl.path);
}

#[test]
fn unique_ids_are_not_to_be_had_without_a_device() {
    let Some(rccl) = rccl("unique_ids_are_not_to_be_had_without_a_device") else { return };
    let mut id = UniqueId::ZERO;
    // SAFETY: the pointer is valid for the call.
    let status = unsafe { (rccl.calls.get_unique_id)(&mut id) };
    assert_eq!(status, Status::UNHANDLED_CUDA_ERROR);
    assert!(id == UniqueId::ZERO);
    assert!(text(&rccl, status).starts_with("unhandled cuda error"), "{}", text(&rccl, status));
}

#[test]
fn a_communicator_without_a_device_is_refused_in_words() {
    let Some(rccl) = rccl("a_communicator_without_a_device_is_refused_in_words") else { return };
    let (mut comm, mut config) = (ptr::null_mut(), Config::new().ctas(1, 8));
    let (calls, id) = (&rccl.calls, UniqueId::ZERO);
    // SAFETY: the pointers are valid for the call.
    let status = unsafe { (calls.comm_init_rank_config)(&mut comm, 1, id, 0, &mut config) };
    assert_eq!((status, comm), (Status::UNHANDLED_CUDA_ERROR, ptr::null_mut()));
    let last = last(&rccl);
    assert!(last.starts_with("pfn_hsa_system_get_info failed"), "{last}");
}

#[test]
fn memory_and_windows_without_a_device_are_refused() {
    let Some(rccl) = rccl("memory_and_windows_without_a_device_are_refused") else { return };
    let (mut memory, mut window) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: the place is valid for the call.
    let status = unsafe { rccl.optional.mem_alloc.unwrap()(&mut memory, 1) };
    assert_eq!((status, memory), (Status::UNHANDLED_CUDA_ERROR, ptr::null_mut()));
    let register = rccl.optional.comm_window_register.unwrap();
    let (nobody, flags) = (ptr::null_mut(), WINDOW_COLLECTIVE_SYMMETRIC);
    // SAFETY: there is no communicator, so that nothing is registered.
    let status = unsafe { register(nobody, ptr::null_mut(), 1, &mut window, flags) };
    assert_eq!((status, window), (Status::UNHANDLED_CUDA_ERROR, ptr::null_mut()));
}

#[test]
fn what_needs_no_device_answers_as_nccl_does() {
    let Some(rccl) = rccl("what_needs_no_device_answers_as_nccl_does") else { return };
    let nobody = ptr::null_mut();
    let (mut ranks, mut error) = (0, Status::SUCCESS);
    // SAFETY: the place is valid for the call; there is no communicator.
    assert_eq!(unsafe { (rccl.calls.comm_count)(nobody, &mut ranks) }, Status::INVALID_ARGUMENT);
    assert_eq!(last(&rccl), "CommCount : comm argument is NULL");
    // SAFETY: likewise.
    let status = unsafe { (rccl.calls.comm_get_async_error)(nobody, &mut error) };
    assert_eq!(status, Status::INVALID_ARGUMENT);
    // SAFETY: a group of no calls; and the end of no communicator, which is allowed.
    let done = unsafe {
        let calls = &rccl.calls;
        let group = [(calls.group_start)(), (calls.group_end)()];
        group.into_iter().chain([calls.comm_finalize, calls.comm_abort].map(|end| end(nobody)))
    };
    assert!(done.into_iter().all(Status::is_success));
    for (status, words) in [
        (Status::SUCCESS, "no error"),
        (Status::SYSTEM_ERROR, "unhandled system error"),
        (Status::INTERNAL_ERROR, "internal error"),
        (Status::INVALID_ARGUMENT, "invalid argument"),
        (Status::INVALID_USAGE, "invalid usage"),
        (Status::REMOTE_ERROR, "remote process exited or there was a network error"),
        (Status::IN_PROGRESS, "NCCL operation in progress"),
        // It came with 2.30.
        (Status::TIMEOUT, "unknown result code"),
    ] {
        assert!(text(&rccl, status).starts_with(words), "{status:?}: {}", text(&rccl, status));
    }
}

/// The library, where the fetched loader has started this program; elsewhere starts it so, for the
/// test of this name, which has then been run.
fn rccl(test: &str) -> Option<Library> {
    if env::var_os(AGAIN).is_some() {
        let file = lib().join("librccl.so.1");
        return Some(Library::load(Some(&file), Vendor::Rccl).unwrap_or_else(|e| panic!("{e}")));
    }
    let loader = lib().join("ld-linux-x86-64.so.2");
    if !loader.exists() {
        eprintln!("skipped: no RCCL (cargo xtask rccl fetches it)");
        return None;
    }
    let mut again = Command::new(loader);
    again.arg("--library-path").arg(lib()).arg(env::current_exe().unwrap());
    let again = again.args(["--exact", test, "--nocapture"]).env(AGAIN, "1").output().unwrap();
    let [said, erred] = [&again.stdout, &again.stderr].map(|it| String::from_utf8_lossy(it));
    assert!(again.status.success() && said.contains("1 passed"), "{said}{erred}");
    None
}

fn lib() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join("target/toolchains/rccl-2.27.7/lib")
}

/// A status in the library's words.
fn text(rccl: &Library, status: Status) -> String {
    // SAFETY: texts are constants of the library.
    let text = unsafe { CStr::from_ptr((rccl.calls.get_error_string)(status)) };
    text.to_string_lossy().into_owned()
}

/// What the library last warned of.
fn last(rccl: &Library) -> String {
    // SAFETY: null stands for any communicator; the text is the thread's until its next call.
    let text = unsafe { CStr::from_ptr((rccl.optional.get_last_error.unwrap())(ptr::null_mut())) };
    text.to_string_lossy().into_owned()
}
