//! The order in which is asked, and who is asked at all.

use std::fmt;
use std::time::{Duration, Instant};

use super::cache::{Cache, Key};
use super::observation::judge;
use super::platform::Platform;
use super::probe::Probe;
use super::{Pair, Verdict};

/// What the driver says of a pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Access is possible.
    Yes,
    /// It is not, for this reason.
    No(String),
    /// It cannot be asked, such as of a device that this process does not see.
    Unknown(String),
}

/// What is to be decided, and who knows.
pub struct Question<'a> {
    /// UUIDs of the group's devices; one may be there several times.
    pub devices: &'a [String],
    /// Version of the driver: what was proven holds for it alone.
    pub driver_version: &'a str,
    /// What the machine is.
    pub platform: &'a Platform,
    /// The driver. Asked of every pair in every run.
    pub driver: &'a dyn Fn(&Pair) -> Answer,
    /// Who tries a pair out.
    pub probe: &'a dyn Probe,
    /// Where is remembered what was proven; `None` forgets, and so does a machine whose kernel gives
    /// its starts no identity.
    pub cache: Option<&'a Cache>,
    /// The longest that all of it may take. Processes that ask the same at the same time wait at
    /// most so long for the first of them.
    pub within: Duration,
}

/// The verdict on every directed pair of a group's devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdicts {
    /// Each pair, ascending. None for a single device, which needs no peer.
    pub pairs: Vec<(Pair, Verdict)>,
    /// How many were found out by trying, in this run.
    pub tried: usize,
    /// What is to be said of the cache, such as that its file was not used and why.
    pub remark: Option<String>,
}

impl Verdicts {
    /// Why peers must not be used: the first pair that is not proven. `None` allows them.
    pub fn veto(&self) -> Option<String> {
        let first = self.pairs.iter().find(|(_, verdict)| *verdict != Verdict::Proven);
        first.map(|(pair, verdict)| format!("{pair} is {verdict}"))
    }
}

impl fmt::Display for Verdicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pairs.iter().try_for_each(|(pair, verdict)| writeln!(f, "{pair}: {verdict}"))
    }
}

/// Decides for every pair. Takes no longer than it may, and never fails: what is not known is
/// [`Verdict::Inconclusive`].
pub fn decide(question: &Question<'_>) -> Verdicts {
    let deadline = Instant::now() + question.within;
    let all = Pair::of(question.devices);
    if let Some(why) = question.platform.refusal() {
        let pairs = all.into_iter().map(|pair| (pair, Verdict::Refused(why.clone()))).collect();
        return Verdicts { pairs, tried: 0, remark: None };
    }
    let said = all.into_iter().map(|pair| {
        let verdict = match (question.driver)(&pair) {
            Answer::Yes => None,
            Answer::No(why) => Some(Verdict::Refused(why)),
            Answer::Unknown(why) => Some(Verdict::Inconclusive(why)),
        };
        (pair, verdict)
    });
    let mut open = Open { pairs: said.collect(), tried: 0, remark: None };
    match question.cache {
        _ if open.is_closed() => {}
        // What cannot tell one start of the machine from the next must not remember.
        Some(cache) if !question.platform.boot.is_empty() => open.ask(question, cache, deadline),
        _ => open.try_out(question.probe, deadline),
    }
    open.close()
}

/// Verdicts, some of them not yet there.
struct Open {
    pairs: Vec<(Pair, Option<Verdict>)>,
    tried: usize,
    remark: Option<String>,
}

impl Open {
    fn ask(&mut self, question: &Question<'_>, cache: &Cache, deadline: Instant) {
        let key = Key::new(question.devices, question.driver_version, question.platform);
        self.recall(cache, &key);
        if self.is_closed() {
            return;
        }
        // One process tries; the others wait for what it writes.
        let turn = cache.turn(&key, deadline);
        match &turn {
            Ok(_) => self.recall(cache, &key),
            Err(why) => self.remark = Some(why.clone()),
        }
        if self.is_closed() {
            return;
        }
        self.try_out(question.probe, deadline);
        let lasting = self.pairs.iter().filter_map(|(pair, verdict)| {
            let verdict = verdict.as_ref().filter(|verdict| verdict.is_lasting())?;
            Some((pair.clone(), verdict.clone()))
        });
        if let Err(why) = cache.store(&key, lasting.collect()) {
            self.remark = Some(why);
        }
    }

    fn recall(&mut self, cache: &Cache, key: &Key) {
        let known = match cache.load(key) {
            Ok(known) => known,
            Err(why) => {
                self.remark = Some(why);
                return;
            }
        };
        // Only pairs that the driver allows are open: a memory never overrules it.
        for (pair, verdict) in self.pairs.iter_mut().filter(|(_, verdict)| verdict.is_none()) {
            let remembered = known.iter().find(|(known, _)| known == pair);
            *verdict = remembered.map(|(_, known)| known.clone());
        }
    }

    fn try_out(&mut self, probe: &dyn Probe, deadline: Instant) {
        for (pair, verdict) in self.pairs.iter_mut().filter(|(_, verdict)| verdict.is_none()) {
            if Instant::now() >= deadline {
                let why = "no time was left to try it".to_owned();
                *verdict = Some(Verdict::Inconclusive(why));
                continue;
            }
            self.tried += 1;
            *verdict = Some(match probe.observe(pair, deadline) {
                Ok(seen) => judge(&seen),
                Err(why) => Verdict::Inconclusive(why),
            });
        }
    }

    fn is_closed(&self) -> bool {
        self.pairs.iter().all(|(_, verdict)| verdict.is_some())
    }

    fn close(self) -> Verdicts {
        let unknown = || Verdict::Inconclusive("nobody answered".to_owned());
        let pairs = self.pairs.into_iter();
        let pairs = pairs.map(|(pair, verdict)| (pair, verdict.unwrap_or_else(unknown)));
        Verdicts { pairs: pairs.collect(), tried: self.tried, remark: self.remark }
    }
}
