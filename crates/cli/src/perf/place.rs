//! Where the data of a measurement is: what `--device` and `--ranks-per-gpu` come to here.

use std::path::Path;

use crossover_core::call::Mode;
use crossover_core::communicator::Communicator;
use crossover_core::settings::HOST_DEVICE;
use crossover_device::device::Device;
use crossover_device::driver::Description;
use crossover_device::error::DeviceError;
use crossover_device::images::Places;
use crossover_policy::{DeviceChoice, Settings};

use super::{Args, DEFAULT_RANKS, Where};
use crate::failure::Failure;
use crate::group::{Formation, Seat};

/// Drivers in the order in which `auto` asks for them.
const AUTO: [&str; 2] = ["cuda", "hip"];

/// Where the ranks' data is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Place {
    Host,
    /// On devices of this driver.
    On {
        driver: String,
        /// Some ranks are on one device.
        shared: bool,
        /// Ranks are threads of one process.
        one_process: bool,
    },
}

impl Place {
    /// What the options come to, and the formation with what they set.
    pub(super) fn resolve(
        args: &Args,
        formation: Formation,
    ) -> Result<(Place, Formation), Failure> {
        let settings = formation.settings()?;
        let seat = formation
            .local_seat()
            .unwrap_or(Seat { rank: 0, world: args.ranks.unwrap_or(DEFAULT_RANKS) });
        match args.device {
            Where::Host => args.on_host("--device host keeps data in host memory", formation),
            Where::Cuda => args.on_devices("cuda", "--device cuda", seat, &settings, formation),
            Where::Hip => args.on_devices("hip", "--device hip", seat, &settings, formation),
            Where::Auto => match &settings.device {
                DeviceChoice::On { driver, ordinal } => {
                    let number = ordinal.map(|number| format!(":{number}")).unwrap_or_default();
                    let asked = format!("setting device = {driver}{number}");
                    args.on_devices(driver, &asked, seat, &settings, formation)
                }
                _ => match args.found(seat.world, &settings) {
                    Ok(driver) => {
                        args.on_devices(driver, "--device auto", seat, &settings, formation)
                    }
                    Err(why) => args.on_host(&why, formation),
                },
            },
        }
    }

    /// As settings and reports have it.
    pub(super) fn name(&self) -> &str {
        match self {
            Place::Host => HOST_DEVICE,
            Place::On { driver, .. } => driver,
        }
    }

    /// Do ranks share a GPU of a vendor whose processes take turns on one without a daemon?
    pub(super) fn wants_daemon(&self) -> bool {
        matches!(self, Place::On { driver, shared: true, one_process: false } if driver == "cuda")
    }

    /// Are ranks on devices threads of one process?
    pub(super) fn is_one_process(&self) -> bool {
        matches!(self, Place::On { one_process: true, .. })
    }

    /// This rank's device in a group; none on host memory.
    pub(super) fn open(&self, group: &Communicator) -> Result<Option<Device>, Failure> {
        let Place::On { driver, .. } = self else { return Ok(None) };
        // The facade has chosen it: by its own number it is found again.
        let unit = &group.facts().reports()[group.rank() as usize].unit;
        let all = crossover_device::driver(driver)?.devices()?;
        let own = all.iter().find(|device| device.uuid == *unit).ok_or_else(|| {
            Failure::usage(format!("{driver} shows no device {unit}, which this rank reported"))
        })?;
        Ok(Some(crossover_device::open(&format!("{driver}:{}", own.ordinal))?))
    }
}

impl Args {
    /// How many ranks share a device, as the options have it.
    fn per_device(&self) -> u32 {
        self.ranks_per_gpu.unwrap_or(1)
    }

    fn on_host(&self, why: &str, formation: Formation) -> Result<(Place, Formation), Failure> {
        if let Some(ranks) = self.ranks_per_gpu {
            return Err(Failure::ineligible(format!(
                "--ranks-per-gpu {ranks} cannot be had, since the data is on no GPU: {why}"
            )));
        }
        if self.mode == Mode::Graph {
            return Err(Failure::ineligible(format!(
                "--mode graph cannot be had, since a graph is a device's: {why}"
            )));
        }
        Ok((Place::Host, formation.set("device", HOST_DEVICE, "--device")))
    }

    /// On devices of a driver; `asked` is who wants that, for messages.
    fn on_devices(
        &self,
        driver: &str,
        asked: &str,
        seat: Seat,
        settings: &Settings,
        formation: Formation,
    ) -> Result<(Place, Formation), Failure> {
        let all = visible(driver)
            .map_err(|e| Failure::ineligible(format!("{asked} cannot be had: {e}")))?;
        let (shown, per_device, ranks) = (all.len() as u32, self.per_device(), seat.world);
        let takes = ranks.div_ceil(per_device);
        if takes > shown && (self.ranks_per_gpu.is_some() || !settings.allow_shared_device) {
            let needed = ranks.div_ceil(shown.max(1));
            return Err(Failure::ineligible(format!(
                "{ranks} ranks, {per_device} a device, take {takes} devices, and {driver} shows \
                 {shown}: ask for fewer with -n, or for --ranks-per-gpu {needed}"
            )));
        }
        let formation = match (self.ranks_per_gpu, &settings.device) {
            (Some(per_device), _) => {
                let own = format!("{driver}:{}", seat.rank / per_device);
                formation.set("device", own, "--device")
            }
            // Somebody has said which.
            (None, DeviceChoice::On { driver: set, .. }) if set == driver => formation,
            (None, _) => formation.set("device", driver, "--device"),
        };
        let formation = match per_device {
            1 => formation,
            _ => formation.set("allow_shared_device", "true", "--ranks-per-gpu"),
        };
        let shared = takes > shown || per_device.min(ranks) > 1;
        let one_process = self.one_process;
        Ok((Place::On { driver: driver.to_owned(), shared, one_process }, formation))
    }

    /// The first driver that shows enough devices for ranks of this number, if there are kernels
    /// for them; or why there is none.
    fn found(&self, ranks: u32, settings: &Settings) -> Result<&'static str, String> {
        let mut why = Vec::new();
        for driver in AUTO {
            match self.serves(driver, ranks, settings) {
                Ok(()) => return Ok(driver),
                Err(e) => why.push(e),
            }
        }
        Err(why.join("; "))
    }

    fn serves(&self, driver: &str, ranks: u32, settings: &Settings) -> Result<(), String> {
        let all = visible(driver).map_err(|e| e.to_string())?;
        let takes = ranks.div_ceil(self.per_device()) as usize;
        if all.len() < takes && !settings.allow_shared_device {
            let shown = all.len();
            return Err(format!("{driver} shows {shown} devices where {takes} are needed"));
        }
        let vendor = crossover_device::driver(driver).map_err(|e| e.to_string())?.vendor();
        let named = settings.backends.get("ipc.kernels").map(Path::new);
        let images = |device: &Description| Places::new(named).images(vendor, &device.arch);
        all.first().map_or(Ok(()), |device| images(device).map(drop)).map_err(|e| e.to_string())
    }
}

/// At least one device.
fn visible(driver: &str) -> Result<Vec<Description>, DeviceError> {
    let devices = crossover_device::driver(driver)?.devices()?;
    match devices.is_empty() {
        true => Err(DeviceError::Absent(format!("{driver} shows this process no device"))),
        false => Ok(devices),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::support::{args, emulate};

    /// On a machine with two devices.
    fn resolve(words: &str, set: &[(&str, &str)]) -> Result<(Place, Formation), String> {
        emulate();
        let words: Vec<&str> = ["all_reduce"].into_iter().chain(words.split_whitespace()).collect();
        let args = args(&words);
        let mut formation = Formation::from_env(&[]).expect("settings");
        for (key, value) in set {
            formation = formation.set(key, *value, "a test");
        }
        Place::resolve(&args, formation).map_err(|e| e.to_string())
    }

    const EMULATED: (&str, &str) = ("device", "emulated");

    fn on(shared: bool) -> Place {
        Place::On { driver: "emulated".to_owned(), shared, one_process: false }
    }

    #[test]
    fn ranks_share_devices_where_it_is_asked_for() {
        let (place, formation) = resolve("-n 2", &[EMULATED]).expect("two devices");
        assert_eq!(place, on(false));
        assert!(!formation.settings().expect("settings").allow_shared_device);

        let (place, formation) = resolve("-n 8 --ranks-per-gpu 4", &[EMULATED]).expect("two");
        assert_eq!(place, on(true));
        let settings = formation.settings().expect("settings");
        assert!(settings.allow_shared_device);
        let own = DeviceChoice::On { driver: "emulated".to_owned(), ordinal: Some(0) };
        assert_eq!(settings.device, own);

        let (place, _) =
            resolve("-n 3", &[EMULATED, ("allow_shared_device", "true")]).expect("two");
        assert_eq!(place, on(true));
        assert!(!place.wants_daemon(), "this vendor's processes take no turns");
    }

    #[test]
    fn threads_of_one_process_need_no_daemon() {
        let cuda = |one_process| Place::On { driver: "cuda".to_owned(), shared: true, one_process };
        assert!(cuda(false).wants_daemon() && !cuda(true).wants_daemon());
        let (place, _) = resolve("-n 2 --one-process", &[EMULATED]).expect("two devices");
        assert!(matches!(place, Place::On { one_process: true, shared: false, .. }));
    }

    #[test]
    fn more_ranks_than_there_is_room_for_are_refused() {
        let told = |words| resolve(words, &[EMULATED]).err().expect("two devices");
        assert_eq!(
            told("-n 5 --ranks-per-gpu 2"),
            "5 ranks, 2 a device, take 3 devices, and emulated shows 2: ask for fewer with -n, or \
             for --ranks-per-gpu 3"
        );
        assert!(told("-n 3").ends_with("--ranks-per-gpu 2"));
    }

    #[test]
    fn who_wants_a_device_that_is_not_there_is_told() {
        if visible("hip").is_ok() {
            return;
        }
        let told = |words, set: &[_]| resolve(words, set).err().expect("there is none");
        let why = told("-n 2", &[("device", "hip:3")]);
        assert!(why.starts_with("setting device = hip:3 cannot be had: "), "{why}");
        let why = told("-n 2", &[("device", "hip")]);
        assert!(why.starts_with("setting device = hip cannot be had: "), "{why}");
        let why = told("-n 2 --device hip", &[("device", "hip:3")]);
        assert!(why.starts_with("--device hip cannot be had: "), "{why}");
    }

    #[test]
    fn host_memory_is_no_device() {
        let (place, formation) = resolve("--device host", &[EMULATED]).expect("host memory");
        assert_eq!(place, Place::Host);
        assert_eq!(formation.settings().expect("settings").device, DeviceChoice::Host);
        let told = |words| resolve(words, &[]).err().expect("no device");
        assert!(told("--device host --mode graph").starts_with("--mode graph cannot be had"));
        let told = told("--device host --ranks-per-gpu 2");
        assert!(told.starts_with("--ranks-per-gpu 2 cannot be had"), "{told}");
    }
}
