//! Ranks with different policies: what differs is named on every rank in one sentence, or all take
//! rank 0's and those that differ say so.

mod log;

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use crossover_core::bootstrap::{Bootstrap, BootstrapError};
use crossover_core::call::{Dtype, Op};
use crossover_core::communicator::Communicator;
use crossover_core::contract::{Contract, Determinism, Deviations};
use crossover_core::policy::{
    Evidence, EvidenceKind, Layer, Match, Origin, ParamValue, Policy, Rule,
};
use crossover_core::settings::OnDivergence;
use crossover_tests::conformance::Case;
use crossover_tests::groups::{Plan, forcing, on_channels, report, try_run};
use tracing::Level;

/// A rule of the user's for every call.
fn rule(id: &str, target: &str, file: &str, line: u32) -> Rule {
    let forced = forcing(target).rules()[0].clone();
    let origin = Origin { file: file.to_owned(), line };
    let layer = Layer::User;
    Rule { id: id.to_owned(), layer, origin, last: false, forced: false, ..forced }
}

/// Two rules in a file of this rank's own. The first serves all.
fn usual(rank: u32) -> Vec<Rule> {
    let file = format!("rank{rank}.toml");
    vec![rule("small", "host/one_shot", &file, 3), rule("floor", "host", &file, 9)]
}

/// As [`usual`], with another algorithm in the first rule.
fn odd(rank: u32) -> Vec<Rule> {
    let mut rules = usual(rank);
    rules[0].chain[0].algorithm = Some("two_shot".to_owned());
    rules
}

fn plan(rules: Vec<Rule>, on_divergence: OnDivergence) -> Plan {
    let mut plan = Plan::forcing("host");
    plan.policy = Policy::new(Contract::DEFAULT, rules);
    plan.settings.on_divergence = on_divergence;
    plan
}

/// The one error of all ranks.
fn error_of(world: u32, plan_of: impl Fn(u32) -> Plan + Sync) -> String {
    let told = try_run(world, plan_of, |formed| formed.expect_err("they differ").to_string());
    assert!(told.iter().all(|t| *t == told[0]), "ranks tell different stories: {told:#?}");
    told[0].clone()
}

fn error(world: u32, rules_of: impl Fn(u32) -> Vec<Rule> + Sync) -> String {
    error_of(world, |rank| plan(rules_of(rank), OnDivergence::Error))
}

/// Who serves a small all-reduce, and what each rank warned of; a real one was right.
fn adopted(world: u32, rules_of: impl Fn(u32) -> Vec<Rule> + Sync) -> Vec<(String, log::Lines)> {
    on_channels(world, Duration::from_secs(60), |boot| {
        let plan = plan(rules_of(boot.rank()), OnDivergence::AdoptRank0);
        let form = || {
            Communicator::form(boot, &plan.registry, &plan.policy, report(), &plan.settings)
                .expect("rank 0's policy is in force")
        };
        let (comm, warned) = log::kept(&[Level::WARN], form);
        let call = comm.signature::<f32>(Op::AllReduce, 100);
        Case::new(Op::AllReduce, Dtype::F32, 1000, 5).check(&comm);
        (comm.explain(&call).chosen.expect("served").target, warned)
    })
}

/// The sentence on the first rule of [`usual`], where this rank has [`odd`] or rank 0 has.
fn chain_differs(rank: u32, zero: &[Rule], theirs: &[Rule]) -> String {
    format!(
        "ranks disagree on the policy: rank 0 has rule `small` of rank0.toml:3 ({}), \
         rank {rank} has rule `small` of rank{rank}.toml:3 ({}), and they differ in `chain`",
        zero[0].digest(),
        theirs[0].digest(),
    )
}

#[test]
fn one_odd_rank_is_named_wherever_it_is() {
    for (world, odd_one) in [(2, 0), (2, 1), (3, 0), (3, 1), (4, 2), (5, 0), (5, 2), (5, 4)] {
        let told = error(world, |rank| if rank == odd_one { odd(rank) } else { usual(rank) });
        let want = match odd_one {
            0 => chain_differs(1, &odd(0), &usual(1)),
            _ => chain_differs(odd_one, &usual(0), &odd(odd_one)),
        };
        assert_eq!(told, want, "rank {odd_one} of {world}");
    }
}

#[test]
fn rank_0s_policy_is_taken_by_all_wherever_the_odd_one_is() {
    for (world, odd_one) in [(2, 0), (2, 1), (3, 0), (3, 1), (4, 2), (5, 0), (5, 2), (5, 4)] {
        let rules_of = |rank| if rank == odd_one { odd(rank) } else { usual(rank) };
        let target = if odd_one == 0 { "host/two_shot" } else { "host/one_shot" };
        for (rank, (served, warned)) in (0..).zip(adopted(world, rules_of)) {
            assert_eq!(served, target, "rank {rank} of {world}, odd is {odd_one}");
            let differs = rank != 0 && (odd_one == 0 || odd_one == rank);
            let want = differs.then(|| {
                let sentence = chain_differs(rank, &rules_of(0), &rules_of(rank));
                format!("WARN crossover::form: {sentence}; rank {rank} takes rank 0's")
            });
            assert_eq!(warned, Vec::from_iter(want), "rank {rank} of {world}, odd is {odd_one}");
        }
    }
}

#[test]
fn of_two_odd_ranks_the_first_is_named_and_each_warns_of_its_own() {
    let rules_of = |rank| match rank {
        2 => odd(rank),
        3 => usual(rank)[1..].to_vec(),
        _ => usual(rank),
    };
    assert_eq!(error(5, rules_of), chain_differs(2, &usual(0), &odd(2)));
    let outcomes = adopted(5, rules_of);
    assert!(outcomes.iter().all(|(served, _)| served == "host/one_shot"), "{outcomes:#?}");
    let warned: Vec<usize> = outcomes.iter().map(|(_, warned)| warned.len()).collect();
    assert_eq!(warned, [0, 0, 1, 1, 0]);
    assert_eq!(
        outcomes[3].1[0],
        "WARN crossover::form: ranks disagree on the policy: rank 0 has rule `small` of \
         rank0.toml:3, rank 3 has no such rule; rank 3 takes rank 0's"
    );
}

#[test]
fn a_rule_that_one_side_lacks_is_named() {
    let lacks = |who| move |rank| if rank == who { usual(rank)[1..].to_vec() } else { usual(rank) };
    assert_eq!(
        error(3, lacks(2)),
        "ranks disagree on the policy: rank 0 has rule `small` of rank0.toml:3, \
         rank 2 has no such rule"
    );
    assert_eq!(
        error(3, lacks(0)),
        "ranks disagree on the policy: rank 1 has rule `small` of rank1.toml:3, \
         rank 0 has no such rule"
    );
}

#[test]
fn a_choice_that_one_rank_alone_forces_is_a_difference_of_policies() {
    let forced_on = |who| {
        move |rank| {
            let mut rules = usual(rank);
            if rank == who {
                let forced = rule("use:host/two_shot", "host/two_shot", "CROSSOVER_USE", 0);
                rules.push(Rule { layer: Layer::Env, last: true, forced: true, ..forced });
            }
            rules
        }
    };
    assert_eq!(
        error(2, forced_on(1)),
        "ranks disagree on the policy: rank 1 has rule `use:host/two_shot` of CROSSOVER_USE, \
         rank 0 has no such rule"
    );
    let served = |who| adopted(3, forced_on(who)).into_iter().map(|o| o.0).collect::<Vec<_>>();
    assert_eq!(served(1), ["host/one_shot"; 3], "rank 1's is dropped");
    assert_eq!(served(0), ["host/two_shot"; 3], "rank 0's holds for all");
}

#[test]
fn each_key_that_differs_is_named() {
    #[track_caller]
    fn check(want: &str, change: impl Fn(&mut Rule) + Sync) {
        let told = error(2, |rank| {
            let mut rules = usual(rank);
            if rank == 1 {
                change(&mut rules[0]);
            }
            rules
        });
        let end = format!(", and they differ in {want}");
        assert!(told.contains("rule `small` of rank1.toml:3") && told.ends_with(&end), "{told}");
    }
    check("layer", |r| r.layer = Layer::Site);
    check("`priority`", |r| r.priority = 1);
    check("`last`", |r| r.last = true);
    check("whether it is forced", |r| r.forced = true);
    check("`match`", |r| r.when = Match { world: Some(vec![(2, 2)]), ..Match::default() });
    check("`priority`, `chain`", |r| {
        r.priority = 1;
        r.chain[0].bytes.high = Some(4097);
    });
}

#[test]
fn params_decide_and_evidence_does_not() {
    let with_params = |rank| {
        let mut rules = usual(rank);
        let value = ParamValue::Count(u64::from(rank));
        rules[0].chain[0].params = vec![("blocks".to_owned(), value)];
        rules
    };
    assert!(error(2, with_params).ends_with("they differ in `chain`"));
    let with_evidence = |rank| {
        let mut rules = usual(rank);
        let facts = vec![("device".to_owned(), format!("of rank {rank}"))];
        rules[0].evidence = Some(Evidence { kind: Some(EvidenceKind::Measured), facts });
        plan(rules, OnDivergence::Error)
    };
    let formed = try_run(2, with_evidence, |formed| formed.map(drop).map_err(|e| e.to_string()));
    assert_eq!(formed, [Ok(()), Ok(())]);
}

#[test]
fn the_policys_contract_and_its_order_are_told_apart() {
    let strict = Contract { determinism: Determinism::SizeInvariant, accept: Deviations::NONE };
    let plan_of = |rank| {
        let mut plan = plan(usual(rank), OnDivergence::Error);
        if rank == 1 {
            plan.policy = Policy::new(strict, usual(rank));
        }
        plan
    };
    assert_eq!(
        error_of(2, plan_of),
        "ranks disagree on the policy's contract: rank 0 has rank_consistent accepting none, \
         rank 1 has size_invariant accepting none"
    );
    let reversed = |rank| {
        let mut rules = usual(rank);
        if rank == 1 {
            rules.reverse();
        }
        rules
    };
    assert_eq!(
        error(2, reversed),
        "ranks disagree on the order of the policy's rules: rank 0 tries rule `small` of \
         rank0.toml:3 where rank 1 tries rule `floor` of rank1.toml:9"
    );
    let twice = |rank| {
        let mut rules = usual(rank);
        if rank == 1 {
            rules.push(rules[1].clone());
        }
        rules
    };
    assert_eq!(
        error(2, twice),
        "ranks disagree on the number of the policy's rules: rank 0 has 2, rank 1 has 3"
    );
}

#[test]
fn ranks_that_would_go_on_in_different_ways_do_not_go_on() {
    let one_adopts = |rules_of: fn(u32) -> Vec<Rule>| {
        error_of(3, move |rank| {
            let way = if rank == 2 { OnDivergence::AdoptRank0 } else { OnDivergence::Error };
            plan(rules_of(rank), way)
        })
    };
    let want = "ranks disagree on the setting `on_divergence`: rank 0 has error, \
                rank 2 has adopt_rank0";
    assert_eq!(one_adopts(usual), want);
    assert_eq!(one_adopts(|rank| if rank == 1 { odd(rank) } else { usual(rank) }), want);
}

#[test]
fn what_is_no_policy_is_not_adopted() {
    let adopting =
        |rank| plan(if rank == 1 { odd(rank) } else { usual(rank) }, OnDivergence::AdoptRank0);
    let told = error_of(2, |rank| {
        let mut plan = adopting(rank);
        plan.settings.tag = format!("tp{rank}");
        plan
    });
    assert_eq!(told, "ranks disagree on the group's name: rank 0 has `tp0`, rank 1 has `tp1`");
    let told = error_of(2, |rank| {
        let mut plan = adopting(rank);
        if rank == 1 {
            plan.settings.contract.determinism = Determinism::RunToRun;
        }
        plan
    });
    assert_eq!(
        told,
        "ranks disagree on the engine's contract: rank 0 has rank_consistent accepting none, \
         rank 1 has run_to_run accepting none"
    );
    let told = error_of(2, |rank| {
        let mut plan = adopting(rank);
        if rank == 1 {
            plan.registry = crossover_core::registry::Registry::empty();
        }
        plan
    });
    let start = "ranks disagree on the linked backends: rank 0 has `hierarchical` version ";
    assert!(told.starts_with(start) && told.ends_with("rank 1 has no such backend"), "{told}");
}

/// A control plane that counts what this rank gives.
struct Counting<'a> {
    boot: &'a dyn Bootstrap,
    bytes: AtomicUsize,
}

impl Bootstrap for Counting<'_> {
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
        self.bytes.fetch_add(mine.len(), Relaxed);
        self.boot.all_gather(step, mine)
    }

    fn all_gather_fds(
        &self,
        step: &str,
        mine: &[BorrowedFd<'_>],
    ) -> Result<Vec<Vec<OwnedFd>>, BootstrapError> {
        self.boot.all_gather_fds(step, mine)
    }
}

/// What came of it, and the bytes that each rank gave.
fn of_two_thousand_rules(odd_one: Option<u32>) -> Vec<(Result<(), String>, usize)> {
    on_channels(3, Duration::from_secs(60), |boot| {
        let (rank, file) = (boot.rank(), format!("rank{}.toml", boot.rank()));
        let line = |n: u32| rule(&format!("rule-{n}"), "host/one_shot", &file, n);
        let mut rules: Vec<Rule> = (1..=2000).map(line).collect();
        if odd_one == Some(rank) {
            rules[1233].priority = -1;
        }
        let plan = plan(rules, OnDivergence::Error);
        let counting = Counting { boot, bytes: AtomicUsize::new(0) };
        let (registry, settings) = (&plan.registry, &plan.settings);
        let formed = Communicator::form(&counting, registry, &plan.policy, report(), settings);
        (formed.map(drop).map_err(|e| e.to_string()), counting.bytes.load(Relaxed))
    })
}

#[test]
fn one_rule_of_two_thousand_is_found_and_only_rank_0_sends_its_rules() {
    let zero = rule("rule-1234", "host/one_shot", "", 0);
    let theirs = Rule { priority: -1, ..zero.clone() };
    let want = format!(
        "ranks disagree on the policy: rank 0 has rule `rule-1234` of rank0.toml:1234 ({}), \
         rank 2 has rule `rule-1234` of rank2.toml:1234 ({}), and they differ in `priority`",
        zero.digest(),
        theirs.digest(),
    );
    let outcomes = of_two_thousand_rules(Some(2));
    for (told, _) in &outcomes {
        assert_eq!(told.as_ref().expect_err("they differ"), &want);
    }
    assert!(outcomes[0].1 > 2000 * "rule-1234".len(), "{}", outcomes[0].1);
    for (rank, (_, bytes)) in outcomes.iter().enumerate().skip(1) {
        assert!(*bytes < 2000, "rank {rank} gave {bytes} bytes");
    }
    for (rank, (formed, bytes)) in of_two_thousand_rules(None).into_iter().enumerate() {
        assert_eq!(formed, Ok(()));
        assert!(bytes < 2000, "rank {rank} gave {bytes} bytes");
    }
}

/// What each of three ranks warned of that set what `set` says.
fn warned(set: impl Fn(Plan, u32) -> Plan + Sync) -> Vec<log::Lines> {
    let plan_of = |rank| set(Plan::forcing("host"), rank);
    on_channels(3, Duration::from_secs(60), |boot| {
        let plan = plan_of(boot.rank());
        let form = || {
            Communicator::form(boot, &plan.registry, &plan.policy, report(), &plan.settings)
                .map(drop)
                .expect("the least counts")
        };
        log::kept(&[Level::WARN], form).1
    })
}

/// All take the least, and one rank says so; what nobody has set is no mistake.
#[test]
fn a_setting_of_which_the_least_counts_is_told_where_ranks_differ() {
    let start = "WARN crossover::form: ranks differ in the setting";
    let end = "; set it to one value on all ranks";
    let ring = |rank| if rank == 1 { "64KiB" } else { "2MiB" };
    let told = format!(
        "{start} host.ring, of which the least counts, 64KiB: rank 1 has 64KiB, ranks 0 and 2 \
         have 2MiB{end}"
    );
    let silent = log::Lines::new();
    let all = warned(|plan, rank| plan.set("host.ring", ring(rank)));
    assert_eq!(all, [vec![told], silent.clone(), silent.clone()]);

    let told = format!(
        "{start} host.chunk, of which the least counts, 128KiB: rank 2 has 128KiB, ranks 0 and 1 \
         have 256KiB{end}"
    );
    let all = warned(|plan, rank| match rank {
        2 => plan.set("host.chunk", "128KiB"),
        _ => plan,
    });
    assert_eq!(all, [vec![told], silent.clone(), silent.clone()]);

    assert_eq!(warned(|plan, _| plan), [silent.clone(), silent.clone(), silent.clone()]);
    let alike = warned(|plan, _| plan.set("host.ring", "64KiB"));
    assert_eq!(alike, [silent.clone(), silent.clone(), silent]);
}
