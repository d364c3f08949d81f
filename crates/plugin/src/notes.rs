//! What an engine tells the flight recorder: its state, its graphs' replays, and what it calls the
//! places of its calls.

use std::ffi::c_char;

use crate::arguments::text;
use crate::failure::{Status, guard};
use crate::group::{Group, of};

/// Notes the engine's state: `digest` is of all that must be equal on every rank in this step, such as
/// the requests of the batch, their lengths and what was accepted. Where ranks' states part, reports
/// name the first step in which they do. Every rank notes in the same steps. Compares nothing by itself.
///
/// # Safety
///
/// `group` is a group that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn crossover_note_state(
    group: *const Group,
    step: u32,
    digest: u64,
) -> Status {
    guard(|| {
        // SAFETY: the caller's promise.
        unsafe { of(group) }?.note_state(step, digest);
        Ok(())
    })
}

/// Says what the engine calls the place of the calls to come, such as `L31.o_proj`, by which reports name
/// them; null or an empty text for none. It holds until it is called again.
///
/// # Safety
///
/// `group` is a group that was not freed, `site` null or a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn crossover_note_site(group: *const Group, site: *const c_char) -> Status {
    guard(|| {
        // SAFETY: the caller's promise.
        let (group, site) = unsafe { (of(group)?, text(site, "`site`")?) };
        group.note_site(site.unwrap_or_default());
        Ok(())
    })
}

/// To be called before the engine replays a graph that holds calls of this group; `graph` is what the
/// engine knows it by, equal on all ranks, such as the batch size it was captured for. Takes a number as a
/// call does. Ranks that replay different graphs are told so, where backends can see it, instead of
/// waiting for one another inside the graphs.
///
/// # Safety
///
/// `group` is a group that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn crossover_note_replay(group: *const Group, graph: u64) -> Status {
    // SAFETY: the caller's promise.
    guard(|| Ok(unsafe { of(group) }?.note_replay(graph)?))
}
