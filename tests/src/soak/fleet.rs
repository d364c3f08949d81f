//! Threads that are ranks of several groups each, and walk through one sequence of calls, each at
//! a pace of its own.

use std::time::{Duration, Instant};

use crossover_bootstrap::threads;
use crossover_core::communicator::Communicator;
use crossover_core::policy::{ParamValue, Policy};

use super::call::{Fault, check};
use super::shape::Shape;
use crate::data::Rng;
use crate::groups::{Plan, report};

/// Members, their groups, and how many calls they make.
#[derive(Clone, Debug)]
pub struct Fleet {
    /// From this all else follows.
    pub seed: u64,
    /// Threads.
    pub members: usize,
    /// Who is in each group, and what that group runs on. The last one's ranks have two threads each
    /// for whatever is longer than a cache line, and write results past the caches.
    pub groups: Vec<(Vec<usize>, &'static str)>,
    /// Calls of all groups together.
    pub calls: u64,
    /// Most bytes of a rank's input.
    pub most: usize,
    /// What this member does wrong in this call.
    pub fault: Option<(usize, u64, Fault)>,
}

/// Makes `calls` calls, in fleets of two to six members.
///
/// # Errors
///
/// A call failed or had a wrong result: in words, and with the seed.
pub fn soak(seed: u64, calls: u64) -> Result<(), String> {
    let mut rng = Rng::new(seed, 0);
    let mut left = calls;
    while left > 0 {
        let mut fleet = Fleet::draw(&mut rng);
        fleet.calls = fleet.calls.min(left);
        left -= fleet.calls;
        fleet.run().map_err(|e| format!("{e}\nthe soak's seed is {seed}"))?;
    }
    Ok(())
}

impl Fleet {
    /// Two groups of all members, and two of some.
    pub fn draw(rng: &mut Rng) -> Self {
        const TARGETS: [&str; 3] = ["host/one_shot", "host/two_shot", "host"];
        let members = 2 + rng.below(5) as usize;
        let all: Vec<usize> = (0..members).collect();
        let mut groups = vec![(all.clone(), TARGETS[rng.below(3) as usize]), (all, TARGETS[2])];
        for _ in 0..2 {
            let first = rng.below(members as u64 - 1) as usize;
            let last = first + 1 + rng.below((members - first - 1) as u64) as usize;
            groups.push(((first..=last).collect(), TARGETS[rng.below(3) as usize]));
        }
        let (seed, most) = (rng.next(), 200 << 10);
        Fleet { seed, members, groups, calls: 5000, most, fault: None }
    }

    /// Forms the groups, makes the calls, says goodbye.
    ///
    /// # Errors
    ///
    /// As [`soak`].
    pub fn run(&self) -> Result<(), String> {
        let mut seats: Vec<Vec<(usize, _)>> = (0..self.members).map(|_| Vec::new()).collect();
        for (group, (ranks, _)) in self.groups.iter().enumerate() {
            let channels = threads(ranks.len() as u32, Duration::from_secs(60));
            for (member, channel) in ranks.iter().zip(channels) {
                seats[*member].push((group, channel));
            }
        }
        let ends: Vec<Result<(), String>> = std::thread::scope(|scope| {
            let members: Vec<_> = (0..)
                .zip(seats)
                .map(|(member, seats)| {
                    scope.spawn(move || {
                        let mut comms: Vec<Option<Communicator>> =
                            self.groups.iter().map(|_| None).collect();
                        for (group, channel) in seats {
                            let plan = self.plan(group);
                            let formed = Communicator::form(
                                &channel,
                                &plan.registry,
                                &plan.policy,
                                report(),
                                &plan.settings,
                            );
                            comms[group] = Some(formed.map_err(|e| e.to_string())?);
                        }
                        self.walk(member, &comms)
                    })
                })
                .collect();
            members.into_iter().map(|member| member.join().expect("no member panics")).collect()
        });
        let wrong: Vec<String> = ends.into_iter().filter_map(Result::err).collect();
        if wrong.is_empty() { Ok(()) } else { Err(format!("{}\n{self:?}", wrong.join("\n"))) }
    }

    /// Chunks so small that most calls take several windows, and the shortest ring for them, or as they
    /// come.
    fn plan(&self, group: usize) -> Plan {
        let mut plan = Plan::forcing(self.groups[group].1);
        if group + 1 == self.groups.len() {
            let params = [("stream", 0), ("split", 64), ("past", 0), ("window", 4160)];
            let params = params.map(|(name, bytes)| (name, ParamValue::Bytes(bytes)));
            plan.policy = with_params(&plan.policy, &params);
            plan = plan.set("host.threads", "2").set("host.distance", "far");
        }
        match group.is_multiple_of(2) {
            true => plan,
            false => plan.set("host.chunk", "4KiB").set("host.ring", "12KiB"),
        }
    }

    fn walk(&self, member: usize, comms: &[Option<Communicator>]) -> Result<(), String> {
        let mut shared = Rng::new(self.seed, 0);
        let mut own = Rng::new(self.seed, 1 + member as u32);
        for at in 0..self.calls {
            let group = shared.below(self.groups.len() as u64) as usize;
            let shape = Shape::draw(&mut shared, self.groups[group].0.len(), self.most);
            let seed = shared.next();
            let Some(comm) = &comms[group] else { continue };
            delay(&mut own);
            let offset = own.below(64) as usize;
            let fault = self.fault.filter(|(who, when, _)| (*who, *when) == (member, at));
            check(comm, &shape, seed, offset, fault.map(|(_, _, fault)| fault))
                .map_err(|e| format!("member {member}, call {at}, group {group}: {e}"))?;
        }
        Ok(())
    }
}

/// Nothing most often; else a moment of computing, yielding or sleeping; rarely so long that the
/// peers go to sleep.
fn delay(rng: &mut Rng) {
    let length = rng.below(100);
    match rng.below(4096) {
        0 => std::thread::sleep(Duration::from_micros(40 * length)),
        1..40 => std::thread::sleep(Duration::from_micros(2 * length)),
        40..300 => std::thread::yield_now(),
        300..600 => {
            let since = Instant::now();
            while since.elapsed() < Duration::from_nanos(200 * length) {
                std::hint::spin_loop();
            }
        }
        _ => {}
    }
}

/// The policy's rules, whose candidates set these.
fn with_params(policy: &Policy, params: &[(&str, ParamValue)]) -> Policy {
    let mut rules = policy.rules().to_vec();
    for candidate in rules.iter_mut().flat_map(|rule| &mut rule.chain) {
        candidate.params =
            params.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    }
    Policy::new(policy.contract, rules)
}
