//! Which files' code this process has, by its own map of memory.

use std::fs;
use std::path::{Path, PathBuf};

/// Code of a file.
#[derive(Debug, PartialEq, Eq)]
struct Code<'map> {
    from: usize,
    until: usize,
    path: &'map str,
}

/// The files called `STEM`, or `STEM` and a version, whose code is mapped; each once.
pub(crate) fn files(stem: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for code in map().lines().filter_map(parse) {
        let path = PathBuf::from(code.path);
        if is_called(&path, stem) && !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

/// The file that has the code at an address.
pub(crate) fn file_of(address: usize) -> Option<PathBuf> {
    let map = map();
    let mut codes = map.lines().filter_map(parse);
    let code = codes.find(|code| (code.from..code.until).contains(&address))?;
    Some(PathBuf::from(code.path))
}

/// Are both names of one file?
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    let resolved = |path: &Path| fs::canonicalize(path).ok();
    one == other || resolved(one).is_some_and(|it| Some(it) == resolved(other))
}

/// Empty where there is no such file: then nothing is known to be mapped.
fn map() -> String {
    fs::read_to_string("/proc/self/maps").unwrap_or_default()
}

/// `7f00-7f40 r-xp 00000000 08:01 1234   /path of/it`: no more than what may run, and has a file.
fn parse(line: &str) -> Option<Code<'_>> {
    let (range, rest) = line.split_once(' ')?;
    let (rights, rest) = rest.split_once(' ')?;
    let path = &rest[rest.find('/')?..];
    let (from, until) = range.split_once('-')?;
    let address = |digits| usize::from_str_radix(digits, 16).ok();
    let code = Code { from: address(from)?, until: address(until)?, path };
    rights.contains('x').then_some(code)
}

fn is_called(path: &Path, stem: &str) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    // What was replaced on the disk is still mapped, and marked so.
    let name = name.strip_suffix(" (deleted)").unwrap_or(name);
    name.strip_prefix(stem).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_with_a_file_is_read_and_nothing_else() {
        let line = "7f2a1000-7f2a3000 r-xp 00001000 fe:00 77    /opt/my libs/libnccl.so.2";
        let path = "/opt/my libs/libnccl.so.2";
        assert_eq!(parse(line), Some(Code { from: 0x7f2a_1000, until: 0x7f2a_3000, path }));
        for line in [
            "7f2a1000-7f2a3000 r--p 00001000 fe:00 77    /opt/libnccl.so.2", // read, not run
            "7f2a1000-7f2a3000 r-xp 00000000 00:00 0     [vdso]",
            "7f2a1000-7f2a3000 rwxp 00000000 00:00 0",
            "",
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
    }

    #[test]
    fn plug_ins_are_no_copies() {
        for name in ["libnccl.so", "libnccl.so.2", "libnccl.so.2.27.5", "libnccl.so.2 (deleted)"] {
            assert!(is_called(&Path::new("/x").join(name), "libnccl.so"), "{name}");
        }
        for name in ["libnccl-net.so", "libnccl_stub.so", "librccl.so.1", "libnccl.sox"] {
            assert!(!is_called(&Path::new("/x").join(name), "libnccl.so"), "{name}");
        }
    }

    #[test]
    fn this_program_is_mapped() {
        let here = this_program_is_mapped as fn() as usize;
        let program = std::env::current_exe().unwrap();
        assert!(is_same(&file_of(here).unwrap(), &program));
        assert_eq!(file_of(0), None);
    }
}
