//! A ring that another rank writes, or has written. It is read by system calls and never mapped: a file
//! that somebody cuts must not take its reader down.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::about::About;
use crate::image::{Image, Life, Phase};
use crate::layout::{BYTES, Memory, ProgressLine, SLOTS, Slot};
use crate::life;
use crate::parse::{Damage, phase};

/// Another rank's ring.
pub struct Reader {
    file: OwnedFd,
    source: String,
    about: About,
}

/// A ring could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file cannot be opened or read.
    #[error("{0}: {1}")]
    File(String, rustix::io::Errno),
    /// It is no ring.
    #[error(transparent)]
    Damaged(#[from] Damage),
}

/// How far a rank is, in four words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Far {
    pub(crate) issued: u64,
    pub(crate) finished: u64,
    pub(crate) phase: Phase,
}

impl Reader {
    /// Opens a ring.
    ///
    /// # Errors
    ///
    /// It cannot be opened, or is none.
    pub fn open(path: &Path) -> Result<Reader, ReadError> {
        let source = path.display().to_string();
        let access = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = rustix::fs::open(path, access, Mode::empty())
            .map_err(|e| ReadError::File(source.clone(), e))?;
        Reader::of(file, source)
    }

    pub(crate) fn of(file: OwnedFd, source: String) -> Result<Reader, ReadError> {
        let bytes = whole(&file).map_err(|e| ReadError::File(source.clone(), e))?;
        let about = Image::parse(&bytes, &source)?.about;
        Ok(Reader { file, source, about })
    }

    /// Whose it is.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Where it was opened.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// All of it, as it is now.
    ///
    /// # Errors
    ///
    /// The file was cut, or cannot be read any more.
    pub fn image(&self) -> Result<Image, ReadError> {
        let read = || whole(&self.file).map_err(|e| ReadError::File(self.source.clone(), e));
        let (before, after) = (read()?, read()?);
        let mut image = Image::parse_twice(&before, &after, &self.source)?;
        image.life = self.life();
        Ok(image)
    }

    /// Is the owner there?
    pub fn life(&self) -> Life {
        life::of(&self.file, &self.about.process)
    }

    /// Its bytes, to be kept.
    pub(crate) fn bytes(&self) -> Option<Vec<u8>> {
        whole(&self.file).ok()
    }

    pub(crate) fn far(&self) -> Option<Far> {
        let mut line = [0; size_of::<ProgressLine>()];
        let at = std::mem::offset_of!(Memory, progress) as u64;
        let read = rustix::io::pread(&self.file, &mut line[..], at).ok()?;
        (read == line.len()).then(|| far(&line))
    }

    /// The chain of record `number`, if it is still kept.
    pub(crate) fn chain(&self, number: u64) -> Option<u64> {
        let mut slot = [0; size_of::<Slot>()];
        let nth = number as usize % SLOTS;
        let at = std::mem::offset_of!(Memory, slots) + nth * size_of::<Slot>();
        let read = rustix::io::pread(&self.file, &mut slot[..], at as u64).ok()?;
        let word = |at: usize| slot[at..at + 8].try_into().map_or(0, u64::from_ne_bytes);
        let is_whole = read == slot.len() && word(std::mem::offset_of!(Slot, tag)) == number;
        is_whole.then(|| word(std::mem::offset_of!(Slot, chain)))
    }
}

fn far(line: &[u8; size_of::<ProgressLine>()]) -> Far {
    let word = |at: usize| line[at..at + 8].try_into().map_or(0, u64::from_ne_bytes);
    Far {
        issued: word(std::mem::offset_of!(ProgressLine, issued)),
        finished: word(std::mem::offset_of!(ProgressLine, finished)),
        phase: phase(word(std::mem::offset_of!(ProgressLine, phase))),
    }
}

/// What the file holds, up to a ring and a byte.
fn whole(file: &OwnedFd) -> Result<Vec<u8>, rustix::io::Errno> {
    let mut bytes = vec![0; BYTES + 1];
    let mut read = 0;
    while read < bytes.len() {
        match rustix::io::pread(file, &mut bytes[read..], read as u64)? {
            0 => break,
            n => read += n,
        }
    }
    bytes.truncate(read);
    Ok(bytes)
}
