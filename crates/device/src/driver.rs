//! The seam between this crate and a vendor: one method a vendor call, on raw values.
//!
//! A [`Driver`] is loaded at run time and never panics. What is owned through one ([`Buffer`],
//! [`Stream`], [`Module`], ...) is in the modules beside, the same for every vendor.
//!
//! Device addresses are `u64`; handles of vendors' objects are [`Handle`]s, which mean nothing to
//! another driver.
//!
//! [`Buffer`]: crate::memory::Buffer
//! [`Stream`]: crate::stream::Stream
//! [`Module`]: crate::module::Module

use std::os::fd::{BorrowedFd, OwnedFd};

use crate::error::DeviceError;

/// A vendor's object: a context, stream, event, module, function, graph or allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle(pub u64);

/// Whose device it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vendor {
    /// NVIDIA's, through the CUDA driver.
    Cuda,
    /// AMD's, through the HIP runtime.
    Hip,
    /// A processor that runs the kernels' CPU build: for tests.
    Emulated,
}

/// What a device is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Its number among those that this process sees.
    pub ordinal: u32,
    /// Such as `NVIDIA H200`.
    pub name: String,
    /// Architecture as policies and kernel images write it: `sm90`, `gfx942`.
    pub arch: String,
    /// `GPU-…` or `MIG-…`: the same in every process and container.
    pub uuid: String,
    /// `0000:17:00.0`.
    pub pci: String,
    /// Streaming multiprocessors or compute units.
    pub multiprocessors: u32,
    /// Bytes of its last-level cache.
    pub l2: u64,
    /// Bytes of its memory.
    pub memory: u64,
}

/// How a pointer's memory can be given to another process. Asked of the driver, never guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// By a 64-byte handle of its allocation.
    LegacyIpc,
    /// Virtual memory whose allocation can be exported as a file descriptor.
    PosixFd,
    /// Virtual memory that can be exported to the fabric.
    Fabric,
    /// Not at all: staged, or declined.
    None,
}

/// Where a pointer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// First byte of its allocation.
    pub base: u64,
    /// Bytes of its allocation.
    pub bytes: u64,
    /// The device that it is on.
    pub ordinal: u32,
    /// How it can be shared.
    pub sharing: Sharing,
    /// Distinguishes allocations that get the same address one after the other.
    pub id: u64,
}

/// Is a stream being recorded into a graph?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capture {
    /// No.
    None,
    /// Yes.
    Active,
    /// It was, and something not allowed ended it.
    Invalidated,
}

/// What the compiler made of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionUse {
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of a thread's local memory: stack and spills.
    pub local: u32,
    /// Bytes of a block's static shared memory.
    pub shared: u32,
    /// Most threads of a block.
    pub threads: u32,
}

/// How a kernel is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The kernel.
    pub function: Handle,
    /// Blocks.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Where; 0 is the context's default stream.
    pub stream: u64,
    /// May it start before the kernel ahead of it in the stream has ended? It then waits by itself
    /// (programmatic dependent launch). A device without that ignores it.
    pub programmatic: bool,
}

/// The handle of an allocation, for another process.
pub type IpcHandle = [u8; 64];

/// A vendor's calls. Every method may be called from any thread; those on memory, streams and
/// modules act on the context that is current on the calling thread.
pub trait Driver: Send + Sync {
    /// Whose.
    fn vendor(&self) -> Vendor;
    /// The driver's version, such as `13.0`.
    fn version(&self) -> Result<String, DeviceError>;
    /// The devices that this process sees.
    fn devices(&self) -> Result<Vec<Description>, DeviceError>;
    /// The device whose context is current on the calling thread, where the vendor tells.
    fn current(&self) -> Result<Option<u32>, DeviceError> {
        Ok(None)
    }

    /// Retains a device's primary context, which the engine shares.
    fn retain(&self, ordinal: u32) -> Result<Handle, DeviceError>;
    /// Gives it back.
    fn release(&self, ordinal: u32) -> Result<(), DeviceError>;
    /// Makes it current on this thread; cheap where it is already.
    fn make_current(&self, context: Handle) -> Result<(), DeviceError>;
    /// Waits for all work of the current context.
    fn synchronize(&self) -> Result<(), DeviceError>;

    /// Allocates device memory.
    fn alloc(&self, bytes: usize) -> Result<u64, DeviceError>;
    /// Frees it.
    fn free(&self, pointer: u64) -> Result<(), DeviceError>;
    /// Locks pages of this process and maps them for devices; returns their device address.
    ///
    /// # Safety
    /// The pages stay mapped until [`Driver::unregister_host`].
    unsafe fn register_host(&self, pages: *mut u8, bytes: usize) -> Result<u64, DeviceError>;
    /// Undoes it.
    fn unregister_host(&self, pages: *mut u8) -> Result<(), DeviceError>;
    /// Copies in stream order, between any two of host and device.
    ///
    /// # Safety
    /// Both ranges are valid until the copy is done.
    unsafe fn copy(&self, to: u64, from: u64, bytes: usize, stream: u64)
    -> Result<(), DeviceError>;
    /// Sets 32-bit words in stream order.
    ///
    /// # Safety
    /// The range is valid until it is done.
    unsafe fn fill(&self, to: u64, word: u32, words: usize, stream: u64)
    -> Result<(), DeviceError>;
    /// Where a device pointer comes from.
    fn provenance(&self, pointer: u64) -> Result<Provenance, DeviceError>;

    /// A handle of the allocation that starts at `base`.
    fn export(&self, base: u64) -> Result<IpcHandle, DeviceError>;
    /// Maps another process's allocation.
    fn import(&self, handle: &IpcHandle) -> Result<u64, DeviceError>;
    /// Unmaps it.
    fn unimport(&self, base: u64) -> Result<(), DeviceError>;
    /// Allocates virtual memory on a device, exportable as a file descriptor, readable and writable
    /// there; returns its address and its bytes, rounded up.
    fn alloc_virtual(&self, ordinal: u32, bytes: usize) -> Result<(u64, usize), DeviceError>;
    /// Frees it.
    fn free_virtual(&self, pointer: u64, bytes: usize) -> Result<(), DeviceError>;
    /// A descriptor of the allocation that holds `pointer`.
    fn export_fd(&self, pointer: u64) -> Result<OwnedFd, DeviceError>;
    /// Maps what another process exported, for a device of this one.
    fn import_fd(&self, ordinal: u32, fd: BorrowedFd<'_>, bytes: usize)
    -> Result<u64, DeviceError>;
    /// Can `ordinal` reach `peer`'s memory, says the driver?
    fn can_access(&self, ordinal: u32, peer: u32) -> Result<bool, DeviceError>;
    /// Lets the current context reach `peer`'s memory; already so is success.
    fn enable_peer(&self, peer: u32) -> Result<(), DeviceError>;

    /// A stream that does not wait for the default stream.
    fn create_stream(&self) -> Result<Handle, DeviceError>;
    /// Destroys it; work in it completes.
    fn destroy_stream(&self, stream: Handle) -> Result<(), DeviceError>;
    /// Waits for it.
    fn synchronize_stream(&self, stream: u64) -> Result<(), DeviceError>;
    /// Is all its work done? Never waits.
    fn is_done(&self, stream: u64) -> Result<bool, DeviceError>;
    /// An event that takes times.
    fn create_event(&self) -> Result<Handle, DeviceError>;
    /// Destroys it.
    fn destroy_event(&self, event: Handle) -> Result<(), DeviceError>;
    /// Records it.
    fn record(&self, event: Handle, stream: u64) -> Result<(), DeviceError>;
    /// Makes a stream wait for it.
    fn wait(&self, stream: u64, event: Handle) -> Result<(), DeviceError>;
    /// Milliseconds between two recorded and completed events.
    fn elapsed(&self, from: Handle, to: Handle) -> Result<f32, DeviceError>;

    /// Is a stream being captured? Does not disturb the capture.
    fn capture(&self, stream: u64) -> Result<Capture, DeviceError>;
    /// Starts to record a stream, of this thread's calls.
    fn begin_capture(&self, stream: u64) -> Result<(), DeviceError>;
    /// Ends it: an executable graph.
    fn end_capture(&self, stream: u64) -> Result<Handle, DeviceError>;
    /// Runs it in a stream.
    fn replay(&self, graph: Handle, stream: u64) -> Result<(), DeviceError>;
    /// Destroys it.
    fn destroy_graph(&self, graph: Handle) -> Result<(), DeviceError>;

    /// Loads a kernel image into the current context.
    fn load(&self, image: &[u8]) -> Result<Handle, DeviceError>;
    /// Unloads it.
    fn unload(&self, module: Handle) -> Result<(), DeviceError>;
    /// A kernel of it, by name.
    fn function(&self, module: Handle, name: &str) -> Result<Handle, DeviceError>;
    /// What the compiler made of it.
    fn function_use(&self, function: Handle) -> Result<FunctionUse, DeviceError>;
    /// Blocks of so many threads that one multiprocessor holds at a time.
    fn occupancy(&self, function: Handle, threads: u32) -> Result<u32, DeviceError>;
    /// Launches a kernel whose only parameter is a structure of these bytes.
    ///
    /// # Safety
    /// The bytes are the kernel's parameter, and what they point at is valid until it ends.
    unsafe fn launch(&self, launch: &Launch, parameter: &[u8]) -> Result<(), DeviceError>;
}
