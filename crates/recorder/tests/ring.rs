//! What is written into a ring is what is read from it, by whoever, and however it ends.

use std::panic::Location;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossover_core::call::{CallSig, Dtype, Mode, Op, ReduceOp, Split};
use crossover_core::contract::Contract;
use crossover_core::record::{Entry, Event};
use crossover_recorder::{
    About, BYTES, Damage, Image, Life, Phase, Process, Reader, Ring, What, in_folder, of_job,
    on_node, sweep,
};
use tempfile::TempDir;

fn about(job: &str, rank: u32) -> About {
    About {
        job: job.to_owned(),
        attempt: 0,
        tag: "tp".to_owned(),
        group: 0xABCD,
        rank,
        world: 2,
        members: vec!["h:1".to_owned(), "h:2".to_owned()],
        nodes: vec!["n".to_owned(), "n".to_owned()],
        process: Process::here(),
        device: "host".to_owned(),
        policy: "p".to_owned(),
        backends: "b".to_owned(),
        version: "0".to_owned(),
        targets: vec!["copy".to_owned(), "host/one_shot".to_owned()],
    }
}

fn call(op: Op, count: usize) -> CallSig<'static> {
    CallSig {
        op,
        dtype: Dtype::Bf16,
        reduce_op: ReduceOp::Max,
        count,
        mode: Mode::Eager,
        root: 0,
        split: Split::Even,
        contract: Contract::DEFAULT,
    }
}

#[track_caller]
fn write(ring: &Ring, seq: u64, event: Event<'_>) {
    ring.write(&Entry { event, seq, target: 1, site: Location::caller() });
    ring.finish();
}

fn ring(folder: &Path, job: &str) -> Ring {
    let (ring, why) = Ring::make(Some(folder), about(job, 0)).expect("memory");
    assert_eq!(why, None);
    ring
}

fn image(ring: &Ring) -> Image {
    Reader::open(ring.path()).expect("a ring").image().expect("it can be read")
}

#[test]
fn what_is_written_is_read() {
    let folder = TempDir::new().expect("a folder");
    let ring = ring(folder.path(), "j");
    let before = now();
    write(&ring, 1, Event::Call(&call(Op::AllReduce, 77)));
    let first_line = line!() - 1;
    write(&ring, 1, Event::State { step: 6, digest: u64::MAX });
    ring.name_site("L31.o_proj");
    write(&ring, 2, Event::Call(&CallSig { root: 1, mode: Mode::Graph, ..call(Op::Broadcast, 5) }));
    ring.name_site("");
    write(&ring, 3, Event::Replay { graph: 64 });
    ring.write(&Entry { event: Event::Close, seq: 3, target: 0, site: Location::caller() });
    ring.enter(Phase::Closing);
    ring.beat();

    let image = image(&ring);
    assert_eq!(image.about, about("j", 0));
    assert_eq!(image.life, Life::Running);
    let progress = &image.progress;
    assert_eq!((progress.issued, progress.finished, progress.step), (5, 4, 6));
    assert_eq!((progress.phase, progress.end.as_deref()), (Phase::Closing, None));
    let records: Vec<_> = image.records.values().collect();
    assert_eq!(records.iter().map(|r| r.number).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert_eq!(records.iter().map(|r| r.seq).collect::<Vec<_>>(), [1, 1, 2, 3, 3]);
    let whats = [
        What::Call(Op::AllReduce),
        What::State,
        What::Call(Op::Broadcast),
        What::Replay,
        What::Close,
    ];
    assert_eq!(records.iter().map(|r| r.what).collect::<Vec<_>>(), whats);
    assert_eq!(records.iter().map(|r| r.count).collect::<Vec<_>>(), [77, u64::MAX, 5, 64, 0]);
    assert_eq!(records.iter().map(|r| r.step).collect::<Vec<_>>(), [0, 6, 6, 6, 6]);
    let first = records[0];
    assert_eq!((first.dtype, first.reduce_op, first.bytes()), (Dtype::Bf16, ReduceOp::Max, 154));
    assert_eq!(first.target, "host/one_shot");
    assert!(first.site.ends_with(&format!("tests/ring.rs:{first_line}")), "{}", first.site);
    assert_eq!(
        (records[2].site.as_str(), records[2].root, records[2].mode),
        ("L31.o_proj", 1, Mode::Graph)
    );
    assert!(records[3].site.contains("ring.rs"), "{}", records[3].site);
    assert!(records.iter().all(|r| (before..=now()).contains(&(r.at / 1_000_000))), "{records:?}");
}

#[test]
fn equal_histories_have_equal_chains_and_others_have_not() {
    let folder = TempDir::new().expect("a folder");
    let chains = |change: &dyn Fn(u64) -> CallSig<'static>| {
        let folder = TempDir::new_in(folder.path()).expect("a folder");
        let ring = ring(folder.path(), "j");
        for seq in 1..=20 {
            write(&ring, seq, Event::Call(&change(seq)));
        }
        image(&ring).records.values().map(|r| r.chain).collect::<Vec<_>>()
    };
    let same = chains(&|_| call(Op::AllReduce, 9));
    assert_eq!(same, chains(&|_| call(Op::AllReduce, 9)));
    // The reduce op means nothing to an op that copies.
    let copies = chains(&|_| call(Op::AllGather, 9));
    assert_eq!(copies, chains(&|_| CallSig { reduce_op: ReduceOp::Sum, ..call(Op::AllGather, 9) }));
    let base = call(Op::AllReduce, 9);
    let others = [
        CallSig { count: 10, ..base },
        CallSig { dtype: Dtype::F16, ..base },
        CallSig { reduce_op: ReduceOp::Sum, ..base },
        CallSig { mode: Mode::Graph, ..base },
        CallSig { root: 1, ..base },
        CallSig { op: Op::ReduceScatter, ..base },
        CallSig { split: Split::PerRank(&[4, 5]), ..base },
    ];
    for other in others {
        let odd = chains(&|seq| if seq == 7 { other } else { base });
        let equal = odd.iter().zip(&same).take_while(|(a, b)| a == b).count();
        assert_eq!(equal, 6, "{other:?}");
        assert!(odd[6..].iter().zip(&same[6..]).all(|(a, b)| a != b), "{other:?}");
    }
}

#[test]
fn the_last_records_are_kept() {
    let folder = TempDir::new().expect("a folder");
    let ring = ring(folder.path(), "j");
    for seq in 1..=10_000 {
        write(&ring, seq, Event::Call(&call(Op::AllGather, seq as usize)));
    }
    let image = image(&ring);
    let numbers: Vec<u64> = image.records.keys().copied().collect();
    assert_eq!(numbers, (5905..=10_000).collect::<Vec<_>>());
    assert!(image.records.values().all(|r| r.count == r.number));
}

#[test]
fn more_sites_than_there_is_room_for_are_elsewhere() {
    let folder = TempDir::new().expect("a folder");
    let ring = ring(folder.path(), "j");
    for nth in 0..400 {
        ring.name_site(&format!("site {nth}"));
        write(&ring, nth + 1, Event::Call(&call(Op::AllReduce, 1)));
    }
    ring.name_site(&format!("{}é", "x".repeat(300)));
    write(&ring, 401, Event::Call(&call(Op::AllReduce, 1)));
    let image = image(&ring);
    assert!((1..=256).all(|n| image.records[&n].site == format!("site {}", n - 1)));
    assert!((257..=400).all(|n| !image.records[&n].site.starts_with("site 2")), "elsewhere");
}

#[test]
fn a_reader_never_sees_a_torn_record() {
    let folder = TempDir::new().expect("a folder");
    let ring = ring(folder.path(), "j");
    // Until enough was seen, however seldom the machine lets the reader run.
    let is_enough = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for seq in 1.. {
                if is_enough.load(Ordering::Acquire) {
                    break;
                }
                let call = CallSig { root: (seq % 16) as u32, ..call(Op::Broadcast, seq as usize) };
                ring.write(&Entry {
                    event: Event::Call(&call),
                    seq,
                    target: 1,
                    site: Location::caller(),
                });
                // So that the reader is not always overtaken by a whole ring.
                if seq % 16384 == 0 {
                    std::thread::sleep(Duration::from_micros(100));
                }
            }
        });
        let reader = Reader::open(ring.path()).expect("a ring");
        let (start, mut seen, mut reads, mut torn) = (Instant::now(), 0, 0, Vec::new());
        while (seen < 100_000 || reads < 100) && start.elapsed() < Duration::from_secs(30) {
            let image = reader.image().expect("it can be read");
            for (number, record) in &image.records {
                let expected = (*number, *number, (*number % 16) as u32);
                torn.extend(
                    ((record.count, record.seq, record.root) != expected).then(|| record.clone()),
                );
                seen += 1;
            }
            reads += 1;
        }
        is_enough.store(true, Ordering::Release);
        assert!(torn.is_empty(), "{torn:?}");
        assert!(seen > 1000, "{seen} records in {reads} reads");
    });
}

#[test]
fn what_is_no_ring_is_told() {
    let folder = TempDir::new().expect("a folder");
    let ring = ring(folder.path(), "j");
    write(&ring, 1, Event::Call(&call(Op::AllReduce, 1)));
    let bytes = std::fs::read(ring.path()).expect("a file");
    assert_eq!(bytes.len(), BYTES);
    let parse = |bytes: &[u8]| Image::parse(bytes, "x.ring").expect_err("no ring");
    assert!(matches!(parse(&bytes[..BYTES - 1]), Damage::Cut { .. }));
    assert!(matches!(parse(&[]), Damage::Cut { .. }));
    assert!(matches!(parse(&vec![0; BYTES]), Damage::NoRing { .. }));
    let mut other = bytes.clone();
    other[8] = 9;
    let why = parse(&other).to_string();
    assert!(why.contains("x.ring") && why.contains("layout 9"), "{why}");
    let mut other = bytes.clone();
    other[12..16].fill(0xFF);
    other[4096..4200].fill(0xFF);
    assert!(matches!(parse(&other), Damage::About { .. }), "{}", parse(&other));
    assert_eq!(Image::parse(&bytes, "x.ring").expect("a ring").records.len(), 1);
}

#[test]
fn where_the_folder_has_no_room_memory_without_a_name_serves() {
    let job = format!("nameless-{}", std::process::id());
    let nowhere = Path::new("/nowhere/at/all");
    let (ring, why) = Ring::make(Some(nowhere), about(&job, 0)).expect("memory");
    let why = why.expect("the folder is not there");
    assert!(why.contains("/nowhere/at/all"), "{why}");
    write(&ring, 1, Event::Call(&call(Op::AllReduce, 1)));
    assert!(ring.path().starts_with("/proc"), "{}", ring.path().display());
    assert_eq!(image(&ring).records.len(), 1);
    let found = of_job(&job, nowhere);
    assert_eq!(found.images.len(), 1, "{:?}", found.notes);
    assert!(on_node(nowhere).images.iter().any(|image| image.about.job == job));
}

#[test]
fn a_ring_in_a_folder_of_its_own_is_found_as_long_as_its_owner_lives() {
    let (folder, other) = (TempDir::new().expect("a folder"), TempDir::new().expect("a folder"));
    let job = format!("elsewhere-{}", std::process::id());
    let ring = ring(folder.path(), &job);
    write(&ring, 1, Event::Call(&call(Op::AllReduce, 1)));
    // By its name, so that it can be told of; and once, whoever has it open.
    let _peer = Reader::open(ring.path()).expect("a ring");
    for looked in [folder.path(), other.path()] {
        let found = of_job(&job, looked);
        let sources: Vec<&str> = found.images.iter().map(|image| image.source.as_str()).collect();
        assert_eq!(sources, [ring.path().to_str().expect("text")], "{:?}", found.notes);
    }
    // Another of that name is another job.
    let namesake = Ring::make(Some(other.path()), about(&job, 0)).expect("memory").0;
    assert_eq!(of_job(&job, other.path()).images.len(), 1);
    drop(namesake);
    sweep(&job, other.path());
    std::fs::remove_file(ring.path()).expect("it is there");
    assert!(of_job(&job, other.path()).images.is_empty(), "it has said goodbye");
}

#[test]
fn what_may_not_be_read_is_named_with_its_job_and_user() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let folder = TempDir::new().expect("a folder");
    let ring = ring(folder.path(), "a job");
    let none = std::fs::Permissions::from_mode(0o000);
    std::fs::set_permissions(ring.path(), none).expect("it is ours");
    let user = std::fs::metadata(ring.path()).expect("it is there").uid();
    if std::fs::File::open(ring.path()).is_ok() {
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "skipped: root reads what nobody may");
        return;
    }
    let [refused] = &in_folder(folder.path()).expect("a folder").refused[..] else {
        panic!("one ring");
    };
    assert!(refused.is_of("a job") && !refused.is_of("job"));
    assert_eq!((refused.path.as_path(), refused.user), (ring.path(), user));
}

/// A process that has made a ring, and waits: `ring_of_a_child` in another process.
fn child(folder: &Path, job: &str) -> std::process::Child {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "ring_of_a_child", "--nocapture", "--include-ignored"])
        .env("RING_FOLDER", folder)
        .env("RING_JOB", job)
        .stdout(Stdio::null())
        .spawn()
        .expect("a process");
    let begun = std::time::Instant::now();
    while in_folder(folder).expect("a folder").images.iter().all(|i| i.about.job != job) {
        assert!(begun.elapsed() < Duration::from_secs(30), "the child makes no ring");
        assert_eq!(child.try_wait().expect("a child"), None);
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

#[test]
#[ignore = "what the other tests run in a process of its own"]
fn ring_of_a_child() {
    let variable = |name| std::env::var(name).expect("set by the test");
    let ring = ring(Path::new(&variable("RING_FOLDER")), &variable("RING_JOB"));
    write(&ring, 1, Event::Call(&call(Op::AllReduce, 1)));
    std::thread::sleep(Duration::from_secs(120));
}

#[test]
fn a_process_that_is_stopped_or_killed_is_seen_and_its_ring_stays() {
    let folder = TempDir::new().expect("a folder");
    let mut child = child(folder.path(), "j");
    let pid = rustix::process::Pid::from_child(&child);
    let signal = |signal| rustix::process::kill_process(pid, signal).expect("it is there");
    let life = || in_folder(folder.path()).expect("a folder").images[0].life;
    let until = |expected: Life| {
        let begun = std::time::Instant::now();
        while life() != expected {
            assert!(begun.elapsed() < Duration::from_secs(30), "{:?}, not {expected:?}", life());
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    until(Life::Running);
    signal(rustix::process::Signal::STOP);
    until(Life::Stopped);
    signal(rustix::process::Signal::CONT);
    until(Life::Running);
    signal(rustix::process::Signal::KILL);
    child.wait().expect("it ends");
    until(Life::Gone);
    let found = in_folder(folder.path()).expect("a folder");
    assert_eq!(found.images[0].records.len(), 1);

    // Another job's is left alone, and so is one whose owner lives.
    let living = ring(folder.path(), "k");
    sweep("j", folder.path());
    sweep("k", folder.path());
    let left = in_folder(folder.path()).expect("a folder").images;
    assert_eq!(left.iter().map(|i| i.about.job.as_str()).collect::<Vec<_>>(), ["k"]);
    drop(living);
}

#[test]
fn other_files_are_no_business_of_ours() {
    let folder = TempDir::new().expect("a folder");
    std::fs::write(folder.path().join("crossover.j.1.0"), b"not a ring").expect("written");
    std::fs::write(folder.path().join("notes.txt"), b"hello").expect("written");
    std::os::unix::fs::symlink("/etc/passwd", folder.path().join("crossover.j.2.0"))
        .expect("a link");
    let found = in_folder(folder.path()).expect("a folder");
    assert_eq!((found.images.len(), found.notes.len()), (0, 2), "{:?}", found.notes);
    sweep("j", folder.path());
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 3);
}

/// Milliseconds since 1970, by the standard library.
fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.expect("after 1970").as_millis() as u64
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(200))]

    /// A ring comes from whoever wrote it, and died while it did: whatever its bytes are, they are read or
    /// refused, and what was read can be judged and shown.
    #[test]
    fn any_bytes_are_survived(
        changes in proptest::collection::vec((0..BYTES, proptest::prelude::any::<u8>()), 0..60),
        words in proptest::collection::vec((0..BYTES / 8, proptest::prelude::any::<u64>()), 0..20),
        near in proptest::collection::vec((0usize..600, proptest::prelude::any::<u8>()), 0..20),
    ) {
        let folder = TempDir::new().expect("a folder");
        let ring = ring(folder.path(), "j");
        for seq in 1..=40 {
            write(&ring, seq, Event::Call(&call(Op::AllReduce, seq as usize)));
        }
        let mut bytes = std::fs::read(ring.path()).expect("a file");
        let slots = BYTES - 4096 * 64;
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        for (at, word) in words {
            bytes[at * 8..at * 8 + 8].copy_from_slice(&word.to_ne_bytes());
        }
        // Most of a ring is empty: some changes are where records are, and some in the page before.
        for (nth, (at, byte)) in near.into_iter().enumerate() {
            bytes[if nth % 2 == 0 { slots + at * 4 } else { at * 4 }] = byte;
        }
        if let Ok(image) = Image::parse(&bytes, "x.ring") {
            let other = Image { about: about("j", 1), ..image.clone() };
            let images = [image, other];
            for diagnosis in crossover_recorder::analyse(&images) {
                crossover_recorder::text(&diagnosis);
                crossover_recorder::timeline(&images, &diagnosis);
                crossover_recorder::chrome_trace(&images, &diagnosis);
            }
            crossover_recorder::flight_recorder(&images).expect("memory");
        }
    }
}
