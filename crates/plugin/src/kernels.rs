//! Where kernels are, for a program that is not ours: beside this library.
//!
//! Backends look beside the program, which is an engine's, or an interpreter. So where nobody says
//! where kernels are, each backend that has kernels is told of the library's.

use std::path::{Path, PathBuf};

use crossover::Builder;

use crate::report::crossover_api_version;

/// The setting of a backend that has kernels, and the folder's name.
const KERNELS: &str = "kernels";
/// Marks cargo's folder for what it builds, as far above a library as `target/debug/deps`.
const CARGO_MARK: &str = "CACHEDIR.TAG";
const CARGO_DEPTH: usize = 3;

/// Tells backends of the library's kernels, where there are any and nobody names others.
pub(crate) fn beside_the_library(builder: Builder) -> Builder {
    // A wrong setting is told when the group forms.
    let (Some(folder), Ok(settings)) = (folder(), builder.settings()) else { return builder };
    let all = builder.registry().descriptors();
    let keys: Vec<String> = all
        .iter()
        .filter(|descriptor| descriptor.settings.contains(&KERNELS))
        .map(|descriptor| format!("{}.{KERNELS}", descriptor.id))
        .filter(|key| !settings.backends.contains_key(key))
        .collect();
    let folder = folder.to_string_lossy();
    keys.into_iter().fold(builder, |builder, key| builder.set(key, &*folder, "libcrossover"))
}

fn folder() -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let library = mapped_from(&maps, crossover_api_version as *const () as usize)?;
    let mut above = Path::new(library).ancestors().skip(1).take(CARGO_DEPTH);
    let beside = above.next()?.join(KERNELS);
    if beside.is_dir() {
        return Some(beside);
    }
    let built = above.find(|folder| folder.join(CARGO_MARK).exists())?.join(KERNELS);
    built.is_dir().then_some(built)
}

/// The file from which an address is mapped, as `/proc/self/maps` has it: its range in the first
/// column, and from the sixth on its name.
fn mapped_from(maps: &str, address: usize) -> Option<&str> {
    maps.lines().find_map(|line| {
        let (from, to) = line.split_once(' ')?.0.split_once('-')?;
        let bound = |hex| usize::from_str_radix(hex, 16).ok();
        let holds = (bound(from)?..bound(to)?).contains(&address);
        let at = line.find('/').filter(|_| holds)?;
        Some(line[at..].trim_end_matches(" (deleted)"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_of_the_file_that_it_is_mapped_from() {
        let maps = "7f00-7f10 r--p 00000000 fe:00 12    /opt/a folder/libcrossover.so\n\
                    7f10-7f20 r-xp 00010000 fe:00 12    /opt/a folder/libcrossover.so (deleted)\n\
                    7f20-7f30 rw-p 00000000 00:00 0 \n";
        assert_eq!(mapped_from(maps, 0x7f10), Some("/opt/a folder/libcrossover.so"));
        assert_eq!(mapped_from(maps, 0x7f20), None);
        assert_eq!(mapped_from(maps, 0x7f30), None);
    }

    #[test]
    fn this_code_is_mapped_from_this_test() {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("/proc");
        let test = std::env::current_exe().expect("this test's path");
        let here = mapped_from(&maps, crossover_api_version as *const () as usize);
        assert_eq!(here.map(Path::new), Some(&*test));
    }
}
