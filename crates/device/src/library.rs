//! The kernels of a device: found by name, loaded once.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::device::Device;
use crate::error::DeviceError;
use crate::images::{Images, Places};
use crate::module::{Kernel, Module};

/// The kernels that images have for a device. An image is loaded when a kernel of it is first asked
/// for, and stays loaded while this or a kernel of it lives.
#[derive(Debug)]
pub struct Library {
    device: Device,
    images: Images,
    modules: Mutex<BTreeMap<PathBuf, Module>>,
}

impl Library {
    /// Finds the images; loads none.
    ///
    /// # Errors
    /// There are none for this device: the sentence says where they were looked for and what builds
    /// them.
    pub fn open(device: &Device, places: &Places) -> Result<Library, DeviceError> {
        let images = places.images(device.driver().vendor(), &device.description().arch)?;
        Ok(Library { device: device.clone(), images, modules: Mutex::default() })
    }

    /// Its images.
    pub fn images(&self) -> &Images {
        &self.images
    }

    /// A kernel, ready to be launched: nothing of it is left to be loaded by a launch.
    ///
    /// # Errors
    /// No image has it, or the image cannot be read or loaded.
    pub fn kernel(&self, name: &str) -> Result<Kernel, DeviceError> {
        let file = self.images.file(name)?;
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = modules.get(&file) {
            return module.kernel(name);
        }
        let image = std::fs::read(&file).map_err(|e| {
            DeviceError::Invalid(format!(
                "the kernel image {} cannot be read: {e}; build the kernels again",
                file.display()
            ))
        })?;
        let module = Module::load(&self.device, &image)?;
        let kernel = module.kernel(name)?;
        modules.insert(file, module);
        Ok(kernel)
    }
}
