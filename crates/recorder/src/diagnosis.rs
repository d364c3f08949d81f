//! What the analyser found, as data: text, JSON and pictures are made of it. In JSON keys and
//! names are as written here, in `snake_case`, and stay.

use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::image::{Life, Phase};

/// What is the matter with a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    #[serde(serialize_with = "hexadecimal", deserialize_with = "from_hexadecimal")]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupState {
    /// Its name.
    pub tag: String,
    /// Its number; in JSON as text, in hexadecimal digits.
    #[serde(serialize_with = "hexadecimal", deserialize_with = "from_hexadecimal")]
    pub group: u64,
    /// Number of ranks.
    pub world: u32,
    /// All ranks, in rank order.
    pub ranks: Vec<RankState>,
}

/// One rank of a group; of one whose ring is missing only number and process are known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankState {
    /// Its number.
    pub rank: u32,
    /// Its process, as `host:pid`.
    pub member: String,
    /// Is its ring among those that were looked at?
    pub seen: bool,
    /// Is its process there?
    #[serde(default, serialize_with = "life", deserialize_with = "from_life")]
    pub life: Option<Life>,
    /// Where it is in the group's life.
    #[serde(default, serialize_with = "phase", deserialize_with = "from_phase")]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

fn from_hexadecimal<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let text = String::deserialize(from)?;
    u64::from_str_radix(&text, 16).map_err(D::Error::custom)
}

fn from_life<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Life>, D::Error> {
    let lives = [Life::Running, Life::Stopped, Life::Gone, Life::Unknown];
    named(from, lives, life_name)
}

fn from_phase<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Phase>, D::Error> {
    named(from, Phase::ALL, Phase::name)
}

/// The one that has the name, or none where null stands.
fn named<'de, D: Deserializer<'de>, T: Copy>(
    from: D,
    all: impl IntoIterator<Item = T>,
    name: impl Fn(T) -> &'static str,
) -> Result<Option<T>, D::Error> {
    let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
    let known = all.into_iter().find(|one| name(*one) == text);
    known.map(Some).ok_or_else(|| D::Error::custom(format!("`{text}` is unknown")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_named_as_json_has_it() {
        for class in [Class::ConfigDivergence, Class::DeviceBehind, Class::Frozen, Class::Ended] {
            let json = serde_json::to_string(&class).expect("a unit variant is a string");
            assert_eq!(json, format!("\"{}\"", class.name()));
        }
    }

    fn everything(class: Class, branch: Option<Branch>) -> Diagnosis {
        let verdict = Verdict {
            class,
            branch,
            fields: vec!["dtype".to_owned()],
            tag: "tp".to_owned(),
            group: u64::MAX,
            number: Some(u64::MAX),
            seq: None,
            step: Some(6),
            ranks: vec![1, 2],
            site: Some("attn".to_owned()),
            expected: None,
            found: Some("a call".to_owned()),
            sentence: "it is so".to_owned(),
            evidence: vec!["this".to_owned()],
            advice: vec!["do that".to_owned()],
            age_ms: Some(1001),
            effect: None,
        };
        let device = DeviceState { call: 7, awaited: vec![1], what: "data".to_owned(), age_ms: 5 };
        let rank = |life, phase| RankState {
            rank: 1,
            member: "h:1".to_owned(),
            seen: true,
            life,
            phase,
            issued: 9,
            finished: 8,
            step: 6,
            last: Some("a call".to_owned()),
            device: Some(device.clone()),
            end: Some("an error".to_owned()),
            beat_age_ms: Some(99),
        };
        let lives = [Life::Running, Life::Stopped, Life::Gone, Life::Unknown].map(Some);
        let mut ranks: Vec<RankState> =
            lives.into_iter().map(|life| rank(life, Some(Phase::Failed))).collect();
        ranks.extend(Phase::ALL.map(|phase| rank(None, Some(phase))));
        ranks.push(RankState { device: None, ..rank(None, None) });
        let effect = Some(Box::new(Verdict { class: Class::Ended, ..verdict.clone() }));
        Diagnosis {
            job: "j".to_owned(),
            verdicts: vec![verdict.clone(), Verdict { effect, ..verdict }],
            groups: vec![GroupState { tag: "tp".to_owned(), group: 0xAF, world: 11, ranks }],
            notes: vec!["a note".to_owned()],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let branches = ["skipped", "extra", "different_path", "eager_vs_graph", "other_graph"];
        for branch in branches {
            let branch: Branch = serde_json::from_value(branch.into()).expect("it is one");
            let all = everything(Class::BranchDivergence, Some(branch));
            let json = serde_json::to_string(&all).expect("data alone");
            assert_eq!(serde_json::from_str::<Diagnosis>(&json).ok(), Some(all));
        }
    }

    #[test]
    fn what_makes_no_sense_is_none() {
        let json = serde_json::to_value(everything(Class::Left, None)).expect("data alone");
        for (at, wrong) in [
            ("/verdicts/0/class", "of_another_version".into()),
            ("/verdicts/1/effect/group", "no number".into()),
            ("/groups/0/ranks/0/phase", "asleep".into()),
            ("/groups/0/world", (-1).into()),
            ("/notes", serde_json::Value::Null),
        ] {
            let mut json = json.clone();
            *json.pointer_mut(at).expect("it is there") = wrong;
            assert!(Diagnosis::deserialize(&json).is_err(), "{at}");
        }
    }
}
