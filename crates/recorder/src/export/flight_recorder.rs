//! For PyTorch's flight-recorder analyser: `torchfrtrace FOLDER`, a file `rank_N` a process.
//!
//! The form is that of version 2.4 of its dumps: a pickled dictionary, whose entries are matched
//! by process group and number of the call. What it has no word for stays behind: the engine's
//! notes, replays of graphs, reduce ops, algorithms and digests. Its analyser takes the first rank
//! for the right one; ours asks the majority.

use std::collections::BTreeMap;
use std::io;

use crossover_core::call::{Dtype, Op};
use serde::Serialize;

use super::places::{Group, groups};
use crate::image::{Image, Phase, Record, What};

/// The form that is written. Minor numbers add fields, and the later ones are about threads.
const VERSION: &str = "2.4";

/// What the analyser reads of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankDump {
    /// Its number in the job: its rank in the widest group.
    pub rank: u32,
    /// The file's name, `rank_N`. The analyser takes the number from it, and wants a folder with
    /// nothing else in it.
    pub name: String,
    /// The file.
    pub bytes: Vec<u8>,
}

/// Writes calls as PyTorch's flight recorder does, a file for each process of which a ring was
/// found. Of a group's calls those are in it of which no rank has overwritten the record, so that
/// nobody seems to have missed what is only forgotten.
///
/// # Errors
/// Only if a file of more than what memory holds were to be made.
pub fn flight_recorder(images: &[Image]) -> io::Result<Vec<RankDump>> {
    let groups = groups(images);
    let starts: Vec<u64> = groups.iter().map(first_known_to_all).collect();
    let mut dumps: BTreeMap<u32, Dump> = BTreeMap::new();
    for (id, (group, &start)) in groups.iter().zip(&starts).enumerate() {
        for (rank, image) in group.seen() {
            let dump = dumps.entry(group.places[rank]).or_insert_with(|| Dump::new(image));
            dump.add(id, group, start, image);
        }
    }
    dumps.into_iter().map(|(rank, dump)| dump.written(rank)).collect()
}

/// The number of the first call whose record every ring that was found still has.
fn first_known_to_all(group: &Group) -> u64 {
    let first = |image: &Image| calls(image).next().map(|(record, _)| record.seq);
    group.seen().filter_map(|(_, image)| first(image)).max().unwrap_or(0)
}

fn calls(image: &Image) -> impl Iterator<Item = (&Record, Op)> {
    image.records.values().filter_map(|record| match record.what {
        What::Call(op) => Some((record, op)),
        _ => None,
    })
}

#[derive(Serialize)]
struct Dump<'a> {
    version: &'static str,
    comm_lib_version: &'a str,
    pg_config: BTreeMap<String, GroupConfig<'a>>,
    pg_status: BTreeMap<String, GroupStatus>,
    entries: Vec<Entry<'a>>,
}

/// By the group's name, which has to be unlike any other's.
#[derive(Serialize)]
struct GroupConfig<'a> {
    name: String,
    desc: &'a str,
    ranks: String,
}

/// By the group's small number.
#[derive(Serialize)]
struct GroupStatus {
    last_enqueued_collective: u64,
    last_started_collective: u64,
    last_completed_collective: u64,
}

#[derive(Serialize)]
struct Entry<'a> {
    // Lists all: arrays would be tuples.
    frames: Vec<Frame<'a>>,
    record_id: u64,
    pg_id: u64,
    process_group: (String, &'a str),
    collective_seq_id: u64,
    p2p_seq_id: u64,
    op_id: u64,
    profiling_name: String,
    time_created_ns: u64,
    input_sizes: Vec<Vec<u64>>,
    input_dtypes: Vec<&'static str>,
    output_sizes: Vec<Vec<u64>>,
    output_dtypes: Vec<&'static str>,
    state: State,
    time_discovered_started_ns: Option<u64>,
    time_discovered_completed_ns: Option<u64>,
    retired: bool,
    timeout_ms: u64,
    is_p2p: bool,
}

#[derive(Serialize)]
struct Frame<'a> {
    name: &'a str,
    filename: &'a str,
    line: u64,
}

#[derive(Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// It was given to the device: what the device made of it is not known.
    Scheduled,
    /// Its caller waits.
    Started,
    Completed,
}

impl<'a> Dump<'a> {
    fn new(image: &'a Image) -> Dump<'a> {
        Dump {
            version: VERSION,
            comm_lib_version: &image.about.version,
            pg_config: BTreeMap::new(),
            pg_status: BTreeMap::new(),
            entries: Vec::new(),
        }
    }

    fn add(&mut self, id: usize, group: &Group<'a>, start: u64, image: &'a Image) {
        let name = format!("{:016x}", group.number);
        let ranks = format!("{:?}", group.places);
        self.pg_config
            .insert(name.clone(), GroupConfig { name: name.clone(), desc: group.tag, ranks });
        let mut status = GroupStatus {
            last_enqueued_collective: 0,
            last_started_collective: 0,
            last_completed_collective: 0,
        };
        for (record, op) in calls(image) {
            let state = state(image, record);
            status.last_enqueued_collective = record.seq;
            if state != State::Scheduled {
                status.last_started_collective = record.seq;
            }
            if state == State::Completed {
                status.last_completed_collective = record.seq;
            }
            if record.seq >= start {
                self.entries.push(entry(id, (&name, group.tag), image, (record, op), state));
            }
        }
        self.pg_status.insert(id.to_string(), status);
    }

    fn written(mut self, rank: u32) -> io::Result<RankDump> {
        self.entries.sort_by_key(|entry| (entry.time_created_ns, entry.pg_id, entry.op_id));
        // Counted from 0 on every rank: the analyser drops what is below the greatest first one.
        for (id, entry) in self.entries.iter_mut().enumerate() {
            entry.record_id = id as u64;
        }
        let bytes = serde_pickle::to_vec(&self, serde_pickle::SerOptions::new());
        let bytes = bytes.map_err(io::Error::other)?;
        Ok(RankDump { rank, name: format!("rank_{rank}"), bytes })
    }
}

fn entry<'a>(
    id: usize,
    (name, tag): (&str, &'a str),
    image: &'a Image,
    (record, op): (&'a Record, Op),
    state: State,
) -> Entry<'a> {
    let output = op.output_bytes(record.count, image.about.world.max(1));
    let after = image.records.range(record.number + 1..).next();
    let discovered = after.map_or(image.progress.taken, |(_, next)| next.at);
    Entry {
        frames: vec![frame(record)],
        record_id: 0,
        pg_id: id as u64,
        process_group: (name.to_owned(), tag),
        collective_seq_id: record.seq,
        p2p_seq_id: 0,
        op_id: record.number,
        profiling_name: format!("nccl:{}", profiling_name(op)),
        time_created_ns: record.at,
        input_sizes: vec![vec![record.count]],
        input_dtypes: vec![torch_name(record.dtype)],
        output_sizes: vec![vec![output]],
        output_dtypes: vec![torch_name(record.dtype)],
        state,
        time_discovered_started_ns: (state != State::Scheduled).then_some(record.at),
        time_discovered_completed_ns: (state == State::Completed).then_some(discovered),
        retired: state == State::Completed,
        timeout_ms: 0,
        is_p2p: false,
    }
}

/// A call of the host that came back is done. One of a device was only enqueued when it came back.
fn state(image: &Image, record: &Record) -> State {
    let back = record.number <= image.progress.finished;
    match (image.about.device.as_str(), back) {
        _ if image.progress.phase == Phase::Closed => State::Completed,
        ("host", true) => State::Completed,
        ("host", false) => State::Started,
        _ => State::Scheduled,
    }
}

/// What served it, "at" where in the program: `model.rs:88:13`, or a name that the engine gave.
fn frame(record: &Record) -> Frame<'_> {
    let mut parts = record.site.split(':');
    let file = parts.next().unwrap_or_default();
    let line = parts.next().and_then(|line| line.parse().ok());
    let filename = if line.is_some() { file } else { &record.site };
    Frame { name: &record.target, filename, line: line.unwrap_or(0) }
}

/// As its process groups name the calls whose tensors are flat, as ours are. Its analyser knows no
/// library but a few: `nccl:` is one that every version of it takes.
const fn profiling_name(op: Op) -> &'static str {
    match op {
        Op::AllReduce => "all_reduce",
        Op::AllGather => "_all_gather_base",
        Op::ReduceScatter => "_reduce_scatter_base",
        Op::Broadcast => "broadcast",
        Op::AllToAll => "all_to_all",
    }
}

/// As `c10::toString` has it.
const fn torch_name(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::F32 => "Float",
        Dtype::F16 => "Half",
        Dtype::Bf16 => "BFloat16",
        Dtype::F64 => "Double",
        Dtype::I8 => "Char",
        Dtype::U8 => "Byte",
        Dtype::I32 => "Int",
        Dtype::U32 => "UInt32",
        Dtype::I64 => "Long",
        Dtype::U64 => "UInt64",
        Dtype::F8E4M3 => "Float8_e4m3fn",
        Dtype::F8E5M2 => "Float8_e5m2",
    }
}
