//! The library's calls, each into one stream of one communicator, with or without pins.

use std::ffi::{c_int, c_void};

use crossover_nccl_sys::Library;
use crossover_nccl_sys::layout::{CollConfig, Comm, DataType, RedOp, Status};

use crate::comm::Failed;

/// Puts calls into a stream. Counts are in elements.
#[derive(Clone, Copy)]
pub(super) struct Put<'a> {
    pub(super) library: &'a Library,
    pub(super) comm: Comm,
    pub(super) stream: u64,
    /// How a call is to run, where a policy says so.
    pub(super) pins: Option<&'a CollConfig>,
}

/// Both ends of a call, as numbers.
#[derive(Clone, Copy)]
pub(super) struct Ends {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) count: usize,
}

/// Elements, and how they are combined.
#[derive(Clone, Copy)]
pub(super) struct Sum {
    pub(super) kind: DataType,
    pub(super) op: RedOp,
}

/// What copies are made of.
const BYTES: DataType = DataType::U8;

/// Every method: the caller vouches for both ends, as [`Session::enqueue`] has it.
///
/// [`Session::enqueue`]: crossover_core::backend::Session::enqueue
impl Put<'_> {
    pub(super) unsafe fn all_reduce(&self, ends: Ends, sum: Sum) -> Result<Status, Failed> {
        let (from, to, count, stream) = self.raw(ends);
        match self.pins {
            // SAFETY: the caller's promise; the communicator is there.
            None => Ok(unsafe {
                let f = self.library.calls.all_reduce;
                f(from, to, count, sum.kind, sum.op, self.comm, stream)
            }),
            Some(pins) => {
                let f = had(self.library.optional.all_reduce_config, "ncclAllReduceConfig")?;
                // SAFETY: as above, and the pins live as long as the call.
                Ok(unsafe { f(from, to, count, sum.kind, sum.op, self.comm, stream, pins) })
            }
        }
    }

    /// `count` is one rank's part.
    pub(super) unsafe fn reduce_scatter(&self, ends: Ends, sum: Sum) -> Result<Status, Failed> {
        let (from, to, count, stream) = self.raw(ends);
        match self.pins {
            // SAFETY: the caller's promise; the communicator is there.
            None => Ok(unsafe {
                let f = self.library.calls.reduce_scatter;
                f(from, to, count, sum.kind, sum.op, self.comm, stream)
            }),
            Some(pins) => {
                let f =
                    had(self.library.optional.reduce_scatter_config, "ncclReduceScatterConfig")?;
                // SAFETY: as above, and the pins live as long as the call.
                Ok(unsafe { f(from, to, count, sum.kind, sum.op, self.comm, stream, pins) })
            }
        }
    }

    /// `count` is one rank's bytes.
    pub(super) unsafe fn all_gather(&self, ends: Ends) -> Result<Status, Failed> {
        let (from, to, count, stream) = self.raw(ends);
        match self.pins {
            // SAFETY: the caller's promise; the communicator is there.
            None => Ok(unsafe {
                (self.library.calls.all_gather)(from, to, count, BYTES, self.comm, stream)
            }),
            Some(pins) => {
                let f = had(self.library.optional.all_gather_config, "ncclAllGatherConfig")?;
                // SAFETY: as above, and the pins live as long as the call.
                Ok(unsafe { f(from, to, count, BYTES, self.comm, stream, pins) })
            }
        }
    }

    /// `count` is in bytes.
    pub(super) unsafe fn broadcast(&self, ends: Ends, root: u32) -> Result<Status, Failed> {
        let (from, to, count, stream) = self.raw(ends);
        let root = root as c_int;
        match self.pins {
            // SAFETY: the caller's promise; the communicator is there.
            None => Ok(unsafe {
                (self.library.calls.broadcast)(from, to, count, BYTES, root, self.comm, stream)
            }),
            Some(pins) => {
                let f = had(self.library.optional.broadcast_config, "ncclBroadcastConfig")?;
                // SAFETY: as above, and the pins live as long as the call.
                Ok(unsafe { f(from, to, count, BYTES, root, self.comm, stream, pins) })
            }
        }
    }

    pub(super) unsafe fn reduce(&self, ends: Ends, sum: Sum, root: u32) -> Status {
        let (from, to, count, stream) = self.raw(ends);
        let f = self.library.calls.reduce;
        // SAFETY: the caller's promise; the communicator is there.
        unsafe { f(from, to, count, sum.kind, sum.op, root as c_int, self.comm, stream) }
    }

    pub(super) unsafe fn send(&self, from: u64, bytes: usize, peer: u32) -> Status {
        let f = self.library.calls.send;
        let (from, stream) = (from as *const c_void, self.stream as *mut c_void);
        // SAFETY: the caller's promise; the communicator is there.
        unsafe { f(from, bytes, BYTES, peer as c_int, self.comm, stream) }
    }

    pub(super) unsafe fn receive(&self, to: u64, bytes: usize, peer: u32) -> Status {
        let f = self.library.calls.recv;
        let (to, stream) = (to as *mut c_void, self.stream as *mut c_void);
        // SAFETY: the caller's promise; the communicator is there.
        unsafe { f(to, bytes, BYTES, peer as c_int, self.comm, stream) }
    }

    fn raw(&self, ends: Ends) -> (*const c_void, *mut c_void, usize, *mut c_void) {
        let Ends { from, to, count } = ends;
        (from as *const c_void, to as *mut c_void, count, self.stream as *mut c_void)
    }
}

/// Set-up has withheld the algorithm where the library lacks these.
fn had<F>(function: Option<F>, call: &'static str) -> Result<F, Failed> {
    function.ok_or_else(|| Failed { call, text: "this library does not have it".to_owned() })
}
