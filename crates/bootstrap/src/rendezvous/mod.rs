//! How processes meet: rank 0 listens, the others join.

mod addresses;
mod host;
mod join;
mod listen;
mod part;
mod place;
mod publish;

use std::time::{Duration, Instant};

use crossover_core::bootstrap::Bootstrap;

pub use self::addresses::own as own_addresses;
pub(crate) use self::part::{Ear, Invitation, Member, follow, invite, take_in};
use self::place::Target;
pub use self::place::{Place, PlaceError};
use crate::channel::Channel;
use crate::error::RendezvousError;
use crate::exchange::Link;
use crate::frame::Hello;
use crate::identity::Identity;
use crate::launch::Launch;
use crate::solo::Solo;

/// How to meet, beyond what the launcher says.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long meeting may take, and afterwards each exchange. 60 s by default.
    pub deadline: Duration,
    /// This node's identity instead of the kernel's boot id.
    pub node_id: Option<String>,
    /// Lets a job that says it spans several nodes meet at a loopback address: for tests that
    /// play several nodes on one. Off by default, because on real nodes it can only hang.
    pub allow_loopback: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { deadline: Duration::from_secs(60), node_id: None, allow_loopback: false }
    }
}

/// Meets the other ranks of `launch`. Collective; where some do not come it returns at the deadline, and at
/// most a quarter of it, or 2 s, later, to hear from rank 0 who they are. A world of one
/// opens no socket and no file; otherwise nothing is left on disk once all have met.
///
/// # Errors
///
/// Some rank does not come, two claim the same rank, the address is another's, or it cannot be
/// reached. What rank 0 can see ends in the same sentence on every rank. Strangers (another job,
/// another attempt, no rank at all) are refused and do not disturb the others.
pub fn connect(launch: &Launch, options: &Options) -> Result<Box<dyn Bootstrap>, RendezvousError> {
    if launch.world() == 1 {
        return Ok(Box::new(Solo::new(options.deadline)));
    }
    let Some(place) = launch.place() else {
        return Err(RendezvousError::NoPlace { world: launch.world() });
    };
    for (what, name) in
        [("the job's name", Some(launch.job())), ("node_id", options.node_id.as_deref())]
    {
        let bytes = name.map_or(0, str::len);
        if bytes > LONGEST_NAME {
            return Err(RendezvousError::LongName { what, bytes, most: LONGEST_NAME });
        }
    }
    let target = Target::resolve(place, launch, options.allow_loopback)?;
    let me = Party {
        hello: Hello {
            job: launch.job().to_owned(),
            attempt: launch.attempt(),
            run: 0,
            world: launch.world(),
            rank: launch.rank(),
            identity: Identity::here(options.node_id.as_deref()),
        },
        deadline: options.deadline,
        until: Instant::now() + options.deadline,
        several_nodes: launch.spans_nodes(),
    };
    let met = if launch.rank() == 0 { host::meet(&target, me) } else { join::meet(&target, me) }?;
    tracing::debug!(rank = launch.rank(), world = launch.world(), place = %target, "ranks met");
    let Met { link, identities, local } = met;
    Ok(Box::new(Channel::new(launch.rank(), options.deadline, identities, local, link)))
}

/// Bytes of a job's or node's name: a frame of strangers' words has little room, before anybody is known.
const LONGEST_NAME: usize = 512; // size: two of them, and a host's, fit the first frame

/// This rank, on its way to the others.
struct Party {
    hello: Hello,
    deadline: Duration,
    until: Instant,
    several_nodes: bool,
}

impl Party {
    /// How long it has been on its way.
    fn waited(&self, now: Instant) -> Duration {
        (now + self.deadline).saturating_duration_since(self.until)
    }
}

/// All have met.
pub(crate) struct Met {
    pub(crate) link: Link,
    pub(crate) identities: Vec<Identity>,
    /// Over Unix sockets.
    pub(crate) local: bool,
}
