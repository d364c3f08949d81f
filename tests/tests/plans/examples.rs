//! What a plan does, one case at a time.

use crossover_core::backend::{Algorithm, Descriptor};
use crossover_core::call::{CallKind, Dtype, Mode, Op, ReduceOp};
use crossover_core::contract::{Contract, Determinism, Deviations};
use crossover_core::eligibility::Eligibility;
use crossover_core::explain::Verdict;
use crossover_core::facts::{Caps, GroupProfile, Topology};
use crossover_core::plan::{Offer, OfferState, Plan};
use crossover_core::policy::Policy;
use crossover_tests::groups::{self, forcing};

const LOOSE: Descriptor = Descriptor {
    id: "loose",
    version: "1",
    settings: &[],
    algorithms: &[Algorithm {
        name: "",
        eligibility: Eligibility {
            determinism: Determinism::Any,
            max_bytes: 1000,
            ..Eligibility::EVERYTHING
        },
        params: &[],
    }],
};

fn plan(policy: &Policy, capacity: u64, determinism: Determinism) -> Plan {
    let group = GroupProfile {
        arch: "sm90".to_owned(),
        device: "device".to_owned(),
        world: 4,
        nodes: 1,
        topology: Topology::Pcie,
        tag: "tp".to_owned(),
        caps: Caps::NONE,
        caches: Default::default(),
    };
    let offer = Offer { descriptor: &LOOSE, state: OfferState::Open { capacity } };
    let contract = Contract { determinism, accept: Deviations::NONE };
    Plan::compile(group, contract, policy, vec![offer])
}

fn call(op: Op, determinism: Determinism) -> CallKind {
    let contract = Contract { determinism, accept: Deviations::NONE };
    CallKind { op, dtype: Dtype::F32, reduce_op: ReduceOp::Sum, mode: Mode::Eager, contract }
}

fn chosen(plan: &Plan, call: &CallKind, bytes: u64) -> Option<String> {
    plan.decide(call, bytes).map(|choice| plan.name_of(choice))
}

fn swept(plan: &Plan, call: &CallKind) -> Vec<(u64, Option<String>)> {
    plan.sweep(call).into_iter().map(|band| (band.from, band.target)).collect()
}

#[test]
fn room_is_the_less_of_what_was_set_up_and_what_can_ever_be() {
    for (capacity, most) in [(400, 400), (1000, 1000), (5000, 1000), (u64::MAX, 1000)] {
        let plan = plan(&forcing("loose"), capacity, Determinism::Any);
        let call = call(Op::AllReduce, Determinism::Any);
        assert_eq!(chosen(&plan, &call, most).as_deref(), Some("loose"), "{capacity}");
        assert_eq!(chosen(&plan, &call, most + 1), None, "{capacity}");
        let refused = &plan.explain_kind(&call, most + 1).considered[0];
        assert_eq!(refused.reason, format!("capacity: wants at most {most} B, got {} B", most + 1));
        assert_eq!(swept(&plan, &call), [(0, Some("loose".to_owned())), (most + 1, None)]);
    }
}

#[test]
fn a_copy_meets_every_determinism_and_a_reduction_only_what_is_stated() {
    for determinism in Determinism::ALL {
        let plan = plan(&forcing("loose"), u64::MAX, *determinism);
        for op in [Op::AllGather, Op::Broadcast, Op::AllToAll] {
            let served = chosen(&plan, &call(op, *determinism), 8);
            assert_eq!(served.as_deref(), Some("loose"), "{op} {determinism}");
        }
        for op in [Op::AllReduce, Op::ReduceScatter] {
            let served = chosen(&plan, &call(op, *determinism), 8).is_some();
            assert_eq!(served, *determinism == Determinism::Any, "{op} {determinism}");
        }
    }
}

#[test]
fn a_call_that_demands_more_than_the_group_is_decided_by_what_it_demands() {
    let plan = plan(&forcing("loose"), u64::MAX, Determinism::Any);
    assert!(chosen(&plan, &call(Op::AllReduce, Determinism::Any), 8).is_some());
    let strict = call(Op::AllReduce, Determinism::RunToRun);
    assert_eq!(chosen(&plan, &strict, 8), None);
    assert_eq!(swept(&plan, &strict), [(0, None)]);
    let told = plan.explain_kind(&strict, 8);
    assert_eq!((told.holds, told.next), ((0, None), None));
    assert_eq!(
        told.considered[0].reason,
        "determinism: wants a contract of at most any, got run_to_run"
    );
}

/// A policy may name a backend that is known only by what it states; a group that is formed says
/// that it is not there, and goes on.
#[test]
fn a_group_says_that_a_declared_backend_is_not_linked() {
    let mut policy = forcing("loose");
    let mut rule = policy.rules()[0].clone();
    rule.chain[0].optional = true;
    rule.chain.extend(forcing("host/one_shot").rules()[0].chain.clone());
    (rule.last, rule.forced, rule.layer) = (false, false, crossover_core::policy::Layer::User);
    policy = Policy::new(policy.contract, vec![rule]);
    let plan = groups::Plan { policy, ..groups::Plan::forcing("host") };
    let declaring = plan.registry.clone().declaring(&LOOSE).expect("it is well formed");
    let plan = groups::Plan { registry: declaring, ..plan };
    for told in groups::run(2, &plan, |comm| comm.explain(&comm.signature::<f32>(Op::Broadcast, 4)))
    {
        assert_eq!(told.chosen.map(|c| c.target).as_deref(), Some("host/one_shot"));
        let absent = &told.considered[0];
        assert_eq!((absent.target.as_str(), absent.verdict), ("loose", Verdict::Ineligible));
        let want = "presence: wants a backend linked into this program, got only hierarchical, \
                    host, ipc, mpi, nccl";
        assert_eq!(absent.reason, want);
    }
}
