//! From settings and a launcher to a group.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use crossover_bootstrap::{Identity, Launch, Options, connect};
use crossover_core::agreement::{StepError, all_or_none};
use crossover_core::bootstrap::Bootstrap;
use crossover_core::communicator::Communicator;
use crossover_core::contract::Contract;
use crossover_core::form::FormError;
use crossover_core::registry::Registry;
use crossover_policy::{Effective, Override, Settings, Sources};

use crate::Error;
use crate::device::{DeviceCopier, Peers, Place};
use crate::recorded::recorded;
use crate::strict::refuse_findings;

/// How long forming a group may take where nobody says: engines load models meanwhile.
const FORM_TIMEOUT: Duration = Duration::from_secs(60);

/// Puts a group together. What it is told here is stronger than files and variables.
#[derive(Clone)]
pub struct Builder {
    variables: Vec<(OsString, OsString)>,
    overrides: Vec<Override>,
    policies: Vec<(String, String)>,
    registry: Registry,
    launch: Option<Launch>,
    tag: String,
    contract: Option<Contract>,
}

impl Builder {
    /// Reads the environment, once: the launcher's variables and `CROSSOVER_*`.
    ///
    /// # Errors
    ///
    /// Launcher variables are incomplete or contradict one another, or two linked backends have
    /// one id.
    pub fn from_env() -> Result<Builder, Error> {
        Builder::from_variables(std::env::vars_os())
    }

    /// The same, from these variables alone.
    ///
    /// # Errors
    ///
    /// As for [`Builder::from_env`].
    pub fn from_variables(
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Builder, Error> {
        let variables: Vec<(OsString, OsString)> = variables.into_iter().collect();
        let text = |name: &str| {
            let found = variables.iter().find(|(key, _)| key == name)?;
            found.1.to_str().map(str::to_owned)
        };
        Ok(Builder {
            launch: Launch::from_env(&text)?,
            registry: crossover_backends::registry()?,
            overrides: Vec::new(),
            policies: Vec::new(),
            tag: "world".to_owned(),
            contract: None,
            variables,
        })
    }

    /// The linked backends.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// This process's place among the ranks; `None` if no launcher gave it one. Then a group has
    /// one rank.
    pub fn launch(&self) -> Option<&Launch> {
        self.launch.as_ref()
    }

    /// Takes its place from the program rather than from a launcher.
    pub fn with_launch(mut self, launch: Launch) -> Self {
        self.launch = Some(launch);
        self
    }

    /// The group's name in policies, such as `tp`; `world` if not said.
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tag = tag.into();
        self
    }

    /// What the engine demands and accepts. Settings can demand more; they cannot accept more.
    pub fn contract(mut self, contract: Contract) -> Self {
        self.contract = Some(contract);
        self
    }

    /// Adds a policy of the engine's own: TOML text, stronger than every file; `name` is what messages
    /// call it.
    pub fn policy(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.policies.push((name.into(), text.into()));
        self
    }

    /// Makes a setting, such as `use` or `host.chunk`; `origin` says in messages who does, such
    /// as `--use`.
    pub fn set(
        mut self,
        key: impl Into<String>,
        value: impl Into<String>,
        origin: impl Into<String>,
    ) -> Self {
        let (key, value, origin) = (key.into(), value.into(), origin.into());
        self.overrides.push(Override { key, value, origin });
        self
    }

    /// Says where this rank's data is, as the setting `device` does: `host`, `cuda` (the device of the
    /// rank's number on its node), `cuda:0`, `hip:1` or `auto`.
    pub fn device(self, device: impl Into<String>) -> Self {
        self.set("device", device, "Builder::device")
    }

    /// The settings in force.
    ///
    /// # Errors
    ///
    /// A variable, option or line of the settings file is wrong.
    pub fn settings(&self) -> Result<Settings, Error> {
        Ok(Settings::load(self.variables.iter().cloned(), &self.overrides, &self.registry)?)
    }

    /// Forms the group. Collective: every rank calls it.
    ///
    /// # Errors
    ///
    /// A setting or policy file is wrong or, with the setting `strict`, lint has anything to say of
    /// the policy; a device cannot be had, or ranks share one and may not; a rank is missing or lost,
    /// ranks disagree, or no backend can be had. Where the cause concerns all ranks, all hold the same
    /// sentence.
    pub fn form(&self) -> Result<Communicator, Error> {
        let launch = self.launch.clone().unwrap_or_else(|| Launch::new(0, 1));
        let loaded = self.load(&launch);
        let mut options = Options { deadline: FORM_TIMEOUT, ..Options::default() };
        if let Ok(Loaded { settings, .. }) = &loaded {
            options.deadline = settings.form_timeout.unwrap_or(FORM_TIMEOUT);
            options.node_id = settings.node_id.clone();
        }
        // A rank whose files are wrong still comes, to say so: else its peers would wait for it.
        let channel: Arc<dyn Bootstrap> = connect(&launch, &options)?.into();
        let vote = loaded.as_ref().map(|_| ()).map_err(StepError::new);
        let everywhere =
            all_or_none(&*channel, "read its settings and policy and open its device", vote);
        let Loaded { settings, policy, place } = loaded?;
        everywhere?;

        let mut group = settings.group(&self.tag);
        if let Some(engine) = self.contract {
            let determinism = engine.determinism.max(group.contract.determinism);
            group.contract = Contract { determinism, ..engine };
        }
        group.backends.device = place.name();
        if let Some(cache) = place.p2p_cache(&settings) {
            for descriptor in self.registry.descriptors() {
                if descriptor.settings.contains(&"p2p_cache") {
                    let key = format!("{}.p2p_cache", descriptor.id);
                    group.backends.values.entry(key).or_insert_with(|| cache.clone());
                }
            }
        }
        let node_id = settings.node_id.as_deref();
        let peers = Peers::exchange(&*channel, Identity::here(node_id).node(), place.unit());
        let report = place.report(node_id, &peers.map_err(FormError::from)?);
        let formed = Communicator::form(&*channel, &self.registry, &policy.policy, report, &group)?;

        // One strict rank holds all to it. Where rank 0's policy was adopted, this rank's own files
        // say nothing about it, and rank 0 looks at those that do.
        let strictness = channel
            .all_gather("compare `strict`", &[u8::from(settings.strict)])
            .map_err(FormError::from)?;
        let is_strict = strictness.iter().any(|theirs| *theirs == [1]);
        let in_force = policy.policy.digest() == formed.plan().policy_digest();
        let strict = if is_strict && in_force {
            refuse_findings(&policy, &self.registry, &formed, self.contract)
        } else {
            Ok(())
        };
        let vote = strict.as_ref().map(|_| ()).map_err(StepError::new);
        let everywhere = all_or_none(&*channel, "keep to `strict`", vote);
        strict?;
        everywhere?;
        let formed = recorded(formed, &*channel, &launch, &settings, place.name(), &self.registry)?;
        let formed = formed.with_channel(channel);
        Ok(match place {
            Place::Host => formed,
            Place::Device(device) => formed.with_copier(Arc::new(DeviceCopier(device))),
        })
    }

    fn load(&self, launch: &Launch) -> Result<Loaded, Error> {
        let settings = self.settings()?;
        let place = Place::open(&settings, launch)?;
        let of_files = Sources::of(&settings, place.arch());
        let texts = self.policies.iter().cloned();
        let sources = texts.fold(of_files, |sources, (name, text)| sources.with_text(name, text));
        let policy = sources.load(&self.registry)?;
        Ok(Loaded { settings, policy, place })
    }
}

/// What a rank does by itself before it meets the others.
struct Loaded {
    settings: Settings,
    policy: Effective,
    place: Place,
}
