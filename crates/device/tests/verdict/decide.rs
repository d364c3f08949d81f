//! Who is asked, in which order, and who may overrule whom.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crossover_device::verdict::cache::Cache;
use crossover_device::verdict::nccl::advice;
use crossover_device::verdict::observation::Observation;
use crossover_device::verdict::platform::Platform;
use crossover_device::verdict::{Answer, Pair, Probe, Question, Verdict, Verdicts, decide};
use proptest::prelude::*;

use crate::{devices, good, is_broken, is_inconclusive, mirrored, pair, platform};

/// Answers at once, and keeps who was tried.
struct Fake<F> {
    see: F,
    tried: Mutex<Vec<Pair>>,
}

impl<F: Fn(&Pair) -> Result<Observation, String>> Fake<F> {
    fn new(see: F) -> Self {
        Self { see, tried: Mutex::new(Vec::new()) }
    }

    fn tried(&self) -> Vec<Pair> {
        self.tried.lock().unwrap().drain(..).collect()
    }
}

impl<F: Fn(&Pair) -> Result<Observation, String> + Send + Sync> Probe for Fake<F> {
    fn observe(&self, pair: &Pair, _: Instant) -> Result<Observation, String> {
        self.tried.lock().unwrap().push(pair.clone());
        (self.see)(pair)
    }
}

fn ask(
    count: usize,
    platform: &Platform,
    driver: &dyn Fn(&Pair) -> Answer,
    probe: &dyn Probe,
    cache: Option<&Cache>,
) -> Verdicts {
    decide(&Question {
        devices: &devices(count),
        driver_version: "580.65.06",
        platform,
        driver,
        probe,
        cache,
        within: Duration::from_secs(20),
    })
}

fn yes(_: &Pair) -> Answer {
    Answer::Yes
}

fn verdict(verdicts: &Verdicts, user: usize, owner: usize) -> &Verdict {
    let found = verdicts.pairs.iter().find(|(known, _)| *known == pair(user, owner));
    &found.unwrap().1
}

#[test]
fn every_directed_pair_is_tried_and_one_that_fails_vetoes() {
    let probe =
        Fake::new(|tried: &Pair| Ok(if *tried == pair(2, 0) { mirrored() } else { good() }));
    let found = ask(3, &platform(), &yes, &probe, None);
    assert_eq!((found.pairs.len(), found.tried, probe.tried().len()), (6, 6, 6));
    assert_eq!(verdict(&found, 0, 2), &Verdict::Proven);
    assert!(is_broken(verdict(&found, 2, 0), "only the writer sees"));
    let veto = found.veto().unwrap();
    assert!(veto.starts_with("GPU-2 using memory of GPU-0 is broken: writes land"), "{veto}");
}

#[test]
fn one_device_needs_no_peer() {
    let probe = Fake::new(|_: &Pair| -> Result<Observation, String> { panic!("not asked") });
    let found = decide(&Question {
        devices: &vec!["GPU-0".to_owned(); 4],
        driver_version: "1",
        platform: &platform(),
        driver: &yes,
        probe: &probe,
        cache: None,
        within: Duration::ZERO,
    });
    assert_eq!((found.pairs.len(), found.veto()), (0, None));
}

#[test]
fn the_drivers_no_is_neither_tried_nor_overruled_by_a_memory() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path());
    let probe = Fake::new(|_: &Pair| Ok(good()));
    let found = ask(2, &platform(), &yes, &probe, Some(&cache));
    assert_eq!((found.veto(), probe.tried().len()), (None, 2));
    let no = |asked: &Pair| match *asked == pair(0, 1) {
        true => Answer::No("peer access is not supported".to_owned()),
        false => Answer::Yes,
    };
    let found = ask(2, &platform(), &no, &probe, Some(&cache));
    let refused = Verdict::Refused("peer access is not supported".to_owned());
    assert_eq!(verdict(&found, 0, 1), &refused);
    assert_eq!(verdict(&found, 1, 0), &Verdict::Proven);
    assert_eq!(probe.tried(), []);
}

#[test]
fn who_cannot_be_asked_is_not_used() {
    let probe = Fake::new(|_: &Pair| Ok(good()));
    let blind = |_: &Pair| Answer::Unknown("GPU-1 is not visible to this process".to_owned());
    let found = ask(2, &platform(), &blind, &probe, None);
    assert!(is_inconclusive(verdict(&found, 0, 1), "not visible"));
    assert_eq!((probe.tried().len(), found.veto().is_some()), (0, true));
}

#[test]
fn lasting_verdicts_are_remembered_and_others_asked_anew() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path());
    let probe = Fake::new(|tried: &Pair| match (tried.user.as_str(), tried.owner.as_str()) {
        ("GPU-0", _) => Ok(good()),
        ("GPU-1", "GPU-0") => Ok(mirrored()),
        _ => Err("out of memory".to_owned()),
    });
    let first = ask(3, &platform(), &yes, &probe, Some(&cache));
    assert_eq!(probe.tried().len(), 6);
    assert!(is_inconclusive(verdict(&first, 2, 1), "out of memory"));
    let second = ask(3, &platform(), &yes, &probe, Some(&cache));
    assert_eq!(probe.tried(), [pair(1, 2), pair(2, 0), pair(2, 1)]);
    assert_eq!((second.tried, &second.pairs), (3, &first.pairs));
}

#[test]
fn another_start_iommu_or_driver_is_asked_anew() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path());
    let probe = Fake::new(|_: &Pair| Ok(good()));
    ask(2, &platform(), &yes, &probe, Some(&cache));
    let changes: [fn(&mut Platform); 2] =
        [|platform| platform.boot.push('x'), |platform| platform.iommu = "DMA-FQ".to_owned()];
    for change in changes {
        probe.tried();
        let mut other = platform();
        change(&mut other);
        assert_eq!(ask(2, &other, &yes, &probe, Some(&cache)).tried, 2);
        assert_eq!(ask(2, &other, &yes, &probe, Some(&cache)).tried, 0);
    }
    // Without an identity of the start, yesterday's memory would look like today's.
    let nameless = Platform { boot: String::new(), ..platform() };
    assert_eq!(ask(2, &nameless, &yes, &probe, Some(&cache)).tried, 2);
    assert_eq!(ask(2, &nameless, &yes, &probe, Some(&cache)).tried, 2);
}

#[test]
fn linux_inside_of_windows_has_no_peers() {
    let probe = Fake::new(|_: &Pair| Ok(good()));
    let kernel = "5.15.153.1-microsoft-standard-WSL2".to_owned();
    let found = ask(2, &Platform { kernel, ..platform() }, &yes, &probe, None);
    assert!(matches!(verdict(&found, 0, 1), Verdict::Refused(why) if why.starts_with("wsl2: ")));
    assert_eq!(probe.tried(), []);
}

#[test]
fn time_is_bounded_over_all_pairs() {
    struct Slow;
    impl Probe for Slow {
        fn observe(&self, _: &Pair, deadline: Instant) -> Result<Observation, String> {
            std::thread::sleep(deadline.saturating_duration_since(Instant::now()));
            Err("late".to_owned())
        }
    }
    let started = Instant::now();
    let found = decide(&Question {
        devices: &devices(8),
        driver_version: "1",
        platform: &platform(),
        driver: &yes,
        probe: &Slow,
        cache: None,
        within: Duration::from_millis(100),
    });
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    assert_eq!((found.pairs.len(), found.tried), (56, 1));
    assert!(is_inconclusive(verdict(&found, 7, 6), "no time was left"));
}

#[test]
fn who_waits_for_another_process_waits_no_longer_than_it_may() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path());
    let key = crossover_device::verdict::cache::Key::new(&devices(2), "1", &platform());
    let _held = cache.turn(&key, Instant::now()).unwrap();
    let probe = Fake::new(|_: &Pair| Ok(good()));
    let found = decide(&Question {
        devices: &devices(2),
        driver_version: "1",
        platform: &platform(),
        driver: &yes,
        probe: &probe,
        cache: Some(&cache),
        within: Duration::from_millis(50),
    });
    assert!(is_inconclusive(verdict(&found, 0, 1), "no time was left"));
    let remark = found.remark.unwrap();
    assert!(remark.contains("another process tries the devices out"), "{remark}");
}

#[test]
fn many_that_ask_at_once_try_once() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path());
    let probe = Fake::new(|_: &Pair| {
        std::thread::sleep(Duration::from_millis(20));
        Ok(good())
    });
    let found: Vec<Verdicts> = std::thread::scope(|scope| {
        let ranks = (0..8).map(|_| scope.spawn(|| ask(2, &platform(), &yes, &probe, Some(&cache))));
        let ranks: Vec<_> = ranks.collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    });
    assert!(found.iter().all(|verdicts| verdicts.veto().is_none()));
    assert_eq!(probe.tried().len(), 2);
}

#[test]
fn nccl_is_advised_and_users_are_heeded() {
    let probe = Fake::new(|_: &Pair| Ok(mirrored()));
    let found = ask(2, &platform(), &yes, &probe, None);
    let given = advice(&found, |_| None).unwrap();
    assert_eq!((given.variable, given.value), ("NCCL_P2P_DISABLE", "1"));
    assert!(given.reason.contains("only the writer sees"));
    assert_eq!(advice(&found, |_| Some("0".to_owned())), None);
    // Of the driver's no it learns by itself, and of what works nothing is to be said.
    let no = |_: &Pair| Answer::No("no".to_owned());
    assert_eq!(advice(&ask(2, &platform(), &no, &probe, None), |_| None), None);
    let probe = Fake::new(|_: &Pair| Ok(good()));
    assert_eq!(advice(&ask(2, &platform(), &yes, &probe, None), |_| None), None);
}

proptest! {
    /// Peers are allowed exactly where the driver and the probe said yes of every pair, in the
    /// first run and in those that remember it.
    #[test]
    fn only_what_all_allow_is_allowed(
        driver in prop::collection::vec(0..8, 6),
        probes in prop::collection::vec(0..8, 6),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path());
        let all = Pair::of(&devices(3));
        let place = |asked: &Pair| all.iter().position(|known| known == asked).unwrap();
        let says = |asked: &Pair| match driver[place(asked)] {
            6 => Answer::No("no".to_owned()),
            7 => Answer::Unknown("who?".to_owned()),
            _ => Answer::Yes,
        };
        let probe = Fake::new(|tried: &Pair| match probes[place(tried)] {
            6 => Ok(mirrored()),
            7 => Err("nothing seen".to_owned()),
            _ => Ok(good()),
        });
        let right = driver.iter().chain(&probes).all(|word| *word < 6);
        for _ in 0..2 {
            let found = ask(3, &platform(), &says, &probe, Some(&cache));
            prop_assert_eq!(found.veto().is_none(), right);
            for (at, (_, verdict)) in found.pairs.iter().enumerate() {
                let proven = driver[at] < 6 && probes[at] < 6;
                prop_assert_eq!(*verdict == Verdict::Proven, proven);
            }
        }
    }
}
