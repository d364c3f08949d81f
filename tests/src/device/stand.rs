//! The device that tests run on, and groups of ranks there.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crossover_bootstrap::{Launch, Options, Place, connect};
use crossover_core::contract::{Contract, Deviations};
use crossover_core::facts::{Cap, Caps, RankReport, Topology};
use crossover_core::policy::{ParamValue, Policy};
use crossover_device::device::Device;
use crossover_kernel_emulation::compile::CompileError;
use crossover_kernel_emulation::driver::{Emulated, Options as Emulation};

use super::children::Seat;
use super::rank::Rank;
use super::{Target, image};
use crate::groups::{Plan, forcing, on_channels};

/// Names the folder of kernel images.
pub(super) const KERNELS: &str = "CROSSOVER_TEST_KERNELS";
/// How long ranks wait for one another where nothing is wrong.
const PATIENCE: Duration = Duration::from_secs(30);

/// Whatever an algorithm states is accepted.
pub(crate) const ANYTHING: Contract = Contract { accept: Deviations::ALL, ..Contract::DEFAULT };

/// A device, and how many calls it is good for.
pub struct Stand {
    /// As settings name it, such as `cuda:0`.
    pub name: String,
    /// The driver, where it is the emulated one.
    pub emulated: Option<Arc<Emulated>>,
    kernels: Option<PathBuf>,
    seat: Seat,
    /// Groups so far, by which processes find their peers.
    groups: AtomicU64,
}

impl Stand {
    /// The device that the environment names; `Err` says why tests skip.
    ///
    /// # Panics
    ///
    /// If the kernels do not compile.
    pub fn find() -> &'static Result<Stand, String> {
        static FOUND: OnceLock<Result<Stand, String>> = OnceLock::new();
        FOUND.get_or_init(|| {
            let variable = |name: &str| std::env::var(name).ok();
            let asked =
                variable("CROSSOVER_TEST_DEVICE").unwrap_or_else(|| "emulated:0".to_owned());
            let seat = Seat::read();
            let name = match &seat {
                // Ranks are on devices of their own.
                Seat::Process { rank, .. } if !asked.contains(':') => format!("{asked}:{rank}"),
                _ => asked,
            };
            let mut kernels = variable(KERNELS).map(PathBuf::from);
            let (vendor, _) = name.split_once(':').unwrap_or((&name, ""));
            let mut emulated = None;
            if vendor == "emulated" {
                if kernels.is_none() {
                    kernels = match image::folder() {
                        Ok(folder) => Some(folder),
                        Err(e @ CompileError::NoCompiler(_)) => return Err(e.to_string()),
                        Err(e) => panic!("{e}"),
                    };
                }
                let driver =
                    Emulated::new(Emulation { multiprocessors: 24, ..Emulation::default() });
                crossover_device::install("emulated", Arc::clone(&driver) as _);
                emulated = Some(driver);
            }
            let devices = crossover_device::driver(vendor).and_then(|driver| driver.devices());
            match devices {
                Ok(devices) if devices.is_empty() => Err(format!("{vendor} sees no device")),
                Err(e) => Err(format!("no device {name} here: {e}")),
                Ok(_) => {
                    let groups = AtomicU64::new(0);
                    Ok(Stand { name, emulated, kernels, seat, groups })
                }
            }
        })
    }

    /// Is it no real device? Then calls are few and small.
    pub fn is_emulated(&self) -> bool {
        self.emulated.is_some()
    }

    /// The folder of kernel images, where it is not the one beside the program.
    pub fn kernels(&self) -> Option<&Path> {
        self.kernels.as_deref()
    }

    pub(super) fn seat(&self) -> &Seat {
        &self.seat
    }

    /// `few` where it is emulated, else `many`.
    pub fn scale<T>(&self, few: T, many: T) -> T {
        if self.is_emulated() { few } else { many }
    }

    /// Sizes of groups: those asked for, or that of the processes that this one is among.
    pub fn worlds(&self, asked: &[u32]) -> Vec<u32> {
        match &self.seat {
            Seat::Process { world, .. } => vec![*world],
            _ => asked.to_vec(),
        }
    }

    /// A group that runs everything on one algorithm, in small rooms.
    pub fn plan(&self, target: &Target) -> Plan {
        let mut rules = forcing(target.name).rules().to_vec();
        rules[0].chain[0].params = self.params(target);
        let mut plan = Plan::forcing(target.name);
        plan.policy = Policy::new(ANYTHING, rules);
        self.settle(plan)
    }

    /// What a candidate for this target sets.
    pub fn params(&self, target: &Target) -> Vec<(String, ParamValue)> {
        let mut params = Vec::new();
        if self.is_emulated() {
            params.push(("threads".to_owned(), ParamValue::Count(32)));
        }
        if target.pulled && target.has_param("push") {
            params.push(("push".to_owned(), ParamValue::Bytes(0)));
        }
        params
    }

    /// The settings of a group on this device.
    pub fn settle(&self, mut plan: Plan) -> Plan {
        let settings = &mut plan.settings;
        settings.contract = ANYTHING;
        settings.backends.device.clone_from(&self.name);
        settings.backends.allow_shared_device = true;
        settings.backends.call_deadline = PATIENCE;
        if let Some(folder) = &self.kernels {
            plan = plan.set("ipc.kernels", &folder.display().to_string());
        }
        if let Ok(library) = std::env::var("CROSSOVER_TEST_NCCL") {
            plan = plan.set("nccl.library", &library);
        }
        let (room, stage) = self.rooms();
        let bytes = |n: usize| format!("{n}B");
        plan.set("ipc.push", &bytes(room))
            .set("ipc.lamport", &bytes(room))
            .set("ipc.stage", &bytes(stage))
    }

    /// Bytes of a place of pushed data, and of a stage: small, so that calls travel in pieces.
    pub fn rooms(&self) -> (usize, usize) {
        self.scale((4 << 10, 16 << 10), (64 << 10, 256 << 10))
    }

    /// What every rank reports: all are on this device.
    ///
    /// # Panics
    ///
    /// If the device cannot be opened.
    pub fn report(&self) -> RankReport {
        let device = self.open();
        let description = device.description();
        RankReport {
            label: format!("test:{}", std::process::id()),
            node: "this node".to_owned(),
            arch: description.arch.clone(),
            device: description.name.clone(),
            unit: description.uuid.clone(),
            topology: Topology::NvlinkFull,
            caps: Caps::of(&[Cap::P2p]),
            caches: Default::default(),
        }
    }

    /// Opens it.
    ///
    /// # Panics
    ///
    /// If it cannot be opened.
    pub fn open(&self) -> Device {
        crossover_device::open(&self.name).expect("it was found")
    }

    /// Runs `body` on every rank of a fresh group: on threads, or on this process's rank alone. All
    /// ranks part together, so that no memory is given back while peers use it.
    ///
    /// # Panics
    ///
    /// If a rank panics or cannot form the group, or cannot close one that is well.
    pub fn run(&self, world: u32, plan: &Plan, body: impl Fn(&mut Rank<'_>) + Sync) {
        let nth = self.groups.fetch_add(1, Ordering::Relaxed);
        let one = |boot: &dyn crossover_core::bootstrap::Bootstrap| {
            let mut rank = Rank::form(self, boot, plan);
            body(&mut rank);
            rank.part();
        };
        match &self.seat {
            Seat::Process { rank, world: all, folder, .. } if *all == world => {
                let launch = Launch::new(*rank, world).local(*rank, world);
                let launch = launch.at(Place::Unix(folder.join(nth.to_string())));
                let options = Options { deadline: 2 * PATIENCE, ..Options::default() };
                let boot = connect(&launch, &options).expect("all ranks come");
                one(&*boot);
            }
            Seat::Process { .. } => {}
            Seat::Here => {
                on_channels(world, 2 * PATIENCE, one);
            }
        }
    }
}
