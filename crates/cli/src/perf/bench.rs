//! All sizes and all contenders, on one rank. Rank 0 reports.

use std::io::Write;

use crossover_core::communicator::Communicator;

use super::about::About;
use super::case::Case;
use super::clock;
use super::contender::{Contender, Contenders};
use super::json;
use super::measure::measure;
use super::progress::Progress;
use super::row::{Row, compare};
use super::{Args, table};
use crate::failure::Failure;
use crate::group::Formation;
use crate::out::Out;

/// Measures, and says at the end if anything was wrong. Collective.
pub(super) fn run(args: &Args, formation: &Formation, sizes: &[u64]) -> Result<(), Failure> {
    let start_time = clock::now();
    let contenders = Contenders::form(args, formation)?;
    let group = &contenders.policy;
    let seat = (group.rank(), group.world());
    let case = |size: &u64| (*size, Case::new(args.op, args.dtype, args.reduce_op, seat, *size));
    let cases: Vec<(u64, Case)> = sizes.iter().map(case).collect();

    let reports = group.rank() == 0;
    let about = About::new(args, group, &cases)?;
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
        let measured = rows_of(args, &contenders, case, &mut calls)?;
        if let Some(out) = &mut out {
            for row in &measured {
                table::write_row(out, row)?;
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
    case: &Case,
    calls: &mut u64,
) -> Result<Vec<Row>, Failure> {
    let policy = &contenders.policy;
    let mut row = |group: &Communicator, wanted: Option<&str>| {
        let measured = measure(group, case, args.iters, calls)?;
        let call = case.signature(policy.plan().contract());
        let rule = group.explain(&call).chosen.map(|chosen| chosen.rule).unwrap_or_default();
        Ok(Row::new(case, measured, rule, wanted))
    };
    let takers: Vec<&Contender> = contenders.targets.iter().filter(|c| c.takes(case)).collect();
    if takers.is_empty() {
        return Ok(vec![row(policy, args.forced())?]);
    }
    let rows = takers.iter().map(|taker| row(&taker.group, Some(&taker.target)));
    let mut rows = rows.collect::<Result<Vec<Row>, Failure>>()?;
    let pick = policy.explain(&case.signature(policy.plan().contract())).chosen;
    compare(&mut rows, pick.map(|pick| pick.target).as_deref());
    Ok(rows)
}
