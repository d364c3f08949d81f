//! Some ranks of a group, which have met already, meet again for a channel of their own. Where, they
//! tell one another over the channel that they have.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::listen::{Listener, is_socket, own_directory};
use super::place::Target;
use super::{Met, Party, addresses, host, join};
use crate::error::RendezvousError;
use crate::frame::Hello;
use crate::identity::Identity;

/// A rank on its way to the others of its part.
pub(crate) struct Member<'a> {
    /// What the part is for: strangers are told so.
    pub(crate) step: &'a str,
    /// Its number there.
    pub(crate) rank: u32,
    /// How many they are.
    pub(crate) world: u32,
    /// Who it is.
    pub(crate) identity: Identity,
    /// How long it waits for the others.
    pub(crate) deadline: Duration,
}

/// Where the first of a part listens. `run` is a number that only its ranks know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Invitation {
    run: u64,
    door: Door,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Door {
    Unix { directory: PathBuf },
    Tcp(Vec<SocketAddr>),
}

/// What the first of a part listens at, until all have come.
pub(crate) struct Ear(Listener);

/// The first of a part listens: at a Unix socket where all its ranks are near, on one node, if one
/// can be had, and else at all addresses of its node. `near` has the folder of the Unix socket at
/// which the ranks met before, if it was one. `reached` are the addresses at which this rank is known
/// to be reached; they come first.
pub(crate) fn invite(
    member: &Member<'_>,
    near: Option<Option<&Path>>,
    reached: &[IpAddr],
) -> Result<(Ear, Invitation), RendezvousError> {
    let run = crate::random();
    if let Some(folder) = near {
        let name = format!("crossover-part-{}-{run:016x}", std::process::id());
        let invitation =
            Invitation { run, door: Door::Unix { directory: beside(folder).join(name) } };
        match Listener::open(&invitation.target(), &mut member.party(run)) {
            Ok(listener) => return Ok((Ear(listener), invitation)),
            Err(e) => tracing::debug!("no Unix socket for a part, TCP instead: {e}"),
        }
    }
    let (listener, port) = Listener::free_port()?;
    let mut all = reached.to_vec();
    for own in addresses::own() {
        if !all.contains(&own) {
            all.push(own);
        }
    }
    let door = Door::Tcp(all.into_iter().map(|ip| (ip, port).into()).collect());
    Ok((Ear(listener), Invitation { run, door }))
}

/// Where ranks that met in `folder` have a socket in common: there, or, since a job's own folder is
/// gone by now, where that was.
fn beside(folder: Option<&Path>) -> &Path {
    let there = folder.filter(|folder| folder.is_dir());
    let above = folder.and_then(Path::parent).filter(|folder| folder.is_dir());
    there.or(above).unwrap_or(Path::new("/tmp"))
}

/// The first of a part takes the others in.
pub(crate) fn take_in(
    member: &Member<'_>,
    ear: Ear,
    invitation: &Invitation,
) -> Result<Met, RendezvousError> {
    host::gather(ear.0, member.party(invitation.run))
}

/// Another of a part goes where it is invited.
pub(crate) fn follow(member: &Member<'_>, invitation: &Invitation) -> Result<Met, RendezvousError> {
    join::meet(&invitation.target(), member.party(invitation.run))
}

impl Invitation {
    /// Is it known that this rank can follow? A Unix socket may be in another file system than this
    /// rank's; of addresses nothing is known before one was tried.
    pub(crate) fn is_visible(&self) -> bool {
        match self.target() {
            Target::Unix { socket, directory } => {
                directory.is_none_or(|path| own_directory(&path).is_ok()) && is_socket(&socket)
            }
            _ => true,
        }
    }

    fn target(&self) -> Target {
        match &self.door {
            Door::Unix { directory } => {
                let socket = directory.join("part");
                Target::Unix { socket, directory: Some(directory.clone()) }
            }
            Door::Tcp(all) => Target::AnyOf(all.clone()),
        }
    }
}

impl Member<'_> {
    fn party(&self, run: u64) -> Party {
        let Member { step, rank, world, deadline, .. } = *self;
        let (job, attempt, identity) = (step.to_owned(), 0, self.identity.clone());
        Party {
            hello: Hello { job, attempt, run, world, rank, identity },
            deadline,
            until: Instant::now() + deadline,
            several_nodes: false,
        }
    }
}
