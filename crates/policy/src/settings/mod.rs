//! What the operator and the engine set, from the weakest to the strongest source: defaults, the
//! file that `CROSSOVER_CONFIG` names, variables `CROSSOVER_*`, the program's own overrides.
//!
//! Read once, before a group forms, and from what the caller hands over: nothing here looks at the
//! process's environment.

mod device;
mod entry;
mod error;
mod recording;
mod value;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crossover_core::call::Ops;
use crossover_core::contract::{Contract, Deviations};
use crossover_core::policy::{Layer, Origin};
use crossover_core::registry::Registry;
use crossover_core::settings::{BackendSettings, Check, GroupSettings, OnDivergence};
use figment::Figment;

pub use device::DeviceChoice;
use entry::Entry;
pub use error::SettingsError;
pub use recording::{DumpFolder, Recording};

/// Where a node's own policies are, where nobody says.
const SITE: &str = "/etc/crossover";

/// Everything that can be set. Absent means that nobody said.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// `policy`: files of the user layer, a later one stronger than an earlier one.
    pub policy: Vec<PathBuf>,
    /// `site`: the folder of the node's own policies, `policy.d` and `tuned.d`.
    pub site: PathBuf,
    /// `use`: what is forced, such as `host/two_shot` or `all_reduce=host/two_shot`.
    pub forced: Option<Stated<String>>,
    /// `disable`: backends and algorithms that are switched off, with commas between; and rules
    /// and tables that are, as `rule:<id>`.
    pub disabled: Option<Stated<String>>,
    /// `enable`: rules and tables that files switch off, as `rule:<id>` with commas between.
    pub enabled: Option<Stated<String>>,
    /// `determinism` and `accept`: what is demanded of results, and accepted in them.
    pub contract: Contract,
    /// `strict`: a warning about a policy is an error, but for where its numbers were measured.
    pub strict: bool,
    /// `explain`: ops whose decisions are logged, with commas between, or `all`.
    pub explain: Ops,
    /// `on_divergence`: what ranks do that hold different policies.
    pub on_divergence: OnDivergence,
    /// `device`: where this rank's data is; host memory if nobody says.
    pub device: DeviceChoice,
    /// `allow_shared_device`: several ranks may be on one device. Equal on all ranks.
    pub allow_shared_device: bool,
    /// `node_id`: the node's identity, where the kernel's boot id does not tell nodes apart.
    pub node_id: Option<String>,
    /// `form_timeout`: how long forming a group may take.
    pub form_timeout: Option<Duration>,
    /// `call_timeout`: how long a collective waits for a peer. For `nccl` across nodes, work that is
    /// queued before it counts too; on one node, a call that all ranks have made has ten times that.
    pub call_timeout: Option<Duration>,
    /// `check`: what ranks compare before each call, beyond what backends compare. Equal on all ranks.
    pub check: Check,
    /// `record_dir`, `dump_dir`, `on_hang`, `hang_warning` and `hang_timeout`: the flight recorder and the
    /// watchdog.
    pub recording: Recording,
    /// Where is kept what can be found out again: `crossover` in the user's folder for that,
    /// `$XDG_CACHE_HOME` or else `~/.cache`.
    pub cache: Option<PathBuf>,
    /// `<backend>.<name>`: what a backend reads; and `shm_dir`, for each backend that reads one and
    /// has none of its own.
    pub backends: BTreeMap<String, String>,
}

/// A value, and who set it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stated<T> {
    /// The value.
    pub value: T,
    /// A variable, an option, or a line of the settings file.
    pub origin: Origin,
    /// The program, or its environment.
    pub layer: Layer,
}

/// A setting that the program makes itself: stronger than all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The setting, such as `use` or `host.chunk`.
    pub key: String,
    /// Its value, as a variable would hold it.
    pub value: String,
    /// Who says so, for messages: an option such as `--use`.
    pub origin: String,
}

impl Settings {
    /// Puts the settings together. `variables` is the environment ([`std::env::vars_os`]); a
    /// variable `CROSSOVER_*` that is no setting is an error, but for those by which a launcher
    /// tells a process its place, and `CROSSOVER_LOG`. The backends of `registry` may have settings
    /// of their own: `CROSSOVER_HOST__CHUNK` is `host.chunk`. An empty text sets nothing.
    ///
    /// # Errors
    ///
    /// The first value that is no value of its setting, or the first unknown setting, by the
    /// variable, option or line that makes it.
    pub fn load(
        variables: impl IntoIterator<Item = (OsString, OsString)>,
        overrides: &[Override],
        registry: &Registry,
    ) -> Result<Settings, SettingsError> {
        let variables: Vec<(OsString, OsString)> = variables.into_iter().collect();
        let own = entry::of_variables(variables.iter().cloned(), registry)?;
        let config = own.iter().find(|entry| entry.key == entry::CONFIG);
        let file = match config {
            Some(config) => entry::of_file(config, registry)?,
            None => Vec::new(),
        };
        let program = entry::of_program(overrides, registry)?;
        let all = file.into_iter().chain(own).chain(program);
        let all = all.filter(|entry| !entry.value.is_empty());
        let figment = all.fold(Figment::new(), Figment::merge::<Entry>);
        Settings::read(&figment, &variables, registry)
    }

    fn read(
        figment: &Figment,
        variables: &[(OsString, OsString)],
        registry: &Registry,
    ) -> Result<Settings, SettingsError> {
        let text = |key: &str| entry::find(figment, key);
        let contract = Contract {
            determinism: match text("determinism") {
                Some(stated) => value::word("determinism", &stated)?,
                None => Contract::DEFAULT.determinism,
            },
            accept: match text("accept") {
                Some(stated) => value::words::<_, Deviations>("accept", &stated)?,
                None => Contract::DEFAULT.accept,
            },
        };
        let duration = |key| text(key).map(|stated| value::duration(key, &stated)).transpose();
        Ok(Settings {
            policy: text("policy").map(|stated| value::paths(&stated)).unwrap_or_default(),
            site: match text("site") {
                Some(stated) => value::folder("site", &stated)?,
                None => PathBuf::from(SITE),
            },
            forced: text("use"),
            disabled: text("disable"),
            enabled: text("enable"),
            contract,
            strict: match text("strict") {
                Some(stated) => value::boolean("strict", &stated)?,
                None => false,
            },
            explain: match text("explain") {
                Some(stated) => value::ops("explain", &stated)?,
                None => Ops::NONE,
            },
            on_divergence: match text("on_divergence") {
                Some(stated) => value::word("on_divergence", &stated)?,
                None => OnDivergence::Error,
            },
            device: match text("device") {
                Some(stated) => device::read("device", &stated)?,
                None => DeviceChoice::Host,
            },
            allow_shared_device: match text("allow_shared_device") {
                Some(stated) => value::boolean("allow_shared_device", &stated)?,
                None => false,
            },
            node_id: text("node_id").map(|stated| stated.value),
            form_timeout: duration("form_timeout")?,
            call_timeout: duration("call_timeout")?,
            check: match text("check") {
                Some(stated) => value::word("check", &stated)?,
                None => Check::Off,
            },
            recording: Recording::read(figment, variables)?,
            cache: cache(variables),
            backends: backends(figment, registry),
        })
    }

    /// What the core takes for the group of this name, such as `tp`. Its device is the host: the
    /// setting `device` may leave the choice to who opens one.
    pub fn group(&self, tag: impl Into<String>) -> GroupSettings {
        let defaults = BackendSettings::default();
        GroupSettings {
            tag: tag.into(),
            contract: self.contract,
            on_divergence: self.on_divergence,
            explain: self.explain,
            check: self.check,
            backends: BackendSettings {
                call_deadline: self.call_timeout.unwrap_or(defaults.call_deadline),
                values: self.backends.clone(),
                allow_shared_device: self.allow_shared_device,
                device: defaults.device,
            },
        }
    }
}

/// A folder from the root; any other is as good as none, says the XDG base directory specification.
fn cache(variables: &[(OsString, OsString)]) -> Option<PathBuf> {
    let folder = |name: &str| {
        let (_, value) = variables.iter().find(|(key, _)| key == name)?;
        Some(PathBuf::from(value)).filter(|path| path.is_absolute())
    };
    let folder = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")))?;
    Some(folder.join("crossover"))
}

fn backends(figment: &Figment, registry: &Registry) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    for descriptor in registry.descriptors() {
        let id = descriptor.id;
        let reads_shm_dir = descriptor.settings.contains(&"shm_dir");
        if reads_shm_dir && let Some(shm_dir) = entry::find(figment, "shm_dir") {
            values.insert(format!("{id}.shm_dir"), shm_dir.value);
        }
        for name in entry::names_within(figment, id) {
            let key = format!("{id}.{name}");
            if let Some(stated) = entry::find(figment, &key) {
                values.insert(key, stated.value);
            }
        }
    }
    values
}
