//! `crossover policy lint`: is a file right, for every group and call that it can meet?

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use crossover_core::registry::Registry;
use crossover_policy::lint::{Options, Report, lint};
use crossover_policy::{Diagnostic, PolicyError, Severity};
use serde_json::{Value, json};

use super::{Engine, Over};
use crate::explain::{capacity, known};
use crate::failure::Failure;
use crate::out::Out;

/// Check policies, exhaustively: each file by itself; the policy in force, if none is given
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Policy files
    files: Vec<PathBuf>,
    #[command(flatten)]
    over: Over,
    /// Warnings count as errors
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    engine: Engine,
    /// Room that a backend was set up with, in input bytes per rank
    #[arg(long, value_name = "ID=SIZE", value_parser = capacity)]
    capacity: Vec<(String, u64)>,
    /// The devices' name, such as "NVIDIA H200": were the numbers measured on it?
    #[arg(long)]
    device: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let registry = crossover_backends::registry()?;
    let mut out = Out::new();
    let mut verdicts = Vec::new();
    let mut worst = 0;
    for files in args.each() {
        let checked = args.check(files, &registry)?;
        worst = worst.max(checked.exit_code());
        match args.json {
            true => verdicts.push(checked.record()),
            false => write!(out, "{}", checked.text())?,
        }
    }
    if args.json {
        out.json(&verdicts)?;
    }
    out.flush()?;
    if worst == 0 { Ok(()) } else { Err(Failure::silent(worst)) }
}

impl Args {
    /// The files that are laid together: one at a time.
    fn each(&self) -> Vec<&[PathBuf]> {
        match self.files.is_empty() {
            true => vec![&[]],
            false => self.files.chunks(1).collect(),
        }
    }

    fn check(&self, files: &[PathBuf], registry: &Registry) -> Result<Checked, Failure> {
        known(&self.capacity, registry)?;
        let start = Instant::now();
        let (sources, settings) = self.over.sources(files, "", registry)?;
        let options = Options {
            contract: self.engine.contract(settings.contract),
            capacities: self.capacity.iter().cloned().collect::<BTreeMap<_, _>>(),
            device: self.device.clone(),
            ..Options::default()
        };
        let mut is_readable = true;
        let report = match lint(&sources, registry, &options) {
            Ok(report) => report,
            Err(PolicyError::Mistakes(findings)) => {
                is_readable = false;
                Report { findings, ..Report::default() }
            }
            Err(unreadable) => return Err(unreadable.into()),
        };
        let name = match files {
            [] => "the policy in force".to_owned(),
            files => files[0].display().to_string(),
        };
        let milliseconds = start.elapsed().as_secs_f64() * 1e3;
        let is_strict = self.strict || settings.strict;
        Ok(Checked { name, report, is_readable, is_strict, milliseconds })
    }
}

/// One policy that was checked.
struct Checked {
    name: String,
    report: Report,
    /// Could it be read at all?
    is_readable: bool,
    is_strict: bool,
    milliseconds: f64,
}

impl Checked {
    /// As the program's: 2 for a file that is none, 1 for a check that failed.
    fn exit_code(&self) -> u8 {
        let least = if self.is_strict { Severity::Warning } else { Severity::Error };
        let failed = self.report.findings.iter().any(|f| f.code.severity() >= least);
        match (failed, self.is_readable) {
            (_, false) => 2,
            (true, true) => 1,
            (false, true) => 0,
        }
    }

    fn count(&self, severity: Severity) -> usize {
        self.report.findings.iter().filter(|f| f.code.severity() == severity).count()
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for finding in &self.report.findings {
            text += &format!("{finding}\n\n");
        }
        let counts = [
            (self.count(Severity::Error), "error"),
            (self.count(Severity::Warning), "warning"),
            (self.report.decisions as usize, "decision"),
            (self.report.expectations, "expectation"),
        ];
        let counts = counts.map(|(n, what)| format!("{n} {what}{}", if n == 1 { "" } else { "s" }));
        text += &format!("{}: {}, {:.1} ms\n", self.name, counts.join(", "), self.milliseconds);
        for refused in &self.report.refused_by_contract {
            text += &format!("  under this contract nothing serves {refused}\n");
        }
        text
    }

    fn record(&self) -> Value {
        json!({
            "policy": self.name,
            "errors": self.count(Severity::Error),
            "warnings": self.count(Severity::Warning),
            "decisions": self.report.decisions,
            "expectations": self.report.expectations,
            "milliseconds": self.milliseconds,
            "refused_by_contract": self.report.refused_by_contract,
            "findings": self.report.findings.iter().map(finding).collect::<Vec<_>>(),
        })
    }
}

fn finding(finding: &Diagnostic) -> Value {
    let severity = match finding.code.severity() {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    json!({
        "code": finding.code.name(),
        "severity": severity,
        "message": finding.message,
        "help": finding.help,
        "file": finding.file,
        "line": finding.line,
        "column": finding.column,
    })
}
