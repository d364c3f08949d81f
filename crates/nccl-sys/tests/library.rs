//! The pinned NCCL itself (`cargo xtask nccl`), as far as it answers without a device.

#![allow(clippy::print_stderr, reason = "says why a test skips")]

use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::ptr;

use crossover_nccl_sys::layout::{CTA_POLICY_EFFICIENCY, CollConfig, Config, DataType};
use crossover_nccl_sys::layout::{RedOp, Status, UniqueId};
use crossover_nccl_sys::{Float8, Library, Vendor, Version, advisories};

#[test]
fn it_is_found_whole_and_says_its_version() {
    let Some(nccl) = nccl() else { return };
    assert_eq!(nccl.version, Version::new(2, 32, 3));
    assert_eq!(nccl.version.number(), 23203);
    assert_eq!(nccl.path, file().canonicalize().unwrap());
    assert_eq!(nccl.optional.missing(), [""; 0]);
    assert_eq!(nccl.float8(), Float8::Standard);
    assert_eq!(advisories(nccl.vendor, nccl.version).count(), 0);
    assert_eq!(Library::load(None, Vendor::Nccl).unwrap().path, nccl.path);
}

#[test]
fn unique_ids_are_made_without_a_device() {
    let Some(nccl) = nccl() else { return };
    let (mut one, mut other) = (UniqueId::ZERO, UniqueId::ZERO);
    for id in [&mut one, &mut other] {
        // SAFETY: the pointer is valid for the call.
        assert_eq!(unsafe { (nccl.calls.get_unique_id)(id) }, Status::SUCCESS, "{}", last(&nccl));
    }
    assert!(one != other && one != UniqueId::ZERO && other != UniqueId::ZERO);
    assert!(UniqueId::from_bytes(one.to_bytes()) == one);
}

#[test]
fn a_communicator_without_a_device_is_refused_in_words() {
    let Some(nccl) = nccl() else { return };
    let (mut comm, mut config) = (ptr::null_mut(), Config::new().ctas(1, 8));
    let (calls, id) = (&nccl.calls, UniqueId::ZERO);
    // SAFETY: the pointers are valid for the call; a communicator of no ranks is refused.
    let status = unsafe { (calls.comm_init_rank_config)(&mut comm, 0, id, 0, &mut config) };
    assert!(!status.is_success());
    // SAFETY: texts are constants of the library.
    let text = unsafe { CStr::from_ptr((calls.get_error_string)(status)) };
    assert!(!text.is_empty() && comm.is_null(), "{status:?} {text:?}");
}

// The library judges a configuration before it misses the communicator, and its words tell which.
#[test]
fn configurations_of_calls_are_understood() {
    let Some(nccl) = nccl() else { return };
    let call = |config: CollConfig| {
        let all_reduce = nccl.optional.all_reduce_config.unwrap();
        let (input, output, stream) = (ptr::null(), ptr::null_mut(), ptr::null_mut());
        // SAFETY: there is no communicator, so that nothing is read but the configuration.
        let status = unsafe {
            all_reduce(
                input,
                output,
                1,
                DataType::F32,
                RedOp::SUM,
                ptr::null_mut(),
                stream,
                &config,
            )
        };
        assert_eq!(status, Status::INVALID_ARGUMENT);
        last(&nccl)
    };
    let good = CollConfig::new().ctas(4, 4).algorithms(c"RING_SIMPLE");
    for good in [good, CollConfig { cta_policy: CTA_POLICY_EFFICIENCY, ..good }] {
        assert_eq!(call(good), "AllReduce : comm argument is NULL");
    }
    let bad = call(CollConfig { magic: 1, ..good });
    assert!(bad.contains("magic mismatch (got 0x1, expected 0xcafebeef)"), "{bad}");
    let bad = call(CollConfig { cta_policy: 9, ..good });
    assert!(bad.contains("CTAPolicy=9 is invalid"), "{bad}");
    let bad = call(CollConfig { force_alg_selection: 7, ..good });
    assert!(bad.contains("forceAlgSelection=7 is invalid"), "{bad}");
}

/// The library, if it was fetched.
fn nccl() -> Option<Library> {
    if !file().exists() {
        eprintln!("skipped: no NCCL (cargo xtask nccl fetches it)");
        return None;
    }
    Some(Library::load(Some(&file()), Vendor::Nccl).unwrap())
}

fn file() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join("target/toolchains/nccl-2.32.3/lib/libnccl.so.2")
}

/// What the calling thread was last warned of.
fn last(nccl: &Library) -> String {
    // SAFETY: null stands for any communicator; the text is the thread's until its next call.
    let text = unsafe { CStr::from_ptr((nccl.optional.get_last_error.unwrap())(ptr::null_mut())) };
    text.to_string_lossy().into_owned()
}
