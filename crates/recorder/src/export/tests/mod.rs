//! Small jobs, made by hand.

mod chrome_trace;
mod flight_recorder;
mod timeline;

use std::collections::BTreeMap;

use crossover_core::call::{Dtype, Mode, Op, ReduceOp};

use crate::about::{About, Process};
use crate::image::{Image, Life, Phase, Progress, Record, What};

/// When these jobs run, nanoseconds since 1970.
const START: u64 = 1_700_000_000_000_000_000;

/// A group whose ranks have recorded nothing.
fn group(tag: &str, number: u64, world: u32) -> Vec<Image> {
    (0..world).map(|rank| ring(tag, number, rank, world)).collect()
}

fn ring(tag: &str, number: u64, rank: u32, world: u32) -> Image {
    let about = About {
        job: "made".to_owned(),
        attempt: 0,
        tag: tag.to_owned(),
        group: number,
        rank,
        world,
        members: (0..world).map(|rank| format!("node:{}", 100 + rank)).collect(),
        nodes: vec!["node".to_owned(); world as usize],
        process: Process {
            pid: 100 + rank,
            started: 1,
            boot: "b".to_owned(),
            pid_namespace: String::new(),
        },
        device: "host".to_owned(),
        policy: "p".to_owned(),
        backends: "b".to_owned(),
        version: "0".to_owned(),
        targets: vec!["host/one_shot".to_owned()],
    };
    Image {
        source: format!("{tag}.{rank}"),
        about,
        progress: Progress { taken: START + 60_000_000_000, ..Progress::default() },
        records: BTreeMap::new(),
        life: Life::Running,
    }
}

/// One more record on a rank, whose call has come back. A real ring's digests are of more.
fn record(image: &mut Image, what: What, count: u64, site: &str) {
    let progress = &mut image.progress;
    progress.issued += 1;
    let seq = image.records.values().filter(|r| matches!(r.what, What::Call(_))).count() as u64;
    let fingerprint = count.rotate_left(8) ^ format!("{what:?}").len() as u64;
    progress.chain = progress.chain.rotate_left(5) ^ fingerprint;
    progress.finished = progress.issued;
    let record = Record {
        number: progress.issued,
        seq: seq + u64::from(matches!(what, What::Call(_))),
        what,
        dtype: Dtype::F32,
        reduce_op: ReduceOp::Sum,
        mode: Mode::Eager,
        root: 0,
        count,
        step: (progress.issued / 4) as u32,
        site: site.to_owned(),
        target: "host/one_shot".to_owned(),
        fingerprint,
        chain: progress.chain,
        at: START + progress.issued * 1_000_000 + u64::from(image.about.rank) * 1_000,
    };
    image.records.insert(progress.issued, record);
}

/// Calls that are equal on all ranks.
fn calls(images: &mut [Image], how_many: u64) {
    for _ in 0..how_many {
        for image in &mut *images {
            record(image, What::Call(Op::AllReduce), 4096, "model.rs:88:13");
        }
    }
}

/// Its last record's call is still under way.
fn hangs(image: &mut Image) {
    image.progress.finished = image.progress.issued - 1;
    image.progress.phase = Phase::Open;
}
