//! Groups of threads: each rank is a thread with a communicator of its own. In a process that took a
//! [`Seat`] the same tests run with ranks that are processes.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crossover_bootstrap::{Launch, Options, Place, connect};
use crossover_core::bootstrap::Bootstrap;
use crossover_core::communicator::Communicator;
use crossover_core::contract::Contract;
use crossover_core::facts::{Caps, HOST_ARCH, RankReport, Topology};
use crossover_core::form::FormError;
use crossover_core::policy::{Basis, ByteRange, Candidate, Layer, Match, Origin, Policy, Rule};
use crossover_core::registry::Registry;
use crossover_core::settings::{GroupSettings, OnHang};
use crossover_recorder::{self as recorder, Dumps, GroupRecorder};

/// How a test's groups are formed.
#[derive(Clone)]
pub struct Plan {
    /// The backends.
    pub registry: Registry,
    /// The policy.
    pub policy: Policy,
    /// The settings.
    pub settings: GroupSettings,
    /// The node of each rank, where they play several.
    pub nodes: Vec<u32>,
}

impl Plan {
    /// A group that runs everything on one algorithm, such as `host/one_shot`.
    pub fn forcing(target: &str) -> Self {
        let mut settings = GroupSettings::default();
        settings.backends.call_deadline = Duration::from_secs(60);
        Plan {
            registry: crossover_backends::registry().expect("linked backends have distinct ids"),
            policy: forcing(target),
            settings,
            nodes: Vec::new(),
        }
    }

    /// What a rank reports, on the node that it plays to be on.
    pub fn placed(&self, rank: u32, report: RankReport) -> RankReport {
        match self.nodes.get(rank as usize) {
            Some(node) => RankReport { node: format!("node {node}"), ..report },
            None => report,
        }
    }

    /// The same, with a deadline on calls.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.settings.backends.call_deadline = deadline;
        self
    }

    /// The same, with a backend's setting.
    pub fn set(mut self, key: &str, value: &str) -> Self {
        self.settings.backends.values.insert(key.to_owned(), value.to_owned());
        self
    }
}

/// A policy of one rule: this target, for everything.
pub fn forcing(target: &str) -> Policy {
    let (backend, algorithm) = match target.split_once('/') {
        Some((backend, algorithm)) => (backend, Some(algorithm.to_owned())),
        None => (target, None),
    };
    let candidate = Candidate {
        backend: backend.to_owned(),
        algorithm,
        bytes: ByteRange::ANY,
        basis: Basis::Input,
        optional: false,
        params: Vec::new(),
    };
    let rule = Rule {
        id: "forced".to_owned(),
        layer: Layer::Program,
        origin: Origin { file: "the test".to_owned(), line: 0 },
        priority: 0,
        last: true,
        forced: true,
        when: Match::default(),
        chain: vec![candidate],
        evidence: None,
    };
    Policy::new(
        Contract { accept: crossover_core::contract::Deviations::ALL, ..Contract::DEFAULT },
        vec![rule],
    )
}

/// The report of a rank of a host group on one node.
pub fn report() -> RankReport {
    RankReport {
        label: format!("test:{}", std::process::id()),
        node: "this node".to_owned(),
        arch: HOST_ARCH.to_owned(),
        device: "a processor".to_owned(),
        unit: String::new(),
        topology: Topology::Host,
        caps: Caps::NONE,
        caches: Default::default(),
    }
}

/// This process's place among those that a launcher has started for a test.
#[derive(Debug)]
pub struct Seat {
    /// Which it is. Groups have the first ranks; the others wait for the next group.
    pub rank: u32,
    /// Where they meet.
    pub folder: PathBuf,
}

static SEAT: OnceLock<Seat> = OnceLock::new();

impl Seat {
    /// From now on every group of this process has one rank here, and the others in the launcher's other
    /// processes, which form the same groups in the same order. Their reports are of two nodes.
    ///
    /// # Panics
    ///
    /// If the process has a seat.
    pub fn take(self) {
        SEAT.set(self).expect("a process has one seat");
    }
}

/// The report of a rank whose node, if ranks are processes, is one of two.
pub fn report_of(rank: u32) -> RankReport {
    match SEAT.get() {
        Some(_) => RankReport { node: format!("node {}", rank % 2), ..report() },
        None => report(),
    }
}

/// Runs `body` on every rank of a fresh group and returns the results in rank order.
///
/// # Panics
///
/// If a rank panics, or cannot form the group.
pub fn run<R: Send>(world: u32, plan: &Plan, body: impl Fn(&Communicator) -> R + Sync) -> Vec<R> {
    try_run(world, |_| plan.clone(), |formed| body(&formed.expect("the group forms")))
}

/// [`run`], with a flight recorder for each rank, as the facade gives groups.
///
/// # Panics
///
/// As for [`run`], or if there is no memory for a recorder.
pub fn run_recorded<R: Send>(
    world: u32,
    plan: &Plan,
    body: impl Fn(&Communicator) -> R + Sync,
) -> Vec<R> {
    on_channels(world, Duration::from_secs(60), |boot| {
        let (registry, settings) = (&plan.registry, &plan.settings);
        let report = report_of(boot.rank());
        let group = Communicator::form(boot, registry, &plan.policy, report, settings)
            .expect("the group forms");
        let job = recorder::Job {
            launch: Launch::new(boot.rank(), world)
                .named(format!("test-{}", std::process::id()), 0),
            device: settings.backends.device.clone(),
            backends: registry.digest().to_string(),
        };
        let options = recorder::Options {
            rings: None,
            dumps: Dumps::None,
            on_hang: OnHang::Abort,
            warn_after: None,
            hang_after: settings.backends.call_deadline,
        };
        let recorder = GroupRecorder::open(boot, &group, &job, options).expect("all are here");
        body(&group.with_recorder(recorder.expect("there is memory")))
    })
}

/// [`run`], with a plan of each rank's own, and formation allowed to fail.
///
/// # Panics
///
/// If a rank panics.
pub fn try_run<R: Send>(
    world: u32,
    plan_of: impl Fn(u32) -> Plan + Sync,
    body: impl Fn(Result<Communicator, FormError>) -> R + Sync,
) -> Vec<R> {
    on_channels(world, Duration::from_secs(60), |boot| {
        let plan = plan_of(boot.rank());
        let report = report_of(boot.rank());
        body(Communicator::form(boot, &plan.registry, &plan.policy, report, &plan.settings))
    })
}

/// Runs `body` on every rank of a control plane of threads; on this process's alone, if it has a seat.
///
/// # Panics
///
/// If a rank panics.
pub fn on_channels<R: Send>(
    world: u32,
    deadline: Duration,
    body: impl Fn(&dyn Bootstrap) -> R + Sync,
) -> Vec<R> {
    if let Some(seat) = SEAT.get() {
        return on_this_process(seat, world, deadline, body);
    }
    let channels = crossover_bootstrap::threads(world, deadline);
    std::thread::scope(|scope| {
        let body = &body;
        let ranks: Vec<_> =
            channels.into_iter().map(|channel| scope.spawn(move || body(&channel))).collect();
        ranks.into_iter().map(|rank| rank.join().expect("no rank panics")).collect()
    })
}

fn on_this_process<R>(
    seat: &Seat,
    world: u32,
    deadline: Duration,
    body: impl Fn(&dyn Bootstrap) -> R,
) -> Vec<R> {
    static GROUPS: AtomicU64 = AtomicU64::new(0);
    let group = GROUPS.fetch_add(1, Ordering::Relaxed);
    if seat.rank >= world {
        return Vec::new();
    }
    let place = Place::Unix(seat.folder.join(group.to_string()));
    let launch = Launch::new(seat.rank, world).named("tests", 0).at(place);
    let options = Options { deadline, ..Options::default() };
    vec![body(&*connect(&launch, &options).expect("the ranks meet"))]
}
