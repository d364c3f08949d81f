//! Records, places and times in words.

use crossover_core::bootstrap::ranks_in_words;
use crossover_core::bytes::size_text;
use crossover_core::call::{Mode, Op};

use crate::image::{Record, What};

/// All of it: "all_reduce sum of 4096 x f32 (16KiB) by ipc/one_shot_push at L31.o_proj".
pub(crate) fn record(record: &Record) -> String {
    format!("{}{}", served(record), at_site(&record.site))
}

/// What it is and who served it.
pub(crate) fn served(record: &Record) -> String {
    let by = if record.target.is_empty() { "" } else { " by " };
    format!("{}{by}{}", what(record), record.target)
}

/// What it is, without who served it and where.
pub(crate) fn what(record: &Record) -> String {
    match record.what {
        What::Call(op) => call(op, record),
        What::State => format!("a note of state {:016x}", record.count),
        What::Replay => format!("the replay of graph {}", record.count),
        What::Commit => "the end of a capture".to_owned(),
        What::Close => "a goodbye".to_owned(),
    }
}

fn call(op: Op, record: &Record) -> String {
    let reduction = if op.reduces() { format!(" {}", record.reduce_op) } else { String::new() };
    let root =
        if op == Op::Broadcast { format!(" from rank {}", record.root) } else { String::new() };
    let captured = if record.mode == Mode::Graph { "captured " } else { "" };
    format!("{captured}{op}{reduction}{root} of {}", amount(record))
}

/// How much a call moves: "4096 x f32 (16KiB)".
pub(crate) fn amount(record: &Record) -> String {
    format!("{} x {} ({})", record.count, record.dtype, size_text(record.bytes()))
}

/// Where in the ranks' history it is: "call 37 (step 6)".
pub(crate) fn place(record: &Record) -> String {
    let place = match record.what {
        What::Call(_) => format!("call {}", record.seq),
        _ => format!("record {} after call {}", record.number, record.seq),
    };
    if record.step == 0 { place } else { format!("{place} (step {})", record.step) }
}

/// " at model.rs:88", or nothing.
pub(crate) fn at_site(site: &str) -> String {
    if site.is_empty() { String::new() } else { format!(" at {site}") }
}

/// A time as a person says it: "340 ms", "12.4 s", "5 min".
pub(crate) fn span(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..120_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => format!("{} min", ms / 60_000),
    }
}

/// "the device of rank 2", "the devices of ranks 0 and 1".
pub(crate) fn devices(ranks: &[u32]) -> String {
    format!("the {} of {}", verb(ranks, "device", "devices"), ranks_in_words(ranks))
}

/// "for rank 2, data, for 3.1 s, device call 123".
pub(crate) fn device_wait(awaited: &[u32], what: &str, age_ms: u64, call: u32) -> String {
    let whom = match awaited {
        [] => "a rank that is not known".to_owned(),
        ranks => ranks_in_words(ranks),
    };
    format!("for {whom}, {what}, for {}, device call {call}", span(age_ms))
}

/// The verb for so many: `verb(ranks, "has", "have")`.
pub(crate) fn verb<'a>(ranks: &[u32], one: &'a str, many: &'a str) -> &'a str {
    if ranks.len() == 1 { one } else { many }
}

/// Are so many words that follow one another in both that they tell of the same thing?
pub(crate) fn say_the_same(one: &str, other: &str) -> bool {
    const RUN: usize = 9;
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let (one, other) = (words(one), words(other));
    one.windows(RUN).any(|run| other.windows(RUN).any(|other| other == run))
}
