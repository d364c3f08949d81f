//! All sizes and all contenders, on one rank. Rank 0 reports.

use std::io::Write;
use std::path::Path;

use crossover_core::communicator::Communicator;

use super::about::About;
use super::case::Case;
use super::clock;
use super::contender::{Contender, Contenders};
use super::device::Stage;
use super::json;
use super::measure::{Measured, measure};
use super::place::Place;
use super::progress::Progress;
use super::row::{Row, compare};
use super::{Args, table};
use crate::failure::Failure;
use crate::group::Formation;
use crate::out::Out;

/// Measures, and says at the end if anything was wrong. Collective.
pub(super) fn run(
    args: &Args,
    formation: &Formation,
    place: &Place,
    sizes: &[u64],
) -> Result<(), Failure> {
    let start_time = clock::now();
    let contenders = Contenders::form(args, formation, place)?;
    let group = &contenders.policy;
    let seat = (group.rank(), group.world());
    let accept = group.plan().contract().accept;
    let case = |size: &u64| {
        let case = Case::new(args.op, args.dtype, args.reduce_op, seat, *size);
        (*size, case.mode(args.mode).accepting(accept))
    };
    let cases: Vec<(u64, Case)> = sizes.iter().map(case).collect();
    let largest = cases.iter().map(|(_, case)| case.size()).max().unwrap_or_default();
    let stage = place.open(group)?.map(|device| Stage::new(&device, largest)).transpose()?;
    let floors = match &stage {
        Some(stage) => {
            let settings = formation.settings()?;
            let folder = settings.backends.get("ipc.kernels").map(Path::new);
            stage.floors(group, &contenders.beside(args.op), folder, place.is_one_process())?
        }
        None => None,
    };

    let reports = group.rank() == 0;
    let about = About::new(args, place, &contenders, &cases, floors)?;
    let mut out = (reports && !args.json).then(Out::new);
    if let Some(out) = &mut out {
        table::write_head(out, args, &about)?;
        out.flush()?;
    }
    let mut progress = Progress::new(reports, args.json);
    let mut rows = Vec::new();
    let mut calls = 0;
    for (at, (_, case)) in cases.iter().enumerate() {
        progress.at(case.size(), (at, cases.len()));
        let mut measured = rows_of(args, &contenders, stage.as_ref(), case, &mut calls)?;
        for row in &mut measured {
            row.floor = about.floors.and_then(|floors| floors.of_row(&row.ran, case));
        }
        if let Some(out) = &mut out {
            for row in &measured {
                table::write_row(out, row, about.floors.is_some())?;
            }
            out.flush()?;
        }
        rows.extend(measured);
    }
    contenders.close()?;

    if let Some(out) = &mut out {
        table::write_foot(out, &rows)?;
        out.flush()?;
    } else if reports {
        Out::new().json(&json::document(args, &about, &rows, [start_time, clock::now()]))?;
    }
    match rows.iter().find_map(json::error) {
        Some(error) if reports => Err(Failure::check(error)),
        Some(_) => Err(Failure::silent(1)),
        None => Ok(()),
    }
}

/// A row for each target that takes the call, or the one row of the policy's choice.
fn rows_of(
    args: &Args,
    contenders: &Contenders,
    stage: Option<&Stage>,
    case: &Case,
    calls: &mut u64,
) -> Result<Vec<Row>, Failure> {
    let policy = &contenders.policy;
    let takers: Vec<&Contender> = contenders.targets.iter().filter(|c| c.takes(case)).collect();
    let (groups, wanted): (Vec<&Communicator>, Vec<Option<&str>>) = match takers.is_empty() {
        true => (vec![policy], vec![args.forced()]),
        false => takers.iter().map(|t| (&t.group, Some(t.target.as_str()))).unzip(),
    };
    let measured: Vec<Measured> = match stage {
        Some(stage) => {
            stage.measure(&groups, &contenders.beside(case.op), case, args.iters, calls)?
        }
        None => {
            let all = groups.iter().map(|group| measure(group, case, args.iters, calls));
            all.collect::<Result<_, _>>()?
        }
    };
    let call = case.signature(policy.plan().contract());
    let row = |((group, measured), wanted): ((&&Communicator, Measured), _)| {
        let rule = group.explain(&call).chosen.map(|chosen| chosen.rule).unwrap_or_default();
        Row::new(case, measured, rule, wanted)
    };
    let mut rows: Vec<Row> = groups.iter().zip(measured).zip(wanted).map(row).collect();
    if !takers.is_empty() {
        compare(&mut rows, policy.explain(&call).chosen.map(|pick| pick.target).as_deref());
    }
    Ok(rows)
}
