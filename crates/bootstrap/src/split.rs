//! A channel for each part of a channel's ranks.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use crossover_core::bootstrap::{Bootstrap, BootstrapError, ranks_in_words};
use serde::{Deserialize, Serialize};

use crate::channel::Channel;
use crate::identity::Identity;
use crate::rendezvous::{Ear, Invitation, Member, Met, follow, invite, take_in};
use crate::solo::Solo;

/// What a rank knows of the channel that is split.
pub(crate) struct Whole<'a> {
    pub(crate) boot: &'a dyn Bootstrap,
    pub(crate) identities: &'a [Identity],
    /// All have met at a Unix socket.
    pub(crate) local: bool,
    /// The folder of that socket.
    pub(crate) folder: Option<PathBuf>,
    /// Addresses of this node at which another is known to reach it.
    pub(crate) reached: Vec<IpAddr>,
}

/// The ranks of equal `color` get a channel. What one cannot do, all learn.
pub(crate) fn split(
    whole: Whole<'_>,
    step: &str,
    color: u32,
) -> Result<Box<dyn Bootstrap>, BootstrapError> {
    let Whole { boot, identities, local, folder, mut reached } = whole;
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
    if on_one_node {
        // It may have no other.
        reached.push(Ipv4Addr::LOCALHOST.into());
    }
    let is_first = rank == 0 && part.len() > 1;
    let mut opened = match is_first {
        true => {
            let near = on_one_node.then_some(folder.as_deref());
            invite(&member, near, &reached).map(Some).map_err(|e| e.to_string())
        }
        false => Ok(None),
    };
    let tell = |opened: &Result<Option<(Ear, Invitation)>, String>| {
        let told =
            opened.as_ref().map(|one| one.as_ref().map(|(_, invitation)| invitation.clone()));
        let all = vote(boot, step, told.map_err(Clone::clone))?;
        Ok::<_, BootstrapError>(all.into_iter().nth(part[0] as usize).flatten())
    };
    let mut invitation = tell(&opened)?;
    // Ranks of one node may have file systems of their own.
    let sees = vote(boot, step, Ok(invitation.as_ref().is_none_or(Invitation::is_visible)))?;
    if sees.contains(&false) {
        if is_first && part.iter().any(|rank| !sees[*rank as usize]) {
            opened = invite(&member, None, &reached).map(Some).map_err(|e| e.to_string());
        }
        invitation = tell(&opened)?;
    }
    let met = match (opened, invitation) {
        (Ok(Some((ear, invitation))), _) => take_in(&member, ear, &invitation).map(Some),
        (_, Some(invitation)) => follow(&member, &invitation).map(Some),
        // Alone.
        _ => Ok(None),
    };
    let met =
        met.map_err(|e| format!("its part is {}, numbered from 0: {e}", ranks_in_words(&part)));
    vote(boot, step, met.as_ref().map(|_| ()).map_err(Clone::clone))?;
    let deadline = boot.deadline() / 2;
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
    use std::os::fd::{BorrowedFd, OwnedFd};
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use crossover_core::bootstrap::{Bootstrap, BootstrapError};

    use super::{Whole, split, vote};
    use crate::identity::Identity;
    use crate::{ThreadChannel, threads};

    /// Takes away what was made in a folder before the second exchange is over.
    struct Sweeping {
        boot: ThreadChannel,
        folder: PathBuf,
        exchanges: AtomicUsize,
    }

    impl Bootstrap for Sweeping {
        fn rank(&self) -> u32 {
            self.boot.rank()
        }

        fn world(&self) -> u32 {
            self.boot.world()
        }

        fn deadline(&self) -> Duration {
            self.boot.deadline()
        }

        fn all_gather(&self, step: &str, mine: &[u8]) -> Result<Vec<Vec<u8>>, BootstrapError> {
            let all = self.boot.all_gather(step, mine)?;
            if self.exchanges.fetch_add(1, Ordering::Relaxed) == 1 {
                for made in std::fs::read_dir(&self.folder).unwrap().flatten() {
                    // The others are at it as well.
                    let _ = std::fs::remove_dir_all(made.path());
                }
            }
            Ok(all)
        }

        fn all_gather_fds(
            &self,
            step: &str,
            mine: &[BorrowedFd<'_>],
        ) -> Result<Vec<Vec<OwnedFd>>, BootstrapError> {
            self.boot.all_gather_fds(step, mine)
        }
    }

    /// Splits 4 ranks of one node into two parts, which meet. Without `sweeps` nobody takes anything
    /// away.
    fn meets(folder: &Path, sweeps: bool) -> usize {
        let exchanges = |boot: ThreadChannel| {
            let exchanges = AtomicUsize::new(if sweeps { 0 } else { 2 });
            let boot = Sweeping { boot, folder: folder.to_owned(), exchanges };
            let identities = vec![Identity::here(None); 4];
            let folder = Some(folder.to_owned());
            let whole = Whole {
                boot: &boot,
                identities: &identities,
                local: true,
                folder,
                reached: Vec::new(),
            };
            let part = split(whole, "meet apart", boot.rank() % 2).unwrap();
            let all = part.all_gather("who is there", &[boot.rank() as u8]).unwrap();
            let other = (boot.rank() + 2) % 4;
            assert_eq!(all.concat(), [boot.rank().min(other) as u8, boot.rank().max(other) as u8]);
            boot.exchanges.into_inner() - if sweeps { 0 } else { 2 }
        };
        let boots = threads(4, Duration::from_secs(20));
        let all: Vec<_> = std::thread::scope(|scope| {
            let ranks: Vec<_> =
                boots.into_iter().map(|one| scope.spawn(|| exchanges(one))).collect();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
        });
        assert!(all.iter().all(|n| *n == all[0]), "{all:?}");
        all[0]
    }

    #[test]
    fn a_part_whose_socket_some_cannot_see_meets_over_tcp() {
        let folder = tempfile::tempdir().unwrap();
        let plain = meets(folder.path(), false);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "left on disk");
        // They are invited once more.
        assert_eq!(meets(folder.path(), true), plain + 1);
        // No Unix socket can be had: its path would be too long.
        let long = folder.path().join("l".repeat(90));
        std::fs::create_dir(&long).unwrap();
        assert_eq!(meets(&long, false), plain);
    }

    #[test]
    fn what_one_rank_cannot_do_all_learn() {
        let told = |boot: ThreadChannel| {
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
