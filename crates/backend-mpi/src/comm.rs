//! A communicator of a group's ranks, and its operations, which begin and are asked for their end.

use std::ffi::c_int;
use std::ptr::null_mut;

use crate::errors;
use crate::keeper::judge;
use crate::library::Library;
use crate::library::layout::{self, Datatype, Errhandler, Group, Request, SUCCESS, Status};

/// Of all messages from rank to rank: they arrive in the order in which they were sent.
const TAG: c_int = 1;

/// A communicator. Nothing is freed when it is dropped, since that is a collective: see
/// [`Comm::free`].
pub(crate) struct Comm {
    library: &'static Library,
    raw: layout::Comm,
    pub(crate) rank: u32,
    pub(crate) world: u32,
}

/// A function of MPI failed: which, and its error in words.
pub(crate) struct Failed {
    pub(crate) call: &'static str,
    pub(crate) text: String,
}

/// Bytes of each rank, and where they begin.
#[derive(Default)]
pub(crate) struct Shares {
    pub(crate) counts: Vec<c_int>,
    pub(crate) places: Vec<c_int>,
}

impl Shares {
    /// One after the other.
    pub(crate) fn set(&mut self, lens: &[usize]) {
        self.counts.clear();
        self.places.clear();
        let mut place = 0;
        for &len in lens {
            // They are pieces of a chunk, which has 31 bits.
            self.counts.push(len as c_int);
            self.places.push(place);
            place += len as c_int;
        }
    }
}

impl Comm {
    /// Of these ranks of MPI's world, in their order; `rank` is the caller's among them. Blocks until all
    /// of them call it with the same tag.
    pub(crate) fn create(
        library: &'static Library,
        ranks: &[u32],
        rank: u32,
        tag: c_int,
    ) -> Result<Comm, String> {
        errors::returned(library, || Self::create_here(library, ranks, rank, tag))
    }

    fn create_here(
        library: &'static Library,
        ranks: &[u32],
        rank: u32,
        tag: c_int,
    ) -> Result<Comm, String> {
        let calls = &library.calls;
        let (mut all, mut some) = (Group::NULL, Group::NULL);
        let mut raw = layout::Comm::NULL;
        let list: Vec<c_int> = ranks.iter().map(|rank| *rank as c_int).collect();
        // SAFETY: MPI has begun, all pointers are valid, and the list has as many ranks as is said.
        unsafe {
            let told = (calls.comm_group)(layout::Comm::WORLD, &raw mut all);
            judge(library, "MPI_Comm_group", told)?;
            let told = (calls.group_incl)(all, list.len() as c_int, list.as_ptr(), &raw mut some);
            judge(library, "MPI_Group_incl", told)?;
            let told = (calls.comm_create_group)(layout::Comm::WORLD, some, tag, &raw mut raw);
            judge(library, "MPI_Comm_create_group", told)?;
            (calls.group_free)(&raw mut some);
            (calls.group_free)(&raw mut all);
            let told = (calls.comm_set_errhandler)(raw, Errhandler::RETURN);
            judge(library, "MPI_Comm_set_errhandler", told)?;
        }
        Ok(Comm { library, raw, rank, world: ranks.len() as u32 })
    }

    /// Another name for it, so that another thread can [`Comm::free`] it.
    pub(crate) fn copy(&self) -> Comm {
        Comm { ..*self }
    }

    /// Forgets it; all ranks do, after the last operation.
    pub(crate) fn free(&mut self) {
        // SAFETY: it is one of this library's, and nothing is under way.
        unsafe { (self.library.calls.comm_free)(&raw mut self.raw) };
    }

    /// # Safety
    ///
    /// The bytes stay as they are until the request has completed.
    pub(crate) unsafe fn send(
        &self,
        from: *const u8,
        len: usize,
        to: u32,
    ) -> Result<Request, Failed> {
        let mut request = Request::NULL;
        // SAFETY: the caller's promise.
        let status = unsafe {
            (self.library.calls.isend)(
                from.cast(),
                len as c_int,
                Datatype::BYTE,
                to as c_int,
                TAG,
                self.raw,
                &raw mut request,
            )
        };
        self.begun("MPI_Isend", status, request)
    }

    /// # Safety
    ///
    /// There is room for so many bytes, which nobody touches until the request has completed.
    pub(crate) unsafe fn receive(
        &self,
        to: *mut u8,
        room: usize,
        from: u32,
    ) -> Result<Request, Failed> {
        let mut request = Request::NULL;
        // SAFETY: the caller's promise.
        let status = unsafe {
            (self.library.calls.irecv)(
                to.cast(),
                room as c_int,
                Datatype::BYTE,
                from as c_int,
                TAG,
                self.raw,
                &raw mut request,
            )
        };
        self.begun("MPI_Irecv", status, request)
    }

    /// # Safety
    ///
    /// Nobody touches bytes or shares until the request has completed; there is room for what the shares
    /// say.
    pub(crate) unsafe fn all_gather(
        &self,
        from: *const u8,
        to: *mut u8,
        theirs: &Shares,
    ) -> Result<Request, Failed> {
        let mut request = Request::NULL;
        // SAFETY: the caller's promise.
        let status = unsafe {
            (self.library.calls.iallgatherv)(
                from.cast(),
                theirs.counts[self.rank as usize],
                Datatype::BYTE,
                to.cast(),
                theirs.counts.as_ptr(),
                theirs.places.as_ptr(),
                Datatype::BYTE,
                self.raw,
                &raw mut request,
            )
        };
        self.begun("MPI_Iallgatherv", status, request)
    }

    /// # Safety
    ///
    /// As for [`Comm::all_gather`], with `mine` as the shares of `from`.
    pub(crate) unsafe fn all_to_all(
        &self,
        from: *const u8,
        mine: &Shares,
        to: *mut u8,
        theirs: &Shares,
    ) -> Result<Request, Failed> {
        let mut request = Request::NULL;
        // SAFETY: the caller's promise.
        let status = unsafe {
            (self.library.calls.ialltoallv)(
                from.cast(),
                mine.counts.as_ptr(),
                mine.places.as_ptr(),
                Datatype::BYTE,
                to.cast(),
                theirs.counts.as_ptr(),
                theirs.places.as_ptr(),
                Datatype::BYTE,
                self.raw,
                &raw mut request,
            )
        };
        self.begun("MPI_Ialltoallv", status, request)
    }

    /// # Safety
    ///
    /// So many bytes, which nobody touches until the request has completed.
    pub(crate) unsafe fn broadcast(
        &self,
        buffer: *mut u8,
        len: usize,
        root: u32,
    ) -> Result<Request, Failed> {
        let mut request = Request::NULL;
        // SAFETY: the caller's promise.
        let status = unsafe {
            (self.library.calls.ibcast)(
                buffer.cast(),
                len as c_int,
                Datatype::BYTE,
                root as c_int,
                self.raw,
                &raw mut request,
            )
        };
        self.begun("MPI_Ibcast", status, request)
    }

    /// Has it completed?
    pub(crate) fn test(&self, request: &mut Request) -> Result<bool, Failed> {
        self.tested(request, null_mut())
    }

    /// Has this message come? Then how many bytes it has.
    pub(crate) fn received(&self, request: &mut Request) -> Result<Option<usize>, Failed> {
        let (mut bytes, mut status) = (0, Status::default());
        if !self.tested(request, &raw mut status)? {
            return Ok(None);
        }
        // SAFETY: the status of a message; valid pointers.
        unsafe {
            let (kind, count) = (Datatype::BYTE, &raw mut bytes);
            (self.library.calls.get_count)(&raw const status, kind, count);
        }
        Ok(Some(usize::try_from(bytes).unwrap_or(0)))
    }

    fn tested(&self, request: &mut Request, status: *mut Status) -> Result<bool, Failed> {
        let mut done = 0;
        // SAFETY: a request of this library, or null; valid pointers, or the null that wants no status.
        let told = unsafe { (self.library.calls.test)(request, &raw mut done, status) };
        match told {
            SUCCESS => Ok(done != 0),
            _ => Err(Failed { call: "MPI_Test", text: self.library.in_words(told) }),
        }
    }

    fn begun(
        &self,
        call: &'static str,
        status: c_int,
        request: Request,
    ) -> Result<Request, Failed> {
        match status {
            SUCCESS => Ok(request),
            _ => Err(Failed { call, text: self.library.in_words(status) }),
        }
    }
}
