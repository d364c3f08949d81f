//! How GPUs are at this moment: what slows them, and what is broken. Of use to a person; nothing is
//! decided by it, because it is another a moment later.

use serde::{Deserialize, Serialize};

/// What a GPU's management library says of it now. What a driver does not tell is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuState {
    /// `GPU-…`.
    pub uuid: String,
    /// The clock of its multiprocessors.
    pub processor_clock: Option<Clock>,
    /// The clock of its memory.
    pub memory_clock: Option<Clock>,
    /// What keeps its clocks down, apart from having nothing to do.
    pub slowed_by: Vec<Slowdown>,
    /// Does its driver stay loaded while nobody uses it?
    pub persistent: Option<bool>,
    /// Are errors of its memory found and put right?
    pub ecc: Option<bool>,
    /// Errors that could not be put right, since the driver was loaded.
    pub uncorrected: Option<u64>,
    /// May several processes use it?
    pub shared: Option<Sharing>,
}

/// A clock in MHz.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// Now.
    pub now: u32,
    /// The highest that it can have.
    pub most: u32,
}

/// Why clocks are lower than they could be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Slowdown {
    /// Somebody has set a lower clock.
    Setting,
    /// The limit of its power.
    Power,
    /// Heat, seen by the driver.
    Heat,
    /// Hardware halves the clock at least: heat, a power brake or too much power.
    Hardware,
    /// Hardware halves the clock at least: heat.
    HardwareHeat,
    /// Hardware halves the clock at least: the power supply demands it.
    PowerBrake,
    /// It is kept in step with a slower GPU.
    InStep,
}

impl Slowdown {
    /// In words, for a sentence that begins with "slowed by".
    pub fn in_words(self) -> &'static str {
        match self {
            Slowdown::Setting => "a clock that somebody has set",
            Slowdown::Power => "its limit of power",
            Slowdown::Heat => "heat",
            Slowdown::Hardware => "the hardware, which halves its clock (heat or power)",
            Slowdown::HardwareHeat => "the hardware, which halves its clock (heat)",
            Slowdown::PowerBrake => "the power supply's brake",
            Slowdown::InStep => "a slower GPU that it is kept in step with",
        }
    }

    /// Is something wrong with the machine, rather than set or as usual under load?
    pub fn is_fault(self) -> bool {
        use Slowdown::{Hardware, HardwareHeat, Heat, PowerBrake};
        matches!(self, Heat | Hardware | HardwareHeat | PowerBrake)
    }
}

/// Who may use a GPU: NVML's compute mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// Everyone.
    Everyone,
    /// One process at a time.
    OneProcess,
    /// Nobody.
    Nobody,
}
