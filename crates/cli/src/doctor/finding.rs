//! What one check found.

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    Ok,
    Warn,
    Fail,
}

impl Verdict {
    pub(super) fn name(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Warn => "warn",
            Verdict::Fail => "fail",
        }
    }
}

/// One sentence, and what to do about it.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    pub(super) check: &'static str,
    pub(super) verdict: Verdict,
    pub(super) found: String,
    /// Only if something should be done.
    pub(super) advice: Option<String>,
}

impl Finding {
    pub(super) fn ok(check: &'static str, found: impl Into<String>) -> Finding {
        Finding { check, verdict: Verdict::Ok, found: found.into(), advice: None }
    }

    /// Nothing is wrong, and something can be done.
    pub(super) fn hint(
        check: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Finding {
        Finding { verdict: Verdict::Ok, ..Finding::warn(check, found, advice) }
    }

    pub(super) fn warn(
        check: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Finding {
        let advice = Some(advice.into());
        Finding { check, verdict: Verdict::Warn, found: found.into(), advice }
    }

    /// Errors tell what to do themselves where anything can be done.
    pub(super) fn fail(
        check: &'static str,
        found: impl Into<String>,
        advice: Option<&str>,
    ) -> Finding {
        let advice = advice.map(str::to_owned);
        Finding { check, verdict: Verdict::Fail, found: found.into(), advice }
    }
}

/// An amount of memory, for people: whole MiB, rounded down.
pub(super) fn mebibytes(bytes: u64) -> String {
    let mebibyte = 1 << 20; // size: a unit
    format!("{} MiB", bytes / mebibyte)
}
