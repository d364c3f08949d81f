//! May one device use another's memory? A verdict for each directed pair, before anyone does.
//!
//! What a driver says is necessary and not sufficient: there are machines on which peer access is
//! granted and writes are lost, or land in a copy that only the writer sees. So a probe writes, and
//! the owner reads with its own eyes. All who use peers ask this one verdict, which can only veto:
//! a driver's no is never overruled, and what was not proven is not used.
//!
//! Asked in this order: the [`platform`], the driver ([`refused`]), what is remembered of broken
//! pairs ([`cache`]), and the devices themselves, by the ranks that are about to use them: each
//! writes, each owner looks, within a time, and [`observation::judge`] says what that means.

pub mod acs;
pub mod cache;
pub mod nccl;
pub mod observation;
pub mod platform;

mod verdicts;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use verdicts::{Verdicts, refused};

/// One device that uses another's memory. Both are UUIDs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Pair {
    /// The device that reads and writes.
    pub user: String,
    /// The device whose memory it is.
    pub owner: String,
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} using memory of {}", self.user, self.owner)
    }
}

/// What was found out of a pair. Only [`Verdict::Proven`] allows anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// What one wrote, the other read.
    Proven,
    /// Data went wrong, in these words.
    Broken(String),
    /// The driver or the platform says no.
    Refused(String),
    /// It could not be found out. A veto for this run, and asked anew in the next.
    Inconclusive(String),
}

impl Verdict {
    /// May it be remembered? What the driver says is cheap to ask again; what was not found out is
    /// not known.
    fn is_lasting(&self) -> bool {
        matches!(self, Verdict::Proven | Verdict::Broken(_))
    }

    /// What speaks more against a pair weighs more.
    fn weight(&self) -> u32 {
        match self {
            Verdict::Proven => 0,
            Verdict::Inconclusive(_) => 1,
            Verdict::Broken(_) => 2,
            Verdict::Refused(_) => 3,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Proven => f.write_str("proven"),
            Verdict::Broken(how) => write!(f, "broken: {how}"),
            Verdict::Refused(why) => write!(f, "refused: {why}"),
            Verdict::Inconclusive(why) => write!(f, "inconclusive: {why}"),
        }
    }
}
