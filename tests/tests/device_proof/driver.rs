//! The emulated driver, with machines' ways to lie about peers.

use std::collections::BTreeSet;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use crossover_device::driver::{
    Capture, Description, Driver, FunctionUse, Handle, IpcHandle, Launch, Provenance, Vendor,
};
use crossover_device::error::DeviceError;
use crossover_kernel_abi::{MAX_BLOCKS, MAX_WORLD, ProbeArgs};
use crossover_kernel_emulation::driver::{Emulated, Options};

/// What is wrong with device 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// What it writes to peers lands in a copy that it alone sees.
    Mirror,
    /// The driver says that it cannot reach device 0.
    Refused,
    /// Its probe never ends.
    Hang,
}

/// Eight devices, one of them faulty.
pub(crate) struct Faulty {
    inner: Arc<Emulated>,
    fault: Fault,
    /// The probe, of all modules.
    probes: Mutex<BTreeSet<u64>>,
    hung: Mutex<BTreeSet<u64>>,
    launched: AtomicU32,
    allocated: AtomicU32,
}

impl Faulty {
    pub(crate) fn new(fault: Fault) -> Arc<Faulty> {
        Arc::new(Faulty {
            inner: Emulated::new(Options { multiprocessors: 24, ..Options::default() }),
            fault,
            probes: Mutex::default(),
            hung: Mutex::default(),
            launched: AtomicU32::new(0),
            allocated: AtomicU32::new(0),
        })
    }

    /// Kernels that were launched.
    pub(crate) fn launched(&self) -> u32 {
        self.launched.load(SeqCst)
    }

    /// Allocations that were not freed.
    pub(crate) fn allocated(&self) -> u32 {
        self.allocated.load(SeqCst)
    }

    /// The parameter of a probe whose peers are memory of its own.
    fn mirrored(&self, parameter: &[u8]) -> Result<Vec<u8>, DeviceError> {
        // SAFETY: a probe's parameter is this structure, which is plain data.
        let mut args: ProbeArgs = unsafe { std::ptr::read_unaligned(parameter.as_ptr().cast()) };
        let (rank, world) = (args.common.rank as usize, args.common.world as usize);
        let bytes = args.barrier as usize + MAX_BLOCKS * MAX_WORLD * 8;
        for (peer, arena) in args.common.arenas.iter_mut().take(world).enumerate() {
            if peer != rank {
                *arena = self.inner.alloc(bytes)?;
            }
        }
        Ok(args.as_bytes().to_vec())
    }
}

/// Calls that are the emulated driver's.
macro_rules! passed_on {
    ($(fn $name:ident($($argument:ident: $of:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($argument: $of),*) -> Result<$result, DeviceError> {
            self.inner.$name($($argument),*)
        })*
    };
}

impl Driver for Faulty {
    fn vendor(&self) -> Vendor {
        Vendor::Emulated
    }

    fn can_access(&self, ordinal: u32, peer: u32) -> Result<bool, DeviceError> {
        Ok(self.fault != Fault::Refused || (ordinal, peer) != (1, 0))
    }

    fn alloc(&self, bytes: usize) -> Result<u64, DeviceError> {
        self.allocated.fetch_add(1, SeqCst);
        self.inner.alloc(bytes)
    }

    fn free(&self, pointer: u64) -> Result<(), DeviceError> {
        self.allocated.fetch_sub(1, SeqCst);
        self.inner.free(pointer)
    }

    fn function(&self, module: Handle, name: &str) -> Result<Handle, DeviceError> {
        let function = self.inner.function(module, name)?;
        if name == "probe" {
            self.probes.lock().expect("nothing panics").insert(function.0);
        }
        Ok(function)
    }

    fn is_done(&self, stream: u64) -> Result<bool, DeviceError> {
        let is_hung = self.hung.lock().expect("nothing panics").contains(&stream);
        if is_hung { Ok(false) } else { self.inner.is_done(stream) }
    }

    unsafe fn launch(&self, launch: &Launch, parameter: &[u8]) -> Result<(), DeviceError> {
        self.launched.fetch_add(1, SeqCst);
        let is_probe = self.probes.lock().expect("nothing panics").contains(&launch.function.0);
        // SAFETY: a probe's parameter is this structure, which is plain data.
        let rank = || unsafe { &*parameter.as_ptr().cast::<ProbeArgs>() }.common.rank;
        match self.fault {
            Fault::Mirror if is_probe && rank() == 1 => {
                let parameter = self.mirrored(parameter)?;
                // SAFETY: the caller's promise, and the copies are never freed.
                unsafe { self.inner.launch(launch, &parameter) }
            }
            Fault::Hang if is_probe && rank() == 1 => {
                self.hung.lock().expect("nothing panics").insert(launch.stream);
                Ok(())
            }
            // SAFETY: the caller's promise.
            _ => unsafe { self.inner.launch(launch, parameter) },
        }
    }

    unsafe fn register_host(&self, pages: *mut u8, bytes: usize) -> Result<u64, DeviceError> {
        // SAFETY: the caller's promise.
        unsafe { self.inner.register_host(pages, bytes) }
    }

    unsafe fn copy(
        &self,
        to: u64,
        from: u64,
        bytes: usize,
        stream: u64,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller's promise.
        unsafe { self.inner.copy(to, from, bytes, stream) }
    }

    unsafe fn fill(
        &self,
        to: u64,
        word: u32,
        words: usize,
        stream: u64,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller's promise.
        unsafe { self.inner.fill(to, word, words, stream) }
    }

    passed_on! {
        fn version() -> String;
        fn devices() -> Vec<Description>;
        fn retain(ordinal: u32) -> Handle;
        fn release(ordinal: u32) -> ();
        fn make_current(context: Handle) -> ();
        fn synchronize() -> ();
        fn unregister_host(pages: *mut u8) -> ();
        fn provenance(pointer: u64) -> Provenance;
        fn export(base: u64) -> IpcHandle;
        fn import(handle: &IpcHandle) -> u64;
        fn unimport(base: u64) -> ();
        fn alloc_virtual(ordinal: u32, bytes: usize) -> (u64, usize);
        fn free_virtual(pointer: u64, bytes: usize) -> ();
        fn export_fd(pointer: u64) -> OwnedFd;
        fn import_fd(ordinal: u32, fd: BorrowedFd<'_>, bytes: usize) -> u64;
        fn enable_peer(peer: u32) -> ();
        fn create_stream() -> Handle;
        fn destroy_stream(stream: Handle) -> ();
        fn synchronize_stream(stream: u64) -> ();
        fn create_event() -> Handle;
        fn destroy_event(event: Handle) -> ();
        fn record(event: Handle, stream: u64) -> ();
        fn wait(stream: u64, event: Handle) -> ();
        fn elapsed(from: Handle, to: Handle) -> f32;
        fn capture(stream: u64) -> Capture;
        fn begin_capture(stream: u64) -> ();
        fn end_capture(stream: u64) -> Handle;
        fn replay(graph: Handle, stream: u64) -> ();
        fn destroy_graph(graph: Handle) -> ();
        fn load(image: &[u8]) -> Handle;
        fn unload(module: Handle) -> ();
        fn function_use(function: Handle) -> FunctionUse;
        fn occupancy(function: Handle, threads: u32) -> u32;
    }
}
