//! Rings as a job's ranks write them, by this process.

// Each test program uses a part of it.
#![allow(dead_code)]

use std::panic::Location;
use std::path::Path;

use crossover_core::call::{CallSig, Dtype, Mode, Op, ReduceOp, Split};
use crossover_core::contract::Contract;
use crossover_core::record::{Entry, Event};
use crossover_recorder::{About, Process, Ring};

/// The ranks of a group that makes three calls a step.
pub(crate) struct Ranks {
    rings: Vec<Option<Ring>>,
    calls: Vec<u64>,
}

/// One call.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    pub(crate) op: Op,
    pub(crate) dtype: Dtype,
    pub(crate) count: usize,
    pub(crate) site: &'static str,
}

/// What a step does: two layers and the logits.
pub(crate) const STEP: [Call; 3] = [
    Call { op: Op::AllReduce, dtype: Dtype::Bf16, count: 8192, site: "L0.o_proj" },
    Call { op: Op::AllReduce, dtype: Dtype::Bf16, count: 8192, site: "L0.down_proj" },
    Call { op: Op::AllGather, dtype: Dtype::Bf16, count: 512, site: "LogitsProcessor" },
];

impl Ranks {
    /// Makes their rings in a folder.
    pub(crate) fn new(folder: &Path, job: &str, group: u64, world: u32) -> Ranks {
        let about = |rank| About {
            job: job.to_owned(),
            attempt: 0,
            tag: "tp".to_owned(),
            group,
            rank,
            world,
            members: (0..world).map(|rank| format!("node-a:{}", 4100 + rank)).collect(),
            nodes: vec!["node-a".to_owned(); world as usize],
            process: Process::here(),
            device: "host".to_owned(),
            policy: "5a1e".to_owned(),
            backends: "c0de".to_owned(),
            version: "0.1.0".to_owned(),
            targets: vec!["host/one_shot".to_owned()],
        };
        let ring = |rank| {
            let (ring, why) = Ring::make(Some(folder), about(rank)).expect("a ring");
            assert_eq!(why, None, "it is in the folder");
            Some(ring)
        };
        Ranks { rings: (0..world).map(ring).collect(), calls: vec![0; world as usize] }
    }

    /// Steps that go well, on all ranks.
    pub(crate) fn steps(&mut self, steps: std::ops::Range<u32>) {
        for step in steps {
            for rank in 0..self.rings.len() {
                self.note(rank, step, 0xBA7C_0000 + u64::from(step));
                for call in STEP {
                    self.begin(rank, call);
                    self.ring(rank).finish();
                }
            }
        }
    }

    /// The engine notes its state.
    pub(crate) fn note(&self, rank: usize, step: u32, digest: u64) {
        self.write(rank, Event::State { step, digest }, "scheduler");
        self.ring(rank).finish();
    }

    /// A rank's process ends without a word.
    pub(crate) fn lose(&mut self, rank: usize) {
        self.rings[rank] = None;
    }

    /// A rank makes a call that does not come back.
    pub(crate) fn begin(&mut self, rank: usize, call: Call) {
        let Call { op, dtype, count, site } = call;
        let sig = CallSig {
            op,
            dtype,
            reduce_op: ReduceOp::Sum,
            count,
            mode: Mode::Eager,
            root: 0,
            split: Split::Even,
            contract: Contract::default(),
        };
        self.calls[rank] += 1;
        self.write(rank, Event::Call(&sig), site);
    }

    /// What the watchdogs of those that live do ten times a second.
    pub(crate) fn look(&self) {
        self.rings.iter().flatten().for_each(Ring::beat);
    }

    fn write(&self, rank: usize, event: Event<'_>, site: &str) {
        let ring = self.ring(rank);
        ring.name_site(site);
        let (seq, site) = (self.calls[rank], Location::caller());
        ring.write(&Entry { event, seq, target: 0, site });
        ring.beat();
    }

    fn ring(&self, rank: usize) -> &Ring {
        self.rings[rank].as_ref().expect("a rank that lives")
    }
}
