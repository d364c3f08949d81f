//! A group's life.

use std::ffi::c_char;

use crossover::Communicator;

use crate::arguments::{given, place, text};
use crate::config::{Config, builder};
use crate::failure::{Failure, Status, guard};
use crate::{kernels, logging};

/// A group on one rank. Every rank makes the same calls in the same order.
///
/// Threads may share it; calls of several threads run one after the other. A forked child does not use
/// its parent's groups.
pub struct Group(pub(crate) Communicator);

/// Forms a group. Collective: it succeeds on every rank, or fails on every rank, within the setting
/// `form_timeout` (60s if nobody says). `config` null: all is as the environment says. The environment is
/// read now and never again; no other thread may change it meanwhile.
///
/// `*group` is the group, or null where the status is not 0. End it by crossover_group_close and
/// crossover_group_free.
///
/// # Safety
///
/// `config` is null or valid with all that it points to, and `group` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn crossover_group_create(
    config: *const Config,
    group: *mut *mut Group,
) -> Status {
    guard(|| {
        // SAFETY: the caller's promise.
        let result = unsafe { place(group, "`group`") }?;
        *result = std::ptr::null_mut();
        logging::init();
        // SAFETY: the caller's promise.
        let builder = unsafe { builder(config) }?;
        let communicator = kernels::beside_the_library(builder).form()?;
        *result = Box::into_raw(Box::new(Group(communicator)));
        Ok(())
    })
}

/// Says goodbye to the peers, within the setting `call_timeout`. The stream's work is done before: wait
/// for it. Later calls fail.
///
/// # Safety
///
/// `group` is a group that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn crossover_group_close(group: *const Group) -> Status {
    // SAFETY: the caller's promise.
    guard(|| Ok(unsafe { of(group) }?.close()?))
}

/// Frees a group, closed or not; null is none. Neither waits nor communicates. No other thread uses the
/// group, no stream has work of it, and no graph that holds its calls is replayed any more.
///
/// # Safety
///
/// `group` is null, or a group that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn crossover_group_free(group: *mut Group) {
    if !group.is_null() {
        guard(|| {
            // SAFETY: crossover_group_create made it, and the caller gives it back.
            drop(unsafe { Box::from_raw(group) });
            Ok(())
        });
    }
}

/// Ends every wait of the group, on every rank that can be reached. From any thread, while another is
/// in a call; never blocks. Calls that wait, and all later ones, fail with this rank and reason.
///
/// # Safety
///
/// `group` is a group that was not freed, `reason` null or a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn crossover_abort(group: *const Group, reason: *const c_char) -> Status {
    guard(|| {
        // SAFETY: the caller's promise.
        let (group, reason) = unsafe { (of(group)?, text(reason, "`reason`")?) };
        group.abort_handle().abort(reason.unwrap_or("the engine aborted it"));
        Ok(())
    })
}

/// Has anything failed that was enqueued on a device? What a stream holds after it was synchronised is
/// right only if this returns 0. Never waits for work. A failure is the end of the group.
///
/// # Safety
///
/// `group` is a group that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn crossover_check(group: *const Group) -> Status {
    // SAFETY: the caller's promise.
    guard(|| Ok(unsafe { of(group) }?.check()?))
}

/// This rank.
///
/// # Safety
///
/// `group` is a group that was not freed, and `rank` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn crossover_group_rank(group: *const Group, rank: *mut u32) -> Status {
    guard(|| {
        // SAFETY: the caller's promise.
        let (group, rank) = unsafe { (of(group)?, place(rank, "`rank`")?) };
        *rank = group.rank();
        Ok(())
    })
}

/// Number of ranks.
///
/// # Safety
///
/// `group` is a group that was not freed, and `world` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn crossover_group_world(group: *const Group, world: *mut u32) -> Status {
    guard(|| {
        // SAFETY: the caller's promise.
        let (group, world) = unsafe { (of(group)?, place(world, "`world`")?) };
        *world = group.world();
        Ok(())
    })
}

/// # Safety
///
/// It is null, or a group that was not freed.
pub(crate) unsafe fn of<'a>(group: *const Group) -> Result<&'a Communicator, Failure> {
    // SAFETY: the caller's promise.
    Ok(&unsafe { given(group, "`group`") }?.0)
}
