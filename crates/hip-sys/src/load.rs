//! Finding the library, and what its release has.

use std::error::Error;
use std::ffi::{c_int, c_void};
use std::mem::ManuallyDrop;
use std::path::Path;

use libloading::Library;
use libloading::os::unix::{Library as UnixLibrary, RTLD_LAZY, RTLD_LOCAL};

use crate::layout::{R0000_ARCH_AT, R0600_ARCH_AT};
use crate::table::{Calls, DeviceUuid, PropertiesR0000, PropertiesR0600, Vmm};

/// Where the runtime is looked for: the names under which releases 7, 6 and 5 install it, where
/// only a link for developers is, and where ROCm puts it without telling the loader.
const NAMES: [&str; 5] = [
    "libamdhip64.so.7",
    "libamdhip64.so.6",
    "libamdhip64.so.5",
    "libamdhip64.so",
    "/opt/rocm/lib/libamdhip64.so",
];

/// `RTLD_NOLOAD` of Linux's C libraries: only what the process has already.
const NO_LOAD: c_int = 4;

/// The runtime, loaded. It stays so until the process ends: its threads and exit handlers outlive
/// whoever loaded it.
#[derive(Debug)]
pub struct Hip {
    /// What every release has.
    pub calls: Calls,
    /// Virtual memory. None before ROCm 6: what 5 had of these names could not export, and 5.2's
    /// took a structure of another order.
    pub vmm: Option<Vmm>,
    /// Devices' identities.
    pub device_uuid: Option<DeviceUuid>,
    /// How to ask a device's architecture.
    pub properties: Properties,
    /// Major and minor version, such as (6, 3).
    pub version: (u32, u32),
    /// The name or path that it was loaded by.
    pub library: String,
    _library: ManuallyDrop<Library>,
}

/// Device properties, whose layout depends on the release. Only one field of them is read.
#[derive(Clone, Copy, Debug)]
pub struct Properties {
    /// Writes at most [`PROPERTIES_ROOM`](crate::layout::PROPERTIES_ROOM) bytes about a device.
    pub get: unsafe extern "C" fn(properties: *mut c_void, device: c_int) -> c_int,
    /// Where the architecture's name begins in them.
    pub arch_at: usize,
}

/// Why there is no runtime.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// No library could be loaded.
    #[error("no HIP runtime: {}. Install ROCm's HIP runtime, or say where it is", tried.join("; "))]
    Absent {
        /// What was tried, each with the loader's reason.
        tried: Vec<String>,
    },
    /// It lacks a function.
    #[error("{library} is no HIP runtime that this program can use: it has no `{symbol}`")]
    Lacks {
        /// The library.
        library: String,
        /// The function.
        symbol: &'static str,
    },
    /// It does not say its version.
    #[error("{library} does not say its version: hipRuntimeGetVersion returned {status}")]
    Unversioned {
        /// The library.
        library: String,
        /// HIP's status.
        status: c_int,
    },
}

impl Hip {
    /// Loads the library at `path`, or else the one that the process has already, or else the newest
    /// that the system has.
    ///
    /// # Errors
    /// There is none, or it lacks a function that is needed.
    pub fn load(path: Option<&Path>) -> Result<Self, LoadError> {
        let (library, name) = match path {
            Some(path) => {
                let name = path.display().to_string();
                (open(&name, 0).map_err(|why| LoadError::Absent { tried: vec![why] })?, name)
            }
            None => search()?,
        };
        Self::of(library, name)
    }

    fn of(library: Library, name: String) -> Result<Self, LoadError> {
        let lacks = |symbol| LoadError::Lacks { library: name.clone(), symbol };
        let calls = Calls::find(&library).map_err(lacks)?;
        let properties = match PropertiesR0600::find(&library) {
            Ok(found) => Properties { get: found.get, arch_at: R0600_ARCH_AT },
            Err(_) => Properties {
                get: PropertiesR0000::find(&library).map_err(lacks)?.get,
                arch_at: R0000_ARCH_AT,
            },
        };
        let mut number = 0;
        // SAFETY: the pointer is valid for the call.
        let status = unsafe { (calls.runtime_get_version)(&raw mut number) };
        let Ok(number @ 1..) = u32::try_from(number) else {
            return Err(LoadError::Unversioned { library: name, status });
        };
        let version = (number / 10_000_000, number / 100_000 % 100);
        Ok(Self {
            calls,
            vmm: Vmm::find(&library).ok().filter(|_| version.0 >= 6),
            device_uuid: DeviceUuid::find(&library).ok(),
            properties,
            version,
            library: name,
            _library: ManuallyDrop::new(library),
        })
    }
}

/// A framework brings its own copy: a second runtime beside it would not know its pointers. So what
/// is loaded already comes before what is newest.
fn search() -> Result<(Library, String), LoadError> {
    if let Some(found) = NAMES.iter().find_map(|name| Some((open(name, NO_LOAD).ok()?, name))) {
        return Ok((found.0, (*found.1).to_owned()));
    }
    let mut tried = Vec::new();
    for name in NAMES {
        match open(name, 0) {
            Ok(library) => return Ok((library, name.to_owned())),
            Err(why) => tried.push(why),
        }
    }
    Err(LoadError::Absent { tried })
}

fn open(name: &str, flags: c_int) -> Result<Library, String> {
    // SAFETY: HIP's initialisers may run at any time.
    match unsafe { UnixLibrary::open(Some(name), RTLD_LAZY | RTLD_LOCAL | flags) } {
        Ok(library) => Ok(library.into()),
        // What the loader said is in the source; the error itself says "dlopen failed".
        Err(error) => Err(error.source().map_or_else(|| error.to_string(), ToString::to_string)),
    }
}
