//! Finding the library, and what its release has.

use std::error::Error;
use std::ffi::c_int;
use std::fmt;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

use libloading::Library as Loaded;
use libloading::os::unix::{Library as UnixLibrary, RTLD_LOCAL, RTLD_NOW};

use crate::Version;
use crate::mapped;
use crate::table::{self, Calls, Optional};

/// `RTLD_NOLOAD` of Linux's C libraries: only what the process has already.
const NO_LOAD: c_int = 4;

/// Whose library: which names it has, and which devices it drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vendor {
    /// NVIDIA's.
    Nccl,
    /// AMD's.
    Rccl,
}

impl Vendor {
    /// Under which names it is installed, in the order in which they are tried: that of programs
    /// first, then the one that is only there for developers.
    #[must_use]
    pub const fn names(self) -> [&'static str; 2] {
        match self {
            Self::Nccl => ["libnccl.so.2", "libnccl.so"],
            Self::Rccl => ["librccl.so.1", "librccl.so"],
        }
    }

    /// How the names of its files begin.
    const fn stem(self) -> &'static str {
        self.names()[1]
    }
}

impl fmt::Display for Vendor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Nccl => "NCCL",
            Self::Rccl => "RCCL",
        })
    }
}

/// What a library does with 8-bit floats. Their numbers ([`DataType::F8E4M3`], [`DataType::F8E5M2`])
/// are the same in both.
///
/// [`DataType::F8E4M3`]: crate::layout::DataType::F8E4M3
/// [`DataType::F8E5M2`]: crate::layout::DataType::F8E5M2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Float8 {
    /// It does not know them.
    Absent,
    /// They are those of the OCP standard.
    Standard,
    /// The device decides what their bits mean: on gfx94x they have no infinities, no negative zero
    /// and another bias. So a reduction is right for those who mean the same; copies are right. (In
    /// RCCL 2.27.7 the kernels for gfx942 alone are of `__hip_fp8_e4m3_fnuz` and its like, those for
    /// gfx90a, gfx950 and gfx12 of the standard's types.)
    ByDevice,
}

/// A library, loaded. It stays so until the process ends: its threads outlive whoever loaded it.
#[derive(Debug)]
pub struct Library {
    /// What every release has.
    pub calls: Calls,
    /// What only some have.
    pub optional: Optional,
    /// What it says it is.
    pub version: Version,
    /// The file, with links resolved as far as the process knows it.
    pub path: PathBuf,
    /// Whose.
    pub vendor: Vendor,
    _loaded: ManuallyDrop<Loaded>,
}

/// A name that was tried, and the loader's reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// As it was given to the loader.
    pub name: String,
    /// In the loader's words.
    pub why: String,
}

impl fmt::Display for Attempt {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Mostly the loader begins with the name.
        match self.why.contains(&self.name) {
            true => out.write_str(&self.why),
            false => write!(out, "{}: {}", self.name, self.why),
        }
    }
}

/// Why there is no library.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// None could be loaded.
    #[error("no {vendor}: {}. Install {vendor}, or say where it is", listed(tried))]
    Absent {
        /// Which was looked for.
        vendor: Vendor,
        /// All that was tried.
        tried: Vec<Attempt>,
    },
    /// The process has another copy.
    #[error(
        "two copies of {vendor} in one process do not know of each other: {} was asked for, and {} \
         is loaded already. Ask for the loaded one, or for none", asked.display(), loaded.display()
    )]
    OtherCopy {
        /// Which.
        vendor: Vendor,
        /// The file that was asked for.
        asked: PathBuf,
        /// The file that is loaded.
        loaded: PathBuf,
    },
    /// The process has several copies, and none was asked for.
    #[error(
        "this process has loaded several copies of {vendor} ({}): say which is meant",
        loaded.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    SeveralCopies {
        /// Which.
        vendor: Vendor,
        /// The files.
        loaded: Vec<PathBuf>,
    },
    /// It lacks functions.
    #[error(
        "{} is no {vendor} that this program can use: {}it has no {}. It takes {vendor} 2.14 or later",
        path.display(),
        version.map(|it| format!("it is version {it}, and ")).unwrap_or_default(),
        symbols.iter().map(|symbol| format!("`{symbol}`")).collect::<Vec<_>>().join(", ")
    )]
    Lacks {
        /// Which was looked for.
        vendor: Vendor,
        /// The file.
        path: PathBuf,
        /// What it says it is, if it does.
        version: Option<Version>,
        /// The functions.
        symbols: Vec<&'static str>,
    },
    /// It does not say its version.
    #[error(
        "{} does not say its version: ncclGetVersion returned {status} and wrote {number}",
        path.display()
    )]
    Unversioned {
        /// The file.
        path: PathBuf,
        /// The status.
        status: c_int,
        /// What it wrote.
        number: c_int,
    },
}

impl Library {
    /// The symbols that a library must have.
    pub const REQUIRED: &[&str] = Calls::SYMBOLS;

    /// Loads the library at `explicit`, a path or a name; or else the one that the process has
    /// already; or else the first of [`Vendor::names`] that the system has.
    ///
    /// A second copy is never loaded: each would have its own idea of which communicators, threads
    /// and registered memory there are. A copy that is linked into another library cannot be seen.
    ///
    /// # Errors
    /// There is none; it is another than the process has; or it lacks what is needed.
    pub fn load(explicit: Option<&Path>, vendor: Vendor) -> Result<Self, LoadError> {
        let loaded = copies(vendor);
        match explicit {
            Some(asked) => {
                if let Some(other) = other_copy(asked, &loaded) {
                    let (asked, loaded) = (asked.to_owned(), other.clone());
                    return Err(LoadError::OtherCopy { vendor, asked, loaded });
                }
                Self::first(vendor, &[asked])
            }
            None => match &loaded[..] {
                [] => Self::first(vendor, &vendor.names().map(Path::new)),
                [only] => Self::first(vendor, &[only]),
                _ => Err(LoadError::SeveralCopies { vendor, loaded }),
            },
        }
    }

    /// What it does with 8-bit floats. Whether a device can reduce them is another matter: NCCL says
    /// an invalid argument before compute capability 9.0.
    #[must_use]
    pub fn float8(&self) -> Float8 {
        match self.vendor {
            Vendor::Nccl if self.version >= Version::new(2, 24, 0) => Float8::Standard,
            // ROCm 6.2's is the first release that has them.
            Vendor::Rccl if self.version >= Version::new(2, 20, 0) => Float8::ByDevice,
            Vendor::Nccl | Vendor::Rccl => Float8::Absent,
        }
    }

    fn first(vendor: Vendor, names: &[&Path]) -> Result<Self, LoadError> {
        let mut tried = Vec::new();
        for name in names {
            match open(name, 0) {
                // Even one that lacks something has been called by then.
                Ok(loaded) => return Self::of(ManuallyDrop::new(loaded), name, vendor),
                Err(why) => tried.push(Attempt { name: name.display().to_string(), why }),
            }
        }
        Err(LoadError::Absent { vendor, tried })
    }

    fn of(loaded: ManuallyDrop<Loaded>, name: &Path, vendor: Vendor) -> Result<Self, LoadError> {
        let lacks = |path: &Path, version, symbols| LoadError::Lacks {
            vendor,
            path: path.to_owned(),
            version,
            symbols,
        };
        let get_version = table::get_version(&loaded);
        let get_version = get_version.map_err(|symbol| lacks(name, None, vec![symbol]))?;
        let path = mapped::file_of(get_version as usize).unwrap_or_else(|| name.to_owned());
        let mut number = 0;
        // SAFETY: the pointer is valid for the call.
        let status = unsafe { get_version(&raw mut number) };
        let version = Version::from_number(number).filter(|_| status.is_success());
        let Some(version) = version else {
            return Err(LoadError::Unversioned { path, status: status.0, number });
        };
        let calls = Calls::find(&loaded).map_err(|symbols| lacks(&path, Some(version), symbols))?;
        let optional = Optional::find(&loaded);
        Ok(Self { calls, optional, version, path, vendor, _loaded: loaded })
    }
}

/// The files of the copies that this process has. The loader knows them by the name in the file,
/// whatever the file is called; the map of memory knows those that another loader put there.
fn copies(vendor: Vendor) -> Vec<PathBuf> {
    let by_name = vendor.names().into_iter().filter_map(|name| {
        let loaded = open(Path::new(name), NO_LOAD).ok()?;
        mapped::file_of(table::get_version(&loaded).ok()? as usize)
    });
    let mut found: Vec<PathBuf> = Vec::new();
    for path in by_name.chain(mapped::files(vendor.stem())) {
        if !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

/// A copy that is not the one asked for, unless that one is loaded too.
fn other_copy<'loaded>(asked: &Path, loaded: &'loaded [PathBuf]) -> Option<&'loaded PathBuf> {
    let is_loaded = match asked.components().count() {
        // A bare name: the loader knows what it stands for.
        1 if asked.is_relative() => open(asked, NO_LOAD).is_ok(),
        _ => loaded.iter().any(|path| mapped::is_same(path, asked)),
    };
    loaded.first().filter(|_| !is_loaded)
}

/// With all that it needs, so that what is missing is told here and not in the middle of a call.
fn open(name: &Path, flags: c_int) -> Result<Loaded, String> {
    // SAFETY: initialisers of NCCL and RCCL may run at any time.
    match unsafe { UnixLibrary::open(Some(name), RTLD_NOW | RTLD_LOCAL | flags) } {
        Ok(library) => Ok(library.into()),
        // What the loader said is in the source; the error itself says "dlopen failed".
        Err(error) => Err(error.source().map_or_else(|| error.to_string(), ToString::to_string)),
    }
}

fn listed(tried: &[Attempt]) -> String {
    tried.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
