//! Kernels that are loaded.

use std::sync::{Arc, Weak};

use crate::device::Device;
use crate::driver::{FunctionUse, Handle, Launch};
use crate::error::DeviceError;

/// A kernel image in a device's memory, unloaded when it and all its kernels are dropped.
#[derive(Clone, Debug)]
pub struct Module {
    loaded: Arc<Loaded>,
}

/// A module that somebody may still have.
#[derive(Clone, Debug)]
pub(crate) struct Kept(Weak<Loaded>);

impl Kept {
    /// It, if somebody has.
    pub(crate) fn module(&self) -> Option<Module> {
        self.0.upgrade().map(|loaded| Module { loaded })
    }
}

#[derive(Debug)]
struct Loaded {
    device: Device,
    handle: Handle,
}

impl Module {
    /// Loads an image that a compiler wrote for this device.
    ///
    /// # Errors
    /// It is for another architecture, or none.
    pub fn load(device: &Device, image: &[u8]) -> Result<Module, DeviceError> {
        device.make_current()?;
        let handle = device.driver().load(image)?;
        Ok(Module { loaded: Arc::new(Loaded { device: device.clone(), handle }) })
    }

    /// To find it again while somebody has it.
    pub(crate) fn keep(&self) -> Kept {
        Kept(Arc::downgrade(&self.loaded))
    }

    /// A kernel of it.
    ///
    /// # Errors
    /// It has none of that name.
    pub fn kernel(&self, name: &str) -> Result<Kernel, DeviceError> {
        let Loaded { device, handle } = &*self.loaded;
        device.make_current()?;
        let function = device.driver().function(*handle, name)?;
        Ok(Kernel { module: self.clone(), function })
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let handle = self.handle;
        self.device.give_back("a kernel image", |driver| driver.unload(handle));
    }
}

/// A kernel, ready to be launched.
#[derive(Clone, Debug)]
pub struct Kernel {
    module: Module,
    function: Handle,
}

/// How many threads a launch has, and when it may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Blocks.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
    /// May it start before the kernel ahead of it has ended? It then waits by itself.
    pub programmatic: bool,
}

impl Kernel {
    /// What the compiler made of it.
    ///
    /// # Errors
    /// The call fails.
    pub fn usage(&self) -> Result<FunctionUse, DeviceError> {
        let device = self.device();
        device.make_current()?;
        device.driver().function_use(self.function)
    }

    /// Blocks of so many threads that the whole device holds at a time: more would wait for others
    /// to end, and kernels that wait for one another must not.
    ///
    /// # Errors
    /// The call fails.
    pub fn resident_blocks(&self, threads: u32) -> Result<u32, DeviceError> {
        let device = self.device();
        device.make_current()?;
        let each = device.driver().occupancy(self.function, threads)?;
        Ok(each.saturating_mul(device.description().multiprocessors))
    }

    /// Launches it into a stream, the engine's perhaps.
    ///
    /// # Safety
    /// The bytes are the kernel's one parameter, and what they point at is valid until it ends.
    ///
    /// # Errors
    /// The call fails, or an earlier kernel did.
    #[inline]
    pub unsafe fn launch(
        &self,
        shape: Shape,
        parameter: &[u8],
        stream: u64,
    ) -> Result<(), DeviceError> {
        let Shape { blocks, threads, programmatic } = shape;
        let launch = Launch { function: self.function, blocks, threads, stream, programmatic };
        let device = self.device();
        device.make_current()?;
        // SAFETY: the caller's promise; the module is loaded while this lives.
        unsafe { device.driver().launch(&launch, parameter) }
    }

    fn device(&self) -> &Device {
        &self.module.loaded.device
    }
}
