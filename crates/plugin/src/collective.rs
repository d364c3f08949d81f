//! The collectives.

use std::ffi::c_void;
use std::ptr::NonNull;

use crossover::{CallBuffers, CallError, CallSig, Communicator, Op, ReduceOp, Split};

use crate::failure::{Failure, Status, guard};
use crate::group::{Group, of};
use crate::words;

/// Every rank's `output` receives the reduction of all `input`s, `count` elements each.
///
/// Of this and all collectives: pointers are of the memory that the group's device names, of any
/// alignment. `dtype`, `reduce_op` and `mode` are numbers of the enums here, and like `count` the same on
/// every rank. On a device the call is enqueued on `stream` (a cudaStream_t or hipStream_t; null is the
/// default one) and returns; in stream order the output is complete and the input may be overwritten. On host
/// memory, where `stream` is null, that is so when the call returns.
///
/// `output` may be `input` itself; they overlap in no other way.
///
/// # Safety
///
/// `group` is a group that was not freed; the buffers hold what the call says until the work is done.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn crossover_all_reduce(
    group: *const Group,
    input: *const c_void,
    output: *mut c_void,
    count: usize,
    dtype: u32,
    reduce_op: u32,
    mode: u32,
    stream: *mut c_void,
) -> Status {
    let kind = Kind { op: Op::AllReduce, dtype, reduce_op, mode, root: 0 };
    // SAFETY: the caller's promise.
    unsafe { run(group, kind, count, input, output, stream) }
}

/// Every rank's `output` receives all `input`s in rank order: `count` elements of each. `input` may be this
/// rank's part of `output`.
///
/// # Safety
///
/// As for `crossover_all_reduce`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn crossover_all_gather(
    group: *const Group,
    input: *const c_void,
    output: *mut c_void,
    count: usize,
    dtype: u32,
    mode: u32,
    stream: *mut c_void,
) -> Status {
    let kind = Kind { op: Op::AllGather, dtype, reduce_op: 0, mode, root: 0 };
    // SAFETY: the caller's promise.
    unsafe { run(group, kind, count, input, output, stream) }
}

/// Rank r's `output` receives part r of the reduction of all `input`s. `count` is of the input, a multiple
/// of the number of ranks. `output` may be this rank's part of `input`.
///
/// # Safety
///
/// As for `crossover_all_reduce`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn crossover_reduce_scatter(
    group: *const Group,
    input: *const c_void,
    output: *mut c_void,
    count: usize,
    dtype: u32,
    reduce_op: u32,
    mode: u32,
    stream: *mut c_void,
) -> Status {
    let kind = Kind { op: Op::ReduceScatter, dtype, reduce_op, mode, root: 0 };
    // SAFETY: the caller's promise.
    unsafe { run(group, kind, count, input, output, stream) }
}

/// Every rank's `output` receives the `input` of rank `root`. `output` may be `input` itself.
///
/// # Safety
///
/// As for `crossover_all_reduce`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn crossover_broadcast(
    group: *const Group,
    input: *const c_void,
    output: *mut c_void,
    count: usize,
    dtype: u32,
    root: u32,
    mode: u32,
    stream: *mut c_void,
) -> Status {
    let kind = Kind { op: Op::Broadcast, dtype, reduce_op: 0, mode, root };
    // SAFETY: the caller's promise.
    unsafe { run(group, kind, count, input, output, stream) }
}

/// Part p of `input` goes to rank p; part p of `output` comes from rank p. `count` is of the input, a
/// multiple of the number of ranks. `output` may be `input` itself.
///
/// # Safety
///
/// As for `crossover_all_reduce`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn crossover_all_to_all(
    group: *const Group,
    input: *const c_void,
    output: *mut c_void,
    count: usize,
    dtype: u32,
    mode: u32,
    stream: *mut c_void,
) -> Status {
    let kind = Kind { op: Op::AllToAll, dtype, reduce_op: 0, mode, root: 0 };
    // SAFETY: the caller's promise.
    unsafe { run(group, kind, count, input, output, stream) }
}

/// What kind of call it is, in C's numbers.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) op: Op,
    pub(crate) dtype: u32,
    pub(crate) reduce_op: u32,
    pub(crate) mode: u32,
    pub(crate) root: u32,
}

impl Kind {
    /// The call under the group's contract.
    pub(crate) fn call(
        self,
        group: &Communicator,
        count: usize,
    ) -> Result<CallSig<'static>, Failure> {
        // What does not reduce has no such word, whatever is in its place.
        let reduce_op = match self.op.reduces() {
            true => words::reduce_op(self.reduce_op)?,
            false => ReduceOp::Sum,
        };
        Ok(CallSig {
            op: self.op,
            dtype: words::dtype(self.dtype)?,
            reduce_op,
            count,
            mode: words::mode(self.mode)?,
            root: self.root,
            split: Split::Even,
            contract: group.plan().contract(),
        })
    }
}

/// # Safety
///
/// As for `crossover_all_reduce`.
unsafe fn run(
    group: *const Group,
    kind: Kind,
    count: usize,
    input: *const c_void,
    output: *mut c_void,
    stream: *mut c_void,
) -> Status {
    guard(|| {
        // SAFETY: the caller's promise.
        let group = unsafe { of(group) }?;
        let (call, buffers) = read(group, kind, count, input, output, stream)
            .map_err(|failure| refused(group, kind.op, failure))?;
        // SAFETY: the caller vouches for the buffers; the core checks the call.
        Ok(unsafe { group.run(&call, &buffers) }?)
    })
}

fn read(
    group: &Communicator,
    kind: Kind,
    count: usize,
    input: *const c_void,
    output: *mut c_void,
    stream: *mut c_void,
) -> Result<(CallSig<'static>, CallBuffers), Failure> {
    let call = kind.call(group, count)?;
    if !stream.is_null() && is_on_host(group) {
        return Err(Failure::usage(format!(
            "`stream` of {} is not null, and this group's data is in host memory, where there is no \
             stream: pass null",
            call.op
        )));
    }
    let buffers = CallBuffers {
        input: data(input.cast_mut(), &call, "`input`")?,
        output: data(output, &call, "`output`")?,
        stream: stream as u64,
    };
    Ok((call, buffers))
}

/// Peers that compare calls are told why this rank makes none.
fn refused(group: &Communicator, op: Op, failure: Failure) -> Failure {
    let why = CallError::Invalid { op, what: failure.sentence().to_owned() };
    match group.refuse(why.clone()) {
        told if told == why => failure,
        ended => ended.into(),
    }
}

/// A report from host memory has no unit.
fn is_on_host(group: &Communicator) -> bool {
    group.facts().reports()[group.rank() as usize].unit.is_empty()
}

/// A pointer to a call's data: where there is none, any that is not null.
fn data(pointer: *mut c_void, call: &CallSig<'_>, what: &str) -> Result<*mut u8, Failure> {
    match (pointer.is_null(), call.count) {
        (false, _) => Ok(pointer.cast()),
        (true, 0) => Ok(NonNull::<u128>::dangling().as_ptr().cast()),
        (true, n) => {
            let (op, dtype) = (call.op, call.dtype);
            Err(Failure::usage(format!("{what} of {op} is null, and it has {n} x {dtype}")))
        }
    }
}
