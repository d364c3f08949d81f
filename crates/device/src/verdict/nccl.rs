//! What a veto means for a library that asks nobody. For backend `nccl`, once it runs.

use super::{Verdict, Verdicts};

/// NCCL's switch for peer access, the same in all its versions.
const VARIABLE: &str = "NCCL_P2P_DISABLE";

/// A variable to set before NCCL is loaded, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// Its name.
    pub variable: &'static str,
    /// Its value.
    pub value: &'static str,
    /// Why: one sentence.
    pub reason: String,
}

/// Should NCCL be kept from using peers? `set` tells what the environment has: what a user set is
/// left as it is. Where the driver refuses, NCCL finds out by itself.
pub fn advice(verdicts: &Verdicts, set: impl Fn(&str) -> Option<String>) -> Option<Advice> {
    let (pair, verdict) = verdicts
        .pairs
        .iter()
        .find(|(_, verdict)| matches!(verdict, Verdict::Broken(_) | Verdict::Inconclusive(_)))?;
    if set(VARIABLE).is_some() {
        return None;
    }
    Some(Advice { variable: VARIABLE, value: "1", reason: format!("{pair} is {verdict}") })
}
