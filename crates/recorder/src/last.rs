//! When all ranks of a job have ended: who has started them is the last that can say why, if they could
//! not, and takes away what they have left.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::analyse::analyse;
use crate::dump;
use crate::find;
use crate::group::Dumps;
use crate::image::{Image, Life};
use crate::reader::Reader;

/// Reads what ranks of `job` have left in the folder of rings, writes a dump of each group that nobody
/// has written one of, and removes the rings. Returns the dumps, with the verdict on each. A group whose
/// ranks all said goodbye, or had the time to tell, has left nothing.
pub fn after(job: &str, folder: &Path, dumps: &Dumps) -> Vec<(PathBuf, String)> {
    let mut groups: BTreeMap<u64, Vec<Reader>> = BTreeMap::new();
    for reader in find::readers(job, folder) {
        if reader.life() == Life::Gone {
            groups.entry(reader.about().group).or_default().push(reader);
        }
    }
    let told = groups.values().filter_map(|readers| keep(readers, dumps)).collect();
    find::sweep(job, folder);
    told
}

fn keep(readers: &[Reader], dumps: &Dumps) -> Option<(PathBuf, String)> {
    let images: Vec<Image> = readers.iter().filter_map(|reader| reader.image().ok()).collect();
    let diagnosis = analyse(&images).pop()?;
    let verdict = diagnosis.verdicts.first()?.sentence.clone();
    let rings: Vec<&Reader> = readers.iter().collect();
    let cause = "the job has ended, and no rank was left to tell why";
    let folder = dump::write(dumps, &rings, &images, &diagnosis, cause).ok()??;
    Some((folder, verdict))
}
