//! Calls as data: made ready before a capture, and explained.

use std::ffi::c_char;

use crossover::{CallError, CallSig, Communicator};
use crossover_policy::explain::Record;

use crate::arguments::{Structure, not_null, size_of_structure, structure};
use crate::collective::Kind;
use crate::failure::{Failure, Status, guard};
use crate::group::{Group, of};
use crate::{report, words};

/// A call without its buffers. Zero it, then set `size`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// sizeof(crossover_call).
    pub size: usize,
    /// Elements of one rank's input, as the function of the op takes it.
    pub count: usize,
    /// Of crossover_op.
    pub op: u32,
    /// Of crossover_dtype.
    pub dtype: u32,
    /// Of crossover_reduce_op; not read where the op only copies.
    pub reduce_op: u32,
    /// Of crossover_mode.
    pub mode: u32,
    /// The rank whose input a broadcast sends; 0 for other ops.
    pub root: u32,
    /// 0.
    pub reserved: u32,
}

// SAFETY: its first field is a `usize`, and it is made of integers.
unsafe impl Structure for Call {
    const NAME: &'static str = "crossover_call";
}

impl Call {
    fn read(&self, group: &Communicator) -> Result<CallSig<'static>, Failure> {
        if self.reserved != 0 {
            return Err(Failure::usage("`reserved` is not 0: zero the whole crossover_call"));
        }
        let Call { dtype, reduce_op, mode, root, .. } = *self;
        Kind { op: words::op(self.op)?, dtype, reduce_op, mode, root }.call(group, self.count)
    }
}

/// Makes ready what `count` calls need and what cannot be made ready while a stream is captured: code is
/// loaded, memory allocated. Every rank prepares the calls that it will capture; none waits for another. A
/// failure leaves the group as usable as before.
///
/// # Safety
///
/// `group` is a group that was not freed; `calls` is valid for `count` structures of the size that the first
/// one states.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn crossover_prepare(
    group: *const Group,
    calls: *const Call,
    count: usize,
) -> Status {
    guard(|| {
        // SAFETY: the caller's promise.
        let (group, calls) = unsafe { (of(group)?, list(calls, count)?) };
        let calls = calls.iter().map(|call| call.read(group)).collect::<Result<Vec<_>, _>>()?;
        Ok(group.prepare(&calls)?)
    })
}

/// Ends a capture, or several, on every rank: compares what ranks have captured, and lets backends exchange
/// what the captured calls registered. Collective. Graphs are not replayed before. Peers may read inputs and
/// write outputs of captured calls where they are: both stay allocated until no rank replays its graph any
/// more. A failure is the same on every rank, and the end of the group.
///
/// # Safety
///
/// `group` is a group that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn crossover_commit(group: *const Group) -> Status {
    guard(|| {
        // SAFETY: the caller's promise.
        let group = unsafe { of(group) }?;
        let closed = matches!(group.check(), Err(CallError::Closed));
        // Closed or not, it comes: peers that have not closed would wait for it.
        match group.commit() {
            _ if closed => Err(CallError::Closed.into()),
            committed => Ok(committed?),
        }
    })
}

/// Forgets what was captured since the last crossover_commit: the capture failed. Waits for nobody; peers
/// that captured the same calls must forget them too.
///
/// # Safety
///
/// `group` is a group that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn crossover_discard(group: *const Group) -> Status {
    guard(|| {
        // SAFETY: the caller's promise.
        unsafe { of(group) }?.discard();
        Ok(())
    })
}

/// To be called before a stream is destroyed in which calls were made, unless calls in another one have been
/// made since or the group is closed first.
///
/// # Safety
///
/// `group` is a group that was not freed, and `stream` was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn crossover_leave_stream(group: *const Group, stream: u64) -> Status {
    guard(|| {
        // SAFETY: the caller's promise.
        Ok(unsafe { of(group) }?.leave_stream(stream)?)
    })
}

/// Who would run a call, and why the others would not, by the path that runs it. `*text` is a JSON object as
/// `crossover explain --json` has for each size; free it by crossover_text_free.
///
/// # Safety
///
/// `group` is a group that was not freed, `call` is valid, and `text` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn crossover_explain(
    group: *const Group,
    call: *const Call,
    text: *mut *mut c_char,
) -> Status {
    guard(|| {
        // SAFETY: the caller's promise.
        let (group, call) = unsafe { (of(group)?, structure(call, "`call`")?) };
        let explanation = group.explain(&call.read(group)?);
        // SAFETY: the caller's promise.
        unsafe { report::hand_over(&Record::from(&explanation), text) }
    })
}

/// # Safety
///
/// As for [`crossover_prepare`].
unsafe fn list(calls: *const Call, count: usize) -> Result<Vec<Call>, Failure> {
    if count == 0 {
        return Ok(Vec::new());
    }
    not_null(calls, "`calls`")?;
    // SAFETY: the caller's promise: one stride for all.
    unsafe {
        // Before any other is looked for: its size is how far away that is.
        structure(calls, "a call of `calls`")?;
        let stride = size_of_structure(calls);
        let each = (0..count).map(|at| {
            let call = calls.byte_add(at * stride);
            match size_of_structure(call) {
                size if size == stride => structure(call, "a call of `calls`"),
                size => Err(Failure::usage(format!(
                    "call {at} of `calls` says that it has {size} bytes, and the first {stride}: \
                     set all to sizeof(crossover_call)"
                ))),
            }
        });
        each.collect()
    }
}
