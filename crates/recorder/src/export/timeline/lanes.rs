//! One group: its ranks' names at the left, which stay, and their lanes, which scroll.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::RangeInclusive;

use crossover_core::bootstrap::ranks_in_words;

use super::escape::escaped;
use super::window::stretches;
use super::{letter, word};
use crate::diagnosis::{Verdict, life_name};
use crate::export::places::Group;
use crate::image::{Image, Life, Record};
use crate::words;

const CELL: u64 = 16;
const LANE: u64 = 24;
/// Room above the lanes, for numbers and steps.
const RULER: u64 = 40;
/// Between stretches of numbers.
const GAP: u64 = 28;
/// Width of a rank's name.
const NAMES: u64 = 230;
/// Columns between two numbers of the ruler, and the least between two steps.
const TICKS: u64 = 8;
const STEPS_APART: u64 = 4;

/// Appends a group. `verdicts` are those about it.
pub(super) fn draw(page: &mut String, group: &Group, verdicts: &[&Verdict]) {
    let marks = marks(verdicts);
    let newest = group.seen().map(|(_, image)| image.progress.issued).max().unwrap_or(0);
    let numbers: Vec<u64> = marks.iter().map(|(number, _)| *number).collect();
    let columns = Columns::new(stretches(newest, &numbers));
    let height = RULER + LANE * group.rings.len() as u64;
    let odd: BTreeSet<u32> = verdicts.iter().flat_map(|v| v.ranks.iter().copied()).collect();
    let _ = write!(
        page,
        "<h2>Group <code>{}</code>, {} ranks</h2>\n<div class=\"group\">\n\
         <svg width=\"{NAMES}\" height=\"{height}\" role=\"img\">",
        escaped(group.tag),
        group.rings.len()
    );
    for rank in 0..group.rings.len() {
        name(page, group, rank, odd.contains(&(rank as u32)));
    }
    // The last step's name may be wider than its records.
    let width = columns.width.max(CELL) + STEPS_APART * CELL;
    let _ = write!(
        page,
        "</svg>\n<div class=\"scroll\"><svg width=\"{width}\" height=\"{height}\" role=\"img\">",
    );
    ruler(page, group, &columns);
    for (rank, ring) in group.rings.iter().enumerate() {
        let y = RULER + LANE * rank as u64;
        match ring {
            Some(image) => {
                lane(page, image, &columns, y);
                device(page, image, columns.width, y);
            }
            None => missing(page, columns.width, y),
        }
    }
    for (number, verdict) in marks {
        outline(page, verdict, columns.x(number), height);
    }
    page.push_str("</svg></div>\n</div>\n");
}

/// The records that verdicts are about, and those of what they led to.
fn marks<'a>(verdicts: &[&'a Verdict]) -> Vec<(u64, &'a Verdict)> {
    let mut marks = Vec::new();
    for verdict in verdicts {
        let mut next = Some(*verdict);
        while let Some(verdict) = next {
            marks.extend(verdict.number.map(|number| (number, verdict)));
            next = verdict.effect.as_deref();
        }
    }
    marks
}

/// Where numbers are, from the left.
struct Columns {
    stretches: Vec<(RangeInclusive<u64>, u64)>,
    width: u64,
}

impl Columns {
    fn new(stretches: Vec<RangeInclusive<u64>>) -> Columns {
        let mut width = 0;
        let mut placed = Vec::new();
        for stretch in stretches {
            width += if placed.is_empty() { 0 } else { GAP };
            let cells = stretch.end() - stretch.start() + 1;
            placed.push((stretch, width));
            width += cells * CELL;
        }
        Columns { stretches: placed, width }
    }

    fn x(&self, number: u64) -> u64 {
        let of = self.stretches.iter().find(|(stretch, _)| stretch.contains(&number));
        of.map_or(0, |(stretch, x)| x + (number - stretch.start()) * CELL)
    }

    fn all(&self) -> impl Iterator<Item = (u64, u64)> {
        let stretch = |(numbers, x): &(RangeInclusive<u64>, u64)| {
            let x = *x;
            numbers.clone().enumerate().map(move |(i, number)| (number, x + i as u64 * CELL))
        };
        self.stretches.iter().flat_map(stretch)
    }
}

fn name(page: &mut String, group: &Group, rank: usize, odd: bool) {
    let member = group.members.get(rank).map_or("", String::as_str);
    let (state, told) = match group.rings[rank] {
        None => ("not seen".to_owned(), "its ring was not found".to_owned()),
        Some(image) => {
            let life = match image.life {
                Life::Running | Life::Unknown => String::new(),
                life => format!("{}, ", life_name(life)),
            };
            (format!("{life}{}", image.progress.phase.name()), state(image))
        }
    };
    let y = RULER + LANE * rank as u64 + LANE - 8;
    let class = if odd { " class=\"odd\"" } else { "" };
    let _ = write!(
        page,
        "<text x=\"0\" y=\"{y}\"{class}><title>{}</title>rank {rank} \
         <tspan class=\"dim\">{} · {state}</tspan></text>",
        escaped(&told),
        escaped(member)
    );
}

fn state(image: &Image) -> String {
    let progress = &image.progress;
    let end = progress.end.as_ref().map_or(String::new(), |end| format!("\n{end}"));
    let device = device_wait(image).map_or(String::new(), |wait| format!("\n{wait}"));
    format!(
        "{}: on {}, {}, {}; {} records, {} came back; step {}{device}{end}",
        image.source,
        image.about.device,
        life_name(image.life),
        progress.phase.name(),
        progress.issued,
        progress.finished,
        progress.step,
    )
}

/// What its device waits for, in words.
fn device_wait(image: &Image) -> Option<String> {
    let progress = &image.progress;
    let wait = progress.device.as_ref()?;
    // A copy in a file is read long after it was made.
    let looked = if image.life == Life::Unknown { progress.beat } else { progress.taken };
    let age = looked.saturating_sub(wait.since) as f64 / 1e9;
    let awaited = ranks_in_words(&wait.awaited);
    Some(format!(
        "its device awaits {awaited} for {age:.1} s: {}, device call {}",
        wait.what, wait.call
    ))
}

fn ruler(page: &mut String, group: &Group, columns: &Columns) {
    let step = |number| {
        group.seen().find_map(|(_, image)| image.records.get(&number).map(|record| record.step))
    };
    let (mut before, mut free) = (None, 0);
    for (stretch, x) in &columns.stretches {
        if *x > 0 {
            let _ = write!(page, "<text x=\"{}\" y=\"14\" class=\"dim\">…</text>", x - GAP / 2 - 4);
        }
        // A stretch's first number is told, whatever it is.
        let first = *stretch.start();
        let _ = write!(page, "<text x=\"{x}\" y=\"14\" class=\"dim\">{first}</text>");
    }
    for (number, x) in columns.all() {
        let first =
            columns.stretches.iter().any(|(s, _)| s.contains(&number) && number - s.start() < 4);
        if number.is_multiple_of(TICKS) && !first {
            let _ = write!(page, "<text x=\"{x}\" y=\"14\" class=\"dim\">{number}</text>");
        }
        let step = step(number);
        // Where it begins or not at all: a step that is too short for its name goes without.
        if let Some(new) = step.filter(|_| step != before && x >= free) {
            free = x + STEPS_APART * CELL;
            let _ = write!(page, "<text x=\"{x}\" y=\"32\" class=\"dim\">step {new}</text>");
        }
        before = step;
    }
}

fn lane(page: &mut String, image: &Image, columns: &Columns, y: u64) {
    for (number, x) in columns.all() {
        match image.records.get(&number) {
            Some(record) => cell(page, image, record, x, y),
            None => {
                let ahead = number > image.progress.issued;
                let class = if ahead { "ahead" } else { "lost" };
                let why = if ahead { "not come to" } else { "not kept:" };
                let _ = write!(
                    page,
                    "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"{class}\">\
                     <title>rank {}: {why} record {number}</title></rect>",
                    x + 1,
                    y + 1,
                    CELL - 2,
                    LANE - 4,
                    image.about.rank
                );
            }
        }
    }
}

/// A mark at the lane's end, where a device waits: for whom.
fn device(page: &mut String, image: &Image, x: u64, y: u64) {
    let Some(told) = device_wait(image) else { return };
    let awaited = image.progress.device.iter().flat_map(|wait| &wait.awaited);
    let awaited: Vec<String> = awaited.map(u32::to_string).collect();
    // What there is room for.
    let awaited = match awaited.len() {
        0..=4 => awaited.join(" "),
        many => format!("{many} ranks"),
    };
    let _ = write!(
        page,
        "<text x=\"{}\" y=\"{}\" class=\"awaits\"><title>{}</title>← {}</text>",
        x + 4,
        y + LANE - 8,
        escaped(&told),
        awaited
    );
}

fn cell(page: &mut String, image: &Image, record: &Record, x: u64, y: u64) {
    let outstanding = record.number > image.progress.finished;
    let wait = if outstanding { " wait" } else { "" };
    let word = word(record.what);
    let _ = write!(
        page,
        "<g><title>{}</title><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" \
         class=\"{word}{wait}\"/><text x=\"{}\" y=\"{}\">{}</text></g>",
        escaped(&title(image, record, outstanding)),
        x + 1,
        y + 1,
        CELL - 2,
        LANE - 4,
        x + CELL / 2,
        y + LANE - 9,
        letter(record.what)
    );
}

fn title(image: &Image, record: &Record, outstanding: bool) -> String {
    let (place, what) = (words::place(record), words::served(record));
    let site = if record.site.is_empty() { "" } else { "\nat " };
    let age = image.progress.taken.saturating_sub(record.at) as f64 / 1e9;
    let back = if outstanding { "\nhas not come back" } else { "" };
    format!(
        "rank {}, record {}\n{place}: {what}{site}{}\n{}, {age:.6} s before it was looked at\n\
         fingerprint {:016x}, chain {:016x}{back}",
        image.about.rank,
        record.number,
        record.site,
        clock(record.at),
        record.fingerprint,
        record.chain
    )
}

/// The time of day, in UTC.
fn clock(at: u64) -> String {
    let (seconds, micros) = (at / 1_000_000_000 % 86_400, at % 1_000_000_000 / 1_000);
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}.{micros:06} UTC", seconds % 60)
}

fn missing(page: &mut String, width: u64, y: u64) {
    let _ = write!(
        page,
        "<rect x=\"0\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"lost\"/>\
         <text x=\"8\" y=\"{}\" class=\"unseen\">not seen</text>",
        y + 1,
        width.max(CELL),
        LANE - 4,
        y + LANE - 8
    );
}

/// A line down at the number, and a frame around it on the ranks that are named.
fn outline(page: &mut String, verdict: &Verdict, x: u64, height: u64) {
    let sentence = escaped(&verdict.sentence).to_string();
    let _ = write!(
        page,
        "<line x1=\"{x}\" y1=\"18\" x2=\"{x}\" y2=\"{height}\" class=\"part\">\
         <title>{sentence}</title></line>"
    );
    for rank in &verdict.ranks {
        let y = RULER + LANE * u64::from(*rank);
        let _ = write!(
            page,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{CELL}\" height=\"{}\" class=\"first\"/>",
            LANE - 2
        );
    }
}
