//! What is remembered, through every accident.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crossover_device::verdict::Verdict;
use crossover_device::verdict::cache::{Cache, Key};

use crate::{devices, pair, platform};

fn key(count: usize) -> Key {
    Key::new(&devices(count), "580.65.06", &platform())
}

/// A folder with a memory of two devices, and its file.
fn remembered() -> (tempfile::TempDir, Cache, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path().join("made/when/needed"));
    let pairs = vec![
        (pair(0, 1), Verdict::Proven),
        (pair(1, 0), Verdict::Broken("writes are lost".to_owned())),
    ];
    cache.store(&key(2), pairs).unwrap();
    let files = fs::read_dir(folder.path().join("made/when/needed")).unwrap();
    let files: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    (folder, cache, files[0].clone())
}

#[test]
fn what_is_stored_is_loaded() {
    let (_folder, cache, _) = remembered();
    let pairs = cache.load(&key(2)).unwrap();
    assert_eq!(pairs[0], (pair(0, 1), Verdict::Proven));
    assert_eq!(pairs[1].1, Verdict::Broken("writes are lost".to_owned()));
    assert_eq!(cache.load(&key(3)), Ok(vec![]));
}

#[test]
fn a_key_is_the_devices_and_not_their_order() {
    let (_folder, cache, _) = remembered();
    let turned: Vec<String> = devices(2).into_iter().rev().cycle().take(5).collect();
    let same = Key::new(&turned, "580.65.06", &platform());
    assert_eq!((&same, cache.load(&same).unwrap().len()), (&key(2), 2));
    let other = Key::new(&turned, "580.65.07", &platform());
    assert_eq!(cache.load(&other), Ok(vec![]));
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
    cache.store(&key(2), vec![(pair(0, 1), Verdict::Proven)]).unwrap();
    assert_eq!(cache.load(&key(2)).unwrap().len(), 1);
}

#[test]
fn a_file_of_something_else_is_passed_over() {
    let (_folder, cache, file) = remembered();
    let own = fs::read_to_string(&file).unwrap();
    for (text, says) in [
        (own.replace("580.65.06", "570.1"), "about other devices"),
        (own.replace("\"format\": 1", "\"format\": 2"), "about other devices"),
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
    assert!(cache.store(&key(2), vec![]).unwrap_err().contains("is not written"));
    assert!(cache.turn(&key(2), Instant::now()).unwrap_err().contains("is not locked"));
    assert!(cache.load(&key(2)).is_err());
}

#[test]
fn readers_among_writers_see_whole_files() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path());
    let texts: Vec<String> = (0..4).map(|writer| format!("{writer}").repeat(5000)).collect();
    cache.store(&key(2), vec![(pair(0, 1), Verdict::Broken(texts[0].clone()))]).unwrap();
    std::thread::scope(|scope| {
        for text in &texts {
            scope.spawn(|| {
                for _ in 0..25 {
                    let pairs = vec![(pair(0, 1), Verdict::Broken(text.clone()))];
                    cache.store(&key(2), pairs).unwrap();
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let pairs = cache.load(&key(2)).unwrap();
                    let known = texts.iter().map(|text| Verdict::Broken(text.clone()));
                    assert!(known.into_iter().any(|verdict| verdict == pairs[0].1));
                }
            });
        }
    });
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside");
}

#[test]
fn a_turn_ends_when_its_holder_lets_go() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path());
    let turn = cache.turn(&key(2), Instant::now()).unwrap();
    let why = cache.turn(&key(2), Instant::now() + Duration::from_millis(20)).unwrap_err();
    assert!(why.contains("another process tries"), "{why}");
    // Other devices are other turns.
    cache.turn(&key(3), Instant::now()).unwrap();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| cache.turn(&key(2), Instant::now() + Duration::from_secs(20)));
        std::thread::sleep(Duration::from_millis(20));
        drop(turn);
        waits.join().unwrap().unwrap();
    });
}
