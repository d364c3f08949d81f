//! What the analyser found, as data: text, JSON and pictures are made of it. In JSON keys and
//! names are as written here, in `snake_case`, and stay.

use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::image::{Life, Phase};

/// What is the matter with a job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnosis {
    /// The job.
    pub job: String,
    /// What is the matter, causes before effects. Empty if all is well.
    pub verdicts: Vec<Verdict>,
    /// The groups that were looked at, by name and number.
    pub groups: Vec<GroupState>,
    /// What could not be judged, and why: rings that are missing or stale, records that are lost.
    pub notes: Vec<String>,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// What kind of trouble.
    pub class: Class,
    /// How the odd ranks' way differs; of a [`Class::BranchDivergence`] alone.
    pub branch: Option<Branch>,
    /// What differs, such as `dtype`; of a mismatch or of configurations. `note`, where all that a rank left out
    /// or has too much is a note of its state.
    pub fields: Vec<String>,
    /// The group's name.
    pub tag: String,
    /// The group's number; in JSON as text, in hexadecimal digits: it has more bits than a number there.
    #[serde(serialize_with = "hexadecimal")]
    pub group: u64,
    /// The record at which it shows; the first that differs, or the one that is waited for. Of what
    /// devices wait in, the last that all ranks have enqueued: it is that or one before.
    pub number: Option<u64>,
    /// That record's call, as errors have it.
    pub seq: Option<u64>,
    /// The engine's step at that record.
    pub step: Option<u32>,
    /// The ranks to look at, ascending: the odd ones; where there is no majority, all of both
    /// sides; of a call that does not end, those in it.
    pub ranks: Vec<u32>,
    /// Where in the program, if that is known.
    pub site: Option<String>,
    /// What most ranks have, in words; of two equal sides, what the lowest rank has.
    pub expected: Option<String>,
    /// What the odd ranks have, in words.
    pub found: Option<String>,
    /// The verdict in one sentence.
    pub sentence: String,
    /// What was seen that supports it.
    pub evidence: Vec<String>,
    /// What to do next.
    pub advice: Vec<String>,
    /// For how long it had been so when the images were taken, milliseconds: of a wait, how long
    /// the first rank has waited; of a lost, stopped or frozen process, the time since its last
    /// sign of life. None where that is not known or means nothing.
    pub age_ms: Option<u64>,
    /// What it led to.
    pub effect: Option<Box<Verdict>>,
}

/// In [`Verdict::fields`], where ranks differ in a note alone.
pub(crate) const NOTE: &str = "note";

/// Kinds of trouble, causes before effects: verdicts are sorted by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Ranks work by another policy, with other backends or as another version.
    ConfigDivergence,
    /// The engine's state, as it noted it, differs between ranks.
    StateDrift,
    /// Histories differ, and what they differ in first is no longer kept.
    DivergedBeforeWindow,
    /// Ranks took different ways through the program.
    BranchDivergence,
    /// The same call is served by another algorithm.
    DecisionDivergence,
    /// The same call has another number of elements.
    SizeMismatch,
    /// The same call has another element type, reduction, root or split.
    ArgumentMismatch,
    /// A process is gone without a goodbye.
    CrashedRank,
    /// A process is stopped, by a signal or a debugger.
    StoppedRank,
    /// A process is there, and not even its watchdog runs.
    Frozen,
    /// A rank closed or dropped the group while others make calls.
    Left,
    /// Ranks wait for one another in different groups.
    CrossGroupDeadlock,
    /// Same history, and a rank has not come to the next call.
    NotArrived,
    /// All ranks have enqueued the call, and a rank's device has not come to it.
    DeviceBehind,
    /// All ranks are in the call and it does not end.
    StuckTransport,
    /// All ranks are in calls that end, each after a long time.
    SlowTransport,
    /// The group ended with an error that nothing above explains.
    Ended,
}

/// How the odd ranks' way differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Branch {
    /// They left out a record, and go on as the others do.
    Skipped,
    /// They have a record more, and go on as the others do.
    Extra,
    /// They do something else.
    DifferentPath,
    /// They run now what others capture or replay, or the other way about.
    EagerVsGraph,
    /// They replay another graph.
    OtherGraph,
}

/// One group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupState {
    /// Its name.
    pub tag: String,
    /// Its number; in JSON as text, in hexadecimal digits.
    #[serde(serialize_with = "hexadecimal")]
    pub group: u64,
    /// Number of ranks.
    pub world: u32,
    /// All ranks, in rank order.
    pub ranks: Vec<RankState>,
}

/// One rank of a group; of one whose ring is missing only number and process are known.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RankState {
    /// Its number.
    pub rank: u32,
    /// Its process, as `host:pid`.
    pub member: String,
    /// Is its ring among those that were looked at?
    pub seen: bool,
    /// Is its process there?
    #[serde(serialize_with = "life")]
    pub life: Option<Life>,
    /// Where it is in the group's life.
    #[serde(serialize_with = "phase")]
    pub phase: Option<Phase>,
    /// Its last record's number.
    pub issued: u64,
    /// Its last record whose call came back.
    pub finished: u64,
    /// The engine's step.
    pub step: u32,
    /// Its last record, in words.
    pub last: Option<String>,
    /// What its device waits for, if it has been for long.
    pub device: Option<DeviceState>,
    /// The error that ended the group on it.
    pub end: Option<String>,
    /// How old its watchdog's last look was, milliseconds.
    pub beat_age_ms: Option<u64>,
}

/// A kernel that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceState {
    /// The call, as the device counts: replays of graphs count too. The low 32 bits.
    pub call: u64,
    /// The awaited ranks.
    pub awaited: Vec<u32>,
    /// What for.
    pub what: String,
    /// For how long it had been waiting when the image was taken, milliseconds.
    pub age_ms: u64,
}

impl Diagnosis {
    /// Without the waits that are younger than `patience`: ranks of a healthy group are always a
    /// few calls apart, and always in some call.
    #[must_use]
    pub fn patient(mut self, patience: Duration) -> Diagnosis {
        self.verdicts.retain(|verdict| {
            let age = verdict.age_ms.map(u128::from);
            !verdict.class.is_wait() || age.is_none_or(|age| age >= patience.as_millis())
        });
        self
    }
}

impl Class {
    /// As in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Class::ConfigDivergence => "config_divergence",
            Class::StateDrift => "state_drift",
            Class::DivergedBeforeWindow => "diverged_before_window",
            Class::BranchDivergence => "branch_divergence",
            Class::DecisionDivergence => "decision_divergence",
            Class::SizeMismatch => "size_mismatch",
            Class::ArgumentMismatch => "argument_mismatch",
            Class::CrashedRank => "crashed_rank",
            Class::StoppedRank => "stopped_rank",
            Class::Frozen => "frozen",
            Class::Left => "left",
            Class::CrossGroupDeadlock => "cross_group_deadlock",
            Class::NotArrived => "not_arrived",
            Class::DeviceBehind => "device_behind",
            Class::StuckTransport => "stuck_transport",
            Class::SlowTransport => "slow_transport",
            Class::Ended => "ended",
        }
    }

    /// Is it about ranks that wait, so that only its age tells trouble from a healthy moment?
    pub const fn is_wait(self) -> bool {
        matches!(
            self,
            Class::CrossGroupDeadlock
                | Class::NotArrived
                | Class::DeviceBehind
                | Class::StuckTransport
        )
    }
}

/// Of a life, its name in JSON and tables.
pub(crate) const fn life_name(life: Life) -> &'static str {
    match life {
        Life::Running => "running",
        Life::Stopped => "stopped",
        Life::Gone => "gone",
        Life::Unknown => "unknown",
    }
}

// Serde hands fields over by reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn hexadecimal<S: Serializer>(number: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&format_args!("{number:x}"))
}

#[allow(clippy::ref_option)]
fn life<S: Serializer>(life: &Option<Life>, to: S) -> Result<S::Ok, S::Error> {
    life.map(life_name).serialize(to)
}

#[allow(clippy::ref_option)]
fn phase<S: Serializer>(phase: &Option<Phase>, to: S) -> Result<S::Ok, S::Error> {
    phase.map(Phase::name).serialize(to)
}

#[cfg(test)]
mod tests {
    use super::Class;

    #[test]
    fn a_class_is_named_as_json_has_it() {
        for class in [Class::ConfigDivergence, Class::DeviceBehind, Class::Frozen, Class::Ended] {
            let json = serde_json::to_string(&class).expect("a unit variant is a string");
            assert_eq!(json, format!("\"{}\"", class.name()));
        }
    }
}
