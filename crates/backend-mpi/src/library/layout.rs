//! Handles, constants and structures of the MPI standard's application binary interface, version 1.0
//! (MPI 5.0, chapter "Application Binary Interface"): the same in every library that has it. A test
//! compares them with a library's own header.

use std::ffi::{c_int, c_void};

/// Declares a handle: an address-sized word that only MPI reads.
macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(transparent)]
        pub(crate) struct $name(pub(crate) *mut c_void);

        // SAFETY: a name for an object of the library, which guards it: it is used with
        // MPI_THREAD_MULTIPLE alone.
        unsafe impl Send for $name {}
        // SAFETY: as above.
        unsafe impl Sync for $name {}
    )+};
}

handles! {
    /// A communicator.
    Comm
    /// A type of elements.
    Datatype
    /// What is done where a function of a communicator fails.
    Errhandler
    /// A set of ranks.
    Group
    /// An operation under way.
    Request
}

impl Comm {
    /// No communicator.
    pub(crate) const NULL: Comm = Comm(at(0x100));
    /// All ranks that were started together.
    pub(crate) const WORLD: Comm = Comm(at(0x101));
    /// This process alone.
    pub(crate) const SELF: Comm = Comm(at(0x102));
}

impl Datatype {
    /// A byte, which no library converts.
    pub(crate) const BYTE: Datatype = Datatype(at(0x247));
}

impl Errhandler {
    /// Nothing.
    pub(crate) const NULL: Errhandler = Errhandler(at(0x140));
    /// The function returns its error.
    pub(crate) const RETURN: Errhandler = Errhandler(at(0x143));
}

impl Group {
    /// No group.
    pub(crate) const NULL: Group = Group(at(0x108));
}

impl Request {
    /// Nothing under way.
    pub(crate) const NULL: Request = Request(at(0x180));
}

const fn at(word: usize) -> *mut c_void {
    std::ptr::without_provenance_mut(word)
}

/// What is known of an operation that has completed.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Status {
    /// The sender's rank.
    pub(crate) source: c_int,
    /// The message's tag.
    pub(crate) tag: c_int,
    /// An error, of functions that complete several operations.
    pub(crate) error: c_int,
    /// The library's own, the length among them.
    pub(crate) internal: [c_int; 5],
}

/// The status of success; anything else is an error.
pub(crate) const SUCCESS: c_int = 0;
/// Any thread may call at any time.
pub(crate) const THREAD_MULTIPLE: c_int = 4096; // size: none, a level
/// Room for the text of an error, with its terminating zero.
pub(crate) const MAX_ERROR_STRING: usize = 512;
/// Room for the text of a library's version, with its terminating zero.
pub(crate) const MAX_LIBRARY_VERSION_STRING: usize = 8192; // size: the standard's

#[cfg(test)]
mod tests;
