//! What the engine and the operator set, read once before the group forms.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::call::Ops;
use crate::vocabulary::vocabulary;

/// Settings of one group, equal or not between ranks: what must agree is compared at formation.
#[derive(Clone, Debug)]
pub struct GroupSettings {
    /// The group's name in policies (`match = { group = "tp" }`), such as `tp` or `ep`.
    pub tag: String,
    /// What the engine demands and accepts; intersected with the policy's.
    pub contract: crate::contract::Contract,
    /// What to do where ranks hold different policies.
    pub on_divergence: OnDivergence,
    /// Of which ops the decisions are logged, at target `crossover::explain`.
    pub explain: Ops,
    /// What ranks compare before each call, beyond what backends compare. Equal on all ranks.
    pub check: Check,
    /// Settings that backends read.
    pub backends: BackendSettings,
}

vocabulary! { "check",
    /// What ranks compare over the control plane before each call.
    pub enum Check in Checks {
        /// Nothing: backends compare what they can see.
        Off = "off",
        /// All that must be equal of a call. It costs a round of messages a call, and is for finding a
        /// mistake: it sees those that a library cannot, before the call starts.
        Args = "args",
    }
}

vocabulary! { "way to meet a hang",
    /// What is done where a group's ranks wait for one that does not come.
    pub enum OnHang in WaysToMeetAHang {
        /// It is said, and a dump written. The calls' own deadlines hold.
        Log = "log",
        /// Besides, the next call on each rank fails with the verdict; what runs goes on.
        Error = "error",
        /// Besides, every wait of the group ends, on all ranks, kernels' too.
        Abort = "abort",
    }
}

vocabulary! { "way to go on",
    /// What ranks that hold different policies do.
    pub enum OnDivergence in WaysToGoOn {
        /// They do not form the group.
        Error = "error",
        /// They take rank 0's, and those that differ log a warning.
        AdoptRank0 = "adopt_rank0",
    }
}

impl Default for GroupSettings {
    fn default() -> Self {
        GroupSettings {
            tag: "world".to_owned(),
            contract: crate::contract::Contract::DEFAULT,
            on_divergence: OnDivergence::Error,
            explain: Ops::NONE,
            check: Check::Off,
            backends: BackendSettings::default(),
        }
    }
}

/// The device of ranks whose data is in host memory.
pub const HOST_DEVICE: &str = "host";

/// Settings that a backend's set-up may read through [`Here`](crate::agreement::Here).
#[derive(Clone, Debug)]
pub struct BackendSettings {
    /// Where this rank's data is: [`HOST_DEVICE`], or a driver and an ordinal, such as `cuda:0`.
    pub device: String,
    /// May several ranks be on one device? Equal on all ranks.
    pub allow_shared_device: bool,
    /// How long a collective may wait for a peer before it fails, naming the peer. Where a backend
    /// cannot see which calls peers have made (`nccl` across nodes), the time counts too that a call
    /// waits behind other work of its stream: there it has to be longer than such work takes.
    pub call_deadline: Duration,
    /// Free-form settings, keyed `backend.name`, such as `host.shm_dir`.
    pub values: BTreeMap<String, String>,
}

impl BackendSettings {
    /// A free-form setting.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str)
    }
}

impl Default for BackendSettings {
    fn default() -> Self {
        BackendSettings {
            device: HOST_DEVICE.to_owned(),
            allow_shared_device: false,
            call_deadline: Duration::from_secs(60),
            values: BTreeMap::new(),
        }
    }
}
