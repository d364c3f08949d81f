//! All findings, for people and for programs.

use std::io::Write;

use serde::Serialize;

use super::eligible::Group;
use super::finding::{Finding, Verdict};
use super::peers::Reached;
use crate::failure::Failure;
use crate::out::Out;

/// Where a check's words begin.
const INDENT: usize = 20;

/// What was found, in the order in which it is told.
pub(super) struct Report {
    findings: Vec<Placed>,
    /// How the devices of each vendor reach one another.
    pub(super) topology: Vec<Reached>,
    /// The groups that could be formed, and by what.
    pub(super) groups: Vec<Group>,
}

#[derive(Serialize)]
struct Placed {
    section: &'static str,
    #[serde(flatten)]
    finding: Finding,
}

/// The keys of `--json`, which are promises.
#[derive(Serialize)]
struct Json<'a> {
    crossover_version: &'static str,
    verdict: Verdict,
    findings: &'a [Placed],
    topology: &'a [Reached],
    groups: &'a [Group],
}

impl Report {
    /// Begins with the version of this program.
    pub(super) fn new() -> Report {
        let mut report = Report { findings: Vec::new(), topology: Vec::new(), groups: Vec::new() };
        let version = format!("crossover {}", env!("CARGO_PKG_VERSION"));
        report.add("machine", [Finding::ok("version", version)]);
        report
    }

    /// Findings of a section; those of one section are added one after the other.
    pub(super) fn add(
        &mut self,
        section: &'static str,
        findings: impl IntoIterator<Item = Finding>,
    ) {
        let place = |finding| Placed { section, finding };
        self.findings.extend(findings.into_iter().map(place));
    }

    /// The worst of all verdicts.
    pub(super) fn worst(&self) -> Verdict {
        let verdicts = self.findings.iter().map(|placed| placed.finding.verdict);
        verdicts.max().unwrap_or(Verdict::Ok)
    }

    pub(super) fn json(&self) -> Result<(), Failure> {
        Out::new().json(&Json {
            crossover_version: env!("CARGO_PKG_VERSION"),
            verdict: self.worst(),
            findings: &self.findings,
            topology: &self.topology,
            groups: &self.groups,
        })
    }

    pub(super) fn text(&self) -> Result<(), Failure> {
        let mut out = Out::new();
        self.write(&mut out)?;
        Ok(out.flush()?)
    }

    pub(super) fn write(&self, out: &mut impl Write) -> std::io::Result<()> {
        let mut section = "";
        for placed in &self.findings {
            if placed.section != section {
                let gap = if section.is_empty() { "" } else { "\n" };
                section = placed.section;
                writeln!(out, "{gap}{section}")?;
            }
            let Finding { check, verdict, found, advice } = &placed.finding;
            // A message of several lines, such as one on a policy, stays readable.
            let found = found.replace('\n', &format!("\n{:INDENT$}", ""));
            writeln!(out, "{:5} {check:13} {found}", verdict.name())?;
            if let Some(advice) = advice {
                writeln!(out, "{:1$} -> {advice}", "", INDENT - 1)?;
            }
        }
        let count = |verdict| {
            self.findings.iter().filter(|placed| placed.finding.verdict == verdict).count()
        };
        let (warnings, failures) = (count(Verdict::Warn), count(Verdict::Fail));
        writeln!(out, "\n{failures} checks failed, {warnings} warn")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let mut report = Report::new();
        report.add("devices", [Finding::warn("gpu", "one\ntwo", "do this")]);
        report.add("devices", Vec::new());
        report.add("groups", [Finding::ok("group", "well")]);
        report
    }

    #[test]
    fn people_get_sections_and_a_last_line() {
        let mut text = Vec::new();
        report().write(&mut text).expect("a vector takes all");
        let text = String::from_utf8(text).expect("text");
        let (head, rest) = text.split_once("\n\n").expect("two sections");
        assert!(head.starts_with("machine\nok    version       crossover "), "{head}");
        let want = "devices\nwarn  gpu           one\n                    two\n                    \
                    -> do this\n\ngroups\nok    group         well\n\n0 checks failed, 1 warn\n";
        assert_eq!(rest, want);
    }

    #[test]
    fn the_worst_verdict_is_the_reports() {
        let mut report = report();
        assert_eq!(report.worst(), Verdict::Warn);
        report.add("groups", [Finding::fail("group", "ill", None)]);
        assert_eq!(report.worst(), Verdict::Fail);
    }
}
