//! The calls that the safe wrapper lacks, or whose answer it loses.

use nvml_wrapper::Device;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper_sys::bindings::{
    NvmlLib, nvmlGpuFabricInfo_t, nvmlGpuFabricInfo_v2_t,
    nvmlIntNvLinkDeviceType_enum_NVML_NVLINK_DEVICE_TYPE_GPU as TYPE_GPU,
    nvmlIntNvLinkDeviceType_enum_NVML_NVLINK_DEVICE_TYPE_SWITCH as TYPE_SWITCH,
    nvmlIntNvLinkDeviceType_t, nvmlReturn_enum_NVML_SUCCESS as SUCCESS, nvmlReturn_t,
};

use super::super::fabric::{Fabric, State};
use crate::error::DeviceError;

/// A second handle to the library that the wrapper has loaded: the same objects, so that the
/// wrapper's device handles mean the same here.
pub(super) struct Raw(NvmlLib);

/// What is at the other end of a link.
pub(super) enum Kind {
    Gpu,
    Switch,
    Other,
}

impl Raw {
    pub(super) fn open(path: &str) -> Result<Raw, DeviceError> {
        // SAFETY: this is the library that the wrapper has loaded and initialised; loading it
        // again runs nothing.
        match unsafe { NvmlLib::new(path) } {
            Ok(library) => Ok(Raw(library)),
            Err(error) => Err(DeviceError::Absent(format!("{path} cannot be loaded: {error}"))),
        }
    }

    /// The kind of a link's other end. (The wrapper has this call, and gives `Unknown` for all.)
    pub(super) fn remote_kind(&self, device: &Device<'_>, link: u32) -> Option<Kind> {
        let call = self.0.nvmlDeviceGetNvLinkRemoteDeviceType.as_ref().ok()?;
        let mut kind: nvmlIntNvLinkDeviceType_t = 0;
        // SAFETY: the handle is the wrapper's and lives as long as `device`; the answer has room.
        let status = unsafe { call(device.handle(), link, &raw mut kind) };
        (status == SUCCESS).then_some(match kind {
            TYPE_GPU => Kind::Gpu,
            TYPE_SWITCH => Kind::Switch,
            _ => Kind::Other,
        })
    }

    /// The numbers of a MIG device's GPU instance and compute instance.
    pub(super) fn instance(&self, device: &Device<'_>) -> Option<(u32, u32)> {
        let gpu = self.0.nvmlDeviceGetGpuInstanceId.as_ref().ok()?;
        let compute = self.0.nvmlDeviceGetComputeInstanceId.as_ref().ok()?;
        let (mut gpu_instance, mut compute_instance) = (0, 0);
        // SAFETY: the handle is the wrapper's and lives as long as `device`; answers have room.
        let asked = unsafe {
            [
                gpu(device.handle(), &raw mut gpu_instance),
                compute(device.handle(), &raw mut compute_instance),
            ]
        };
        (asked == [SUCCESS; 2]).then_some((gpu_instance, compute_instance))
    }

    /// The fabric of a device, by the versioned call where the driver has it.
    pub(super) fn fabric(&self, device: &Device<'_>) -> Option<Fabric> {
        self.versioned_fabric(device).or_else(|| self.first_fabric(device))
    }

    fn versioned_fabric(&self, device: &Device<'_>) -> Option<Fabric> {
        let call = self.0.nvmlDeviceGetGpuFabricInfoV.as_ref().ok()?;
        // Version 2 is the oldest that has the health bits. NVML's versions are a size and a
        // number in the highest byte.
        let size = u32::try_from(size_of::<nvmlGpuFabricInfo_v2_t>()).ok()?;
        let mut info = nvmlGpuFabricInfo_v2_t {
            version: size | 2 << 24, // size: none, NVML's number of a structure's version
            clusterUuid: [0; 16],
            status: 0,
            cliqueId: 0,
            state: 0,
            healthMask: 0,
        };
        // SAFETY: the driver writes the structure of the version that `version` names, which is
        // the one passed; the handle lives as long as `device`.
        let status = unsafe { call(device.handle(), (&raw mut info).cast()) };
        (status == SUCCESS).then(|| Fabric {
            cluster: digits(&info.clusterUuid),
            clique: info.cliqueId,
            state: state(info.state),
            status: info.status,
            health: info.healthMask,
        })
    }

    fn first_fabric(&self, device: &Device<'_>) -> Option<Fabric> {
        let call = self.0.nvmlDeviceGetGpuFabricInfo.as_ref().ok()?;
        let mut info =
            nvmlGpuFabricInfo_t { clusterUuid: [0; 16], status: 0, cliqueId: 0, state: 0 };
        // SAFETY: the structure is the call's own; the handle lives as long as `device`.
        let status = unsafe { call(device.handle(), &raw mut info) };
        (status == SUCCESS).then(|| Fabric {
            cluster: digits(&info.clusterUuid),
            clique: info.cliqueId,
            state: state(info.state),
            status: info.status,
            health: 0,
        })
    }
}

fn digits(bytes: &[u8; 16]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn state(word: u8) -> State {
    match word {
        0 => State::NotSupported,
        1 => State::NotStarted,
        2 => State::InProgress,
        3 => State::Completed,
        _ => State::Unknown,
    }
}

/// NVML's number of an error; 999, its number for the unknown, for the wrapper's own.
pub(super) fn code(error: &NvmlError) -> i32 {
    const UNKNOWN: nvmlReturn_t = 999;
    let code: nvmlReturn_t = match error {
        NvmlError::Uninitialized => 1,
        NvmlError::InvalidArg => 2,
        NvmlError::NotSupported => 3,
        NvmlError::NoPermission => 4,
        NvmlError::NotFound => 6,
        NvmlError::DriverNotLoaded => 9,
        NvmlError::Timeout => 10,
        NvmlError::FailedToLoadSymbol(_) => 13,
        NvmlError::GpuLost => 15,
        _ => UNKNOWN,
    };
    i32::try_from(code).unwrap_or(i32::MAX)
}
