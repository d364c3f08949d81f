//! What a group has to tell, as JSON; and versions.

use std::ffi::{CString, c_char};

use serde::Serialize;
use serde_json::{Value, json};

use crate::arguments::place;
use crate::failure::{Failure, Status, guard};
use crate::group::{Group, of};

/// The version of this API: it grows when functions or fields are added; what was there stays.
const API: u32 = 1;

/// What really ran so far, from any thread. `*text` is a JSON array of
/// `{"op","use","at_least","calls","bytes"}`: calls that were handed to a target, by the power of two of their
/// input bytes per rank. Free it by crossover_text_free.
///
/// # Safety
///
/// `group` is a group that was not freed, and `text` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn crossover_counters(group: *const Group, text: *mut *mut c_char) -> Status {
    guard(|| {
        // SAFETY: the caller's promise.
        let counts = unsafe { of(group) }?.counters();
        let counts = counts.into_iter().map(|count| {
            json!({
                "op": count.op,
                "use": count.target,
                "at_least": count.at_least,
                "calls": count.calls,
                "bytes": count.bytes,
            })
        });
        // SAFETY: the caller's promise.
        unsafe { hand_over(&counts.collect::<Vec<Value>>(), text) }
    })
}

/// What the ranks agreed about the group. `*text` is a JSON object
/// `{"rank","facts","policy_digest"}`; free it by crossover_text_free.
///
/// # Safety
///
/// `group` is a group that was not freed, and `text` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn crossover_facts(group: *const Group, text: *mut *mut c_char) -> Status {
    guard(|| {
        // SAFETY: the caller's promise.
        let group = unsafe { of(group) }?;
        let facts = json!({
            "rank": group.rank(),
            "facts": group.facts().profile(),
            "policy_digest": group.plan().policy_digest().to_string(),
        });
        // SAFETY: the caller's promise.
        unsafe { hand_over(&facts, text) }
    })
}

/// Frees a text that a function here has handed over; null is none.
///
/// # Safety
///
/// `text` is null, or was handed over and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn crossover_text_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: `hand_over` made it, and the caller gives it back.
        drop(unsafe { CString::from_raw(text) });
    }
}

/// The version of this API: 1.
#[unsafe(no_mangle)]
pub extern "C" fn crossover_api_version() -> u32 {
    API
}

/// The version of the library, such as `0.1.0`. Never freed.
#[unsafe(no_mangle)]
pub extern "C" fn crossover_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Hands JSON over to who frees it.
///
/// # Safety
///
/// `text` is null or may be written.
pub(crate) unsafe fn hand_over(
    value: &impl Serialize,
    text: *mut *mut c_char,
) -> Result<(), Failure> {
    // SAFETY: the caller's promise.
    let result = unsafe { place(text, "`text`") }?;
    let written = serde_json::to_string(value).map_err(|e| e.to_string());
    let written = written.and_then(|json| CString::new(json).map_err(|e| e.to_string()));
    let written = written.map_err(|e| Failure::of(1, format!("JSON cannot be written: {e}")))?;
    *result = written.into_raw();
    Ok(())
}
