//! A group that has a backend, and not all of its algorithms: what is missing is refused with its
//! reason, what is limited serves what it has room for, and the rest is as if nothing were.

use std::sync::Arc;

use crossover_core::agreement::{Local, Setup, SetupError};
use crossover_core::backend::{
    Abort, Algorithm, Backend, Descriptor, EnqueueError, Ready, Session,
};
use crossover_core::call::{CallBuffers, CallSig, Op};
use crossover_core::communicator::Communicator;
use crossover_core::eligibility::Eligibility;
use crossover_core::explain::Verdict;
use crossover_core::facts::GroupFacts;
use crossover_core::form::FormError;
use crossover_core::plan::OfferState;
use crossover_core::policy::{Layer, Policy};
use crossover_core::registry::{Registration, Registry};
use crossover_core::verdict;
use crossover_tests::groups::{self, Plan, forcing, try_run};

const fn algorithm(name: &'static str) -> Algorithm {
    Algorithm { name, eligibility: Eligibility::EVERYTHING, params: &[] }
}

const PARTED: Descriptor = Descriptor {
    id: "parted",
    version: "1",
    settings: &["without"],
    algorithms: &[algorithm("new"), algorithm("small"), algorithm("plain")],
};

/// Is without the algorithms that its settings name, each as its own rank found out.
struct Parted;

impl Backend for Parted {
    fn set_up<'g>(
        &self,
        setup: &mut Setup<'g>,
        _facts: &GroupFacts,
    ) -> Result<Ready<'g>, SetupError> {
        for name in ["new", "small", "plain"] {
            let why = setup.exchange("look", Local::new(()), move |here, ()| {
                let set = here.settings().get("parted.without").unwrap_or_default();
                let here = format!("rank {}'s library has no `{name}`", here.rank());
                Ok(set.split(' ').any(|word| word == name).then_some(here))
            })?;
            let why = why.map(|all| all.into_iter().flatten().next());
            if why.get().is_some() {
                setup.without(name, why.map(Option::unwrap_or_default));
            }
        }
        let room = setup.min("agree on room", Local::new(1 << 10))?;
        setup.limit("small", room);
        if CROOKED.get() {
            setup.limit("plain", room);
        }
        let session =
            setup.step("open", Local::new(()), |_, ()| Ok(Box::new(Copies) as Box<dyn Session>))?;
        let capacity = setup.min("agree on all room", Local::new(1 << 20))?;
        Ok(Ready { session, capacity })
    }
}

thread_local! {
    /// Does this rank say of an algorithm what the others do not?
    static CROOKED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

struct Copies;

impl Session for Copies {
    unsafe fn enqueue(
        &mut self,
        _: usize,
        _: &[u64],
        _: u64,
        call: &CallSig<'_>,
        buffers: &CallBuffers,
    ) -> Result<(), EnqueueError> {
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
    fn abort(&self, _: &verdict::Verdict) {}
}

fn registry() -> Registry {
    let entry = Registration { descriptor: &PARTED, make: || Box::new(Parted) };
    crossover_backends::registry().and_then(|r| r.with(entry)).expect("distinct ids")
}

/// All of them, in their own order, and then the host.
fn plan(without: &str) -> Plan {
    let mut rule = forcing("parted").rules()[0].clone();
    rule.chain.extend(forcing("host/one_shot").rules()[0].chain.clone());
    (rule.last, rule.forced, rule.layer) = (false, false, Layer::User);
    let contract = forcing("parted").contract;
    let policy = Policy::new(contract, vec![rule]);
    let plan = Plan { registry: registry(), policy, ..Plan::forcing("host") };
    plan.set("parted.without", without)
}

fn served(comm: &Communicator, bytes: usize) -> String {
    let call = comm.signature::<u8>(Op::AllReduce, bytes);
    comm.explain(&call).chosen.expect("the host takes the rest").target
}

#[test]
fn what_is_missing_is_passed_over_and_what_is_limited_ends() {
    groups::run(2, &plan("new"), |comm| {
        assert_eq!(served(comm, 1 << 10), "parted/small");
        assert_eq!(served(comm, (1 << 10) + 1), "parted/plain");
        assert_eq!(served(comm, (1 << 20) + 1), "host/one_shot");
        let call = comm.signature::<u8>(Op::AllReduce, 2000);
        let considered = comm.explain(&call).considered;
        assert_eq!(considered[0].verdict, Verdict::Ineligible);
        let why = "setup: wants set-up on every rank, got rank 0's library has no `new`";
        assert_eq!(considered[0].reason, why);
        assert_eq!(considered[1].reason, "capacity: wants at most 1024 B, got 2000 B");
        let data = [7u8; 2000];
        let mut out = [0u8; 2000];
        comm.all_reduce(&data, &mut out, crossover_core::call::ReduceOp::Sum).expect("it copies");
        assert_eq!(out, data);
    });
}

#[test]
fn a_backend_without_any_algorithm_cannot_be_had() {
    groups::run(2, &plan("new small plain"), |comm| {
        assert_eq!(served(comm, 8), "host/one_shot");
        let offers = comm.plan().offers();
        let parted = offers.iter().find(|o| o.descriptor.id == "parted").expect("it is linked");
        let OfferState::Unavailable(refusal) = &parted.state else { panic!("nothing is left") };
        assert_eq!(refusal.got, "rank 0's library has no `new`");
    });
}

#[test]
fn an_algorithm_that_is_forced_and_missing_is_an_error_on_all() {
    let forced = |target: &str, without: &str| {
        let plan = Plan { policy: forcing(target), ..plan(without) };
        try_run(3, move |_| plan.clone(), |formed| formed.map(|_| ()))
    };
    for outcome in forced("parted/new", "new") {
        let error = outcome.expect_err("it is missing");
        assert!(matches!(error, FormError::Forced { .. }), "{error}");
        let words = "`parted/new` was asked for by the test and cannot be had: setup: wants set-up \
                     on every rank, got rank 0's library has no `new`";
        assert!(error.to_string().starts_with(words), "{error}");
    }
    assert!(forced("parted", "new").iter().all(Result::is_ok), "two of it are there");
    assert!(forced("parted/plain", "new").iter().all(Result::is_ok));
}

#[test]
fn one_rank_that_lacks_an_algorithm_is_enough() {
    let plan_of = |rank| plan(if rank == 1 { "small" } else { "" });
    let served = try_run(3, plan_of, |formed| {
        let comm = formed.expect("the group forms");
        let call = comm.signature::<u8>(Op::AllReduce, 8);
        let plan = comm.plan();
        let parted = plan.offers().iter().find(|o| o.descriptor.id == "parted").expect("linked");
        let why = parted.state.room(1).expect_err("one rank lacks it").got.clone();
        (comm.explain(&call).chosen.expect("served").target, why)
    });
    assert!(
        served.iter().all(|s| s.0 == "parted/new" && s.1.starts_with("rank 1's")),
        "{served:?}"
    );
}

#[test]
fn ranks_that_say_different_things_of_algorithms_form_no_group() {
    let plan_of = |rank| {
        CROOKED.set(rank == 1);
        plan("")
    };
    let errors = try_run(2, plan_of, |formed| formed.expect_err("they differ").to_string());
    assert!(errors.iter().all(|e| *e == errors[0]), "{errors:#?}");
    assert!(errors[0].contains("the algorithms of `parted`: rank 1 has others"), "{errors:#?}");
}
