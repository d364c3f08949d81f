//! How a group is described.

use std::ffi::{OsString, c_char};

use crossover::Builder;
use crossover_bootstrap::{Launch, Place};

use crate::arguments::{Structure, structure, text};
use crate::failure::Failure;

/// A setting, such as `use` = `ipc/one_shot_push` or `call_timeout` = `30s`; the same names as
/// `CROSSOVER_*` variables have, and stronger than they.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its name, such as `allow_shared_device` or `host.chunk`.
    pub key: *const c_char,
    /// Its value.
    pub value: *const c_char,
}

/// How a group is formed. Zero everything, then set `size`: what is null or 0 is as the environment
/// says. Strings are UTF-8 and copied.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// sizeof(crossover_config).
    pub size: usize,
    /// The group's name in policies, such as `tp`; null for `world`.
    pub tag: *const c_char,
    /// Where this rank's data is: `host`, `cuda`, `cuda:0`, `hip:1` or `auto`. Null: as settings say,
    /// and `host` if they do not.
    pub device: *const c_char,
    /// Where the ranks meet: `unix:/abs/path`, `file:/abs/path` or `tcp://host:port`. Only with
    /// `world`.
    pub rendezvous: *const c_char,
    /// The job's name: ranks of another are refused. Only with `world`.
    pub job: *const c_char,
    /// A policy of the engine's own, as TOML text: stronger than every file.
    pub policy: *const c_char,
    /// `setting_count` settings, or null.
    pub settings: *const Setting,
    /// How many there are.
    pub setting_count: usize,
    /// Number of ranks, at most 65536. 0: the variables of a launcher (`crossover launch`, torchrun,
    /// mpirun, srun) say who this rank is, and without a launcher the group has one rank.
    pub world: u32,
    /// This rank. Only with `world`.
    pub rank: u32,
    /// Number of ranks on this node; 0 for all of them. Only with `world`.
    pub local_world: u32,
    /// This rank's number among them, by which `device` = `cuda` chooses. Only with `local_world`.
    pub local_rank: u32,
    /// How often the job was restarted: ranks of another attempt are refused. Only with `world`.
    pub attempt: u32,
    /// 0.
    pub reserved: u32,
}

// SAFETY: its first field is a `usize`, and it is made of integers and raw pointers.
unsafe impl Structure for Config {
    const NAME: &'static str = "crossover_config";
}

/// The variables by which a launcher tells a rank its place: not read where the engine states it.
const LAUNCHER: [&str; 7] = [
    "CROSSOVER_RANK",
    "CROSSOVER_WORLD_SIZE",
    "CROSSOVER_LOCAL_RANK",
    "CROSSOVER_LOCAL_WORLD_SIZE",
    "CROSSOVER_JOB",
    "CROSSOVER_ATTEMPT",
    "CROSSOVER_RENDEZVOUS",
];

/// Reads a description, and the environment; null for the environment alone.
///
/// # Safety
///
/// The pointer is null, or valid with all that it points to.
pub(crate) unsafe fn builder(config: *const Config) -> Result<Builder, Failure> {
    if config.is_null() {
        return Ok(Builder::from_env()?);
    }
    // SAFETY: the caller's promise, here and below.
    unsafe {
        let config = structure(config, "`config`")?;
        let mut builder = match config.launch()? {
            None => Builder::from_env()?,
            Some(launch) => Builder::from_variables(own_variables())?.with_launch(launch),
        };
        if let Some(tag) = text(config.tag, "`tag`")? {
            builder = builder.tag(tag);
        }
        if let Some(device) = text(config.device, "`device`")? {
            builder = builder.set("device", device, "crossover_config.device");
        }
        if let Some(policy) = text(config.policy, "`policy`")? {
            builder = builder.policy("crossover_config.policy", policy);
        }
        for setting in config.settings()? {
            let (Some(key), Some(value)) =
                (text(setting.key, "a setting's key")?, text(setting.value, "a setting's value")?)
            else {
                return Err(Failure::usage("a setting's key or value is null: set both"));
            };
            builder = builder.set(key, value, "crossover_config.settings");
        }
        Ok(builder)
    }
}

impl Config {
    /// This rank's place, if the engine states it.
    ///
    /// # Safety
    ///
    /// The strings are null or valid.
    unsafe fn launch(&self) -> Result<Option<Launch>, Failure> {
        let Config { world, rank, local_world, local_rank, attempt, .. } = *self;
        // SAFETY: the caller's promise.
        let (rendezvous, job) =
            unsafe { (text(self.rendezvous, "`rendezvous`")?, text(self.job, "`job`")?) };
        if self.reserved != 0 {
            return Err(Failure::usage("`reserved` is not 0: zero the whole crossover_config"));
        }
        if world == 0 {
            let states = rank | local_world | local_rank | attempt != 0;
            if states || rendezvous.is_some() || job.is_some() {
                return Err(Failure::usage(
                    "the config states a place among ranks, and `world` is 0: set it, or leave all \
                     of it to the launcher",
                ));
            }
            return Ok(None);
        }
        if world > Launch::MOST_RANKS {
            return Err(Failure::usage(format!(
                "`world` is {world}: a group has at most {} ranks",
                Launch::MOST_RANKS
            )));
        }
        if rank >= world {
            return Err(Failure::usage(format!("there is no rank {rank} of {world}")));
        }
        let mut launch = Launch::new(rank, world).named(job.unwrap_or("unnamed"), attempt);
        match local_world {
            0 if local_rank != 0 => {
                return Err(Failure::usage("`local_rank` is set, and `local_world` is not"));
            }
            0 => {}
            _ if local_rank >= local_world || local_world > world => {
                return Err(Failure::usage(format!(
                    "there is no rank {local_rank} of {local_world} on a node of a world of {world}"
                )));
            }
            _ => launch = launch.local(local_rank, local_world),
        }
        if let Some(address) = rendezvous {
            let place = address.parse::<Place>();
            let place =
                place.map_err(|e| Failure::usage(format!("`rendezvous` = `{address}`: {e}")))?;
            launch = launch.at(place);
        }
        Ok(Some(launch))
    }

    /// # Safety
    ///
    /// As many settings as stated are valid.
    unsafe fn settings(&self) -> Result<&[Setting], Failure> {
        match (self.setting_count, self.settings.is_null()) {
            (0, _) => Ok(&[]),
            (n, true) => Err(Failure::usage(format!("`settings` is null, and {n} are announced"))),
            // SAFETY: the caller's promise.
            (n, false) => Ok(unsafe { std::slice::from_raw_parts(self.settings, n) }),
        }
    }
}

/// The settings of the environment.
fn own_variables() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| {
        let name = name.to_string_lossy();
        let is_own = name.starts_with("CROSSOVER_") && !LAUNCHER.contains(&&*name);
        // Where is kept what nobody names a folder for.
        is_own || ["HOME", "TMPDIR", "XDG_CACHE_HOME"].contains(&&*name)
    })
}
