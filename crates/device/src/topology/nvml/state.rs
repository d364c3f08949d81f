//! What the library says of a GPU at this moment.

use nvml_wrapper::Device;
use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{Clock as Domain, ComputeMode, EccCounter, MemoryError};

use super::super::state::{Clock, GpuState, Sharing, Slowdown};
use super::{DeviceError, failed};

/// NVML's reasons that are told. That a GPU has nothing to do is no reason to tell, and a display's
/// setting is one of no GPU that computes.
const REASONS: [(ThrottleReasons, Slowdown); 7] = [
    (ThrottleReasons::APPLICATIONS_CLOCKS_SETTING, Slowdown::Setting),
    (ThrottleReasons::SW_POWER_CAP, Slowdown::Power),
    (ThrottleReasons::SW_THERMAL_SLOWDOWN, Slowdown::Heat),
    (ThrottleReasons::HW_SLOWDOWN, Slowdown::Hardware),
    (ThrottleReasons::HW_THERMAL_SLOWDOWN, Slowdown::HardwareHeat),
    (ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN, Slowdown::PowerBrake),
    (ThrottleReasons::SYNC_BOOST, Slowdown::InStep),
];

pub(super) fn read(device: &Device<'_>) -> Result<GpuState, DeviceError> {
    let clock = |domain: Domain| {
        let (now, most) = (device.clock_info(domain), device.max_clock_info(domain));
        Some(Clock { now: now.ok()?, most: most.ok()? })
    };
    let reasons = device.current_throttle_reasons().unwrap_or(ThrottleReasons::NONE);
    let uncorrected = device.total_ecc_errors(MemoryError::Uncorrected, EccCounter::Volatile);
    Ok(GpuState {
        uuid: device.uuid().map_err(failed("nvmlDeviceGetUUID"))?,
        processor_clock: clock(Domain::SM),
        memory_clock: clock(Domain::Memory),
        slowed_by: slowdowns(reasons),
        persistent: device.is_in_persistent_mode().ok(),
        ecc: device.is_ecc_enabled().ok().map(|ecc| ecc.currently_enabled),
        uncorrected: uncorrected.ok(),
        shared: device.compute_mode().ok().map(sharing),
    })
}

fn slowdowns(reasons: ThrottleReasons) -> Vec<Slowdown> {
    let holds = |(reason, _): &&(ThrottleReasons, Slowdown)| reasons.contains(*reason);
    REASONS.iter().filter(holds).map(|(_, slowdown)| *slowdown).collect()
}

fn sharing(mode: ComputeMode) -> Sharing {
    match mode {
        ComputeMode::Default => Sharing::Everyone,
        ComputeMode::ExclusiveThread | ComputeMode::ExclusiveProcess => Sharing::OneProcess,
        ComputeMode::Prohibited => Sharing::Nobody,
    }
}
