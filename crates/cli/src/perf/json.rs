//! Results for programs: nccl-tests' keys, and ours beside them.
//!
//! nccl-tests writes its whole environment; here only the variables of this program are written,
//! since results are shared and environments hold secrets.

use crossover_bootstrap::binding::list;
use serde_json::{Value, json};

use super::Args;
use super::about::About;
use super::floors::{Floors, Pair};
use super::row::{Figures, Row};
use super::table::average_bus_bandwidth;

/// The version of nccl-tests' own format whose keys are written.
const FORMAT: u32 = 2;

pub(super) fn document(args: &Args, about: &About, rows: &[Row], times: [String; 2]) -> Value {
    let [start_time, end_time] = times;
    let wrong: u64 = rows.iter().map(Row::wrong).sum();
    let About { profile, policy, determinism, accept, .. } = about;
    json!({
        "version": FORMAT,
        "crossover_version": env!("CARGO_PKG_VERSION"),
        "start_time": start_time,
        "args": arguments(),
        "env": variables(),
        "config": {
            "op": args.op,
            "world": profile.world,
            "group": profile.tag,
            "min_bytes": args.first,
            "max_bytes": args.last,
            "step_factor": args.factor,
            "iters": args.iters,
            "mode": args.mode,
            "device": about.place.name(),
            "devices": about.devices(),
            "mps": about.has_daemon,
            "one_process": args.one_process,
            "use": args.target,
            "method": about.method(args.mode),
        },
        "policy": {
            "digest": policy,
            "sources": about.sources.iter().map(source).collect::<Vec<_>>(),
        },
        "contract": { "determinism": determinism, "accept": accept },
        "processors": list(&about.processors),
        "facts": profile,
        "devices": devices(about),
        "floors": about.floors.map(floors),
        "results": rows.iter().map(|row| result(args, row)).collect::<Vec<_>>(),
        "out_of_bounds": { "count": wrong, "okay": wrong == 0 },
        "average_bus_bandwidth": { "bandwidth": average_bus_bandwidth(rows), "okay": "unchecked" },
        "errors": rows.iter().filter_map(error).collect::<Vec<_>>(),
        "end_time": end_time,
    })
}

/// One row, in words, if something is wrong with it.
pub(super) fn error(row: &Row) -> Option<String> {
    let (op, size) = (row.case.op, row.case.size());
    let ran = row.ran.join(" and ");
    if row.wrong() > 0 {
        Some(format!("{op} of {size} B by {ran}: {} wrong elements", row.wrong()))
    } else if row.astray {
        Some(format!("{op} of {size} B was run by {ran}, not by what was forced"))
    } else {
        None
    }
}

fn result(args: &Args, row: &Row) -> Value {
    let case = &row.case;
    json!({
        "size": case.size(),
        "count": case.count(),
        "type": case.dtype,
        "redop": case.reduce_op_name(),
        "root": case.root(),
        "out_of_place": figures(row.out_of_place),
        "in_place": figures(row.in_place),
        "actual_iterations": row.out_of_place.times.iterations,
        "calls_per_iteration": row.out_of_place.calls,
        "op": case.op,
        "world": case.world,
        "mode": args.mode,
        "bytes_input": case.input_bytes(),
        "use": row.ran.join("+"),
        "rule": row.rule,
        "policy_pick": row.picked,
        "fastest": row.fastest,
        "astray": row.astray,
        "floor_us": row.floor,
    })
}

fn figures(figures: Figures) -> Value {
    let Figures { wrong, times, host, algorithm_bandwidth, bus_bandwidth, .. } = figures;
    json!({
        "time": times.p50,
        "alg_bw": algorithm_bandwidth,
        "bus_bw": bus_bandwidth,
        "nwrong": wrong,
        "min_us": times.min,
        "p50_us": times.p50,
        "p99_us": times.p99,
        "max_us": times.max,
        "host_us": host,
    })
}

fn floors(floors: Floors) -> Value {
    let pair = |of: fn(Pair) -> f64| floors.pair.map(of);
    json!({
        "launch_us": floors.launch_us,
        "empty_us": floors.empty_us,
        "programmatic_us": floors.programmatic_us,
        "memory_gbps": floors.memory,
        "cached_gbps": floors.cached,
        "cache_bytes": floors.cache,
        "ranks_per_device": floors.ranks_per_device,
        "trip_us": pair(|pair| pair.trip_us),
        "copy_gbps": pair(|pair| pair.one_way),
        "copy_both_ways_gbps": pair(|pair| pair.both_ways),
    })
}

fn devices(about: &About) -> Vec<Value> {
    let ranks = about.reports.iter().enumerate();
    ranks
        .map(|(rank, report)| {
            let (host, pid) = report.label.rsplit_once(':').unwrap_or((&report.label, ""));
            json!({
                "rank": rank,
                "pid": pid.parse::<u32>().ok(),
                "hostname": host,
                "node": report.node,
                "device": report.arch,
                "device_info": report.device,
            })
        })
        .collect()
}

fn source((layer, file): &(crossover_core::policy::Layer, String)) -> Value {
    json!({ "layer": layer, "file": file })
}

fn variables() -> Vec<String> {
    let all = std::env::vars_os()
        .map(|(name, value)| format!("{}={}", name.to_string_lossy(), value.to_string_lossy()));
    let mut ours: Vec<String> = all.filter(|line| line.starts_with("CROSSOVER_")).collect();
    ours.sort_unstable();
    ours
}

/// The command line, the program by its name alone: where it is installed helps no reader.
fn arguments() -> Vec<String> {
    let given = std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned());
    std::iter::once(env!("CARGO_BIN_NAME").to_owned()).chain(given).collect()
}
