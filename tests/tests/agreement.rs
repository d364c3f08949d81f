//! Everywhere or nowhere: whatever differs or fails on one rank has one outcome on all, told in the
//! same sentence, well inside the deadline.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crossover::Builder;
use crossover::bootstrap::{Launch, Place};
use crossover_core::agreement::{Local, Setup, SetupError, StepError};
use crossover_core::backend::{
    Abort, Algorithm, Backend, Descriptor, EnqueueError, Ready, Session,
};
use crossover_core::call::{CallBuffers, CallSig, Op, ReduceOp};
use crossover_core::communicator::{CallError, Communicator};
use crossover_core::contract::{Contract, Determinism};
use crossover_core::eligibility::{Eligibility, Nodes, Worlds};
use crossover_core::facts::{GroupFacts, Topology};
use crossover_core::form::FormError;
use crossover_core::policy::{Layer, Policy, Rule};
use crossover_core::registry::{Registration, Registry};
use crossover_core::verdict::Verdict;
use crossover_tests::conformance::Case;
use crossover_tests::groups::{self, Plan, forcing, on_channels, report, try_run};

const ELIGIBILITY: Eligibility =
    Eligibility { worlds: Worlds::range(2, 16), nodes: Nodes::One, ..Eligibility::EVERYTHING };

const FRAGILE: Descriptor = Descriptor {
    id: "fragile",
    version: "1",
    settings: &[],
    algorithms: &[Algorithm { name: "only", eligibility: ELIGIBILITY, params: &[] }],
};

/// The same backend, one clause apart.
const OTHER_FRAGILE: Descriptor = Descriptor {
    algorithms: &[Algorithm {
        name: "only",
        eligibility: Eligibility { worlds: Worlds::range(2, 8), ..ELIGIBILITY },
        params: &[],
    }],
    ..FRAGILE
};

/// Fails at the step and rank that its settings name, in the manner that they name.
struct Fragile;

impl Fragile {
    const STEPS: [&str; 4] = ["probe the links", "allocate", "import its peers", "open"];
}

impl Backend for Fragile {
    fn set_up<'g>(
        &self,
        setup: &mut Setup<'g>,
        _facts: &GroupFacts,
    ) -> Result<Ready<'g>, SetupError> {
        for step in &Self::STEPS[..3] {
            setup.step(step, Local::new(()), move |here, ()| {
                let set = |key| here.settings().get(key).unwrap_or_default().to_owned();
                if set("fragile.step") == *step && set("fragile.rank") == here.rank().to_string() {
                    match set("fragile.manner").as_str() {
                        "panic" => panic!("out of luck"),
                        _ => return Err(StepError::new("no luck")),
                    }
                }
                Ok(())
            })?;
        }
        let session = setup.step("open", Local::new(()), |_, ()| {
            Ok(Box::new(FailsOnCall(3)) as Box<dyn Session>)
        })?;
        let capacity = setup.min("agree on room", Local::new(1 << 20))?;
        let less = setup.min("agree on less room", Local::new(1 << 10))?;
        // What types cannot forbid: a rank that looks at what is its own, outside of every step.
        let here = |manner: &str| CROOKED.with(|crooked| crooked.borrow().as_str() == manner);
        assert!(!here("panic"), "out of luck after the last step");
        Ok(Ready { session, capacity: if here("capacity") { less } else { capacity } })
    }
}

thread_local! {
    /// How this rank goes astray after its last step, if it does.
    static CROOKED: std::cell::RefCell<String> = const { std::cell::RefCell::new(String::new()) };
}

/// Copies its input, until a call.
struct FailsOnCall(u64);

impl Session for FailsOnCall {
    unsafe fn enqueue(
        &mut self,
        _: usize,
        _: &[u64],
        seq: u64,
        call: &CallSig<'_>,
        buffers: &CallBuffers,
    ) -> Result<(), EnqueueError> {
        if seq == self.0 {
            let text = "invalid argument".to_owned();
            return Err(EnqueueError::Vendor {
                step: "launch".to_owned(),
                seq,
                call: "fakeLaunch",
                text,
            });
        }
        // SAFETY: the caller vouches for both buffers.
        unsafe { std::ptr::copy(buffers.input, buffers.output, call.bytes() as usize) };
        Ok(())
    }

    fn abort_handle(&self) -> Arc<dyn Abort> {
        Arc::new(Ignore)
    }

    fn close(&mut self, _: u64) -> Result<(), EnqueueError> {
        Ok(())
    }
}

struct Ignore;

impl Abort for Ignore {
    fn abort(&self, _: &Verdict) {}
}

fn registry(fragile: &'static Descriptor) -> Registry {
    let entry = Registration { descriptor: fragile, make: || Box::new(Fragile) };
    crossover_backends::registry().and_then(|r| r.with(entry)).expect("distinct ids")
}

/// First the fragile one, then the host.
fn chain() -> Policy {
    let (first, second) = (forcing("fragile"), forcing("host/one_shot"));
    let mut rule = first.rules()[0].clone();
    rule.chain.extend(second.rules()[0].chain.clone());
    (rule.last, rule.forced, rule.layer) = (false, false, Layer::User);
    Policy::new(Contract::DEFAULT, vec![rule])
}

fn fragile_plan(step: &str, rank: u32, manner: &str) -> Plan {
    Plan { registry: registry(&FRAGILE), policy: chain(), ..Plan::forcing("host") }
        .set("fragile.step", step)
        .set("fragile.rank", &rank.to_string())
        .set("fragile.manner", manner)
}

fn same_on_all(errors: &[String]) -> &str {
    assert!(errors.iter().all(|e| *e == errors[0]), "ranks tell different stories: {errors:#?}");
    &errors[0]
}

#[test]
fn a_failed_step_on_one_rank_disables_the_backend_on_all() {
    for manner in ["error", "panic"] {
        for step in &Fragile::STEPS[..3] {
            for rank in [0, 2, 3] {
                let start = Instant::now();
                let reasons = groups::run(4, &fragile_plan(step, rank, manner), |comm| {
                    let call = comm.signature::<f32>(Op::AllReduce, 100);
                    let explained = comm.explain(&call);
                    assert_eq!(
                        explained.chosen.as_ref().expect("the host serves").target,
                        "host/one_shot"
                    );
                    Case::new(Op::AllReduce, call.dtype, 100, 5).check(comm);
                    explained.considered[0].reason.clone()
                });
                let reason = same_on_all(&reasons);
                assert!(reason.contains(&format!("rank {rank} could not {step}")), "{reason}");
                assert!(reason.contains("luck"), "{reason}");
                assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
            }
        }
    }
}

/// Rank 1 goes astray where no step of the set-up can see it.
fn crooked(manner: &str) -> Vec<Result<String, String>> {
    let plan = fragile_plan("none", 0, "error");
    let plan_of = |rank| {
        CROOKED.with(|c| c.replace(if rank == 1 { manner.to_owned() } else { String::new() }));
        plan.clone()
    };
    try_run(3, plan_of, |formed| {
        let comm = formed.map_err(|e| e.to_string())?;
        let call = comm.signature::<f32>(Op::AllReduce, 100_000);
        let explained = comm.explain(&call);
        Ok(format!(
            "{}: {}",
            explained.chosen.expect("served").target,
            explained.considered[0].reason
        ))
    })
}

#[test]
fn a_rank_that_panics_after_its_last_step_disables_the_backend_on_all() {
    let outcomes = crooked("panic");
    for outcome in &outcomes {
        let words = outcome.as_ref().expect("the host serves");
        assert_eq!(outcome, &outcomes[0]);
        assert!(words.starts_with("host/one_shot") && words.contains("rank 1 panicked"), "{words}");
    }
}

#[test]
fn capacities_that_differ_end_the_formation_on_all() {
    let outcomes = crooked("capacity");
    for outcome in &outcomes {
        let error = outcome.as_ref().expect_err("ranks would choose differently");
        assert_eq!(outcome, &outcomes[0]);
        assert!(
            error.contains("the capacity of `fragile`: rank 0 has 1048576 B, rank 1 has 1024 B"),
            "{error}"
        );
    }
}

#[test]
fn one_policy_at_other_paths_and_lines_is_one_policy() {
    let plan_of = |rank| {
        let mut plan = Plan::forcing("host");
        let mut rule: Rule = plan.policy.rules()[0].clone();
        rule.origin.file = format!("/mnt/node{rank}/policy.toml");
        rule.origin.line = rank + 1;
        plan.policy = Policy::new(Contract::DEFAULT, vec![rule]);
        plan
    };
    let formed = try_run(2, plan_of, |formed| formed.map(|_| ()).map_err(|e| e.to_string()));
    assert_eq!(formed, [Ok(()), Ok(())]);
}

#[test]
fn a_backend_that_sets_up_serves_and_its_capacity_ends() {
    groups::run(2, &fragile_plan("none", 0, "error"), |comm| {
        let target = |count| {
            let call = comm.signature::<u8>(Op::AllReduce, count);
            comm.explain(&call).chosen.expect("served").target
        };
        assert_eq!(target(1 << 20), "fragile/only");
        assert_eq!(target((1 << 20) + 1), "host/one_shot");
    });
}

#[test]
fn an_error_after_selection_poisons_and_is_no_fallback() {
    groups::run(2, &fragile_plan("none", 0, "error"), |comm| {
        let mut data = [1f32; 4];
        for _ in 0..2 {
            comm.all_reduce_in_place(&mut data, ReduceOp::Sum).expect("the first calls copy");
        }
        let failed = comm.all_reduce_in_place(&mut data, ReduceOp::Sum);
        assert!(
            matches!(failed, Err(CallError::Failed(EnqueueError::Vendor { seq: 3, .. }))),
            "{failed:?}"
        );
        let later = comm.all_reduce_in_place(&mut data, ReduceOp::Sum).expect_err("poisoned");
        assert!(later.to_string().contains("fakeLaunch failed: invalid argument"), "{later}");
        comm.close().expect("closing what failed frees it and says nothing");
    });
}

#[test]
fn a_forced_backend_that_cannot_be_had_is_an_error_on_all() {
    let plan = Plan { policy: forcing("fragile"), ..fragile_plan("allocate", 1, "error") };
    let errors =
        try_run(3, |_| plan.clone(), |formed| formed.expect_err("it is forced").to_string());
    let error = same_on_all(&errors);
    assert!(error.starts_with("`fragile` was asked for by the test and cannot be had"), "{error}");
    assert!(error.contains("rank 1 could not allocate: no luck"), "{error}");
}

/// Whoever writes `last` closes a search; only who says `use` insists.
#[test]
fn a_programs_last_chain_falls_back_where_a_forced_one_does_not() {
    let with = |forced| {
        let mut rule = chain().rules()[0].clone();
        (rule.last, rule.forced, rule.layer) = (true, forced, Layer::Program);
        let policy = Policy::new(Contract::DEFAULT, vec![rule]);
        Plan { policy, ..fragile_plan("allocate", 1, "error") }
    };
    let served = try_run(
        3,
        |_| with(false),
        |formed| {
            let comm = formed.expect("the chain goes on");
            comm.explain(&comm.signature::<f32>(Op::AllReduce, 4)).chosen.map(|c| c.target)
        },
    );
    assert_eq!(served, vec![Some("host/one_shot".to_owned()); 3]);
    let errors = try_run(3, |_| with(true), |formed| formed.expect_err("forced").to_string());
    assert!(same_on_all(&errors).starts_with("`fragile` was asked for by the test"), "{errors:?}");
}

#[test]
fn a_programs_policy_text_can_close_the_search_and_still_fall_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "schema = 1\n[rule.mine]\nlast = true\n\
                chain = [{ use = \"ipc/one_shot_push\" }, { use = \"host/two_shot\" }]\n";
    let served = |rank| {
        let place = Place::Unix(folder.path().join("meet"));
        let launch = Launch::new(rank, 2).named("mine", 0).at(place);
        let builder = Builder::from_variables([]).expect("nothing is set");
        let group = builder.policy("the program", text).with_launch(launch).form();
        let group = group.expect("the chain goes on");
        group.explain(&group.signature::<f32>(Op::AllReduce, 4)).chosen.map(|c| c.target)
    };
    std::thread::scope(|scope| {
        let served = &served;
        let ranks = [0, 1].map(|rank| scope.spawn(move || served(rank)));
        let served = ranks.map(|rank| rank.join().expect("no rank panics"));
        assert_eq!(served, ["host/two_shot"; 2].map(|target| Some(target.to_owned())));
    });
}

#[test]
fn a_setting_that_one_rank_has_wrong_is_an_error_on_all_and_no_reason_to_take_another_backend() {
    let mut policy = chain();
    let mut rule = policy.rules()[0].clone();
    rule.chain.reverse(); // the host, and then one that could be had
    policy = Policy::new(Contract::DEFAULT, vec![rule]);
    let plan = Plan { policy, ..fragile_plan("none", 0, "error") };
    let plan_of =
        |rank| if rank == 1 { plan.clone().set("host.chunk", "65") } else { plan.clone() };
    let errors = try_run(3, plan_of, |formed| {
        let error = crossover::Error::from(formed.expect_err("it is wrongly set"));
        (error.to_string(), error.exit_code())
    });
    let want = "rank 1 could not read host.chunk: setting host.chunk is `65`: \
                it must be bytes with a unit, a multiple of 64 B from 1024B to 64MiB, such as \
                `256KiB`";
    assert_eq!(errors, vec![(want.to_owned(), 2); 3]);
}

#[test]
fn a_registry_that_differs_is_named() {
    let plan_of = |rank| {
        let descriptor = if rank == 2 { &OTHER_FRAGILE } else { &FRAGILE };
        Plan { registry: registry(descriptor), ..fragile_plan("none", 0, "error") }
    };
    let errors = try_run(4, plan_of, |formed| formed.expect_err("they differ").to_string());
    let error = same_on_all(&errors);
    assert!(error.contains("linked backends: rank 0 has `fragile` version 1"), "{error}");
    assert!(error.contains("rank 2 has `fragile` version 1"), "{error}");
}

#[test]
fn a_backend_that_one_rank_lacks_is_named() {
    let plan_of = |rank| {
        let full = fragile_plan("none", 0, "error");
        if rank == 1 { Plan { registry: Registry::empty(), ..full } } else { full }
    };
    let errors = try_run(2, plan_of, |formed| formed.expect_err("they differ").to_string());
    assert!(same_on_all(&errors).contains("rank 1 has no such backend"), "{errors:?}");
}

#[test]
fn a_policy_that_differs_is_named_with_its_place() {
    let plan_of = |rank| {
        let mut plan = Plan::forcing("host");
        let mut rule: Rule = plan.policy.rules()[0].clone();
        rule.origin.file = format!("rank{rank}.toml");
        rule.origin.line = 7;
        // Ranks 0 and 2 agree, though their files are not at one path.
        if rank == 1 {
            rule.chain[0].bytes.high = Some(4097);
        }
        plan.policy = Policy::new(Contract::DEFAULT, vec![rule]);
        plan
    };
    let errors = try_run(3, plan_of, |formed| formed.expect_err("they differ").to_string());
    let error = same_on_all(&errors);
    assert!(error.contains("rank 0 has rule `forced` of rank0.toml:7"), "{error}");
    assert!(error.contains("rank 1 has rule `forced` of rank1.toml:7"), "{error}");
}

#[test]
fn a_contract_or_a_name_that_differs_is_named() {
    let strict = |rank| {
        let mut plan = Plan::forcing("host");
        if rank == 1 {
            plan.settings.contract.determinism = Determinism::SizeInvariant;
        }
        plan
    };
    let errors = try_run(2, strict, |formed| formed.expect_err("they differ").to_string());
    assert!(same_on_all(&errors).contains("contract: rank 0 has rank_consistent"), "{errors:?}");
    let renamed = |rank: u32| {
        let mut plan = Plan::forcing("host");
        plan.settings.tag = format!("tp{rank}");
        plan
    };
    let errors = try_run(2, renamed, |formed| formed.expect_err("they differ").to_string());
    assert!(same_on_all(&errors).contains("rank 0 has `tp0`, rank 1 has `tp1`"), "{errors:?}");
}

#[test]
fn a_rank_that_never_comes_is_named_by_all_others() {
    let deadline = Duration::from_millis(700);
    let start = Instant::now();
    let errors = on_channels(4, deadline, |boot| {
        if boot.rank() == 3 {
            std::thread::sleep(deadline * 4);
            return None;
        }
        let plan = Plan::forcing("host");
        let formed =
            Communicator::form(boot, &plan.registry, &plan.policy, report(), &plan.settings);
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
        Some(formed.expect_err("rank 3 is missing"))
    });
    for error in errors.into_iter().flatten() {
        assert!(matches!(error, FormError::ControlPlane(_)), "{error}");
        // Before rank 3 has gone, or it would be said to be lost.
        assert!(error.to_string().contains("still waiting for rank 3 after "), "{error}");
    }
}

#[test]
fn two_nodes_are_refused_by_the_host_backend_in_words() {
    let errors = on_channels(4, Duration::from_secs(30), |boot| {
        let plan = Plan::forcing("host");
        let mut mine = report();
        mine.node = format!("node {}", boot.rank() % 2);
        Communicator::form(boot, &plan.registry, &plan.policy, mine, &plan.settings)
            .expect_err("the host backend takes one node")
            .to_string()
    });
    let error = same_on_all(&errors);
    assert!(error.contains("`host` was asked for"), "{error}");
    assert!(error.contains(Topology::MultiNode.name()), "{error}");
}
