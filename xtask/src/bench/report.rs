//! Tables: for each op, element type and number of ranks, ours beside the best peer, bare memory and
//! the floor.

use std::fmt::Write as _;

use super::floor::Floor;
use super::record::{Cell, Record};

const OURS: &str = "crossover";
const BARE: &str = "bare";

/// What is made of a contender's rounds: [`median`] or [`least`].
pub(super) type Over = fn(Vec<f64>) -> Option<f64>;

/// Of the rounds what `over` says, in Markdown.
pub(super) fn tables(record: &Record, over: Over) -> String {
    let mut text = String::new();
    for ranks in distinct(record.cells.iter().map(|cell| cell.ranks)) {
        machine(&mut text, record, ranks);
        for op in distinct(record.cells.iter().map(|cell| cell.op.clone())) {
            for dtype in distinct(record.cells.iter().map(|cell| cell.dtype.clone())) {
                let of = |cell: &&Cell| (cell.ranks, &cell.op, &cell.dtype) == (ranks, &op, &dtype);
                let cells: Vec<&Cell> = record.cells.iter().filter(of).collect();
                if !cells.is_empty() {
                    let _ = write!(text, "\n### {op}, {dtype}, {ranks} ranks\n\n");
                    table(&mut text, &Floor::new(record, ranks), &op, &cells, over);
                }
            }
        }
    }
    for why in &record.left_out {
        let _ = writeln!(text, "\nNot in the tables: {why}");
    }
    text
}

/// The floor's terms.
fn machine(text: &mut String, record: &Record, ranks: u32) {
    let floor = Floor::new(record, ranks);
    let constant = |name| floor.constant(name).map_or("-".to_owned(), |ns| format!("{ns:.0} ns"));
    let (alpha, switch, clock) = (constant("alpha"), constant("switch"), constant("clock"));
    let _ = write!(
        text,
        "\n## {ranks} ranks on {} processors\n\nA cache line's way {alpha}, a switch of ranks \
         {switch}, reading the clock {clock}.\n\n| bytes | read of the other's GB/s | write | add | copy \
         of own |\n|---|---|---|---|---|\n",
        record.processors
    );
    for bytes in distinct(record.terms.iter().map(|term| term.bytes).filter(|bytes| *bytes > 0)) {
        let rate = |name| floor.of(name, bytes).map_or("-".to_owned(), |rate| format!("{rate:.1}"));
        let rates = ["read", "write", "add", "copy"].map(rate).join(" | ");
        let _ = writeln!(text, "| {} | {rates} |", size(bytes));
    }
}

fn table(text: &mut String, floor: &Floor<'_>, op: &str, cells: &[&Cell], over: Over) {
    text.push_str(
        "| bytes | floor | bare | ours | best peer | ours / best peer | ours - bare | bare / floor \
         |\n|---|---|---|---|---|---|---|---|\n",
    );
    for bytes in distinct(cells.iter().map(|cell| cell.bytes)) {
        let row = Row::new(floor.least(op, bytes), bytes, cells, over);
        let _ = writeln!(text, "{}", row.in_markdown());
    }
}

/// One size. Microseconds.
#[derive(Debug, PartialEq)]
struct Row {
    bytes: u64,
    floor: Option<f64>,
    bare: Option<f64>,
    ours: Option<f64>,
    peer: Option<(String, f64)>,
    /// Contenders that gave a wrong result in any round: none of them has a time.
    wrong: Vec<String>,
}

impl Row {
    fn new(floor: Option<f64>, bytes: u64, cells: &[&Cell], over: Over) -> Row {
        let here: Vec<&&Cell> = cells.iter().filter(|cell| cell.bytes == bytes).collect();
        let names = distinct(here.iter().map(|cell| cell.contender.clone()));
        let is_right =
            |name: &String| here.iter().all(|cell| cell.contender != *name || cell.right);
        let (right, wrong): (Vec<String>, Vec<String>) = names.into_iter().partition(is_right);
        let time = |name: &str| {
            let times = here.iter().filter(|cell| cell.contender == name && cell.right);
            let time = over(times.map(|cell| cell.microseconds).collect());
            time.filter(|_| right.iter().any(|one| one == name))
        };
        let peers = right.iter().filter(|name| ![OURS, BARE].contains(&name.as_str()));
        let timed = peers.filter_map(|name| Some((name.clone(), time(name)?)));
        let peer = timed.min_by(|a, b| a.1.total_cmp(&b.1));
        Row { bytes, floor, bare: time(BARE), ours: time(OURS), peer, wrong }
    }

    fn in_markdown(&self) -> String {
        let by = self.peer.as_ref();
        let peer = by.map_or("-".to_owned(), |(name, time)| format!("{} {name}", micro(*time)));
        let ratio = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) if b > 0.0 => format!("{:.2}", a / b),
            _ => "-".to_owned(),
        };
        let over = match (self.ours, self.bare) {
            (Some(ours), Some(bare)) => signed(ours - bare),
            _ => "-".to_owned(),
        };
        let cell = |time: Option<f64>| time.map_or("-".to_owned(), micro);
        let (floor, bare, ours) = (cell(self.floor), cell(self.bare), cell(self.ours));
        let to_peer = ratio(self.ours, by.map(|(_, time)| *time));
        let to_floor = ratio(self.bare, self.floor);
        let wrong = match self.wrong.is_empty() {
            true => String::new(),
            false => format!(" WRONG: {}", self.wrong.join(", ")),
        };
        format!(
            "| {} | {floor} | {bare} | {ours} | {peer} | {to_peer} | {over} | {to_floor} |{wrong}",
            size(self.bytes)
        )
    }
}

/// The middle one; of an even number, the mean of the middle two.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

/// The least one.
pub(super) fn least(values: Vec<f64>) -> Option<f64> {
    values.into_iter().min_by(f64::total_cmp)
}

/// Each once, in the order of their first occurrence.
fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

/// To three digits or so.
fn micro(microseconds: f64) -> String {
    match microseconds {
        m if m.abs() < 10.0 => format!("{m:.2}"),
        m if m.abs() < 100.0 => format!("{m:.1}"),
        m => format!("{m:.0}"),
    }
}

fn signed(microseconds: f64) -> String {
    let sign = if microseconds < 0.0 { "" } else { "+" };
    format!("{sign}{}", micro(microseconds))
}

fn size(bytes: u64) -> String {
    match bytes {
        b if b >= 1 << 20 && b % (1 << 20) == 0 => format!("{} MiB", b >> 20),
        b if b >= 1 << 10 && b % (1 << 10) == 0 => format!("{} KiB", b >> 10),
        b => format!("{b} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::parse;
    use super::*;

    /// Three rounds of one cell, and what the machine allows.
    const LINES: &str = include_str!("fixture.jsonl");

    #[test]
    fn a_row_has_medians_over_rounds_and_the_best_of_the_medians() {
        let text = tables(&parse(LINES).unwrap(), median);
        // ours: 2.0 of (9.0, 2.0, 1.0). quick has the best single round (1.0) and a median of 5.0;
        // steady's is 4.0; broken is quicker than both, and wrong in one round. floor: 64 KiB at 8
        // bytes a nanosecond, the better rate of 1 KiB, is 8.192 us.
        let row =
            "| 64 KiB | 8.19 | 16.4 | 2.00 | 4.00 steady | 0.50 | -14.4 | 2.00 | WRONG: broken";
        assert!(text.lines().any(|line| line == row), "{text}");
        assert!(text.contains("A cache line's way 100 ns, a switch of ranks 500 ns"), "{text}");
    }

    #[test]
    fn a_row_has_the_least_of_the_rounds_if_asked() {
        let text = tables(&parse(LINES).unwrap(), least);
        // ours: 1.0, and quick's best single round is as quick.
        let row =
            "| 64 KiB | 8.19 | 16.4 | 1.00 | 1.00 quick | 1.00 | -15.4 | 2.00 | WRONG: broken";
        assert!(text.lines().any(|line| line == row), "{text}");
    }

    #[test]
    fn who_was_near_is_compared_with_who_was_near() {
        let cell = |contender: &str, us: f64, line: &str| {
            format!(
                "{{\"contender\":\"{contender}\",\"op\":\"all_reduce\",\"dtype\":\"f32\",\"ranks\":2,\"bytes\":8,\
                 \"p50_us\":{us},\"check\":\"ok\"{line}}}\n"
            )
        };
        let near = ",\"line_ns\":[45.0,50.0]";
        let lines = [
            cell("crossover", 9.0, ",\"line_ns\":[240.0,250.0]"),
            cell("crossover", 2.0, near),
            cell("quick", 1.0, ",\"line_ns\":[45.0,240.0]"),
            cell("quick", 1.5, ",\"line_ns\":[null,null]"),
            cell("quick", 4.0, near),
        ];
        let mut record = parse(&lines.concat()).unwrap();
        record.keep(&(0.0..=100.0)).unwrap();
        let text = tables(&record, median);
        assert!(text.contains("| 8 B | - | - | 2.00 | 4.00 quick | 0.50 |"), "{text}");
        assert!(record.keep(&(300.0..=400.0)).is_err());
    }

    #[test]
    fn ranks_that_take_turns_add_their_switches() {
        let record = parse(LINES).unwrap();
        let floor = Floor::new(&record, 4);
        // Two ranks a processor: one switch of 500 ns beside the longest term. Below 1 KiB that is
        // alpha; a gather's outputs are 2 x 4 x 1 KiB at 16 bytes a nanosecond = 512 ns, its reads
        // 2 x 1 KiB at 8 = 256 ns.
        assert_eq!(floor.least("all_reduce", 8), Some(0.6));
        assert_eq!(floor.least("all_gather", 1024), Some(1.012));
        assert_eq!(floor.least("all_to_all", 8), None);
    }
}
