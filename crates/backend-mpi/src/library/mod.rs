//! The MPI library: found and loaded at run time, by the standard's binary interface, so that one
//! program runs with any library that has it.

pub(crate) mod layout;
mod table;

use std::error::Error;
use std::ffi::{c_char, c_int};
use std::mem::ManuallyDrop;
use std::path::Path;
use std::sync::Mutex;

use libloading::os::unix::{Library as UnixLibrary, RTLD_LAZY, RTLD_LOCAL};

use self::layout::{MAX_ERROR_STRING, MAX_LIBRARY_VERSION_STRING, SUCCESS};
pub(crate) use self::table::Calls;

/// Where it is looked for: the standard's name with the major version of the interface, and the link
/// that is there for developers.
const NAMES: [&str; 2] = ["libmpi_abi.so.1", "libmpi_abi.so"];

/// The library, loaded. It stays so until the process ends.
#[derive(Debug)]
pub(crate) struct Library {
    pub(crate) calls: Calls,
    /// The first line of what it says of itself, such as `MPICH Version: 5.0.2`.
    pub(crate) version: String,
    /// The name or path that it was loaded by.
    path: String,
    _library: ManuallyDrop<libloading::Library>,
}

/// Why there is no library.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LoadError {
    #[error(
        "no MPI library with the standard's binary interface: {}. Install one, such as MPICH 5, or \
         name it by the setting mpi.library",
        tried.join("; ")
    )]
    Absent { tried: Vec<String> },
    #[error(
        "{library} has no `{symbol}`: it is no MPI library of the standard's binary interface (MPI 5.0), \
         such as MPICH 5's libmpi_abi.so"
    )]
    Lacks { library: String, symbol: &'static str },
    #[error(
        "{library} has version {major}.{minor} of the binary interface, and this program knows 1"
    )]
    Version { library: String, major: c_int, minor: c_int },
    #[error(
        "this process has loaded {first} already, and one process has one MPI: mpi.library cannot be {asked}"
    )]
    Second { first: String, asked: String },
    #[error(
        "this process uses {other} already, and one process has one MPI: link it to libmpi_abi.so (by \
         mpicc_abi) instead"
    )]
    Other { other: String },
}

impl Library {
    /// The process's library: the one at `path`, or the one that is loaded already, or the system's.
    /// The first that was loaded stays.
    ///
    /// # Errors
    ///
    /// There is none, or another MPI is in use.
    pub(crate) fn of_process(path: Option<&Path>) -> Result<&'static Library, LoadError> {
        static LOADED: Mutex<Option<&'static Library>> = Mutex::new(None);
        let mut loaded = LOADED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match (*loaded, path) {
            (Some(library), Some(path)) if !library.is_at(path) => Err(LoadError::Second {
                first: library.path.clone(),
                asked: path.display().to_string(),
            }),
            (Some(library), _) => Ok(library),
            (None, path) => {
                let library: &'static Library = Box::leak(Box::new(Self::load(path)?));
                *loaded = Some(library);
                Ok(library)
            }
        }
    }

    fn is_at(&self, path: &Path) -> bool {
        let same = |a: &Path| a.canonicalize().ok();
        Path::new(&self.path) == path
            || same(path).is_some_and(|path| same(Path::new(&self.path)) == Some(path))
    }

    pub(crate) fn load(path: Option<&Path>) -> Result<Library, LoadError> {
        if let Some(other) =
            other_in(&std::fs::read_to_string("/proc/self/maps").unwrap_or_default())
        {
            return Err(LoadError::Other { other });
        }
        let named = path.map(|path| path.display().to_string());
        let names: Vec<&str> = named.as_deref().map_or_else(|| NAMES.to_vec(), |name| vec![name]);
        let mut tried = Vec::new();
        for name in names {
            match open(name) {
                Ok(library) => return Self::of(library, name.to_owned()),
                Err(why) => tried.push(why),
            }
        }
        Err(LoadError::Absent { tried })
    }

    fn of(library: libloading::Library, path: String) -> Result<Library, LoadError> {
        let lacks = |symbol| LoadError::Lacks { library: path.clone(), symbol };
        let calls = Calls::find(&library).map_err(lacks)?;
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both pointers are valid; may be called at any time.
        let status = unsafe { (calls.abi_get_version)(&raw mut major, &raw mut minor) };
        if status != SUCCESS || major != 1 {
            return Err(LoadError::Version { library: path, major, minor });
        }
        let mut text = [0u8; MAX_LIBRARY_VERSION_STRING];
        let mut length = 0;
        // SAFETY: room for the longest text; may be called at any time.
        unsafe {
            (calls.get_library_version)(text.as_mut_ptr().cast::<c_char>(), &raw mut length);
        }
        let told = until_zero(&text);
        let line = told.lines().next().unwrap_or_default();
        let version = line.split_whitespace().collect::<Vec<_>>().join(" ");
        Ok(Library { calls, version, path, _library: ManuallyDrop::new(library) })
    }

    /// An error in words.
    pub(crate) fn in_words(&self, status: c_int) -> String {
        let mut text = [0u8; MAX_ERROR_STRING];
        let mut length = 0;
        // SAFETY: room for the longest text.
        let told =
            unsafe { (self.calls.error_string)(status, text.as_mut_ptr().cast(), &raw mut length) };
        match told {
            SUCCESS => until_zero(&text).split_whitespace().collect::<Vec<_>>().join(" "),
            _ => format!("error {status}"),
        }
    }
}

fn until_zero(text: &[u8]) -> String {
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    String::from_utf8_lossy(&text[..end]).into_owned()
}

/// An MPI library of an interface of its own that the process has mapped, from the text of
/// `/proc/self/maps`.
fn other_in(maps: &str) -> Option<String> {
    let paths = maps.lines().filter_map(|line| line.split_once('/').map(|(_, path)| path));
    let named =
        |path: &&str| path.rsplit('/').next().is_some_and(|file| file.starts_with("libmpi.so"));
    paths.filter(named).map(|path| format!("/{path}")).next()
}

fn open(name: &str) -> Result<libloading::Library, String> {
    // SAFETY: the library's initialisers may run at any time.
    match unsafe { UnixLibrary::open(Some(name), RTLD_LAZY | RTLD_LOCAL) } {
        Ok(library) => Ok(library.into()),
        // What the loader said is in the source; the error itself says "dlopen failed".
        Err(error) => Err(error.source().map_or_else(|| error.to_string(), ToString::to_string)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_was_tried() {
        let wrong = Library::load(Some(Path::new("/nowhere/libmpi_abi.so.1"))).expect_err("none");
        let words = wrong.to_string();
        assert!(words.contains("/nowhere/libmpi_abi.so.1"), "{words}");
        assert!(words.contains("mpi.library"), "{words}");
    }

    #[test]
    fn a_library_of_something_else_is_told() {
        let wrong = Library::load(Some(Path::new("libc.so.6"))).expect_err("it is no MPI");
        assert!(matches!(wrong, LoadError::Lacks { symbol: "MPI_Abi_get_version", .. }), "{wrong}");
    }

    #[test]
    fn another_mpi_is_seen() {
        let line = |path: &str| format!("7f00-7f01 r-xp 00000000 08:01 77    {path}\n");
        let maps = line("/usr/lib/libc.so.6") + &line("/opt/mpich/lib/libmpi.so.12.1.8");
        assert_eq!(other_in(&maps).as_deref(), Some("/opt/mpich/lib/libmpi.so.12.1.8"));
        assert_eq!(other_in(&line("/opt/mpich/lib/libmpi_abi.so.1")), None);
    }
}
