//! A channel for each part of a channel's ranks.

use std::net::IpAddr;

use crossover_core::bootstrap::{Bootstrap, BootstrapError, ranks_in_words};
use serde::{Deserialize, Serialize};

use crate::channel::Channel;
use crate::identity::Identity;
use crate::rendezvous::{Member, Met, follow, invite, take_in};
use crate::solo::Solo;

/// What a rank knows of the channel that is split.
pub(crate) struct Whole<'a> {
    pub(crate) boot: &'a dyn Bootstrap,
    pub(crate) identities: &'a [Identity],
    /// All have met at a Unix socket.
    pub(crate) local: bool,
    /// Addresses of this node at which another is known to reach it.
    pub(crate) reached: Vec<IpAddr>,
}

/// The ranks of equal `color` get a channel. What one cannot do, all learn.
pub(crate) fn split(
    whole: Whole<'_>,
    step: &str,
    color: u32,
) -> Result<Box<dyn Bootstrap>, BootstrapError> {
    let Whole { boot, identities, local, reached } = whole;
    let colors = vote(boot, step, Ok(color))?;
    let me = boot.rank();
    let part: Vec<u32> =
        (0..).zip(&colors).filter(|(_, theirs)| **theirs == color).map(|(rank, _)| rank).collect();
    let rank = part.iter().position(|one| *one == me).unwrap_or(0) as u32;
    let member = Member {
        step,
        rank,
        world: part.len() as u32,
        identity: identities[me as usize].clone(),
        // Whoever has waited in vain still comes to the vote before the others give up.
        deadline: boot.deadline() / 2,
    };
    let first = identities.get(part[0] as usize);
    let near =
        |rank: &u32| first.is_some_and(|first| first.hides(&identities[*rank as usize]).is_none());
    let on_one_node = local || part.iter().all(near);
    let is_first = rank == 0 && part.len() > 1;
    let opened = match is_first {
        true => invite(&member, on_one_node, reached).map(Some).map_err(|e| e.to_string()),
        false => Ok(None),
    };
    let told =
        opened.as_ref().map(|opened| opened.as_ref().map(|(_, invitation)| invitation.clone()));
    let invitations = vote(boot, step, told.map_err(Clone::clone))?;
    let met = match (opened, invitations.into_iter().nth(part[0] as usize).flatten()) {
        (Ok(Some((ear, invitation))), _) => take_in(&member, ear, &invitation).map(Some),
        (_, Some(invitation)) => follow(&member, &invitation).map(Some),
        // Alone.
        _ => Ok(None),
    };
    let met =
        met.map_err(|e| format!("its part is {}, numbered from 0: {e}", ranks_in_words(&part)));
    vote(boot, step, met.as_ref().map(|_| ()).map_err(Clone::clone))?;
    let deadline = boot.deadline();
    Ok(match met.ok().flatten() {
        Some(Met { link, identities, local }) => {
            Box::new(Channel::new(rank, deadline, identities, local, link))
        }
        None => Box::new(Solo::new(deadline)),
    })
}

/// Everyone's values; where a rank has none, its reason.
fn vote<T: Serialize + for<'d> Deserialize<'d>>(
    boot: &dyn Bootstrap,
    step: &str,
    mine: Result<T, String>,
) -> Result<Vec<T>, BootstrapError> {
    let garbled = |rank: u32, e: postcard::Error| BootstrapError::Garbled {
        rank,
        step: step.to_owned(),
        what: format!("what is no vote ({e})"),
    };
    let bytes = postcard::to_stdvec(&mine).map_err(|e| garbled(boot.rank(), e))?;
    let all = boot.all_gather(step, &bytes)?;
    let read = |(rank, bytes): (u32, &Vec<u8>)| {
        let vote: Result<T, String> = postcard::from_bytes(bytes).map_err(|e| garbled(rank, e))?;
        vote.map_err(|why| BootstrapError::NoSplit { rank, step: step.to_owned(), why })
    };
    (0..).zip(&all).map(read).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::vote;
    use crate::threads;

    #[test]
    fn what_one_rank_cannot_do_all_learn() {
        let told = |boot: crate::ThreadChannel| {
            use crossover_core::bootstrap::Bootstrap;
            let mine = match boot.rank() {
                1 | 2 => Err(format!("of reason {}", boot.rank())),
                rank => Ok(rank),
            };
            vote(&boot, "meet apart", mine).expect_err("two cannot").to_string()
        };
        let boots = threads(4, Duration::from_secs(20));
        let all: Vec<_> = std::thread::scope(|scope| {
            let ranks: Vec<_> = boots.into_iter().map(|one| scope.spawn(|| told(one))).collect();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
        });
        let words = "step `meet apart`: rank 1 has no control plane for its part of the ranks: of \
                     reason 1";
        assert_eq!(all, [words; 4]);
    }
}
