//! The kernels of a device: found by name, loaded once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::device::Device;
use crate::error::DeviceError;
use crate::images::{Images, Places};
use crate::module::{Kept, Kernel, Module};

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
        let module = load(&self.device, &file)?;
        let kernel = module.kernel(name)?;
        modules.insert(file, module);
        Ok(kernel)
    }
}

/// A driver, by its address, and a device of it.
type On = (usize, u32);

/// Loads an image, or finds it where another group of this process has it on the same device:
/// loading takes milliseconds, and the driver may wait for the device over it.
fn load(device: &Device, file: &Path) -> Result<Module, DeviceError> {
    static LOADED: Mutex<Vec<(On, PathBuf, Kept)>> = Mutex::new(Vec::new());
    // Whoever has the module has its driver, so that no other one is at this address.
    let on = (std::ptr::from_ref(device.driver()).addr(), device.ordinal());
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    loaded.retain(|(_, _, kept)| kept.module().is_some());
    let same = |(there, path, _): &&(On, PathBuf, Kept)| *there == on && path == file;
    if let Some(module) = loaded.iter().find(same).and_then(|(_, _, kept)| kept.module()) {
        return Ok(module);
    }
    let image = std::fs::read(file).map_err(|e| {
        DeviceError::Invalid(format!(
            "the kernel image {} cannot be read: {e}; build the kernels again",
            file.display()
        ))
    })?;
    let module = Module::load(device, &image)?;
    loaded.push((on, file.to_owned(), module.keep()));
    Ok(module)
}
