//! What the streams of some ranks do, and what must be found after it. One statement, played by an
//! image in this process or by a program under ThreadSanitizer.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::runtime::Runtime;

/// `play.cpp` asks for it.
const MAGIC: u64 = u64::from_le_bytes(*b"croxply1");

/// A byte of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which buffer.
    pub buffer: usize,
    /// Bytes from its start.
    pub offset: u64,
}

/// A place whose address stands in a parameter or in data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// Bytes from the start of what holds it.
    pub at: usize,
    /// What it is the address of.
    pub of: Place,
}

/// A launch of a rank.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The kernel's name.
    pub kernel: &'a str,
    /// Blocks.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
    /// May it start before the kernel ahead has ended?
    pub programmatic: bool,
    /// Its parameter, without addresses.
    pub parameter: &'a [u8],
    /// Which go in.
    pub addresses: &'a [Address],
}

/// How it went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// In a word.
    pub verdict: Verdict,
    /// In lines: what was wrong, or who hung where.
    pub report: String,
}

/// How it went, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Everything was found as it must be.
    Done,
    /// Something else was found.
    Wrong,
    /// A kernel made no progress.
    Hung,
    /// The scenario makes no sense.
    Malformed,
    /// The sanitizer saw accesses that nothing orders.
    Race,
}

impl Verdict {
    pub(crate) fn of(code: i32) -> Verdict {
        match code {
            0 => Verdict::Done,
            1 => Verdict::Wrong,
            2 => Verdict::Hung,
            RACE => Verdict::Race,
            _ => Verdict::Malformed,
        }
    }
}

/// The status that the sanitizer is told to end the program with.
const RACE: i32 = 66;

/// See the module. Each rank's steps come in the order in which they are added.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Another one is another schedule.
    pub seed: u64,
    /// No progress for so long is a hang.
    pub hang: Duration,
    /// A rank whose blocks oversleep, and the longest that they do at a time.
    pub delayed: Option<(usize, Duration)>,
    buffers: Vec<u64>,
    ranks: Vec<Steps>,
}

#[derive(Clone, Debug, Default)]
struct Steps {
    count: u64,
    bytes: Vec<u8>,
}

impl Scenario {
    /// Of so many ranks, which do nothing.
    pub fn new(ranks: usize, seed: u64) -> Scenario {
        Scenario {
            seed,
            hang: Duration::from_secs(10),
            delayed: None,
            buffers: Vec::new(),
            ranks: vec![Steps::default(); ranks],
        }
    }

    /// Adds a buffer, on a page of its own and filled with 0xa5. What lies behind its last page may
    /// not be touched.
    pub fn buffer(&mut self, bytes: u64) -> usize {
        self.buffers.push(bytes);
        self.buffers.len() - 1
    }

    /// A rank's host writes, after the kernels ahead have ended.
    pub fn load(&mut self, rank: usize, to: Place, data: &[u8], addresses: &[Address]) {
        let steps = self.step(rank, 1);
        push(steps, to.buffer as u64);
        push(steps, to.offset);
        push_bytes(steps, data);
        push_addresses(steps, addresses);
    }

    /// A rank launches a kernel.
    pub fn launch(&mut self, rank: usize, launch: &Launch<'_>) {
        let steps = self.step(rank, 2);
        push_bytes(steps, launch.kernel.as_bytes());
        push(steps, launch.blocks.into());
        push(steps, launch.threads.into());
        push(steps, launch.programmatic.into());
        push_bytes(steps, launch.parameter);
        push_addresses(steps, launch.addresses);
    }

    /// A rank's host reads, after the kernels ahead have ended, and must find this.
    pub fn check(&mut self, rank: usize, at: Place, expected: &[u8]) {
        let steps = self.step(rank, 3);
        push(steps, at.buffer as u64);
        push(steps, at.offset);
        push_bytes(steps, expected);
    }

    /// Every rank's host waits for every other's, as at the end of a set-up.
    pub fn meet(&mut self) {
        for rank in 0..self.ranks.len() {
            self.step(rank, 4);
        }
    }

    /// Plays it in this process.
    pub fn play(&self, image: &Runtime) -> Outcome {
        image.play(&self.encode())
    }

    /// Plays it in the program under ThreadSanitizer, by way of a file that is left for a closer
    /// look unless everything was well.
    pub fn play_sanitized(&self, program: &Path, file: &Path) -> std::io::Result<Outcome> {
        std::fs::write(file, self.encode())?;
        let options = format!("report_thread_leaks=0 exitcode={RACE} halt_on_error=1");
        let output = Command::new(program).arg(file).env("TSAN_OPTIONS", options).output()?;
        let verdict = Verdict::of(output.status.code().unwrap_or(-1));
        if verdict == Verdict::Done {
            std::fs::remove_file(file)?;
        }
        Ok(Outcome { verdict, report: String::from_utf8_lossy(&output.stderr).into_owned() })
    }

    fn encode(&self) -> Vec<u8> {
        let (delayed, delay) = match self.delayed {
            Some((rank, longest)) => (rank as u64, longest.as_micros() as u64),
            None => (u64::MAX, 0),
        };
        let mut bytes = Vec::new();
        let (ranks, buffers) = (self.ranks.len() as u64, self.buffers.len() as u64);
        let hang = self.hang.as_millis() as u64;
        for number in [MAGIC, ranks, buffers, self.seed, hang, delayed, delay] {
            push(&mut bytes, number);
        }
        self.buffers.iter().for_each(|size| push(&mut bytes, *size));
        for rank in &self.ranks {
            push(&mut bytes, rank.bytes.len() as u64 + 8);
            push(&mut bytes, rank.count);
            bytes.extend(&rank.bytes);
        }
        bytes
    }

    fn step(&mut self, rank: usize, kind: u64) -> &mut Vec<u8> {
        let steps = &mut self.ranks[rank];
        steps.count += 1;
        push(&mut steps.bytes, kind);
        &mut steps.bytes
    }
}

fn push(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend(number.to_le_bytes());
}

fn push_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    push(to, bytes.len() as u64);
    to.extend(bytes);
    to.resize(to.len().next_multiple_of(8), 0);
}

fn push_addresses(to: &mut Vec<u8>, addresses: &[Address]) {
    push(to, addresses.len() as u64);
    for address in addresses {
        push(to, address.at as u64);
        push(to, address.of.buffer as u64);
        push(to, address.of.offset);
    }
}
