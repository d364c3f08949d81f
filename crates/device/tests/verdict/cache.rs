//! What is remembered, through every accident.

use std::fs;
use std::path::PathBuf;

use crossover_device::verdict::cache::{Cache, Key};
use crossover_device::verdict::platform::Platform;
use crossover_device::verdict::{Pair, Verdict, Verdicts};

use crate::{devices, pair, platform};

fn key(count: usize) -> Key {
    Key::new(&devices(count), "580.65.06", &platform()).unwrap()
}

fn only(verdict: Verdict) -> Verdicts {
    Verdicts { pairs: vec![(pair(0, 1), verdict)] }
}

/// The pairs that are remembered.
fn pairs(cache: &Cache, count: usize) -> Vec<(Pair, Verdict)> {
    cache.load(&key(count)).unwrap().map(|found| found.verdicts.pairs).unwrap_or_default()
}

/// A folder with a memory of two devices, and its file.
fn remembered() -> (tempfile::TempDir, Cache, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path().join("made/when/needed"));
    let pairs = vec![
        (pair(0, 1), Verdict::Proven),
        (pair(1, 0), Verdict::Broken("writes are lost".to_owned())),
    ];
    cache.store(&key(2), &Verdicts { pairs }).unwrap();
    let files = fs::read_dir(folder.path().join("made/when/needed")).unwrap();
    let files: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    (folder, cache, files[0].clone())
}

#[test]
fn what_is_stored_is_loaded() {
    let (_folder, cache, _) = remembered();
    let found = cache.load(&key(2)).unwrap().unwrap();
    assert_eq!(found.verdicts.pairs[0], (pair(0, 1), Verdict::Proven));
    assert_eq!(found.verdicts.pairs[1].1, Verdict::Broken("writes are lost".to_owned()));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    assert!(now.as_secs() - found.found < 60, "{}", found.found);
    assert_eq!(found.day().len(), "2026-11-30".len());
    assert_eq!(cache.load(&key(3)), Ok(None));
}

#[test]
fn a_key_is_the_devices_and_not_their_order() {
    let (_folder, cache, _) = remembered();
    let turned: Vec<String> = devices(2).into_iter().rev().cycle().take(5).collect();
    let same = Key::new(&turned, "580.65.06", &platform());
    assert_eq!((same, pairs(&cache, 2).len()), (Some(key(2)), 2));
}

#[test]
fn another_start_iommu_or_driver_is_another_key() {
    let (_folder, cache, _) = remembered();
    let changes: [fn(&mut Platform); 2] =
        [|platform| platform.boot.push('x'), |platform| platform.iommu = "DMA-FQ".to_owned()];
    for change in changes {
        let mut other = platform();
        change(&mut other);
        assert!(!key(2).holds("580.65.06", &other));
        let other = Key::new(&devices(2), "580.65.06", &other).unwrap();
        assert_eq!(cache.load(&other), Ok(None));
    }
    assert!(key(2).holds("580.65.06", &platform()) && !key(2).holds("580.65.07", &platform()));
    let newer = Key::new(&devices(2), "580.65.07", &platform()).unwrap();
    assert_eq!(cache.load(&newer), Ok(None));
    // Without an identity of the start, yesterday's memory would look like today's.
    let nameless = Platform { boot: String::new(), ..platform() };
    assert_eq!(Key::new(&devices(2), "580.65.06", &nameless), None);
}

#[test]
fn what_does_not_last_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path().join("cache"));
    let passing = [Verdict::Inconclusive("late".to_owned()), Verdict::Refused("no".to_owned())];
    for verdict in &passing {
        cache.store(&key(2), &only(verdict.clone())).unwrap();
    }
    assert!(!folder.path().join("cache").exists());
    let [late, no] = passing;
    let all = vec![(pair(0, 1), Verdict::Proven), (pair(1, 0), late), (pair(0, 2), no)];
    cache.store(&key(3), &Verdicts { pairs: all }).unwrap();
    assert_eq!(pairs(&cache, 3), [(pair(0, 1), Verdict::Proven)]);
}

#[test]
fn all_files_are_listed() {
    let (_folder, cache, file) = remembered();
    cache.store(&key(3), &only(Verdict::Proven)).unwrap();
    let broken = file.with_file_name("p2p-0.json");
    fs::write(&broken, "{").unwrap();
    fs::write(file.with_file_name("other.json"), "{}").unwrap();
    let all = cache.all();
    assert_eq!(all.len(), 3);
    for (path, found) in all {
        match found {
            Ok(found) => assert_eq!(cache.path(&found.key), path),
            Err(why) => assert!(path == broken && why.contains("is not used"), "{why}"),
        }
    }
    assert_eq!(Cache::new("/no/such/folder").all(), []);
}

#[test]
fn a_file_that_was_cut_short_is_passed_over_and_replaced() {
    let (_folder, cache, file) = remembered();
    let whole = fs::read(&file).unwrap();
    for length in 0..whole.len() {
        fs::write(&file, &whole[..length]).unwrap();
        let why = cache.load(&key(2)).unwrap_err();
        assert!(why.contains("is not used"), "{why}");
    }
    cache.store(&key(2), &only(Verdict::Proven)).unwrap();
    assert_eq!(pairs(&cache, 2).len(), 1);
}

#[test]
fn a_file_of_something_else_is_passed_over() {
    let (_folder, cache, file) = remembered();
    let own = fs::read_to_string(&file).unwrap();
    for (text, says) in [
        (own.replace("580.65.06", "570.1"), "about other devices"),
        (own.replace("\"format\": 1", "\"format\": 2"), "another version"),
        (own.replace("\"pairs\"", "\"peers\""), "unknown field `peers`"),
        (own.replace("\"proven\"", "{\"refused\": \"no\"}"), "never remembered"),
        (own.replace("\"proven\"", "{\"inconclusive\": \"?\"}"), "never remembered"),
        (own.replace("\"user\": \"GPU-0\"", "\"user\": \"GPU-9\""), "never remembered"),
        ("{}".to_owned(), "missing field"),
        ("\0\u{1}".to_owned(), "is not used"),
    ] {
        assert_ne!(text, own, "{says}");
        fs::write(&file, text).unwrap();
        let why = cache.load(&key(2)).unwrap_err();
        assert!(why.contains(says), "{why}");
    }
    fs::write(&file, [0xff, 0xfe]).unwrap();
    assert!(cache.load(&key(2)).unwrap_err().contains("UTF-8"));
}

#[test]
fn a_folder_that_cannot_be_written_forgets_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let cache = Cache::new(&file);
    let why = cache.store(&key(2), &only(Verdict::Proven)).unwrap_err();
    assert!(why.contains("is not written"), "{why}");
    assert!(cache.load(&key(2)).is_err());
}

#[test]
fn readers_among_writers_see_whole_files() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path());
    let texts: Vec<String> = (0..4).map(|writer| format!("{writer}").repeat(5000)).collect();
    cache.store(&key(2), &only(Verdict::Broken(texts[0].clone()))).unwrap();
    std::thread::scope(|scope| {
        for text in &texts {
            scope.spawn(|| {
                for _ in 0..25 {
                    cache.store(&key(2), &only(Verdict::Broken(text.clone()))).unwrap();
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let pairs = pairs(&cache, 2);
                    let known = texts.iter().map(|text| Verdict::Broken(text.clone()));
                    assert!(known.into_iter().any(|verdict| verdict == pairs[0].1));
                }
            });
        }
    });
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside");
}
