//! Raw data: lines of JSON, as the loop printed them, each with its round.

use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// The raw data's file.
pub(super) const LINES: &str = "rounds.jsonl";
/// The machine, the command, and who was left out.
pub(super) const ABOUT: &str = "about.json";

/// A measurement.
#[derive(Default)]
pub(super) struct Record {
    pub(super) cells: Vec<Cell>,
    pub(super) terms: Vec<Term>,
    pub(super) processors: u32,
    pub(super) left_out: Vec<String>,
}

/// One contender's cell in one round.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) contender: String,
    pub(super) op: String,
    pub(super) dtype: String,
    pub(super) ranks: u32,
    pub(super) bytes: u64,
    pub(super) microseconds: f64,
    /// A cache line's way before and after, in nanoseconds, where it was measured.
    pub(super) line: Option<[f64; 2]>,
    pub(super) right: bool,
}

/// One term of the floor in one round.
#[derive(Clone, Debug)]
pub(super) struct Term {
    pub(super) name: String,
    pub(super) ranks: u32,
    /// 0 where it does not depend on the size.
    pub(super) bytes: u64,
    /// Nanoseconds, or GB/s where it depends on the size.
    pub(super) value: f64,
}

impl Record {
    /// Leaves out what was measured while processors were nearer or farther than that.
    pub(super) fn keep(&mut self, way: &RangeInclusive<f64>) -> Result<()> {
        let all = self.cells.len();
        self.cells
            .retain(|cell| cell.line.is_some_and(|both| both.iter().all(|ns| way.contains(ns))));
        ensure!(
            !self.cells.is_empty(),
            "in none of the {all} cells a cache line's way took {} to {} ns, before and after, or it was not \
             measured",
            way.start(),
            way.end()
        );
        Ok(())
    }
}

/// Reads what `bench peers` wrote.
pub(super) fn read(dir: &Path) -> Result<Record> {
    let path = dir.join(LINES);
    ensure!(
        path.exists(),
        "{} has no {LINES}: name a folder into which `cargo xtask bench peers` wrote",
        dir.display()
    );
    let text = fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
    let mut record = parse(&text).with_context(|| format!("{}", path.display()))?;
    if let Ok(about) = fs::read_to_string(dir.join(ABOUT)) {
        let about: Value = serde_json::from_str(&about)?;
        let left_out = about["left_out"].as_array().into_iter().flatten();
        record.left_out = left_out.filter_map(|why| Some(why.as_str()?.to_owned())).collect();
    }
    Ok(record)
}

pub(super) fn parse(text: &str) -> Result<Record> {
    let mut record = Record::default();
    for (number, line) in (1..).zip(text.lines()) {
        let line: Value = serde_json::from_str(line).with_context(|| format!("line {number}"))?;
        let add = |record: &mut Record| {
            if let Some(name) = line["floor"].as_str() {
                record.processors = line["processors"].as_u64()? as u32;
                record.terms.push(Term {
                    name: name.to_owned(),
                    ranks: line["ranks"].as_u64()? as u32,
                    bytes: line["bytes"].as_u64().unwrap_or(0),
                    value: line["ns"].as_f64().or(line["gb_s"].as_f64())?,
                });
            } else {
                record.cells.push(Cell {
                    contender: line["contender"].as_str()?.to_owned(),
                    op: line["op"].as_str()?.to_owned(),
                    dtype: line["dtype"].as_str()?.to_owned(),
                    ranks: line["ranks"].as_u64()? as u32,
                    bytes: line["bytes"].as_u64()?,
                    microseconds: line["p50_us"].as_f64()?,
                    line: serde_json::from_value(line["line_ns"].clone()).ok(),
                    right: line["check"] == "ok",
                });
            }
            Some(())
        };
        add(&mut record).with_context(|| format!("line {number} is no line of the loop's"))?;
    }
    Ok(record)
}
