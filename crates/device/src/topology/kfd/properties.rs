//! Files of lines `name value`.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::unreadable;
use crate::error::DeviceError;

/// A file's values by name, each with its line.
pub(super) struct Properties {
    path: PathBuf,
    values: BTreeMap<String, (u64, usize)>,
}

impl Properties {
    /// Reads a file; `None` if this process may not read it, or if it is empty, which is how the
    /// kernel shows the devices of others to a container.
    pub(super) fn read(path: PathBuf) -> Result<Option<Properties>, DeviceError> {
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(None),
            Err(error) => return Err(unreadable(&path, &error)),
        };
        if text.trim().is_empty() {
            return Ok(None);
        }
        let mut values = BTreeMap::new();
        for (at, line) in (1..).zip(text.lines()) {
            let (name, value) = line
                .split_once(' ')
                .and_then(|(name, value)| Some((name, value.trim().parse().ok()?)))
                .filter(|(name, _)| !name.is_empty())
                .ok_or_else(|| wrong(&path, at, &format!("`{line}` is no name and number")))?;
            values.insert(name.to_owned(), (value, at));
        }
        Ok(Some(Properties { path, values }))
    }

    /// A value that must be there.
    pub(super) fn number<T: TryFrom<u64>>(&self, name: &str) -> Result<T, DeviceError> {
        self.optional(name)?.ok_or_else(|| {
            DeviceError::Invalid(format!("{}: there is no `{name}`", self.path.display()))
        })
    }

    /// A value that older kernels lack.
    pub(super) fn optional<T: TryFrom<u64>>(&self, name: &str) -> Result<Option<T>, DeviceError> {
        let Some((value, at)) = self.values.get(name).copied() else { return Ok(None) };
        let Ok(number) = T::try_from(value) else {
            return Err(wrong(&self.path, at, &format!("{value} is too large for `{name}`")));
        };
        Ok(Some(number))
    }

    /// An error about the line of a value.
    pub(super) fn reject(&self, name: &str, why: &str) -> DeviceError {
        wrong(&self.path, self.values.get(name).map_or(0, |(_, at)| *at), why)
    }
}

fn wrong(path: &Path, at: usize, why: &str) -> DeviceError {
    DeviceError::Invalid(format!("{}:{at}: {why}", path.display()))
}
