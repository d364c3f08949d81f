//! Machines that lie about peers: backend `ipc` finds out, says so on every rank in the same words,
//! and remembers what lasts. Ranks are threads, each on an emulated device of its own.

mod driver;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossover_core::communicator::Communicator;
use crossover_core::facts::RankReport;
use crossover_device::device::Device;
use crossover_tests::device::{Stand, Target};
use crossover_tests::groups::on_channels;

use driver::{Fault, Faulty};

const WORLD: u32 = 3;

/// The driver of a test, by a name of its own; `None`, and why, where kernels cannot be built or
/// tests are to run on another device.
struct Bench {
    name: &'static str,
    stand: &'static Stand,
    driver: Arc<Faulty>,
}

impl Bench {
    fn new(name: &'static str, fault: Fault) -> Option<Bench> {
        let stand = match Stand::find() {
            Ok(stand) if stand.is_emulated() => stand,
            Ok(stand) => {
                return skip(&format!("it is about an emulated device, not {}", stand.name));
            }
            Err(why) => return skip(why),
        };
        let driver = Faulty::new(fault);
        crossover_device::install(name, Arc::clone(&driver) as _);
        Some(Bench { name, stand, driver })
    }

    /// Forms a group that insists on backend `ipc`, and closes it; returns what each rank is told.
    fn form(&self, cache: &Path) -> Vec<Result<(), String>> {
        let plan = self.stand.plan(&Target::parse("ipc/one_shot_push"));
        let mut plan = plan.set("ipc.p2p_cache", &cache.display().to_string());
        plan.settings.backends.call_deadline = Duration::from_secs(5);
        on_channels(WORLD, Duration::from_secs(60), |boot| {
            let mut plan = plan.clone();
            let name = format!("{}:{}", self.name, boot.rank());
            let device = crossover_device::open(&name).expect("there are eight");
            plan.settings.backends.device = name;
            let report = self.report(&device);
            let formed =
                Communicator::form(boot, &plan.registry, &plan.policy, report, &plan.settings);
            let group = formed.map_err(|e| e.to_string())?;
            group.close().map_err(|e| e.to_string())
        })
    }

    fn report(&self, device: &Device) -> RankReport {
        RankReport { unit: device.description().uuid.clone(), ..self.stand.report() }
    }

    /// The same sentence on every rank, and it says this.
    fn is_declined(&self, cache: &Path, says: &[&str]) -> String {
        let told = self.form(cache);
        let first = told[0].clone().expect_err("peers do not work");
        assert!(told.iter().all(|theirs| *theirs == Err(first.clone())), "{told:?}");
        for what in says {
            assert!(first.contains(what), "{first}");
        }
        first
    }
}

#[expect(clippy::print_stderr, reason = "a test that skips says so")]
fn skip<T>(why: &str) -> Option<T> {
    eprintln!("skipped: {why}");
    None
}

fn uuid(ordinal: u32) -> String {
    format!("GPU-00000000-0000-0000-0000-{ordinal:012x}")
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| std::fs::read_to_string(entry.path()).expect("readable")).collect()
}

#[test]
fn what_works_is_proven_and_remembered_with_every_directed_pair() {
    let Some(bench) = Bench::new("honest", Fault::None) else { return };
    let cache = tempfile::tempdir().expect("a folder");
    assert_eq!(bench.form(cache.path()), [const { Ok(()) }; WORLD as usize]);
    let files = files(cache.path());
    assert_eq!(files.len(), 1);
    assert_eq!(files[0].matches("\"proven\"").count(), (WORLD * (WORLD - 1)) as usize);
    // It is proven anew: mappings are.
    let before = bench.driver.launched();
    assert_eq!(bench.form(cache.path()), [const { Ok(()) }; WORLD as usize]);
    assert_eq!(bench.driver.launched(), before + WORLD);
    assert_eq!(bench.driver.allocated(), 0);
}

#[test]
fn writes_that_only_their_writer_sees_are_found_out_and_not_tried_again() {
    let Some(bench) = Bench::new("mirrored", Fault::Mirror) else { return };
    let cache = tempfile::tempdir().expect("a folder");
    let pair = format!("{} of rank 1 using memory of {} of rank 0 is broken", uuid(1), uuid(0));
    let how = "land in a copy that only the writer sees; the owner reads what was before";
    bench.is_declined(cache.path(), &["rank 1 could not prove", &pair, how]);
    assert_eq!(bench.driver.allocated(), 0, "what was set up is given back");
    let remembered = files(cache.path()).remove(0);
    assert_eq!(remembered.matches("\"proven\"").count(), 4);
    assert_eq!(remembered.matches("\"broken\"").count(), 2);

    let launched = bench.driver.launched();
    let pair = format!("{} using memory of {} (ranks 1 and 0) is broken", uuid(1), uuid(0));
    let told = bench.is_declined(cache.path(), &[&pair, how, "so it was found on 20"]);
    assert_eq!((bench.driver.launched(), bench.driver.allocated()), (launched, 0));

    let file = told.split_once("delete ").and_then(|(_, rest)| rest.split_once(" to have"));
    std::fs::remove_file(file.expect("it names the file").0).expect("it is there");
    bench.is_declined(cache.path(), &["rank 1 could not prove"]);
    assert_eq!(bench.driver.launched(), launched + WORLD);
}

#[test]
fn the_drivers_no_is_not_overruled() {
    let Some(bench) = Bench::new("refused", Fault::Refused) else { return };
    let cache = tempfile::tempdir().expect("a folder");
    let why = format!("the driver says that {} cannot reach {} of rank 0", uuid(1), uuid(0));
    bench.is_declined(cache.path(), &["rank 1 could not let its device use", &why]);
    assert_eq!((bench.driver.launched(), bench.driver.allocated()), (0, 0));
    assert_eq!(files(cache.path()).len(), 0);
}

#[test]
fn a_probe_that_never_ends_is_waited_for_within_a_time_and_nothing_is_remembered() {
    let Some(bench) = Bench::new("hung", Fault::Hang) else { return };
    let cache = tempfile::tempdir().expect("a folder");
    let began = Instant::now();
    let says = ["rank 1 could not write", "inconclusive: the kernel that writes has not ended in"];
    bench.is_declined(cache.path(), &says);
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert_eq!(files(cache.path()).len(), 0);
}

#[test]
fn a_cache_that_cannot_be_written_is_no_reason_to_go_without() {
    let Some(bench) = Bench::new("readonly", Fault::None) else { return };
    assert_eq!(bench.form(Path::new("/proc/none")), [const { Ok(()) }; WORLD as usize]);
}

#[test]
fn a_cache_is_named_from_the_root() {
    let Some(bench) = Bench::new("misset", Fault::None) else { return };
    bench.is_declined(Path::new("cache"), &["setting ipc.p2p_cache is `cache`: it must be"]);
}
