//! A driver of devices that are host memory and run no kernel: for all that is decided about
//! devices before the first launch.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use crossover_device::driver::{
    Capture, Description, Driver, FunctionUse, Handle, IpcHandle, Launch, Provenance, Vendor,
};
use crossover_device::error::DeviceError;

/// So many devices, of which the last is out of the others' reach.
pub struct Unreal {
    devices: u32,
    copies: AtomicU64,
}

impl Unreal {
    /// A driver of so many devices.
    pub fn new(devices: u32) -> Unreal {
        Unreal { devices, copies: AtomicU64::new(0) }
    }

    /// How often it has copied.
    pub fn copies(&self) -> u64 {
        self.copies.load(SeqCst)
    }
}

/// What has no meaning without a device.
macro_rules! unsupported {
    ($($what:literal: fn $name:ident($($argument:ident: $of:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($argument: $of),*) -> Result<$result, DeviceError> {
            let _ = ($($argument,)*);
            Err(DeviceError::Unsupported { vendor: "an unreal device", what: $what })
        })*
    };
}

impl Driver for Unreal {
    fn vendor(&self) -> Vendor {
        Vendor::Emulated
    }

    fn version(&self) -> Result<String, DeviceError> {
        Ok("0".to_owned())
    }

    fn devices(&self) -> Result<Vec<Description>, DeviceError> {
        let describe = |ordinal| Description {
            ordinal,
            name: "An Unreal Device".to_owned(),
            arch: "emulated".to_owned(),
            uuid: format!("GPU-{ordinal}"),
            pci: format!("0000:{ordinal:02x}:00.0"),
            multiprocessors: 4,
            l2: 50 << 20,
            memory: 1 << 30,
        };
        Ok((0..self.devices).map(describe).collect())
    }

    fn retain(&self, ordinal: u32) -> Result<Handle, DeviceError> {
        Ok(Handle(u64::from(ordinal) + 1))
    }

    fn release(&self, _: u32) -> Result<(), DeviceError> {
        Ok(())
    }

    fn make_current(&self, _: Handle) -> Result<(), DeviceError> {
        Ok(())
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    unsafe fn copy(&self, to: u64, from: u64, bytes: usize, _: u64) -> Result<(), DeviceError> {
        self.copies.fetch_add(1, SeqCst);
        // SAFETY: the caller vouches for both ranges, which are host memory.
        unsafe { std::ptr::copy(from as *const u8, to as *mut u8, bytes) };
        Ok(())
    }

    fn can_access(&self, ordinal: u32, peer: u32) -> Result<bool, DeviceError> {
        Ok(ordinal.max(peer) + 1 < self.devices)
    }

    unsafe fn register_host(&self, _: *mut u8, _: usize) -> Result<u64, DeviceError> {
        Err(DeviceError::Unsupported { vendor: "an unreal device", what: "pages" })
    }

    unsafe fn fill(&self, _: u64, _: u32, _: usize, _: u64) -> Result<(), DeviceError> {
        Err(DeviceError::Unsupported { vendor: "an unreal device", what: "fills" })
    }

    unsafe fn launch(&self, _: &Launch, _: &[u8]) -> Result<(), DeviceError> {
        Err(DeviceError::Unsupported { vendor: "an unreal device", what: "kernels" })
    }

    unsupported! {
        "memory of its own": fn alloc(bytes: usize) -> u64;
        "memory of its own": fn free(pointer: u64) -> ();
        "pages": fn unregister_host(pages: *mut u8) -> ();
        "provenance": fn provenance(pointer: u64) -> Provenance;
        "handles": fn export(base: u64) -> IpcHandle;
        "handles": fn import(handle: &IpcHandle) -> u64;
        "handles": fn unimport(base: u64) -> ();
        "virtual memory": fn alloc_virtual(ordinal: u32, bytes: usize) -> (u64, usize);
        "virtual memory": fn free_virtual(pointer: u64, bytes: usize) -> ();
        "virtual memory": fn export_fd(pointer: u64) -> OwnedFd;
        "virtual memory": fn import_fd(ordinal: u32, fd: BorrowedFd<'_>, bytes: usize) -> u64;
        "peers": fn enable_peer(peer: u32) -> ();
        "streams": fn create_stream() -> Handle;
        "streams": fn destroy_stream(stream: Handle) -> ();
        "streams": fn synchronize_stream(stream: u64) -> ();
        "streams": fn is_done(stream: u64) -> bool;
        "events": fn create_event() -> Handle;
        "events": fn destroy_event(event: Handle) -> ();
        "events": fn record(event: Handle, stream: u64) -> ();
        "events": fn wait(stream: u64, event: Handle) -> ();
        "events": fn elapsed(from: Handle, to: Handle) -> f32;
        "graphs": fn capture(stream: u64) -> Capture;
        "graphs": fn begin_capture(stream: u64) -> ();
        "graphs": fn end_capture(stream: u64) -> Handle;
        "graphs": fn replay(graph: Handle, stream: u64) -> ();
        "graphs": fn destroy_graph(graph: Handle) -> ();
        "kernels": fn load(image: &[u8]) -> Handle;
        "kernels": fn unload(module: Handle) -> ();
        "kernels": fn function(module: Handle, name: &str) -> Handle;
        "kernels": fn function_use(function: Handle) -> FunctionUse;
        "kernels": fn occupancy(function: Handle, threads: u32) -> u32;
    }
}
