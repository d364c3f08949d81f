//! What the kernel tells in files, below a root: `/`, or a folder that a test has written.

use std::fs;
use std::path::{Path, PathBuf};

/// Where `proc`, `sys` and `dev` are. What is not there is left out: a container may lack any of it.
pub(super) struct Root(PathBuf);

impl Root {
    pub(super) fn here() -> Root {
        Root::below("/")
    }

    pub(super) fn below(root: impl Into<PathBuf>) -> Root {
        Root(root.into())
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    /// A file's text, without spaces at its ends; `None` if it cannot be read.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        let bytes = fs::read(self.path(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    pub(super) fn number(&self, path: &str) -> Option<u64> {
        self.text(path)?.parse().ok()
    }

    pub(super) fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        fs::read(self.path(path)).ok()
    }

    pub(super) fn link(&self, path: &str) -> Option<String> {
        Some(fs::read_link(self.path(path)).ok()?.to_string_lossy().into_owned())
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// What a folder holds, sorted; nothing if there is none.
    pub(super) fn names(&self, folder: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.0.join(folder)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        names
    }
}

/// A root that tests write.
#[cfg(test)]
pub(super) mod written {
    use super::Root;

    /// The files of a root by their paths, and what they hold; a text that begins with `->` is a
    /// link.
    pub(in crate::doctor) fn root(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = folder.path().join(path);
            let above = path.parent().expect("it is below the root");
            std::fs::create_dir_all(above).expect("made");
            match text.strip_prefix("->") {
                Some(target) => std::os::unix::fs::symlink(target, path).expect("linked"),
                None => std::fs::write(path, text).expect("written"),
            }
        }
        let root = Root::below(folder.path());
        (folder, root)
    }
}
