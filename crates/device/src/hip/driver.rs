//! The parts put together.

use std::os::fd::{BorrowedFd, OwnedFd};

use crate::driver::{
    Capture, Description, Driver, FunctionUse, Handle, IpcHandle, Launch, Provenance, Vendor,
};
use crate::error::DeviceError;
use crate::hip::{Hip, capture, context, memory, module, provenance, stream, virtual_memory};

impl Driver for Hip {
    fn vendor(&self) -> Vendor {
        Vendor::Hip
    }

    fn version(&self) -> Result<String, DeviceError> {
        let (major, minor) = self.api.runtime.version;
        Ok(format!("{major}.{minor}"))
    }

    fn devices(&self) -> Result<Vec<Description>, DeviceError> {
        context::devices(&self.api)
    }

    fn current(&self) -> Result<Option<u32>, DeviceError> {
        context::current(&self.api)
    }

    fn retain(&self, ordinal: u32) -> Result<Handle, DeviceError> {
        context::retain(&self.api, ordinal)
    }

    fn release(&self, _ordinal: u32) -> Result<(), DeviceError> {
        Ok(()) // nothing was taken
    }

    #[inline]
    fn make_current(&self, context: Handle) -> Result<(), DeviceError> {
        context::make_current(&self.api, context)
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        context::synchronize(&self.api)
    }

    fn alloc(&self, bytes: usize) -> Result<u64, DeviceError> {
        memory::alloc(&self.api, bytes)
    }

    fn free(&self, pointer: u64) -> Result<(), DeviceError> {
        memory::free(&self.api, pointer)
    }

    unsafe fn register_host(&self, pages: *mut u8, bytes: usize) -> Result<u64, DeviceError> {
        // SAFETY: the caller's promise.
        unsafe { memory::register(&self.api, pages, bytes) }
    }

    fn unregister_host(&self, pages: *mut u8) -> Result<(), DeviceError> {
        memory::unregister(&self.api, pages)
    }

    unsafe fn copy(
        &self,
        to: u64,
        from: u64,
        bytes: usize,
        stream: u64,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller's promise.
        unsafe { memory::copy(&self.api, to, from, bytes, stream) }
    }

    unsafe fn fill(
        &self,
        to: u64,
        word: u32,
        words: usize,
        stream: u64,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller's promise.
        unsafe { memory::fill(&self.api, to, word, words, stream) }
    }

    fn provenance(&self, pointer: u64) -> Result<Provenance, DeviceError> {
        provenance::of(&self.api, &self.allocations, pointer)
    }

    fn export(&self, base: u64) -> Result<IpcHandle, DeviceError> {
        memory::export(&self.api, base)
    }

    fn import(&self, handle: &IpcHandle) -> Result<u64, DeviceError> {
        memory::import(&self.api, handle)
    }

    fn unimport(&self, base: u64) -> Result<(), DeviceError> {
        memory::unimport(&self.api, base)
    }

    fn alloc_virtual(&self, ordinal: u32, bytes: usize) -> Result<(u64, usize), DeviceError> {
        virtual_memory::alloc(&self.api, &self.allocations, ordinal, bytes)
    }

    fn free_virtual(&self, pointer: u64, bytes: usize) -> Result<(), DeviceError> {
        virtual_memory::free(&self.api, &self.allocations, pointer, bytes)
    }

    fn export_fd(&self, pointer: u64) -> Result<OwnedFd, DeviceError> {
        virtual_memory::export(&self.api, &self.allocations, pointer)
    }

    fn import_fd(
        &self,
        ordinal: u32,
        fd: BorrowedFd<'_>,
        bytes: usize,
    ) -> Result<u64, DeviceError> {
        virtual_memory::import(&self.api, &self.allocations, ordinal, fd, bytes)
    }

    fn can_access(&self, ordinal: u32, peer: u32) -> Result<bool, DeviceError> {
        context::can_access(&self.api, ordinal, peer)
    }

    fn enable_peer(&self, peer: u32) -> Result<(), DeviceError> {
        context::enable_peer(&self.api, peer)
    }

    fn create_stream(&self) -> Result<Handle, DeviceError> {
        stream::create(&self.api)
    }

    fn destroy_stream(&self, stream: Handle) -> Result<(), DeviceError> {
        stream::destroy(&self.api, stream)
    }

    fn synchronize_stream(&self, stream: u64) -> Result<(), DeviceError> {
        stream::synchronize(&self.api, stream)
    }

    fn is_done(&self, stream: u64) -> Result<bool, DeviceError> {
        stream::is_done(&self.api, stream)
    }

    fn create_event(&self) -> Result<Handle, DeviceError> {
        stream::create_event(&self.api)
    }

    fn destroy_event(&self, event: Handle) -> Result<(), DeviceError> {
        stream::destroy_event(&self.api, event)
    }

    fn record(&self, event: Handle, stream: u64) -> Result<(), DeviceError> {
        stream::record(&self.api, event, stream)
    }

    fn wait(&self, stream: u64, event: Handle) -> Result<(), DeviceError> {
        stream::wait(&self.api, stream, event)
    }

    fn elapsed(&self, from: Handle, to: Handle) -> Result<f32, DeviceError> {
        stream::elapsed(&self.api, from, to)
    }

    fn capture(&self, stream: u64) -> Result<Capture, DeviceError> {
        capture::state(&self.api, stream)
    }

    fn begin_capture(&self, stream: u64) -> Result<(), DeviceError> {
        capture::begin(&self.api, stream)
    }

    fn end_capture(&self, stream: u64) -> Result<Handle, DeviceError> {
        capture::end(&self.api, stream)
    }

    fn replay(&self, graph: Handle, stream: u64) -> Result<(), DeviceError> {
        capture::replay(&self.api, graph, stream)
    }

    fn destroy_graph(&self, graph: Handle) -> Result<(), DeviceError> {
        capture::destroy(&self.api, graph)
    }

    fn load(&self, image: &[u8]) -> Result<Handle, DeviceError> {
        module::load(&self.api, &self.images, image)
    }

    fn unload(&self, module: Handle) -> Result<(), DeviceError> {
        module::unload(&self.api, &self.images, module)
    }

    fn function(&self, module: Handle, name: &str) -> Result<Handle, DeviceError> {
        module::function(&self.api, module, name)
    }

    fn function_use(&self, function: Handle) -> Result<FunctionUse, DeviceError> {
        module::usage(&self.api, function)
    }

    fn occupancy(&self, function: Handle, threads: u32) -> Result<u32, DeviceError> {
        module::occupancy(&self.api, function, threads)
    }

    #[inline]
    unsafe fn launch(&self, launch: &Launch, parameter: &[u8]) -> Result<(), DeviceError> {
        // SAFETY: the caller's promise.
        unsafe { module::launch(&self.api, launch, parameter) }
    }
}
