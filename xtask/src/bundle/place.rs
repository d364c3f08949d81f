//! Where a bundle may lie. It is made beside, and takes its place when it is whole.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

/// Marks a folder as a bundle, which may be removed. It is the first file that is written, and the
/// last that is removed.
const MARK: &str = ".crossover-bundle";

/// A folder for a bundle, and two beside it.
#[derive(Debug)]
pub(super) struct Place {
    whole: PathBuf,
    /// The new one until it is whole.
    part: PathBuf,
    /// The one that is replaced.
    old: PathBuf,
}

impl Place {
    /// # Errors
    ///
    /// The folder is in the checkout but not in `target`, or has what this program did not put
    /// there.
    pub(super) fn of(root: &Path, out: &Path) -> Result<Self> {
        let name = out.file_name();
        let name = name.with_context(|| format!("{} does not end with a name", out.display()))?;
        let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        let parent = fs::canonicalize(parent)
            .with_context(|| format!("{} cannot be found: make it first", parent.display()))?;
        let whole = parent.join(name);
        if let Ok(inside) = whole.strip_prefix(fs::canonicalize(root)?) {
            ensure!(
                inside.starts_with("target"),
                "{} is among the sources: in the checkout, a bundle may lie in target alone",
                whole.display()
            );
        }
        let beside = |ending| whole.with_file_name(format!("{}.{ending}", name.display()));
        let place = Self { part: beside("part"), old: beside("old"), whole };
        for folder in [&place.whole, &place.part, &place.old] {
            ensure!(
                is_ours(folder)?,
                "{} is there and no bundle, for it has no {MARK}: remove it, or name another folder",
                folder.display()
            );
        }
        Ok(place)
    }

    /// An empty folder, to be filled.
    pub(super) fn begin(&self) -> Result<&Path> {
        clear(&self.part)?;
        fs::create_dir(&self.part)?;
        fs::write(self.part.join(MARK), "")?;
        Ok(&self.part)
    }

    /// Puts what was filled in its place, which it returns.
    pub(super) fn end(&self) -> Result<&Path> {
        clear(&self.old)?;
        match fs::rename(&self.whole, &self.old) {
            Err(why) if why.kind() != ErrorKind::NotFound => {
                bail!("{} cannot be replaced: {why}", self.whole.display())
            }
            _ => fs::rename(&self.part, &self.whole)?,
        }
        clear(&self.old)?;
        Ok(&self.whole)
    }
}

/// May it be removed? A folder of this program's, an empty one, or none.
fn is_ours(folder: &Path) -> Result<bool> {
    match fs::symlink_metadata(folder) {
        Err(why) if why.kind() == ErrorKind::NotFound => Ok(true),
        Err(why) => bail!("{} cannot be looked at: {why}", folder.display()),
        Ok(what) if !what.is_dir() => Ok(false),
        Ok(_) => Ok(folder.join(MARK).is_file() || fs::read_dir(folder)?.next().is_none()),
    }
}

/// Removes a bundle, its mark last, so that what is broken off can be taken up again.
fn clear(folder: &Path) -> Result<()> {
    ensure!(is_ours(folder)?, "{} is no bundle any more", folder.display());
    if !folder.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else if entry.file_name() != MARK {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_dir_all(folder)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A checkout, and a folder beside it.
    fn folders(name: &str) -> (PathBuf, PathBuf) {
        let all = std::env::temp_dir().join(format!("crossover-{name}-{}", std::process::id()));
        let (root, out) = (all.join("checkout"), all.join("elsewhere"));
        fs::create_dir_all(root.join("target")).unwrap();
        fs::create_dir_all(&out).unwrap();
        (root, out)
    }

    #[test]
    fn a_folder_with_anything_but_a_bundle_is_refused() {
        let (root, out) = folders("place-refused");
        let sources = root.join("src/bundle");
        fs::create_dir_all(&sources).unwrap();
        fs::write(sources.join("run.sh"), "").unwrap();
        fs::write(out.join("run.sh"), "").unwrap();
        let why = |out: &Path| Place::of(&root, out).unwrap_err().to_string();
        assert!(why(&sources).contains("is among the sources"), "{}", why(&sources));
        assert!(why(&root.join("target/../new")).contains("is among the sources"));
        assert!(why(&root).contains("is among the sources"), "{}", why(&root));
        assert!(why(root.parent().unwrap()).contains("is there and no bundle"));
        assert!(why(&out).contains("is there and no bundle"), "{}", why(&out));
        assert!(why(&out.join("none/new")).contains("make it first"));
        std::os::unix::fs::symlink(&out, root.join("target/link")).unwrap();
        assert!(why(&root.join("target/link")).contains("is there and no bundle"));
        assert!(Place::of(&root, &root.join("target/bundle")).is_ok());
        assert!(out.join("run.sh").exists() && sources.join("run.sh").exists());
        fs::remove_dir_all(root.parent().unwrap()).unwrap();
    }

    #[test]
    fn a_bundle_stays_until_the_next_is_whole() {
        let (root, out) = folders("place-kept");
        let out = out.join("bundle");
        let fill = |text: &str| {
            let place = Place::of(&root, &out).unwrap();
            fs::write(place.begin().unwrap().join("run.sh"), text).unwrap();
            place
        };
        fill("first").end().unwrap();
        let read = || fs::read_to_string(out.join("run.sh")).unwrap();
        fill("broken off");
        assert_eq!(read(), "first");
        fill("second").end().unwrap();
        assert_eq!(read(), "second");
        let beside: Vec<_> = fs::read_dir(out.parent().unwrap()).unwrap().flatten().collect();
        assert_eq!(beside.len(), 1, "{beside:?}");
        fs::remove_dir_all(root.parent().unwrap()).unwrap();
    }
}
