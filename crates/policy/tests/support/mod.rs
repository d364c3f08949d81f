//! What several tests of this crate share: a registry of backends that exist in name only, and
//! policies in temporary files.
#![allow(dead_code, missing_docs, unreachable_pub, reason = "each test program uses a part of it")]

use std::path::{Path, PathBuf};

use crossover_core::agreement::{Local, Setup, SetupError, StepError};
use crossover_core::backend::{Algorithm, Backend, Descriptor, Param, Ready, Session, Values};
use crossover_core::call::{Op, Ops};
use crossover_core::contract::{Deviation, Deviations};
use crossover_core::eligibility::Eligibility;
use crossover_core::facts::{Cap, Caps, GroupFacts};
use crossover_core::registry::{Registration, Registry};
use crossover_policy::{PolicyError, Sources};

const ALL_REDUCE: Eligibility =
    Eligibility { ops: Ops::of(&[Op::AllReduce]), multiple_of: 16, ..Eligibility::EVERYTHING };
const ALL_GATHER: Eligibility =
    Eligibility { ops: Ops::of(&[Op::AllGather]), ..Eligibility::EVERYTHING };
const LAMPORT: Eligibility = Eligibility {
    needs: Caps::of(&[Cap::Multicast]),
    deviates: Deviations::of(&[Deviation::SignedZeroFlush]),
    ..ALL_GATHER
};

const fn algorithm(name: &'static str, eligibility: Eligibility) -> Algorithm {
    Algorithm { name, eligibility, params: &[] }
}

const BLOCKS: Param =
    Param { name: "blocks", values: Values::Count { min: 1, max: 1024 }, default: 64 };
/// As the shipped policy for the host sets them.
const WAYS: &[Param] =
    &[bytes("stream"), bytes("ring"), bytes("twice"), bytes("past"), bytes("window")];
const fn bytes(name: &'static str) -> Param {
    Param { name, values: Values::Bytes { min: 0, max: u64::MAX }, default: u64::MAX }
}
const SHAPE: Param = Param { name: "shape", values: Values::Words(&["tree", "ring"]), default: 0 };
const EARLY: Param = Param { name: "early", values: Values::Flag, default: 0 };

const fn descriptor(id: &'static str, algorithms: &'static [Algorithm]) -> Descriptor {
    Descriptor { id, version: "0.0.0", algorithms, settings: &["chunk", "depth", "shm_dir"] }
}

pub static HOST: Descriptor = descriptor(
    "host",
    &[
        Algorithm { params: WAYS, ..algorithm("one_shot", Eligibility::EVERYTHING) },
        Algorithm {
            params: WAYS,
            ..algorithm(
                "two_shot",
                Eligibility { ops: Ops::of(&[Op::AllReduce]), ..Eligibility::EVERYTHING },
            )
        },
    ],
);
pub static IPC: Descriptor = descriptor(
    "ipc",
    &[
        Algorithm { params: &[BLOCKS], ..algorithm("one_shot_push", ALL_REDUCE) },
        algorithm("two_shot_pull", ALL_REDUCE),
        algorithm("all_gather", ALL_GATHER),
    ],
);
pub static NVLS: Descriptor = descriptor(
    "nvls",
    &[Algorithm { params: &[SHAPE, EARLY], ..algorithm("lamport_all_gather", LAMPORT) }],
);

/// `host`, `ipc` and `nvls`; there is no `nccl`.
pub fn registry() -> Registry {
    [&HOST, &IPC, &NVLS]
        .into_iter()
        .try_fold(Registry::empty(), |registry, descriptor| {
            registry.with(Registration { descriptor, make: || Box::new(InNameOnly) })
        })
        .unwrap()
}

/// A backend that no group can set up.
struct InNameOnly;

impl Backend for InNameOnly {
    fn set_up<'g>(&self, setup: &mut Setup<'g>, _: &GroupFacts) -> Result<Ready<'g>, SetupError> {
        let session = setup.step("open a session", Local::new(()), |_, ()| {
            Err::<Box<dyn Session>, _>(StepError::new("this backend exists in name only"))
        })?;
        let capacity = setup.min("agree on capacity", Local::new(0))?;
        Ok(Ready { session, capacity })
    }
}

/// Policies in a folder of their own, gone when dropped.
pub struct Files {
    folder: tempfile::TempDir,
    paths: Vec<PathBuf>,
}

impl Files {
    /// Writes each text to a file: `0.toml`, `1.toml`, and so on.
    pub fn of(texts: &[&str]) -> Files {
        let folder = tempfile::tempdir().unwrap();
        let mut paths = Vec::new();
        for (at, text) in texts.iter().enumerate() {
            let path = folder.path().join(format!("{at}.toml"));
            std::fs::write(&path, text).unwrap();
            paths.push(path);
        }
        Files { folder, paths }
    }

    pub fn paths(&self) -> Vec<PathBuf> {
        self.paths.clone()
    }

    /// An error as people see it, but for the folder.
    pub fn shown(&self, error: &PolicyError) -> String {
        error.to_string().replace(&format!("{}/", self.folder.path().display()), "")
    }
}

/// The policy of these texts, over the floor alone.
pub fn isolated(texts: &[&str]) -> Result<crossover_policy::Effective, String> {
    let files = Files::of(texts);
    Sources::isolated(files.paths()).load(&registry()).map_err(|e| files.shown(&e))
}

/// What programs said, compared with files that say what they must say. With `BLESS` in the
/// environment the files are written instead.
#[derive(Default)]
pub struct Records {
    changed: Vec<String>,
}

impl Records {
    pub fn compare(&mut self, record: &Path, told: &str) {
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(record, told).unwrap();
        }
        let recorded = std::fs::read_to_string(record).unwrap_or_default();
        if told != recorded {
            let name = record.display();
            self.changed.push(format!("{name}\n--- told\n{told}--- recorded\n{recorded}"));
        }
    }

    pub fn assert_unchanged(self) {
        assert!(self.changed.is_empty(), "{}", self.changed.join("\n"));
    }
}
