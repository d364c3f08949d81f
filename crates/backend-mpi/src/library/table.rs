//! The functions, by the names that the library exports.

use std::ffi::{c_char, c_int, c_void};

use libloading::Library;

use super::layout::{Comm, Datatype, Errhandler, Group, Request, Status};

/// A structure of functions that are all there, or it is not.
macro_rules! table {
    ($(#[$about:meta])* pub(crate) struct $table:ident { $(
        $(#[$doc:meta])*
        $field:ident = $symbol:literal ($($name:ident: $kind:ty),* $(,)?);
    )* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $table { $(
            $(#[$doc])*
            pub(crate) $field: unsafe extern "C" fn($($name: $kind),*) -> c_int,
        )* }

        impl $table {
            /// Finds them all, or names the first that is missing.
            pub(super) fn find(library: &Library) -> Result<Self, &'static str> {
                Ok(Self { $(
                    // SAFETY: the signature is the standard's for this name. The pointer is used
                    // while the library is loaded, which is for ever.
                    $field: unsafe { library.get($symbol.as_bytes()).map(|f| *f) }
                        .map_err(|_| $symbol)?,
                )* })
            }
        }
    };
}

table! {
    /// All that this backend calls. Each returns [`SUCCESS`](super::layout::SUCCESS) or an error.
    pub(crate) struct Calls {
        /// The version of the binary interface. A library of another interface has no such function.
        abi_get_version = "MPI_Abi_get_version" (major: *mut c_int, minor: *mut c_int);
        /// Who made the library and which version it is. May be called before `init_thread`.
        get_library_version = "MPI_Get_library_version" (text: *mut c_char, length: *mut c_int);
        /// The text of an error.
        error_string = "MPI_Error_string" (error: c_int, text: *mut c_char, length: *mut c_int);

        /// Has somebody called `init_thread` or its like?
        initialized = "MPI_Initialized" (flag: *mut c_int);
        /// Has somebody called `finalize`?
        finalized = "MPI_Finalized" (flag: *mut c_int);
        /// Begins; once in a process. Collective over the world.
        init_thread = "MPI_Init_thread"
            (argc: *mut c_int, argv: *mut *mut *mut c_char, wanted: c_int, got: *mut c_int);
        /// What threads may do.
        query_thread = "MPI_Query_thread" (got: *mut c_int);
        /// Ends; once in a process. Collective over the world.
        finalize = "MPI_Finalize" ();

        /// This process's rank.
        comm_rank = "MPI_Comm_rank" (comm: Comm, rank: *mut c_int);
        /// Number of ranks.
        comm_size = "MPI_Comm_size" (comm: Comm, size: *mut c_int);
        /// Its ranks.
        comm_group = "MPI_Comm_group" (comm: Comm, group: *mut Group);
        /// Some of a group's ranks, in an order.
        group_incl = "MPI_Group_incl"
            (group: Group, count: c_int, ranks: *const c_int, new: *mut Group);
        /// Forgets a group.
        group_free = "MPI_Group_free" (group: *mut Group);
        /// A communicator of the group's ranks. Collective over these alone.
        comm_create_group = "MPI_Comm_create_group"
            (comm: Comm, group: Group, tag: c_int, new: *mut Comm);
        /// Says what is done where a function fails.
        comm_set_errhandler = "MPI_Comm_set_errhandler" (comm: Comm, handler: Errhandler);
        /// Says what is done there. Its answer is another name, to be forgotten.
        comm_get_errhandler = "MPI_Comm_get_errhandler" (comm: Comm, handler: *mut Errhandler);
        /// Forgets a name of what is done where a function fails.
        errhandler_free = "MPI_Errhandler_free" (handler: *mut Errhandler);
        /// Forgets a communicator. Collective.
        comm_free = "MPI_Comm_free" (comm: *mut Comm);

        /// Begins to send.
        isend = "MPI_Isend" (from: *const c_void, count: c_int, kind: Datatype, to: c_int,
            tag: c_int, comm: Comm, request: *mut Request);
        /// Begins to receive at most so many elements.
        irecv = "MPI_Irecv" (to: *mut c_void, count: c_int, kind: Datatype, from: c_int,
            tag: c_int, comm: Comm, request: *mut Request);
        /// Begins an all-gather.
        iallgatherv = "MPI_Iallgatherv" (from: *const c_void, count: c_int, kind: Datatype,
            to: *mut c_void, counts: *const c_int, places: *const c_int, to_kind: Datatype,
            comm: Comm, request: *mut Request);
        /// Begins an all-to-all.
        ialltoallv = "MPI_Ialltoallv" (from: *const c_void, counts: *const c_int,
            places: *const c_int, kind: Datatype, to: *mut c_void, to_counts: *const c_int,
            to_places: *const c_int, to_kind: Datatype, comm: Comm, request: *mut Request);
        /// Begins a broadcast.
        ibcast = "MPI_Ibcast" (buffer: *mut c_void, count: c_int, kind: Datatype, root: c_int,
            comm: Comm, request: *mut Request);
        /// Has it completed? Then the request is null.
        test = "MPI_Test" (request: *mut Request, flag: *mut c_int, status: *mut Status);
        /// How many elements came.
        get_count = "MPI_Get_count" (status: *const Status, kind: Datatype, count: *mut c_int);
    }
}
