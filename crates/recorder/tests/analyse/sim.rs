//! Ranks that append records as a ring's writer does, and become images.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crossover_core::call::{Dtype, Mode, Op, ReduceOp};
use crossover_recorder::{
    About, Class, Diagnosis, Image, Life, Phase, Process, Progress, Record, Verdict, What, analyse,
};

/// When groups are formed, nanoseconds since 1970.
pub(crate) const BORN: u64 = 1_700_000_000_000_000_000;
/// Of a second.
pub(crate) const SECOND: u64 = 1_000_000_000;
/// Between two records of a rank.
pub(crate) const TICK: u64 = 10_000;

/// What a test says of a record; the rest is counted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) what: What,
    pub(crate) dtype: Dtype,
    pub(crate) reduce_op: ReduceOp,
    pub(crate) mode: Mode,
    pub(crate) root: u32,
    pub(crate) count: u64,
    pub(crate) site: String,
    pub(crate) target: String,
    /// Stands for what a record does not show, such as splits.
    pub(crate) hidden: u64,
}

/// An all-reduce of `count` floats at `site`.
pub(crate) fn call(count: u64, site: &str) -> Entry {
    Entry {
        what: What::Call(Op::AllReduce),
        dtype: Dtype::F32,
        reduce_op: ReduceOp::Sum,
        mode: Mode::Eager,
        root: 0,
        count,
        site: site.to_owned(),
        target: "host/one_shot".to_owned(),
        hidden: 0,
    }
}

/// A call of another kind.
pub(crate) fn op(op: Op, count: u64, site: &str) -> Entry {
    Entry { what: What::Call(op), ..call(count, site) }
}

/// A note, a replay or an end.
pub(crate) fn note(what: What, count: u64) -> Entry {
    Entry { what, count, target: String::new(), ..call(0, "") }
}

/// The engine's note of its state.
pub(crate) fn state(digest: u64) -> Entry {
    note(What::State, digest)
}

/// One rank.
#[derive(Clone, Debug)]
pub(crate) struct Rank {
    pub(crate) image: Image,
    seq: u64,
}

impl Rank {
    /// Appends a record, and does not end it.
    pub(crate) fn begin(&mut self, entry: &Entry) {
        let progress = &mut self.image.progress;
        self.seq += u64::from(matches!(entry.what, What::Call(_)));
        let Entry { what, dtype, reduce_op, mode, root, count, hidden, .. } = *entry;
        let words = (format!("{what:?}"), dtype, reduce_op, mode, root, count, hidden);
        let fingerprint = digest(&(words, &entry.target));
        progress.issued += 1;
        progress.chain = digest(&(progress.chain, fingerprint));
        let record = Record {
            number: progress.issued,
            seq: self.seq,
            what,
            dtype,
            reduce_op,
            mode,
            root,
            count,
            step: progress.step,
            site: entry.site.clone(),
            target: entry.target.clone(),
            fingerprint,
            chain: progress.chain,
            at: BORN + progress.issued * TICK,
        };
        self.image.records.insert(record.number, record);
    }

    /// Appends a record, and ends it.
    pub(crate) fn make(&mut self, entry: &Entry) {
        self.begin(entry);
        self.image.progress.finished = self.image.progress.issued;
    }

    /// Keeps the last records alone.
    pub(crate) fn keep(&mut self, last: u64) {
        let issued = self.image.progress.issued;
        self.image.records.retain(|number, _| number + last > issued);
    }
}

fn digest(words: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    words.hash(&mut hasher);
    hasher.finish()
}

/// A group's ranks.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) ranks: Vec<Rank>,
}

impl Group {
    /// Ranks of processes `host:100`, `host:101`, .. on one node, looked at a minute after.
    pub(crate) fn new(tag: &str, number: u64, world: u32) -> Group {
        Group::of(tag, number, &(0..world).map(|rank| 100 + rank).collect::<Vec<_>>())
    }

    /// Ranks of these processes.
    pub(crate) fn of(tag: &str, number: u64, pids: &[u32]) -> Group {
        let ranks = (0..).zip(pids).map(|(rank, pid)| {
            let about = about(tag, number, rank, pids, *pid);
            let taken = BORN + 60 * SECOND;
            let beat = taken - SECOND / 20;
            let progress = Progress { born: BORN, taken, beat, ..Progress::default() };
            let source = format!("{tag}.{rank}.ring");
            let (records, life) = (BTreeMap::new(), Life::Running);
            Rank { image: Image { source, about, progress, records, life }, seq: 0 }
        });
        Group { ranks: ranks.collect() }
    }

    /// All ranks make these.
    pub(crate) fn make(&mut self, entries: &[Entry]) -> &mut Group {
        for entry in entries {
            self.ranks.iter_mut().for_each(|rank| rank.make(entry));
        }
        self
    }

    /// All ranks but one make this, and that one something else. Nobody comes back.
    pub(crate) fn part(&mut self, odd: usize, usual: &Entry, other: &Entry) -> &mut Group {
        for (at, rank) in self.ranks.iter_mut().enumerate() {
            rank.begin(if at == odd { other } else { usual });
        }
        self
    }

    /// Steps of an engine: its state, and calls of a few layers.
    pub(crate) fn steps(&mut self, steps: std::ops::Range<u32>) -> &mut Group {
        for step in steps {
            self.ranks.iter_mut().for_each(|rank| rank.image.progress.step = step);
            self.make(&[state(u64::from(step) * 7)]);
            for layer in 0..3 {
                self.make(&[
                    call(4096, &format!("L{layer}.attn")),
                    call(8192, &format!("L{layer}.mlp")),
                ]);
            }
            self.make(&[op(Op::AllGather, 64, "logits")]);
        }
        self
    }

    pub(crate) fn progress(&mut self, rank: usize) -> &mut Progress {
        &mut self.ranks[rank].image.progress
    }

    pub(crate) fn images(&self) -> Vec<Image> {
        self.ranks.iter().map(|rank| rank.image.clone()).collect()
    }

    /// The diagnosis of this group's job.
    pub(crate) fn diagnosis(&self) -> Diagnosis {
        of_one_job(&self.images())
    }

    /// The only verdict.
    #[track_caller]
    pub(crate) fn verdict(&self) -> Verdict {
        only(self.diagnosis())
    }
}

fn about(tag: &str, number: u64, rank: u32, pids: &[u32], pid: u32) -> About {
    About {
        job: "serve".to_owned(),
        attempt: 0,
        tag: tag.to_owned(),
        group: number,
        rank,
        world: pids.len() as u32,
        members: pids.iter().map(|pid| format!("host:{pid}")).collect(),
        nodes: pids.iter().map(|_| "node-a".to_owned()).collect(),
        process: process(pid),
        device: "host".to_owned(),
        policy: "p1".to_owned(),
        backends: "b1".to_owned(),
        version: "0.1.0".to_owned(),
        targets: Vec::new(),
    }
}

/// A process of the only node.
pub(crate) fn process(pid: u32) -> Process {
    let (boot, pid_namespace) = ("boot-1".to_owned(), "pid:[1]".to_owned());
    Process { pid, started: 1000 + u64::from(pid), boot, pid_namespace }
}

#[track_caller]
pub(crate) fn of_one_job(images: &[Image]) -> Diagnosis {
    let mut all = analyse(images);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

#[track_caller]
pub(crate) fn only(mut diagnosis: Diagnosis) -> Verdict {
    let classes: Vec<Class> = diagnosis.verdicts.iter().map(|verdict| verdict.class).collect();
    assert_eq!(classes.len(), 1, "{:#?}", diagnosis.verdicts);
    diagnosis.verdicts.remove(0)
}

/// Ends a rank's group with an error.
pub(crate) fn fail(rank: &mut Rank, end: &str) {
    rank.image.progress.phase = Phase::Failed;
    rank.image.progress.end = Some(end.to_owned());
}
