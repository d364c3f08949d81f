//! Results for people, and for whatever reads nccl-tests' tables: its thirteen columns come first,
//! as wide as it prints them.

use std::io::{self, Write};

use crossover_bootstrap::binding::list;
use crossover_core::call::{Mode, Op};
use crossover_policy::bytes::size_text;

use super::Args;
use super::about::About;
use super::floors::{Floors, Pair};
use super::place::Place;
use super::row::{Figures, Row};

pub(super) fn write_head(out: &mut impl Write, args: &Args, about: &About) -> io::Result<()> {
    let Args { op, dtype, reduce_op, mode, .. } = args;
    let About { profile, policy, determinism, accept, processors, .. } = about;
    let reduce_op = if op.reduces() { format!(" {reduce_op}") } else { String::new() };
    let version = env!("CARGO_PKG_VERSION");
    writeln!(
        out,
        "# crossover {version}: {op} {dtype}{reduce_op} {mode}, world {}",
        profile.world
    )?;
    let sources: Vec<String> =
        about.sources.iter().map(|(layer, file)| format!("{layer} {file}")).collect();
    writeln!(out, "# policy {policy} = {}", sources.join(" + "))?;
    writeln!(out, "# contract {determinism}, accepting {accept}")?;
    let (device, world, count) = (&profile.device, profile.world, processors.len());
    let crowded = if world as usize > count { ": ranks share them, and wait for it" } else { "" };
    let processors = list(processors);
    let host = format!("ranks {world} on {count} processors ({processors}){crowded}");
    match &about.place {
        Place::Host => writeln!(out, "# host {device}, {host}")?,
        Place::On { driver, .. } => {
            let (devices, daemon) = (about.devices(), daemon(about));
            writeln!(out, "# {driver} {device} x {devices}{daemon}, {host}")?;
        }
    }
    writeln!(out, "# {}", about.method(*mode))?;
    writeln!(out, "# {}", size_basis(*op))?;
    if !about.rounded.is_empty() {
        let sizes: Vec<String> = about
            .rounded
            .iter()
            .map(|(asked, run)| format!("{} to {}", size_text(*asked), size_text(*run)))
            .collect();
        let sizes = sizes.join(", ");
        writeln!(out, "# sizes rounded down to whole elements for all ranks: {sizes}")?;
    }
    if args.target == "all" {
        writeln!(out, "# * is the policy's pick, < the fastest out of place")?;
    }
    if let Some(floors) = &about.floors {
        write_floors(out, floors)?;
    }
    writeln!(out, "#")?;
    let has_host = about.place != Place::Host && *mode == Mode::Eager;
    write_columns(out, has_host, about.floors.is_some())
}

/// What ranks are, and whether those that share a GPU run at a time or in turns.
fn daemon(about: &About) -> &'static str {
    match (about.place.wants_daemon(), about.has_daemon) {
        (false, _) if about.place.is_one_process() => ", one process",
        (false, _) => "",
        (true, true) => " under MPS",
        (true, false) => " without MPS: ranks take turns by time slices",
    }
}

/// What was measured of the devices, and how a row's floor is made of it.
fn write_floors(out: &mut impl Write, floors: &Floors) -> io::Result<()> {
    let Floors { launch_us, empty_us, programmatic_us, memory, cached, pair, .. } = floors;
    write!(
        out,
        "# floors: launch {launch_us:.2} us of the host, empty kernel in a graph {empty_us:.2} us, \
         early {programmatic_us:.2} us, memory {memory:.0} GB/s, cached {cached:.0} GB/s"
    )?;
    let Some(Pair { trip_us, one_way, both_ways }) = pair else { return writeln!(out) };
    writeln!(
        out,
        "; ranks 0 and 1: trip {trip_us:.2} us, copy {one_way:.0} GB/s, both ways {both_ways:.0} GB/s"
    )?;
    writeln!(
        out,
        "# floor = early empty kernel + trips + bytes at the slower of link and memory, or the launch if that \
         is more; out of place"
    )
}

/// `has_host`: rows tell how long callers wait. `has_floor`: and what nothing is faster than.
fn write_columns(out: &mut impl Write, has_host: bool, has_floor: bool) -> io::Result<()> {
    let columns = |text: &[(bool, &str)]| -> String {
        let shown = text.iter().filter(|(is_shown, _)| *is_shown);
        shown.map(|(_, text)| format!("  {text:>7}")).collect()
    };
    let host = columns(&[(has_host, "host"), (has_floor, "floor")]);
    let unit = columns(&[(has_host, "(us)"), (has_floor, "(us)")]);
    // Centred over their four columns, as nccl-tests has them.
    writeln!(out, "# {:60} out-of-place {:21} in-place", "", "")?;
    write!(out, "# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", "size", "count", "type", "redop", "root")?;
    for _ in 0..2 {
        write!(out, "  {:>7}  {:>6}  {:>6}  {:>6}", "time", "algbw", "busbw", "#wrong")?;
    }
    writeln!(out, "  {:>7}  {:>7}{host}  {TARGET:<TARGET_WIDTH$}  rule", "p50", "p99")?;
    write!(out, "# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", "(B)", "(elements)", "", "", "")?;
    for _ in 0..2 {
        write!(out, "  {:>7}  {:>6}  {:>6}  {:>6}", "(us)", "(GB/s)", "(GB/s)", "")?;
    }
    writeln!(out, "  {:>7}  {:>7}{unit}", "(us)", "(us)")
}

const TARGET: &str = "backend/algorithm";
const TARGET_WIDTH: usize = 24;

pub(super) fn write_row(out: &mut impl Write, row: &Row, has_floor: bool) -> io::Result<()> {
    let case = &row.case;
    let (size, count, dtype) = (case.size(), case.count(), case.dtype);
    let (reduce_op, root) = (case.reduce_op_name(), case.root());
    write!(out, "{size:>12}  {count:>12}  {dtype:>8}  {reduce_op:>6}  {root:>6}")?;
    write_figures(out, row.out_of_place)?;
    write_figures(out, row.in_place)?;
    let Figures { times, host, .. } = row.out_of_place;
    write!(out, "  {:>7}  {:>7}", number(times.p50, 7), number(times.p99, 7))?;
    if let Some(host) = host {
        write!(out, "  {:>7}", number(host, 7))?;
    }
    if has_floor {
        let floor = row.floor.map_or("-".to_owned(), |floor| number(floor, 7));
        write!(out, "  {floor:>7}")?;
    }
    let (ran, rule, marks) = (row.ran.join("+"), or_dash(&row.rule), row.marks());
    let line = format!("  {ran:TARGET_WIDTH$}  {rule}  {marks}");
    writeln!(out, "{}", line.trim_end())
}

pub(super) fn write_foot(out: &mut impl Write, rows: &[Row]) -> io::Result<()> {
    let wrong: u64 = rows.iter().map(Row::wrong).sum();
    let verdict = if wrong == 0 { "OK" } else { "FAILED" };
    writeln!(out, "# {:20} : {wrong} {verdict}", "Out of bounds values")?;
    if let Some(average) = average_bus_bandwidth(rows) {
        writeln!(out, "# {:20} : {average:.4}", "Avg bus bandwidth")?;
    }
    Ok(())
}

/// Over all rows and both placements, as nccl-tests has it.
pub(super) fn average_bus_bandwidth(rows: &[Row]) -> Option<f64> {
    let all = rows.iter().flat_map(|row| [row.out_of_place, row.in_place]);
    let sum: f64 = all.map(|figures| figures.bus_bandwidth).sum();
    (!rows.is_empty()).then(|| sum / (2 * rows.len()) as f64)
}

fn write_figures(out: &mut impl Write, figures: Figures) -> io::Result<()> {
    let Figures { wrong, times, algorithm_bandwidth, bus_bandwidth, .. } = figures;
    let (time, algbw) = (number(times.p50, 7), number(algorithm_bandwidth, 6));
    write!(out, "  {time:>7}  {algbw:>6}  {:>6}  {wrong:>6}", number(bus_bandwidth, 6))
}

/// With as many digits behind the point, at most two, as the width has room for.
fn number(value: f64, width: usize) -> String {
    let texts = [2, 1, 0].map(|digits| format!("{value:.digits$}"));
    let [.., shortest] = &texts;
    texts.iter().find(|text| text.len() < width).unwrap_or(shortest).clone()
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}

fn size_basis(op: Op) -> &'static str {
    match op {
        Op::AllReduce | Op::Broadcast => "size = bytes of each rank's input, and of its output",
        Op::AllGather => {
            "size = bytes of the output, that is world x input; count = elements of one rank's input"
        }
        Op::ReduceScatter => {
            "size = bytes of the input, that is world x output; count = elements of one rank's output"
        }
        Op::AllToAll => {
            "size = bytes of each rank's input, and of its output; count = elements for one peer"
        }
    }
}

#[cfg(test)]
mod tests;
