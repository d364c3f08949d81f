//! From the setting `device` to a group's facts, with devices that are none: who takes which, what
//! ranks report, and what is refused before anything is set up.

use std::sync::{Arc, Mutex, OnceLock};

use crossover::bootstrap::{Launch, Place};
use crossover::core::agreement::{Local, Setup, SetupError};
use crossover::core::backend::{
    Abort, Algorithm, Backend, Descriptor, EnqueueError, Ready, Session,
};
use crossover::core::eligibility::{Eligibility, Worlds};
use crossover::core::facts::{Cap, Caps, GroupFacts, Topology};
use crossover::core::register_backend;
use crossover::core::verdict::Verdict;
use crossover::{Builder, CallBuffers, CallSig, Communicator, Error, Mode, Op};
use crossover_tests::unreal::Unreal;

register_backend!(
    Descriptor {
        id: "onlooker",
        version: "1",
        settings: &[],
        algorithms: &[Algorithm {
            name: "",
            eligibility: Eligibility { worlds: Worlds::range(2, 16), ..Eligibility::EVERYTHING },
            params: &[],
        }],
    },
    || Box::new(Onlooker)
);

/// Learns what backends are told, and runs nothing.
struct Onlooker;

/// Which devices backends were told, by all tests.
static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

impl Backend for Onlooker {
    fn set_up<'g>(
        &self,
        setup: &mut Setup<'g>,
        _facts: &GroupFacts,
    ) -> Result<Ready<'g>, SetupError> {
        let session = setup.step("look on", Local::new(()), |here, ()| {
            TOLD.lock().expect("no rank panics").push(here.settings().device.clone());
            Ok(Box::new(Onlooker) as Box<dyn Session>)
        })?;
        let capacity = setup.min("agree on room", Local::new(u64::MAX))?;
        Ok(Ready { session, capacity })
    }
}

impl Session for Onlooker {
    unsafe fn enqueue(
        &mut self,
        _: usize,
        _: &[u64],
        _: u64,
        _: &CallSig<'_>,
        _: &CallBuffers,
    ) -> Result<(), EnqueueError> {
        Ok(())
    }

    fn abort_handle(&self) -> Arc<dyn Abort> {
        Arc::new(Onlooker)
    }

    fn close(&mut self, _: u64) -> Result<(), EnqueueError> {
        Ok(())
    }
}

impl Abort for Onlooker {
    fn abort(&self, _: &Verdict) {}
}

/// Three devices, for all tests of this process.
fn driver() -> &'static Unreal {
    static DRIVER: OnceLock<Arc<Unreal>> = OnceLock::new();
    DRIVER.get_or_init(|| {
        let driver = Arc::new(Unreal::new(3));
        crossover_device::install("emulated", Arc::clone(&driver) as _);
        driver
    })
}

const POLICY: &str = "schema = 1\n[rule.all]\nchain = [{ use = \"onlooker\" }]\n";

/// Forms a group of one rank for each device, and tells what came of it.
fn form(devices: &[&str], shared: &str) -> Vec<Result<Communicator, Error>> {
    driver();
    let folder = tempfile::tempdir().expect("a folder");
    let place = Place::Unix(folder.path().join("meet"));
    let form = |rank: usize| {
        let launch = Launch::new(rank as u32, devices.len() as u32);
        let builder = Builder::from_variables([]).expect("nothing is set");
        let builder = builder.device(devices[rank]).set("allow_shared_device", shared, "the test");
        builder.policy("the test", POLICY).with_launch(launch.at(place.clone())).form()
    };
    std::thread::scope(|scope| {
        let form = &form;
        let ranks = (0..devices.len()).map(|rank| scope.spawn(move || form(rank)));
        let ranks: Vec<_> = ranks.collect();
        ranks.into_iter().map(|rank| rank.join().expect("no rank panics")).collect()
    })
}

#[test]
fn ranks_report_their_devices_and_backends_are_told_them() {
    for (rank, group) in form(&["emulated"; 2], "0").into_iter().enumerate() {
        let group = group.expect("a device each");
        let facts = group.facts();
        let units: Vec<&str> = facts.reports().iter().map(|report| report.unit.as_str()).collect();
        assert_eq!((group.rank() as usize, units), (rank, vec!["GPU-0", "GPU-1"]));
        assert_eq!(facts.ranks_per_unit(), 1);
        let profile = facts.profile();
        assert_eq!(
            (profile.arch.as_str(), profile.device.as_str()),
            ("emulated", "An Unreal Device")
        );
        assert_eq!((profile.caches.l2, profile.caches.llc), (50 << 20, 50 << 20));
        assert_eq!(profile.caps, Caps::of(&[Cap::P2p]));
    }
    let told = TOLD.lock().expect("no rank panics");
    assert!(["emulated:0", "emulated:1"].iter().all(|name| told.iter().any(|t| t == name)));
}

#[test]
fn a_device_out_of_reach_takes_peer_access_from_the_group() {
    for group in form(&["emulated:0", "emulated:2"], "0") {
        assert_eq!(group.expect("formed").facts().profile().caps, Caps::NONE);
    }
}

#[test]
fn ranks_that_share_a_device_take_turns_where_that_is_allowed() {
    for group in form(&["emulated"; 4], "1") {
        let group = group.expect("allowed");
        assert_eq!(group.facts().ranks_per_unit(), 2);
        assert_eq!(group.facts().shared_units(), ["ranks 0 and 3 are both on GPU-0"]);
    }
    for group in form(&["emulated:1"; 2], "1") {
        let profile = group.expect("allowed").facts().profile().clone();
        assert_eq!((profile.topology, profile.caps), (Topology::NvlinkFull, Caps::of(&[Cap::P2p])));
    }
}

#[test]
fn ranks_that_share_a_device_unasked_are_refused_on_every_rank() {
    for refused in form(&["emulated:1"; 2], "0") {
        let refused = refused.expect_err("nobody allowed it");
        let start = "ranks 0 and 1 are both on GPU-1: give each rank a device of its own, or set \
                     allow_shared_device (CROSSOVER_ALLOW_SHARED_DEVICE=1) on every rank";
        assert_eq!((refused.to_string().as_str(), refused.exit_code()), (start, 2));
    }
}

#[test]
fn a_rank_without_a_device_is_told_on_every_rank() {
    let why = "rank 3 is number 3 on its node, where emulated sees 3 devices: start no more ranks";
    for refused in form(&["emulated"; 4], "0") {
        let told = refused.expect_err("one too many").to_string();
        assert!(told.contains(why), "{told}");
    }
    for refused in form(&["emulated:0", "emulated:7"], "0") {
        let told = refused.expect_err("no such device").to_string();
        assert!(told.contains("there is no device emulated:7: this process sees 3"), "{told}");
    }
}

#[test]
fn a_group_of_one_copies_by_the_driver() {
    let group = form(&["emulated:0"], "0").remove(0).expect("formed");
    let call = CallSig { mode: Mode::Graph, ..group.signature::<f32>(Op::AllReduce, 3) };
    let (input, mut output) = ([1.0f32, 2.0, 3.0], [0.0f32; 3]);
    let buffers =
        CallBuffers { input: input.as_ptr().cast(), output: output.as_mut_ptr().cast(), stream: 0 };
    let before = driver().copies();
    // SAFETY: both arrays hold what the call says.
    unsafe { group.run(&call, &buffers) }.expect("copied");
    group.commit().expect("nobody to exchange with");
    assert_eq!((output, driver().copies()), (input, before + 1));
}
