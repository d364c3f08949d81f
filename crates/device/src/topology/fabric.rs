//! GPUs of several nodes in one NVLink fabric.
//!
//! Memory is exported to a fabric for the GPUs of a clique of a cluster. What the ranks' GPUs say
//! of their fabric is compared before anything is exported, because an import that cannot work
//! fails with a status that names nobody.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A GPU's place in a fabric, as NVML says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fabric {
    /// The cluster as 32 digits; all zero where there is none.
    pub cluster: String,
    /// The clique in it: which GPUs can reach one another.
    pub clique: u32,
    /// How far the GPU's registration is.
    pub state: State,
    /// The registration's status, an NVML code: 0 is success. Means something once it is completed.
    #[serde(default)]
    pub status: u32,
    /// NVML's bits on its health; 0 where the driver has none.
    #[serde(default)]
    pub health: u32,
}

/// How far a GPU's registration with its fabric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It is done.
    Completed,
    /// It runs.
    InProgress,
    /// It has not begun.
    NotStarted,
    /// The GPU has no fabric.
    NotSupported,
    /// A word that is not known here.
    Unknown,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            State::Completed => "completed",
            State::InProgress => "in progress",
            State::NotStarted => "not started",
            State::NotSupported => "not supported",
            State::Unknown => "unknown",
        })
    }
}

impl Fabric {
    /// Can memory be exported to it?
    pub fn is_joined(&self) -> bool {
        // size: none, a cluster's name: a GPU in a single node's fabric has one of zeros alone.
        let named = self.cluster.bytes().any(|digit| digit != b'0');
        self.state == State::Completed && self.status == 0 && named
    }

    /// NVML's two bits on bandwidth: 1 says that it is degraded.
    pub fn is_degraded(&self) -> bool {
        self.health & 0b11 == 1
    }
}

/// What a rank says of its GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The rank.
    pub rank: u32,
    /// Its host, for messages.
    pub host: String,
    /// Its GPU.
    pub uuid: String,
    /// That GPU's fabric; `None` where the driver cannot tell.
    pub fabric: Option<Fabric>,
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Member { rank, host, uuid, fabric } = self;
        write!(f, "rank {rank} ({uuid} on {host}): ")?;
        match fabric {
            None => f.write_str("no fabric"),
            Some(Fabric { cluster, clique, state, status, .. }) => {
                write!(f, "clique {clique} of cluster {cluster}, registration {state}")?;
                if *status != 0 { write!(f, " with status {status}") } else { Ok(()) }
            }
        }
    }
}

/// The clique that all members are in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clique {
    /// The cluster as 32 digits.
    pub cluster: String,
    /// The clique in it.
    pub clique: u32,
}

/// The members are not in one clique.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no common NVLink fabric: {}", sentences(.odd, .most))]
pub struct NoClique {
    /// Those that are not where most are, ascending by rank.
    pub odd: Vec<Member>,
    /// One of the others, of the lowest rank.
    pub most: Option<Member>,
}

/// The clique that all members are in: memory can be shared over the fabric in it and nowhere
/// else. Every rank that asks with the same members gets the same answer.
///
/// # Errors
/// [`NoClique`], which names the ranks that are not where most are: of two sides of equal size,
/// the one without the lowest rank. A group of nobody has no clique.
pub fn common(members: &[Member]) -> Result<Clique, NoClique> {
    let place = |member: &Member| {
        let fabric = member.fabric.as_ref().filter(|fabric| fabric.is_joined())?;
        Some(Clique { cluster: fabric.cluster.clone(), clique: fabric.clique })
    };
    let mut members: Vec<&Member> = members.iter().collect();
    members.sort_by_key(|member| member.rank);
    let mut home: Option<(Clique, usize)> = None;
    for member in &members {
        let Some(clique) = place(member) else { continue };
        let size = members.iter().filter(|other| place(other).as_ref() == Some(&clique)).count();
        if home.as_ref().is_none_or(|(_, most)| size > *most) {
            home = Some((clique, size));
        }
    }
    let home = home.map(|(clique, _)| clique);
    let (most, odd): (Vec<&Member>, Vec<&Member>) =
        members.into_iter().partition(|member| home.is_some() && place(member) == home);
    match home {
        Some(clique) if odd.is_empty() => Ok(clique),
        _ => Err(NoClique {
            odd: odd.into_iter().cloned().collect(),
            most: most.first().map(|member| (*member).clone()),
        }),
    }
}

fn sentences(odd: &[Member], most: &Option<Member>) -> String {
    let odd: Vec<String> = odd.iter().map(ToString::to_string).collect();
    match most {
        _ if odd.is_empty() => "nobody is there".to_owned(),
        Some(member) => format!("{}; but {member}", odd.join("; ")),
        None => odd.join("; "),
    }
}
