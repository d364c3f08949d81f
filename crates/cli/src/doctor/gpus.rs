//! How GPUs are now: what slows them, what is broken, who may use them.

use crossover_device::driver::Description;
use crossover_device::topology::nvml;
use crossover_device::topology::state::{Clock, GpuState, Sharing};

use super::finding::Finding;
use super::root::Root;

const CHECK: &str = "gpu";

/// `vendor` is the driver's name, `devices` are its.
pub(super) fn examine(root: &Root, vendor: &str, devices: &[Description]) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        devices.iter().flat_map(|device| of_slot(root, device)).collect();
    match vendor {
        "cuda" => match nvml::states() {
            Ok(states) => {
                let is_seen = |state: &&GpuState| devices.iter().any(|d| d.uuid == state.uuid);
                findings.extend(states.iter().filter(is_seen).flat_map(of_state));
            }
            Err(e) => findings.push(Finding::ok(CHECK, format!("their state is not known: {e}"))),
        },
        _ => findings.extend(devices.iter().flat_map(|device| of_amd(root, device))),
    }
    findings
}

/// What NVIDIA's library tells.
fn of_state(state: &GpuState) -> Vec<Finding> {
    let name = &state.uuid;
    let clock = |name: &str, clock: Option<Clock>| {
        clock.map(|Clock { now, most }| format!("{name} {now} of {most} MHz"))
    };
    let slow = state.slowed_by.iter().map(|why| why.in_words()).collect::<Vec<_>>().join(" and ");
    let words = [
        clock("multiprocessors at", state.processor_clock),
        clock("memory at", state.memory_clock),
        (!slow.is_empty()).then(|| format!("slowed by {slow}")),
        state.ecc.filter(|on| !on).map(|_| "no ECC".to_owned()),
        state.persistent.map(|on| format!("persistence mode {}", if on { "on" } else { "off" })),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    let mut findings = Vec::new();
    if !words.is_empty() {
        let found = format!("{name}: {}", words.join(", "));
        findings.push(match state.slowed_by.iter().any(|why| why.is_fault()) {
            true => Finding::warn(
                CHECK,
                found,
                "look after its cooling and power: the slowest GPU sets a group's pace",
            ),
            false if state.persistent == Some(false) => Finding::hint(
                CHECK,
                found,
                "nvidia-smi -pm 1 (or the daemon nvidia-persistenced): else the driver is loaded \
                 anew whenever the last process leaves the GPU, which takes seconds",
            ),
            false => Finding::ok(CHECK, found),
        });
    }
    if let Some(lost) = state.uncorrected.filter(|lost| *lost > 0) {
        findings.push(Finding::warn(
            CHECK,
            format!("{name}: {lost} errors of its memory were not put right since its driver came"),
            "reset the GPU or restart the machine, and have the GPU exchanged if they come back",
        ));
    }
    match state.shared {
        Some(Sharing::Nobody) => findings.push(Finding::fail(
            CHECK,
            format!("{name}: its compute mode is Prohibited, so no process can use it"),
            Some("nvidia-smi -c 0"),
        )),
        Some(Sharing::OneProcess) => findings.push(Finding::ok(
            CHECK,
            format!(
                "{name}: its compute mode is Exclusive_Process: ranks share it under MPS alone"
            ),
        )),
        _ => {}
    }
    findings
}

/// How wide its connection to PCI Express is. Its speed rests with the GPU and tells nothing.
fn of_slot(root: &Root, device: &Description) -> Option<Finding> {
    let (name, pci) = (&device.uuid, &device.pci);
    let lanes = |which: &str| root.number(&format!("sys/bus/pci/devices/{pci}/{which}_link_width"));
    let (now, most) = (lanes("current")?, lanes("max")?);
    // A virtual machine may show none.
    (0 < now && now < most).then(|| {
        Finding::warn(
            CHECK,
            format!("{name} ({pci}): {now} of {most} lanes of PCI Express are in use"),
            "reseat the card or riser, and see whether the slot has all lanes: what goes through \
             the host is slower by as much",
        )
    })
}

/// What AMD's kernel driver shows of a GPU in files.
fn of_amd(root: &Root, device: &Description) -> Vec<Finding> {
    let (name, folder) = (&device.uuid, format!("sys/bus/pci/devices/{}", device.pci));
    let clock = |label: &str, file: &str| {
        let text = root.text(&format!("{folder}/{file}"))?;
        let Clock { now, most } = states(&text)?;
        Some(format!("{label} {now} of {most} MHz"))
    };
    let words: Vec<String> =
        [clock("compute units at", "pp_dpm_sclk"), clock("memory at", "pp_dpm_mclk")]
            .into_iter()
            .flatten()
            .collect();
    let mut findings = Vec::new();
    if !words.is_empty() {
        findings.push(Finding::ok(CHECK, format!("{name}: {}", words.join(", "))));
    }
    let errors = root.text(&format!("{folder}/ras/umc_err_count")).unwrap_or_default();
    let lost = errors.lines().find_map(|line| line.strip_prefix("ue:")?.trim().parse().ok());
    if let Some(lost) = lost.filter(|lost: &u64| *lost > 0) {
        findings.push(Finding::warn(
            CHECK,
            format!("{name}: {lost} errors of its memory were not put right"),
            "reset the GPU or restart the machine, and have the GPU exchanged if they come back",
        ));
    }
    findings
}

/// The clocks of a `pp_dpm_*` file: a line a state, `1: 2100Mhz *`, the star at the present one.
fn states(text: &str) -> Option<Clock> {
    let megahertz = |line: &str| {
        let (_, rest) = line.split_once(": ")?;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u32>().ok()
    };
    let now = text.lines().find(|line| line.ends_with('*')).and_then(megahertz)?;
    Some(Clock { now, most: text.lines().filter_map(megahertz).max()? })
}

#[cfg(test)]
mod tests {
    use crossover_device::topology::state::Slowdown;

    use super::*;
    use crate::doctor::finding::Verdict;
    use crate::doctor::root::written::root;

    fn device() -> Description {
        Description {
            ordinal: 0,
            name: "a GPU".to_owned(),
            arch: "gfx942".to_owned(),
            uuid: "GPU-1".to_owned(),
            pci: "0000:17:00.0".to_owned(),
            multiprocessors: 304,
            l2: 0,
            memory: 0,
        }
    }

    fn well() -> GpuState {
        GpuState {
            uuid: "GPU-1".to_owned(),
            processor_clock: Some(Clock { now: 1980, most: 1980 }),
            memory_clock: Some(Clock { now: 3201, most: 3201 }),
            persistent: Some(true),
            ecc: Some(true),
            uncorrected: Some(0),
            shared: Some(Sharing::Everyone),
            slowed_by: Vec::new(),
        }
    }

    #[test]
    fn a_gpu_that_is_well_is_told_in_one_line() {
        let told = of_state(&well());
        let want = "GPU-1: multiprocessors at 1980 of 1980 MHz, memory at 3201 of 3201 MHz, \
                    persistence mode on";
        assert_eq!((told.len(), told[0].verdict, told[0].found.as_str()), (1, Verdict::Ok, want));
        let silent = GpuState { uuid: "GPU-1".to_owned(), ..GpuState::default() };
        assert!(of_state(&silent).is_empty());
        let capped = GpuState { slowed_by: vec![Slowdown::Power], ..well() };
        assert_eq!(of_state(&capped)[0].verdict, Verdict::Ok);
        let forgetful = of_state(&GpuState { persistent: Some(false), ..well() });
        assert!(forgetful[0].advice.as_deref().expect("advice").starts_with("nvidia-smi -pm 1"));
        assert_eq!(forgetful[0].verdict, Verdict::Ok);
    }

    #[test]
    fn faults_are_warned_of_and_what_nobody_can_use_fails() {
        let ill = GpuState {
            processor_clock: Some(Clock { now: 990, most: 1980 }),
            slowed_by: vec![Slowdown::Power, Slowdown::HardwareHeat],
            uncorrected: Some(3),
            shared: Some(Sharing::Nobody),
            ..well()
        };
        let told = of_state(&ill);
        let verdicts: Vec<Verdict> = told.iter().map(|finding| finding.verdict).collect();
        assert_eq!(verdicts, [Verdict::Warn, Verdict::Warn, Verdict::Fail]);
        let slow = "slowed by its limit of power and the hardware, which halves its clock (heat)";
        assert!(told[0].found.contains(slow), "{}", told[0].found);
        assert!(told[1].found.contains("3 errors of its memory"), "{}", told[1].found);
        let exclusive = of_state(&GpuState { shared: Some(Sharing::OneProcess), ..well() });
        assert_eq!((exclusive.len(), exclusive[1].verdict), (2, Verdict::Ok));
    }

    #[test]
    fn lanes_that_are_missing_are_told() {
        let of = |now: &str| {
            let folder = "sys/bus/pci/devices/0000:17:00.0";
            let (now_at, most_at) =
                (format!("{folder}/current_link_width"), format!("{folder}/max_link_width"));
            let (_folder, root) = root(&[(&now_at, now), (&most_at, "16\n")]);
            of_slot(&root, &device())
        };
        let narrow = of("8\n").expect("it is half as wide");
        assert_eq!(narrow.found, "GPU-1 (0000:17:00.0): 8 of 16 lanes of PCI Express are in use");
        assert!(of("16\n").is_none() && of("0\n").is_none());
        let (_folder, none) = root(&[]);
        assert!(of_slot(&none, &device()).is_none());
    }

    #[test]
    fn amds_clocks_and_errors_are_read_from_its_files() {
        let folder = "sys/bus/pci/devices/0000:17:00.0";
        let (clock, errors) =
            (format!("{folder}/pp_dpm_sclk"), format!("{folder}/ras/umc_err_count"));
        let (_folder, root) =
            root(&[(&clock, "0: 132Mhz *\n1: 2100Mhz\n"), (&errors, "ue: 2\nce: 40\n")]);
        let told = of_amd(&root, &device());
        assert_eq!(told[0].found, "GPU-1: compute units at 132 of 2100 MHz");
        assert_eq!((told.len(), told[1].verdict), (2, Verdict::Warn));
    }
}
