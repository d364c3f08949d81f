//! Why ranks did not meet.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crossover_core::bootstrap::{BootstrapError, ranks_in_words};
use serde::{Deserialize, Serialize};

/// A rendezvous failed. Where the cause concerns every rank, every rank holds the same sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RendezvousError {
    /// The address belongs to something that is not a rank of this program.
    #[error(
        "what listens at {address} is not rank 0: {what}; if rank 0 says that this address is in use, give the job another"
    )]
    Foreign {
        /// Where.
        address: String,
        /// What was seen.
        what: String,
    },
    /// Rank 0's address is taken.
    #[error(
        "rank 0 cannot listen at {address}: it is in use by {by}; give the job another address"
    )]
    InUse {
        /// Where.
        address: String,
        /// By whom, as far as it answers.
        by: String,
    },
    /// A file, socket or directory cannot be used.
    #[error("cannot {what} {path}: {why}")]
    Io {
        /// A verb phrase.
        what: &'static str,
        /// Of what.
        path: PathBuf,
        /// What the system said.
        why: String,
    },
    /// A name is too long to travel.
    #[error("{what} has {bytes} B, and at most {most} travel: give a shorter one")]
    LongName {
        /// Which: the job's or the node's.
        what: &'static str,
        /// Its bytes.
        bytes: usize,
        /// The most that there can be.
        most: usize,
    },
    /// Ranks on several nodes were told to meet at an address that never leaves one.
    #[error(
        "the rendezvous `{host}` is {address}, a loopback address, but the job spans several nodes ({local_world} of {world} ranks are here): give an address of rank 0's node that the other nodes reach"
    )]
    Loopback {
        /// As given.
        host: String,
        /// As resolved.
        address: SocketAddr,
        /// Ranks on this node.
        local_world: u32,
        /// Ranks in all.
        world: u32,
    },
    /// Ranks on several nodes need an address, and none is given.
    #[error(
        "{world} ranks need a place to meet: set CROSSOVER_RENDEZVOUS, or give one in the launch"
    )]
    NoPlace {
        /// Number of ranks.
        world: u32,
    },
    /// Rank 0 published why it failed.
    #[error("{0}")]
    Published(String),
    /// Rank 0 refused this rank, or ended the rendezvous for all.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Nobody answers where rank 0 should be.
    #[error("step `rendezvous`: still waiting for rank 0 at {address} after {waited:.1?}: {last}")]
    Unreachable {
        /// Where.
        address: String,
        /// For how long.
        waited: Duration,
        /// What the last attempt met.
        last: String,
    },
    /// The name of the rendezvous host has no address.
    #[error("the rendezvous host `{host}` cannot be resolved: {why}")]
    Unresolved {
        /// As given.
        host: String,
        /// What the resolver said.
        why: String,
    },
}

/// What rank 0 tells a peer that it does not take, or every peer when the rendezvous ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Two processes claim one rank. Ends the rendezvous for all.
    #[error("two processes are rank {rank}: {first} and {second}; give each process its own rank")]
    Duplicate {
        /// Which.
        rank: u32,
        /// `host:pid` of the one that came first.
        first: String,
        /// `host:pid` of the other.
        second: String,
    },
    /// A member was lost before all had come. Ends the rendezvous for all.
    #[error("rank {rank} ({label}) was lost at step `rendezvous`: {how}")]
    Lost {
        /// Who.
        rank: u32,
        /// Its `host:pid`.
        label: String,
        /// What was seen.
        how: String,
    },
    /// Some ranks did not come. Ends the rendezvous for all.
    #[error(
        "step `rendezvous`: still waiting for {} after {waited:.1?}{}",
        ranks_in_words(ranks),
        refused_in_words(refused)
    )]
    Missing {
        /// Who.
        ranks: Vec<u32>,
        /// For how long.
        waited: Duration,
        /// Those that came and were refused meanwhile, each with the reason.
        refused: Vec<String>,
    },
    /// The peer belongs to another attempt of the job.
    #[error(
        "{label} is of attempt {theirs} of job `{job}`, but {host} serves attempt {ours}: end the processes of the other attempt"
    )]
    OtherAttempt {
        /// `host:pid` of the refused.
        label: String,
        /// The job.
        job: String,
        /// The refused peer's attempt.
        theirs: u32,
        /// Rank 0's `host:pid`.
        host: String,
        /// Rank 0's attempt.
        ours: u32,
    },
    /// The peer belongs to another job.
    #[error(
        "{label} is of job `{theirs}`, but {host} serves job `{ours}`: give each job its own address"
    )]
    OtherJob {
        /// `host:pid` of the refused.
        label: String,
        /// Its job.
        theirs: String,
        /// Rank 0's `host:pid`.
        host: String,
        /// Rank 0's job.
        ours: String,
    },
    /// The peer read another run's rendezvous file.
    #[error(
        "{label} comes from another run of job `{job}` than {host}: remove the old rendezvous file"
    )]
    OtherRun {
        /// `host:pid` of the refused.
        label: String,
        /// The job.
        job: String,
        /// Rank 0's `host:pid`.
        host: String,
    },
    /// The peer believes in another number of ranks.
    #[error(
        "{label} is rank {rank} of a world of {theirs}, but {host} serves a world of {ours}: give every process the same world size"
    )]
    OtherWorld {
        /// `host:pid` of the refused.
        label: String,
        /// Its rank.
        rank: u32,
        /// Its world.
        theirs: u32,
        /// Rank 0's `host:pid`.
        host: String,
        /// Rank 0's world.
        ours: u32,
    },
}

/// An established exchange failed; travels between ranks, so that all hold the same sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Failure {
    DifferentSteps { me: u32, mine: String, rank: u32, theirs: String },
    Lost { rank: u32, step: String, how: String },
    Missing { ranks: Vec<u32>, step: String, waited: Duration },
    NoDescriptors { step: String, why: String },
    Garbled { rank: u32, step: String, what: String },
}

impl From<Failure> for BootstrapError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::DifferentSteps { me, mine, rank, theirs } => {
                BootstrapError::DifferentSteps { me, mine, rank, theirs }
            }
            Failure::Lost { rank, step, how } => BootstrapError::Lost { rank, step, how },
            Failure::Missing { ranks, step, waited } => {
                BootstrapError::Missing { ranks, step, waited }
            }
            Failure::NoDescriptors { step, why } => BootstrapError::NoDescriptors { step, why },
            Failure::Garbled { rank, step, what } => BootstrapError::Garbled { rank, step, what },
        }
    }
}

fn refused_in_words(refused: &[String]) -> String {
    if refused.is_empty() {
        return String::new();
    }
    format!("; refused meanwhile: {}", refused.join("; "))
}
