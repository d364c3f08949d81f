//! `crossover doctor`: is this node, with this environment, fit for collectives? Runs on a machine
//! with nothing, and changes nothing.

mod devices;
mod finding;
mod machine;
mod misset;
mod nccl;
mod peers;
mod shared_memory;
mod software;
mod trial;

use std::io::Write;

use serde_json::json;

use crate::failure::Failure;
use crate::out::Out;
use finding::{Finding, Verdict};

/// Check this node and its environment, and say what to do about what is found
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Ends with 1 if a check failed.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let findings = examine();
    let worst = findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Ok);
    let mut out = Out::new();
    if args.json {
        let version = env!("CARGO_PKG_VERSION");
        out.json(&json!({
            "crossover_version": version,
            "verdict": worst,
            "findings": findings,
        }))?;
    } else {
        for Finding { check, verdict, found, advice } in &findings {
            // A message of several lines, such as one on a policy, stays readable.
            let found = found.replace('\n', &format!("\n{:20}", ""));
            writeln!(out, "{:5} {check:13} {found}", verdict.name())?;
            if let Some(advice) = advice {
                writeln!(out, "{:19} -> {advice}", "")?;
            }
        }
        out.flush()?;
    }
    if worst == Verdict::Fail { Err(Failure::silent(1)) } else { Ok(()) }
}

fn examine() -> Vec<Finding> {
    let version = format!("crossover {}", env!("CARGO_PKG_VERSION"));
    let mut findings = vec![Finding::ok("version", version)];
    findings.extend(machine::examine());
    let (settings, found) = software::examine();
    findings.extend(devices::examine(settings.as_ref()));
    findings.extend(nccl::examine(settings.as_ref()));
    findings.extend(found);
    findings.extend(misset::examine(settings.as_ref()));
    findings.extend(peers::examine(settings.as_ref()));
    findings.extend(shared_memory::examine(settings.as_ref()));
    findings.extend(trial::examine(settings.as_ref()));
    findings
}
