//! When all ranks of a job have ended: who has started them is the last that can say why, if they could
//! not, and takes away what they have left.

use std::collections::BTreeMap;
use std::path::Path;

use crate::analyse::analyse;
use crate::dump::{self, Dumped};
use crate::find;
use crate::group::Dumps;
use crate::image::{Image, Life};
use crate::reader::Reader;

/// Reads what ranks of `job` have left in the folder of rings, writes a dump of each group that nobody
/// has written one of, and removes the rings. Returns for each group, in a sentence, what was the matter
/// and where the dump is; of a dump of a rank's, which has told what was the matter, only where it is. A
/// group whose ranks all said goodbye, or had the time to tell, has left nothing.
///
/// `ended` are processes that the launcher ended itself, and how they were then: that they are gone is no
/// matter, and what they waited for is that of whoever failed before.
pub fn after(job: &str, folder: &Path, dumps: &Dumps, ended: &BTreeMap<u32, Life>) -> Vec<String> {
    let mut groups: BTreeMap<u64, Vec<Reader>> = BTreeMap::new();
    for reader in find::readers(job, folder) {
        if reader.life() == Life::Gone {
            groups.entry(reader.about().group).or_default().push(reader);
        }
    }
    let told = groups.values().filter_map(|readers| keep(readers, dumps, ended)).collect();
    find::sweep(job, folder);
    told
}

fn keep(readers: &[Reader], dumps: &Dumps, ended: &BTreeMap<u32, Life>) -> Option<String> {
    let mut images: Vec<Image> = readers.iter().filter_map(|reader| reader.image().ok()).collect();
    for image in &mut images {
        image.life = ended.get(&image.about.process.pid).copied().unwrap_or(image.life);
    }
    let mut diagnosis = analyse(&images).pop()?;
    diagnosis.verdicts.retain(|verdict| !verdict.class.is_wait());
    let verdict = diagnosis.verdicts.first()?;
    let rings: Vec<&Reader> = readers.iter().collect();
    let cause = "the job has ended, and no rank was left to tell why";
    let dump = dump::write(dumps, &rings, &images, &diagnosis, cause);
    Some(match &dump {
        Ok(Some(Dumped { folder, is_others: true })) => {
            let (tag, folder) = (&verdict.tag, folder.display());
            format!(
                "group `{tag}` left a dump: `crossover diagnose {folder}` says what was the matter"
            )
        }
        dump => dump::said(&verdict.sentence, dump),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::about::About;
    use crate::life::FORKING;
    use crate::ring::Ring;

    #[test]
    fn what_ranks_could_not_tell_is_told_with_a_dump_or_without() {
        let _alone = FORKING.lock().expect("no such test panics");
        let place = tempfile::TempDir::new().expect("a folder");
        let (rings, dumps) = (place.path().join("rings"), place.path().join("dumps"));
        std::fs::create_dir(&rings).expect("a folder");
        let told = |dumps: &Dumps| {
            leave_behind(&rings);
            let told = after("j", &rings, dumps, &BTreeMap::new());
            let left = std::fs::read_dir(&rings).expect("it is there").count();
            assert_eq!((told.len(), left), (1, 0), "{told:?}");
            told[0].clone()
        };
        let verdict = "in group `tp` rank 0 (h:0), rank 1 (h:1) are gone without a goodbye";
        assert_eq!(told(&Dumps::None), verdict);
        let folder = dumps.join("crossover.j.tp.0000000000000007");
        let said = format!("{verdict}; `crossover diagnose {}` says more", folder.display());
        assert_eq!(told(&Dumps::In(dumps.clone())), said);
        assert!(folder.join("timeline.html").exists());
        // Who wrote a dump has told why.
        let again = told(&Dumps::In(dumps.clone()));
        let diagnose = format!("`crossover diagnose {}`", folder.display());
        assert_eq!(again, format!("group `tp` left a dump: {diagnose} says what was the matter"));
        let in_the_way = told(&Dumps::In(folder.join("verdict.txt")));
        assert!(in_the_way.starts_with(verdict), "{in_the_way}");
        let (file, why) = (folder.join("verdict.txt"), "no whole dump could be written: ");
        assert!(in_the_way.contains(&format!("{why}{}: ", file.display())), "{in_the_way}");
    }

    #[test]
    fn whom_the_launcher_ended_is_not_told_of_as_gone() {
        let _alone = FORKING.lock().expect("no such test panics");
        let rings = tempfile::TempDir::new().expect("a folder");
        let told = |life| {
            leave_behind(rings.path());
            let ended = BTreeMap::from([(std::process::id(), life)]);
            let told = after("j", rings.path(), &Dumps::None, &ended);
            assert_eq!(std::fs::read_dir(rings.path()).expect("it is there").count(), 0);
            told
        };
        assert_eq!(told(Life::Running), [""; 0]);
        let stopped =
            "in group `tp` rank 0 (h:0), rank 1 (h:1) are stopped, by a signal or a debugger";
        assert_eq!(told(Life::Stopped), [stopped]);
    }

    #[test]
    fn of_a_job_of_many_groups_each_has_its_dump() {
        let _alone = FORKING.lock().expect("no such test panics");
        let place = tempfile::TempDir::new().expect("a folder");
        let rings = place.path().join("rings");
        std::fs::create_dir(&rings).expect("a folder");
        let groups = 20;
        for group in 0..groups {
            let about = About { group, ..About::sample(0, &["n", "n"]) };
            drop(Ring::make(Some(&rings), about).expect("memory"));
        }
        let dumps = Dumps::Temporary(place.path().to_owned());
        let told = after("j", &rings, &dumps, &BTreeMap::new());
        assert_eq!(told.len(), groups as usize, "{told:?}");
        for group in 0..groups {
            let name = format!("crossover.j.tp.{group:016x}");
            let dump = dump::own_dumps(place.path()).join(name);
            assert!(dump.join("timeline.html").exists(), "{}", dump.display());
        }
    }

    /// Rings as of a job whose ranks have been killed.
    fn leave_behind(folder: &Path) {
        for rank in 0..2 {
            // The name stays, and nobody holds the lock any more.
            drop(Ring::make(Some(folder), About::sample(rank, &["n", "n"])).expect("memory"));
        }
    }
}
