//! May these devices use one another's memory? Asked of the platform, of drivers and of what is
//! remembered before anything is allocated; proven by the devices themselves once everything is
//! mapped. Every answer can only veto.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use crossover_core::agreement::{Local, Setup, SetupError, StepError};
use crossover_device::device::Device;
use crossover_device::module::Shape;
use crossover_device::verdict::cache::{Cache, Key};
use crossover_device::verdict::observation::{Observation, judge};
use crossover_device::verdict::platform::Platform;
use crossover_device::verdict::{self, Pair, Verdict, Verdicts};
use crossover_kernel_abi::ProbeArgs;
use serde::{Deserialize, Serialize};

use crate::session::{Group, IpcSession};

/// The longest that a kernel may take which writes a word to each peer. It takes microseconds where
/// peers work; a device that others keep busy may let it wait.
const PROBE: Duration = Duration::from_secs(10);
/// Between looks at it.
const PATIENCE: Duration = Duration::from_micros(200);

/// Declines where processes cannot share device memory at all.
pub(crate) fn ask_platform(setup: &mut Setup<'_>) -> Result<(), SetupError> {
    let what = "share device memory with other processes";
    setup.step(what, Local::new(()), |_, ()| allowed_by(&Platform::read()))?;
    Ok(())
}

fn allowed_by(platform: &Platform) -> Result<(), StepError> {
    platform.refusal().map_or(Ok(()), |why| Err(StepError(why)))
}

/// Every rank's device, and where is remembered what is found out of them: on rank 0 alone, so that
/// there is one reader and one writer.
pub(crate) struct Asked {
    pub(crate) units: Vec<String>,
    pub(crate) memory: Local<Option<Memory>>,
}

/// Asks drivers about devices that they see, and the memory in `folder` about broken pairs.
pub(crate) fn ask(
    setup: &mut Setup<'_>,
    device: Local<Device>,
    folder: Local<Option<PathBuf>>,
) -> Result<Asked, SetupError> {
    let (unit, device) = device.map(|d| (d.description().uuid.clone(), d)).unzip();
    let units = setup.exchange("tell its device", unit, |_, unit| Ok(unit))?.into_inner();
    let all = units.clone();
    let what = "let its device use those of its peers";
    let memory = setup.step(what, device.zip(folder), move |here, (device, folder)| {
        let refused = verdict::refused(device.driver(), device.description(), &all);
        if let Some(Pair { user, owner }) = refused.map_err(StepError::new)?.first() {
            let rank = rank_of(&all, owner);
            let why = format!("the driver says that {user} cannot reach {owner} of rank {rank}");
            return Err(StepError(why));
        }
        let memory = match folder.filter(|_| here.rank() == 0) {
            Some(folder) => Memory::new(folder, &device, &all)?,
            None => None,
        };
        memory.as_ref().map_or(Ok(()), |memory| memory.recall(&all))?;
        Ok(memory)
    })?;
    Ok(Asked { units, memory })
}

/// What was found out of these devices before.
pub(crate) struct Memory {
    cache: Cache,
    key: Key,
}

impl Memory {
    /// `None` where all ranks are on one device, which needs no peer.
    fn new(
        folder: PathBuf,
        device: &Device,
        units: &[String],
    ) -> Result<Option<Memory>, StepError> {
        if units.iter().all(|unit| *unit == units[0]) {
            return Ok(None);
        }
        let version = device.driver().version().map_err(StepError::new)?;
        let key = Key::new(units, &version, &Platform::read());
        Ok(key.map(|key| Memory { cache: Cache::new(folder), key }))
    }

    /// What was broken is not tried again: where peers do not work, a try may hang the machine.
    /// What was proven is, since that costs next to nothing and the mappings are new.
    fn recall(&self, units: &[String]) -> Result<(), StepError> {
        let found = match self.cache.load(&self.key) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(()),
            Err(why) => {
                tracing::warn!(target: "crossover::form", "{why}");
                return Ok(());
            }
        };
        let Some((pair, verdict)) = found.verdicts.veto() else { return Ok(()) };
        let (user, owner) = (rank_of(units, &pair.user), rank_of(units, &pair.owner));
        Err(StepError(format!(
            "{pair} (ranks {user} and {owner}) is {verdict}; so it was found on {}: delete {} to \
             have it tried again",
            found.day(),
            self.cache.path(&self.key).display()
        )))
    }

    fn keep(&self, verdicts: &Verdicts) {
        if let Err(why) = self.cache.store(&self.key, verdicts) {
            tracing::warn!(target: "crossover::form", "{why}");
        }
    }
}

fn rank_of(units: &[String], unit: &str) -> usize {
    units.iter().position(|theirs| theirs == unit).unwrap_or(units.len())
}

/// Every rank leaves a mark with every other, by a kernel's stores, and reads it back by its loads;
/// each owner then looks into its own memory. All ranks judge what all have seen.
pub(crate) fn prove(
    setup: &mut Setup<'_>,
    session: Local<IpcSession>,
    asked: Asked,
    nonce: u64,
) -> Result<Local<IpcSession>, SetupError> {
    let session = setup.step("write into its peers' memory", session, move |_, session| {
        write(&session, nonce)?;
        Ok(session)
    })?;
    let (seen, session) = session.map(|session| (look(&session), session)).unzip();
    let seen = setup.exchange("look for its peers' marks", seen, |_, seen| seen)?.into_inner();
    let Asked { units, memory } = asked;
    let judge = "judge what all ranks have seen";
    let judged = setup.step(judge, session.zip(memory), move |here, (mut session, memory)| {
        let found = judged(&units, &seen, nonce);
        if let Some(memory) = memory {
            memory.keep(&Verdicts::of(found.iter().map(|f| (f.pair(&units), f.verdict.clone()))));
        }
        let failed: Vec<_> = found.iter().filter(|f| f.verdict != Verdict::Proven).collect();
        match failed.is_empty() {
            true => session.group.own.wipe_probed().map_err(StepError::new)?,
            // Every rank's kernel has ended, and none will follow.
            false => session.unmap(),
        }
        let own = failed.into_iter().find(|found| found.user == here.rank() as usize);
        Ok((session, own.map(|found| found.in_words(&units))))
    })?;
    // Whose fails says so once nobody maps anything any more: only then may memory be given back.
    let what = "prove that its device reaches its peers' memory";
    setup.step(what, judged, |_, (session, failed)| match failed {
        Some(why) => Err(StepError(why)),
        None => Ok(session),
    })
}

fn write(session: &IpcSession, nonce: u64) -> Result<(), StepError> {
    let Group { own, kernels, common, rank, .. } = &session.group;
    let mark = mark(nonce, *rank as usize);
    let args = ProbeArgs { common: *common, barrier: own.layout.barrier, mark };
    let shape = Shape { blocks: 1, threads: 32, programmatic: false };
    // SAFETY: the kernel takes these arguments, and all arenas are mapped.
    unsafe { kernels.probe.launch(shape, args.as_bytes(), own.stream.raw()) }
        .map_err(StepError::new)?;
    let (began, within) = (Instant::now(), PROBE.min(session.deadline));
    while !own.stream.is_done().map_err(StepError::new)? {
        if began.elapsed() > within {
            let why = format!("the kernel that writes has not ended in {:.1?}", began.elapsed());
            return Err(StepError(Verdict::Inconclusive(why).to_string()));
        }
        thread::sleep(PATIENCE);
    }
    Ok(())
}

/// What a rank has seen, by peer.
#[derive(Clone, Serialize, Deserialize)]
struct Seen {
    /// Of each peer, in its own memory.
    found: Vec<u64>,
    /// Of its own mark, in each peer's memory.
    read_back: Vec<u64>,
}

fn look(session: &IpcSession) -> Result<Seen, StepError> {
    let Group { own, world, .. } = &session.group;
    let [found, read_back] = own.probed().map_err(StepError::new)?;
    let of_ranks = |words: [u64; _]| words[..*world as usize].to_vec();
    Ok(Seen { found: of_ranks(found), read_back: of_ranks(read_back) })
}

/// What was found of a rank that uses another's memory.
struct Found {
    user: usize,
    owner: usize,
    verdict: Verdict,
}

impl Found {
    fn pair(&self, units: &[String]) -> Pair {
        Pair { user: units[self.user].clone(), owner: units[self.owner].clone() }
    }

    fn in_words(&self, units: &[String]) -> String {
        let Found { user, owner, verdict } = self;
        let (ours, theirs) = (&units[*user], &units[*owner]);
        format!("{ours} of rank {user} using memory of {theirs} of rank {owner} is {verdict}")
    }
}

/// The same on every rank.
fn judged(units: &[String], seen: &[Seen], nonce: u64) -> Vec<Found> {
    let ranks = 0..units.len();
    let pairs = ranks.clone().flat_map(|user| ranks.clone().map(move |owner| (user, owner)));
    let judge = |(user, owner): (usize, usize)| {
        let observation = Observation {
            // The arena was filled with it.
            before: 0,
            wrote: halves(mark(nonce, user)),
            user_read: halves(seen[user].read_back[owner]),
            owner_read: halves(seen[owner].found[user]),
        };
        Found { user, owner, verdict: judge(&observation) }
    };
    pairs.filter(|(user, owner)| user != owner).map(judge).collect()
}

/// What a rank writes: another in every group, of each rank another, and nothing that was there
/// before.
fn mark(nonce: u64, rank: usize) -> u64 {
    const NEVER_ZERO: u64 = 0x0000_0001_0000_0001;
    (nonce ^ ((rank as u64) << 1)) | NEVER_ZERO
}

fn halves(word: u64) -> Vec<u32> {
    vec![word as u32, (word >> 32) as u32]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_distinct_and_in_no_half_zero() {
        for nonce in [0, u64::MAX, 0x1234_5678_9abc_def0] {
            let marks: Vec<u64> = (0..16).map(|rank| mark(nonce, rank)).collect();
            for (at, one) in marks.iter().enumerate() {
                assert!(!halves(*one).contains(&0));
                assert!(!marks[..at].contains(one));
            }
        }
    }

    #[test]
    fn every_directed_pair_is_judged_by_what_its_owner_found() {
        let units: Vec<String> = (0..3).map(|rank| format!("GPU-{rank}")).collect();
        let right = |rank| Seen {
            found: (0..3).map(|user| mark(7, user)).collect(),
            read_back: vec![mark(7, rank); 3],
        };
        let mut seen: Vec<Seen> = (0..3).map(right).collect();
        let verdicts = |seen: &[Seen]| judged(&units, seen, 7);
        assert_eq!(verdicts(&seen).len(), 6);
        assert!(verdicts(&seen).iter().all(|found| found.verdict == Verdict::Proven));
        // What rank 2 writes to rank 0 does not arrive; of another group is as bad as nothing.
        for wrong in [0, mark(8, 2)] {
            seen[0].found[2] = wrong;
            for found in verdicts(&seen) {
                let broken = (found.user, found.owner) == (2, 0);
                assert_eq!(matches!(found.verdict, Verdict::Broken(_)), broken);
            }
        }
    }

    #[test]
    fn linux_inside_of_windows_declines_by_name() {
        let kernel = "5.15.153.1-microsoft-standard-WSL2".to_owned();
        let platform = Platform { kernel, boot: String::new(), iommu: "off".to_owned() };
        assert!(allowed_by(&platform).expect_err("it has none").0.starts_with("wsl2: "));
        let kernel = "6.8.0-45-generic".to_owned();
        assert_eq!(allowed_by(&Platform { kernel, ..platform }), Ok(()));
    }
}
