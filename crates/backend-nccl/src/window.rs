//! Memory that the library's symmetric kernels may use: registered with it on all ranks, at the
//! same offset. Calls of `nccl/symmetric` are copied in and out by their stream.

use std::mem::ManuallyDrop;
use std::sync::Arc;

use crossover_core::agreement::{Agreed, Local, Setup, SetupError, StepError};
use crossover_core::call::{Op, Split};
use crossover_device::device::Device;
use crossover_nccl_sys::Library;
use crossover_nccl_sys::layout::{self, Status, WINDOW_COLLECTIVE_SYMMETRIC};

use crate::aside::{Fared, blamed, within};
use crate::calls::{Made, Maker, Trouble};
use crate::comm::{Comm, Failed, Tried, words};
use crate::eligibility::SYMMETRIC;
use crate::setup::{Joined, all_well};

/// One window for inputs and one for results. Two allocations: before 2.31.2, windows carved from
/// one corrupt data (NVIDIA/nccl#2198).
pub(crate) struct Windows {
    input: Window,
    output: Window,
}

struct Window {
    comm: Arc<Comm>,
    handle: Handle,
    memory: ManuallyDrop<Memory>,
}

/// Memory of the library's, freed when dropped; a window over it has ended by then, with its
/// communicator at the latest.
struct Memory {
    library: Arc<Library>,
    device: Device,
    address: u64,
    bytes: u64,
}

#[derive(Clone, Copy)]
struct Handle(layout::Window);

// SAFETY: a number to us; the library takes it from any thread, and calls are kept apart.
unsafe impl Send for Handle {}
// SAFETY: likewise.
unsafe impl Sync for Handle {}

/// What came of windows.
pub(crate) enum Outcome {
    /// Every rank has them.
    Had(Local<Windows>),
    /// No rank has, and nothing else is the worse for it.
    Without,
    /// No rank has, and the communicator is of no use any more: the library may take a failed
    /// registration for the communicator's own failure.
    Spoiled,
}

/// Allocates and registers, on every rank or on none: then the algorithm is withheld with the
/// reason. `bytes` is the most input of a call; the caller has made sure that it is the same on all.
pub(crate) fn set_up<'g>(
    setup: &mut Setup<'g>,
    joined: Local<Joined>,
    bytes: Agreed<'g, u64>,
) -> Result<Outcome, SetupError> {
    let (world, bytes) = (u64::from(setup.world()), *bytes.get());
    let made = joined.map(move |joined| {
        let input = Memory::new(&joined, bytes);
        let both = input.and_then(|input| Ok((input, Memory::new(&joined, bytes * world)?)));
        (both.map_err(Fared::Failed), joined)
    });
    let (made, joined) = made.unzip();
    let (lent, joined) = lend(joined);
    let Some(made) = everywhere(setup, "allocate windows", made, lent)? else {
        return Ok(Outcome::Without);
    };
    let (input, output) = made.unzip();
    // One by one: a rank that fails with the first would not come to the second, where others wait.
    let (lent, joined) = lend(joined);
    let input = input.zip(lent).map(register);
    let (lent, joined) = lend(joined);
    let had = everywhere(setup, "register windows", input, lent);
    let Ok(Some(input)) = had else {
        let _: Local<()> = output.zip(joined).map(|(output, joined)| give_up(output, &joined));
        return had.map(|_| Outcome::Spoiled);
    };
    let (lent, joined) = lend(joined);
    let output = output.zip(lent).map(register);
    let (lent, joined) = lend(joined);
    let had = everywhere(setup, "register windows", output, lent);
    let Ok(Some(output)) = had else {
        let _: Local<()> = input.zip(joined).map(|(input, joined)| give_up(input, &joined));
        return had.map(|_| Outcome::Spoiled);
    };
    let (lent, joined) = lend(joined);
    let windows = input.zip(output).zip(lent).map(|((input, output), joined)| {
        // The library says yes, and gives none, where it has no use for them.
        if input.handle.0.is_null() || output.handle.0.is_null() {
            give_up((input, output), &joined);
            return Err(Fared::Failed("the library has no windows on this system".to_owned()));
        }
        Ok(Windows { input, output })
    });
    let windows = everywhere(setup, "have windows", windows, joined)?;
    Ok(windows.map_or(Outcome::Without, Outcome::Had))
}

fn lend(joined: Local<Joined>) -> (Local<Joined>, Local<Joined>) {
    joined.map(|joined| (joined.clone(), joined)).unzip()
}

/// Gives back what no rank has use for. The library may wait for peers that do the same; one that
/// waits for ever is freed by an abort.
fn give_up<T: Send + 'static>(made: T, joined: &Joined) {
    let device = joined.device.clone();
    let given = within(joined.deadline, "giving back a window", move || {
        device.make_current().map_err(StepError::new)?;
        drop(made);
        Ok(())
    });
    if let Err(Fared::Failed(why) | Fared::Late(why)) = given {
        tracing::warn!("the communicator is aborted: {why}");
        joined.abandon(());
    }
}

/// The library waits for all ranks.
fn register((memory, joined): (Memory, Joined)) -> Result<Window, Fared> {
    within(joined.deadline, "ncclCommWindowRegister", move || {
        Window::new(memory, &joined).map_err(Fared::Failed)
    })
}

/// What every rank has, if every rank has it; else the algorithm is withheld. If some rank is still
/// inside the library, no other call of the communicator can be made, and the backend is lost.
fn everywhere<T: Send + 'static>(
    setup: &mut Setup<'_>,
    what: &str,
    mine: Local<Result<T, Fared>>,
    joined: Local<Joined>,
) -> Result<Option<Local<T>>, SetupError> {
    let (fared, mine) = mine
        .map(|mine| match &mine {
            Ok(_) => (Fared::Well, mine),
            Err(why) => (why.clone(), mine),
        })
        .unzip();
    let all = setup.exchange(&format!("tell whether it could {what}"), fared, |_, f| Ok(f))?;
    let is_stuck = all.get().iter().any(|fared| matches!(fared, Fared::Late(_)));
    let why = all.map(|all| {
        blamed(&all).map(|(rank, why)| format!("rank {rank} could not have windows: {why}"))
    });
    if why.get().is_none() {
        return all_well(setup, what, mine).map(Some);
    }
    let told = mine.zip(joined).map(move |(mine, joined)| {
        let fared = mine.as_ref().map_or_else(|why| Err(why.clone()), |_| Ok(()));
        match is_stuck {
            // Peers would not come to give theirs back.
            true => joined.abandon(mine),
            false => give_up(mine, &joined),
        }
        fared
    });
    if is_stuck {
        return all_well(setup, what, told).map(|_| None);
    }
    setup.without(SYMMETRIC, why.map(Option::unwrap_or_default));
    Ok(None)
}

impl Windows {
    /// Most input bytes of a call.
    pub(crate) fn bytes(&self) -> usize {
        self.input.memory.bytes as usize
    }

    /// Copies in, calls, copies out.
    ///
    /// # Safety
    ///
    /// As for [`Session::enqueue`](crossover_core::backend::Session::enqueue); the input has no more
    /// bytes than the window.
    pub(crate) unsafe fn make(
        &self,
        maker: &Maker,
        comm: &Comm,
        made: &Made<'_>,
    ) -> Result<(), Trouble> {
        let (world, input) = (maker.world, made.call.bytes());
        let (from, to, stream) = (made.from, made.to, made.stream);
        let output = match made.call.split {
            Split::Even => made.call.op.output_bytes(input, world),
            // Parts that differ are sent and reduced one by one, which windows do not speed up.
            Split::PerRank(_) => {
                // SAFETY: the caller's promise.
                return unsafe { maker.make(comm, made) };
            }
        };
        debug_assert!(made.call.op != Op::AllToAll && input <= self.input.memory.bytes);
        let (staged, result) = (self.input.memory.address, self.output.memory.address);
        // SAFETY: the caller's promise about its tensors; the windows have room for both, and live
        // until the group has ended.
        unsafe {
            maker.device.copy(staged, from, input as usize, stream)?;
            maker.make(comm, &Made { from: staged, to: result, ..*made })?;
            maker.device.copy(to, result, output as usize, stream)?;
        }
        Ok(())
    }

    /// Takes the windows back from the library, before the communicator ends.
    pub(crate) fn deregister(&self) -> Result<(), Failed> {
        for window in [&self.input, &self.output] {
            let comm = &window.comm;
            let status = comm.with(|library, raw| window.deregister(library, raw));
            if let Some(status) = status.filter(|status| !status.is_success()) {
                let call = "ncclCommWindowDeregister";
                return Err(Failed { call, text: comm.words(status) });
            }
        }
        Ok(())
    }
}

impl Window {
    fn new(memory: Memory, joined: &Joined) -> Result<Window, String> {
        joined.device.make_current().map_err(|e| e.to_string())?;
        let register = lacking(joined.library().optional.comm_window_register, joined)?;
        let mut window = std::ptr::null_mut();
        let (start, bytes) = (memory.address as *mut _, memory.bytes as usize);
        let registered = joined.comm.enqueue("ncclCommWindowRegister", |_, raw| {
            let place = &raw mut window;
            // SAFETY: the memory is the library's own and stays until the communicator ends.
            Ok(unsafe { register(raw, start, bytes, place, WINDOW_COLLECTIVE_SYMMETRIC) })
        });
        registered.map_err(|failed| failed.to_string())?;
        let (comm, handle) = (Arc::clone(&joined.comm), Handle(window));
        Ok(Window { comm, handle, memory: ManuallyDrop::new(memory) })
    }

    fn deregister(&self, library: &Library, comm: layout::Comm) -> Status {
        match library.optional.comm_window_deregister.filter(|_| !self.handle.0.is_null()) {
            // SAFETY: a window of this communicator, which is there.
            Some(deregister) => unsafe { deregister(comm, self.handle.0) },
            None => Status::SUCCESS,
        }
    }
}

impl Drop for Window {
    /// The memory is given back once the library has no use for it: the window has ended, or the
    /// communicator has. What a call is in the middle of using stays.
    fn drop(&mut self) {
        let ended = self.comm.try_with(|library, raw| self.deregister(library, raw));
        if ended != Tried::Busy {
            // SAFETY: dropped once, here.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}

impl Memory {
    fn new(joined: &Joined, bytes: u64) -> Result<Memory, String> {
        let library = joined.library();
        // All three or none: a window is no use without the others.
        lacking(library.optional.comm_window_register, joined)?;
        lacking(library.optional.comm_window_deregister, joined)?;
        lacking(library.optional.mem_free, joined)?;
        let alloc = lacking(library.optional.mem_alloc, joined)?;
        joined.device.make_current().map_err(|e| e.to_string())?;
        let mut start = std::ptr::null_mut();
        // SAFETY: a place for one address.
        let status = unsafe { alloc(&raw mut start, bytes as usize) };
        if !status.is_success() {
            let failed = Failed { call: "ncclMemAlloc", text: joined.comm.words(status) };
            return Err(format!("{failed} ({bytes} B, nccl.window)"));
        }
        let (library, device) = (Arc::clone(library), joined.device.clone());
        Ok(Memory { library, device, address: start as u64, bytes })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let current = self.device.make_current().map_err(|e| e.to_string());
        let freed = current.and_then(|()| match self.library.optional.mem_free {
            // SAFETY: what the library allocated, freed once.
            Some(free) => match unsafe { free(self.address as *mut _) } {
                status if status.is_success() => Ok(()),
                status => {
                    let text = words(&self.library, status);
                    Err(Failed { call: "ncclMemFree", text }.to_string())
                }
            },
            None => Ok(()),
        });
        if let Err(why) = freed {
            tracing::warn!("memory of a window could not be given back: {why}");
        }
    }
}

/// Windows came with 2.27, their memory before.
fn lacking<F>(function: Option<F>, joined: &Joined) -> Result<F, String> {
    function.ok_or_else(|| {
        format!("{} has no windows: 2.27 is the first", crate::sharing::named(joined.library()))
    })
}
