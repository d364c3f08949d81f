//! A diagnosis as a dump has it in JSON, read back. What makes no sense is none: rings are there too.

use crossover_recorder::{
    Branch, Class, DeviceState, Diagnosis, GroupState, Life, Phase, RankState, Verdict,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

const BRANCHES: [Branch; 5] = [
    Branch::Skipped,
    Branch::Extra,
    Branch::DifferentPath,
    Branch::EagerVsGraph,
    Branch::OtherGraph,
];

const CLASSES: [Class; 17] = [
    Class::ConfigDivergence,
    Class::StateDrift,
    Class::DivergedBeforeWindow,
    Class::BranchDivergence,
    Class::DecisionDivergence,
    Class::SizeMismatch,
    Class::ArgumentMismatch,
    Class::CrashedRank,
    Class::StoppedRank,
    Class::Frozen,
    Class::Left,
    Class::CrossGroupDeadlock,
    Class::NotArrived,
    Class::DeviceBehind,
    Class::StuckTransport,
    Class::SlowTransport,
    Class::Ended,
];

/// All of it.
pub(super) fn diagnosis(told: &Value) -> Option<Diagnosis> {
    Some(Diagnosis {
        job: field(told, "job")?,
        verdicts: list(told, "verdicts", verdict)?,
        groups: list(told, "groups", group)?,
        notes: field(told, "notes")?,
    })
}

/// Is a process there, by its name in JSON?
pub(super) fn life(name: &str) -> Option<Life> {
    match name {
        "running" => Some(Life::Running),
        "stopped" => Some(Life::Stopped),
        "gone" => Some(Life::Gone),
        _ => None,
    }
}

/// A group's number, as verdicts have it.
pub(super) fn number(told: &Value) -> Option<u64> {
    u64::from_str_radix(told["group"].as_str()?, 16).ok()
}

fn verdict(told: &Value) -> Option<Verdict> {
    let effect = match &told["effect"] {
        Value::Null => None,
        effect => Some(Box::new(verdict(effect)?)),
    };
    Some(Verdict {
        class: named(&CLASSES, &told["class"])?,
        branch: optional(&told["branch"], |branch| named(&BRANCHES, branch))?,
        fields: field(told, "fields")?,
        tag: field(told, "tag")?,
        group: number(told)?,
        number: field(told, "number")?,
        seq: field(told, "seq")?,
        step: field(told, "step")?,
        ranks: field(told, "ranks")?,
        site: field(told, "site")?,
        expected: field(told, "expected")?,
        found: field(told, "found")?,
        sentence: field(told, "sentence")?,
        evidence: field(told, "evidence")?,
        advice: field(told, "advice")?,
        age_ms: field(told, "age_ms")?,
        effect,
    })
}

fn group(told: &Value) -> Option<GroupState> {
    Some(GroupState {
        tag: field(told, "tag")?,
        group: number(told)?,
        world: field(told, "world")?,
        ranks: list(told, "ranks", rank)?,
    })
}

fn rank(told: &Value) -> Option<RankState> {
    let phase = |phase: &Value| Phase::ALL.into_iter().find(|known| phase == known.name());
    let life = |name: &Value| name.as_str().map(|name| life(name).unwrap_or(Life::Unknown));
    Some(RankState {
        rank: field(told, "rank")?,
        member: field(told, "member")?,
        seen: field(told, "seen")?,
        life: optional(&told["life"], life)?,
        phase: optional(&told["phase"], phase)?,
        issued: field(told, "issued")?,
        finished: field(told, "finished")?,
        step: field(told, "step")?,
        last: field(told, "last")?,
        device: optional(&told["device"], device)?,
        end: field(told, "end")?,
        beat_age_ms: field(told, "beat_age_ms")?,
    })
}

fn device(told: &Value) -> Option<DeviceState> {
    Some(DeviceState {
        call: field(told, "call")?,
        awaited: field(told, "awaited")?,
        what: field(told, "what")?,
        age_ms: field(told, "age_ms")?,
    })
}

fn field<T: DeserializeOwned>(told: &Value, key: &str) -> Option<T> {
    T::deserialize(&told[key]).ok()
}

fn list<T>(told: &Value, key: &str, of: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    told[key].as_array()?.iter().map(of).collect()
}

/// None if it makes no sense; what is not told is `Some(None)`.
#[allow(clippy::option_option)]
fn optional<T>(told: &Value, of: impl Fn(&Value) -> Option<T>) -> Option<Option<T>> {
    match told {
        Value::Null => Some(None),
        told => of(told).map(Some),
    }
}

/// The one that is written so.
fn named<T: Serialize + Copy>(all: &[T], told: &Value) -> Option<T> {
    let is_it = |one: &&T| serde_json::to_value(one).is_ok_and(|name| name == *told);
    all.iter().find(is_it).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let branches = BRANCHES.map(Some).into_iter().chain([None]).cycle();
        for (class, branch) in CLASSES.into_iter().zip(branches) {
            let all = everything(class, branch);
            let json = serde_json::to_value(&all).expect("data alone");
            assert_eq!(diagnosis(&json), Some(all));
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
            ("/notes", Value::Null),
        ] {
            let mut json = json.clone();
            *json.pointer_mut(at).expect("it is there") = wrong;
            assert_eq!(diagnosis(&json), None, "{at}");
        }
    }
}
