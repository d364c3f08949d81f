//! The functions, by the names that both libraries export.

use std::ffi::{c_char, c_int, c_void};

use libloading::Library;

use crate::layout::{CollConfig, Comm, Config, DataType, RedOp, Status, Stream, UniqueId, Window};

/// A structure of functions that are all there, or it is not.
macro_rules! required {
    ($(#[$about:meta])* $see:vis struct $table:ident { $(
        $(#[$doc:meta])*
        $field:ident = $symbol:literal ($($name:ident: $kind:ty),* $(,)?) -> $result:ty;
    )* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug)]
        $see struct $table { $(
            $(#[$doc])*
            pub $field: unsafe extern "C" fn($($name: $kind),*) -> $result,
        )* }

        impl $table {
            /// Each symbol, the types that it takes, and what it returns, for the test against the
            /// header.
            #[cfg(test)]
            pub(crate) const SIGNATURES: &[(&str, &[&str], &str)] =
                &[$(($symbol, &[$(stringify!($kind)),*], stringify!($result))),*];

            /// What a library must have.
            pub(crate) const SYMBOLS: &[&str] = &[$($symbol),*];

            /// Finds them all, or names all that are missing.
            pub(crate) fn find(library: &Library) -> Result<Self, Vec<&'static str>> {
                // SAFETY: the signatures are those of the header for these names. The pointers are
                // used while the library is loaded, which is for ever: it is never unloaded.
                $(let $field = unsafe { library.get($symbol.as_bytes()).map(|f| *f) };)*
                let missing = || {
                    let found = [$(($symbol, $field.is_ok())),*];
                    found.iter().filter(|it| !it.1).map(|it| it.0).collect::<Vec<_>>()
                };
                Ok(Self { $($field: *$field.as_ref().map_err(|_| missing())?,)* })
            }
        }
    };
}

/// A structure of functions each of which may be missing.
macro_rules! optional {
    ($(#[$about:meta])* $see:vis struct $table:ident { $(
        $(#[$doc:meta])*
        $field:ident = $symbol:literal ($($name:ident: $kind:ty),* $(,)?) -> $result:ty;
    )* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug)]
        $see struct $table { $(
            $(#[$doc])*
            pub $field: Option<unsafe extern "C" fn($($name: $kind),*) -> $result>,
        )* }

        impl $table {
            /// Each symbol, the types that it takes, and what it returns, for the test against the
            /// header.
            #[cfg(test)]
            pub(crate) const SIGNATURES: &[(&str, &[&str], &str)] =
                &[$(($symbol, &[$(stringify!($kind)),*], stringify!($result))),*];

            pub(crate) fn find(library: &Library) -> Self {
                // SAFETY: as for what is required.
                Self { $($field: unsafe { library.get($symbol.as_bytes()).map(|f| *f) }.ok(),)* }
            }

            /// The symbols that the library does not have.
            #[must_use]
            pub fn missing(&self) -> Vec<&'static str> {
                let found = [$(($symbol, self.$field.is_some())),*];
                found.iter().filter(|it| !it.1).map(|it| it.0).collect()
            }
        }
    };
}

/// `ncclGetVersion`.
pub(crate) type GetVersion = unsafe extern "C" fn(version: *mut c_int) -> Status;

/// Asked before all else, so that a library that lacks the rest can be named by its version.
pub(crate) fn get_version(library: &Library) -> Result<GetVersion, &'static str> {
    let symbol = "ncclGetVersion";
    // SAFETY: the signature is the header's for this name.
    unsafe { library.get(symbol.as_bytes()).map(|f| *f) }.map_err(|_| symbol)
}

required! {
    /// What every release since 2.14 has, and every use needs. Counts are in elements. Calls of
    /// communication return when they are put into the stream, which may be one that is being
    /// captured; between `group_start` and `group_end`, when they are noted.
    pub struct Calls {
        /// [`Version::number`](crate::Version::number) of the library.
        get_version = "ncclGetVersion" (version: *mut c_int) -> Status;
        /// Text of a status, which lives as long as the library.
        get_error_string = "ncclGetErrorString" (status: Status) -> *const c_char;

        /// Makes what the ranks of one new communicator find each other by. Opens a socket.
        get_unique_id = "ncclGetUniqueId" (id: *mut UniqueId) -> Status;
        /// Joins a communicator on the calling thread's current device. All ranks call it.
        comm_init_rank_config = "ncclCommInitRankConfig" (comm: *mut Comm, ranks: c_int,
            id: UniqueId, rank: c_int, config: *mut Config) -> Status;
        /// Flushes what was issued, on all ranks; without blocking, watched by `comm_get_async_error`.
        comm_finalize = "ncclCommFinalize" (comm: Comm) -> Status;
        /// Frees what this rank has. Waits for peers unless the communicator is finalized.
        comm_destroy = "ncclCommDestroy" (comm: Comm) -> Status;
        /// Stops what runs, waits for no peer, and frees what this rank has.
        comm_abort = "ncclCommAbort" (comm: Comm) -> Status;
        /// What went wrong since, or [`Status::IN_PROGRESS`].
        comm_get_async_error = "ncclCommGetAsyncError" (comm: Comm, error: *mut Status) -> Status;
        /// Ranks of the communicator.
        comm_count = "ncclCommCount" (comm: Comm, ranks: *mut c_int) -> Status;
        /// This rank.
        comm_user_rank = "ncclCommUserRank" (comm: Comm, rank: *mut c_int) -> Status;

        /// Every rank has the reduction of all inputs. In place if both are the same.
        all_reduce = "ncclAllReduce" (input: *const c_void, output: *mut c_void, count: usize,
            kind: DataType, op: RedOp, comm: Comm, stream: Stream) -> Status;
        /// Every rank has all inputs, each of `count`. In place if the input is the rank's part.
        all_gather = "ncclAllGather" (input: *const c_void, output: *mut c_void, count: usize,
            kind: DataType, comm: Comm, stream: Stream) -> Status;
        /// Every rank has its part, of `count`, of the reduction. In place if the output is the
        /// rank's part of the input.
        reduce_scatter = "ncclReduceScatter" (input: *const c_void, output: *mut c_void,
            count: usize, kind: DataType, op: RedOp, comm: Comm, stream: Stream) -> Status;
        /// Every rank has the root's input.
        broadcast = "ncclBroadcast" (input: *const c_void, output: *mut c_void, count: usize,
            kind: DataType, root: c_int, comm: Comm, stream: Stream) -> Status;
        /// The root has the reduction of all inputs.
        reduce = "ncclReduce" (input: *const c_void, output: *mut c_void, count: usize,
            kind: DataType, op: RedOp, root: c_int, comm: Comm, stream: Stream) -> Status;
        /// To a peer, which receives as much.
        send = "ncclSend" (input: *const c_void, count: usize, kind: DataType, peer: c_int,
            comm: Comm, stream: Stream) -> Status;
        /// From a peer, which sends as much.
        recv = "ncclRecv" (output: *mut c_void, count: usize, kind: DataType, peer: c_int,
            comm: Comm, stream: Stream) -> Status;
        /// Begins a group of calls, on the calling thread.
        group_start = "ncclGroupStart" () -> Status;
        /// Issues them, as one.
        group_end = "ncclGroupEnd" () -> Status;
    }
}

optional! {
    /// What only some releases have: the first of NCCL is said. RCCL follows NCCL's numbers: 2.27.7
    /// has all but the calls that take a [`CollConfig`].
    pub struct Optional {
        /// What the calling thread was last warned of; of one communicator, or of any if null.
        /// Since 2.13.
        get_last_error = "ncclGetLastError" (comm: Comm) -> *const c_char;
        /// Ranks of one color become a communicator, in the order of their keys. Since 2.18.
        comm_split = "ncclCommSplit" (comm: Comm, color: c_int, key: c_int, child: *mut Comm,
            config: *mut Config) -> Status;
        /// Registers a buffer of this rank. Since 2.19.
        comm_register = "ncclCommRegister" (comm: Comm, start: *mut c_void, bytes: usize,
            handle: *mut *mut c_void) -> Status;
        /// Undoes it. Since 2.19.
        comm_deregister = "ncclCommDeregister" (comm: Comm, handle: *mut c_void) -> Status;
        /// Memory that every kind of registration takes; there may be more of it than asked for.
        /// Since 2.19.
        mem_alloc = "ncclMemAlloc" (start: *mut *mut c_void, bytes: usize) -> Status;
        /// Frees it. Since 2.19.
        mem_free = "ncclMemFree" (start: *mut c_void) -> Status;
        /// Registers memory on all ranks, which all call it. The window is null, and the call
        /// succeeds, where windows are not supported. Since 2.27.
        comm_window_register = "ncclCommWindowRegister" (comm: Comm, start: *mut c_void,
            bytes: usize, window: *mut Window, flags: c_int) -> Status;
        /// Undoes it. Since 2.27.
        comm_window_deregister = "ncclCommWindowDeregister" (comm: Comm, window: Window) -> Status;

        /// `all_reduce`, its algorithms and blocks pinned. Since 2.31.
        all_reduce_config = "ncclAllReduceConfig" (input: *const c_void, output: *mut c_void,
            count: usize, kind: DataType, op: RedOp, comm: Comm, stream: Stream,
            config: *const CollConfig) -> Status;
        /// `all_gather`, likewise. Since 2.31.
        all_gather_config = "ncclAllGatherConfig" (input: *const c_void, output: *mut c_void,
            count: usize, kind: DataType, comm: Comm, stream: Stream,
            config: *const CollConfig) -> Status;
        /// `reduce_scatter`, likewise. Since 2.31.
        reduce_scatter_config = "ncclReduceScatterConfig" (input: *const c_void,
            output: *mut c_void, count: usize, kind: DataType, op: RedOp, comm: Comm,
            stream: Stream, config: *const CollConfig) -> Status;
        /// `broadcast`, likewise. Since 2.31.
        broadcast_config = "ncclBroadcastConfig" (input: *const c_void, output: *mut c_void,
            count: usize, kind: DataType, root: c_int, comm: Comm, stream: Stream,
            config: *const CollConfig) -> Status;
    }
}
