//! What a policy sets of an algorithm, and what its session receives.

use std::sync::{Arc, Mutex};

use crossover_core::agreement::{Local, Setup, SetupError};
use crossover_core::backend::{
    Abort, Algorithm, Backend, Descriptor, EnqueueError, Param, Ready, Session, Values,
};
use crossover_core::call::{CallBuffers, CallSig, Op};
use crossover_core::eligibility::Eligibility;
use crossover_core::facts::GroupFacts;
use crossover_core::policy::{ParamValue, Policy};
use crossover_core::registry::{Registration, Registry};
use crossover_core::verdict::Verdict;
use crossover_tests::groups::{Plan, forcing, run};

const TUNABLE: Descriptor = Descriptor {
    id: "tunable",
    version: "1",
    settings: &[],
    algorithms: &[
        Algorithm { name: "plain", eligibility: Eligibility::EVERYTHING, params: &[] },
        Algorithm {
            name: "set",
            eligibility: Eligibility::EVERYTHING,
            params: &[
                Param { name: "blocks", values: Values::Count { min: 4, max: 64 }, default: 36 },
                Param { name: "shape", values: Values::Words(&["ring", "tree"]), default: 1 },
                Param { name: "early", values: Values::Flag, default: 0 },
            ],
        },
    ],
};

struct Tunable;

/// What the sessions of all ranks and tests received: elements of the call, algorithm, params.
static RECEIVED: Mutex<Vec<(u64, usize, Vec<u64>)>> = Mutex::new(Vec::new());

impl Backend for Tunable {
    fn set_up<'g>(&self, setup: &mut Setup<'g>, _: &GroupFacts) -> Result<Ready<'g>, SetupError> {
        let session =
            setup.step("open", Local::new(()), |_, ()| Ok(Box::new(Notes) as Box<dyn Session>))?;
        let capacity = setup.min("agree on room", Local::new(u64::MAX))?;
        Ok(Ready { session, capacity })
    }
}

/// Notes what it receives.
struct Notes;

impl Session for Notes {
    unsafe fn enqueue(
        &mut self,
        algorithm: usize,
        params: &[u64],
        _: u64,
        call: &CallSig<'_>,
        _: &CallBuffers,
    ) -> Result<(), EnqueueError> {
        let note = (call.count as u64, algorithm, params.to_vec());
        RECEIVED.lock().expect("no test panics here").push(note);
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

type Stated<'a> = &'a [(&'static str, ParamValue)];

/// Everything by `tunable`, with these params.
fn policy(target: &str, params: Stated<'_>) -> Policy {
    let forced = forcing(target);
    let mut rule = forced.rules()[0].clone();
    rule.chain[0].params = params.iter().map(|(n, v)| ((*n).to_owned(), v.clone())).collect();
    Policy::new(forced.contract, vec![rule])
}

fn plan(policy: Policy) -> Plan {
    let entry = Registration { descriptor: &TUNABLE, make: || Box::new(Tunable) };
    let registry = Registry::empty().with(entry).expect("it is well formed");
    Plan { registry, policy, ..Plan::forcing("host") }
}

#[test]
fn params_are_resolved_for_the_group_or_at_their_defaults() {
    use ParamValue::{Count, Flag, PerWorld, Word};
    let word = |w: &str| Word(w.to_owned());
    // What is stated, the number of ranks, what a session receives.
    let cases: [(Stated<'_>, u32, [u64; 3]); 9] = [
        (&[], 2, [36, 1, 0]),
        (&[("blocks", Count(16))], 2, [16, 1, 0]),
        (&[("blocks", PerWorld(128))], 2, [64, 1, 0]),
        (&[("blocks", PerWorld(128))], 3, [42, 1, 0]),
        // A share beyond the most is the most, and one below the least the least.
        (&[("blocks", PerWorld(130))], 2, [64, 1, 0]),
        (&[("blocks", PerWorld(15))], 4, [4, 1, 0]),
        (&[("shape", word("ring"))], 2, [36, 0, 0]),
        (&[("early", Flag(true))], 2, [36, 1, 1]),
        (&[("early", Flag(true)), ("shape", word("ring")), ("blocks", Count(4))], 2, [4, 0, 1]),
    ];
    for (stated, world, want) in cases {
        for told in run(world, &plan(policy("tunable/set", stated)), |comm| {
            let choice = comm.plan().select(&comm.signature::<u8>(Op::AllReduce, 8));
            comm.plan().params_of(choice.expect("it is served")).to_vec()
        }) {
            assert_eq!(told, want, "{stated:?} of {world}");
        }
    }
}

#[test]
fn a_session_receives_the_params_of_its_algorithm() {
    let params = [("blocks", ParamValue::PerWorld(20)), ("early", ParamValue::Flag(true))];
    // A number of elements that no other call in this file has tells these calls apart.
    for (target, count, algorithm, want) in
        [("tunable/set", 4321, 1, vec![10, 1, 1]), ("tunable/plain", 4322, 0, vec![])]
    {
        run(2, &plan(policy(target, &params)), |comm| {
            comm.all_reduce_in_place(&mut vec![0f32; count], crossover_core::call::ReduceOp::Sum)
                .expect("it runs");
        });
        let received = RECEIVED.lock().expect("no test panics here");
        let ours: Vec<_> = received.iter().filter(|(n, _, _)| *n == count as u64).collect();
        let each = (count as u64, algorithm, want);
        assert_eq!(ours, [&each, &each], "one call of each rank on {target}");
    }
}

#[test]
fn an_explanation_tells_what_a_policy_set() {
    let params = [("blocks", ParamValue::PerWorld(20)), ("shape", ParamValue::Word("ring".into()))];
    for told in run(2, &plan(policy("tunable/set", &params)), |comm| {
        comm.explain(&comm.signature::<u8>(Op::AllReduce, 8)).chosen.expect("it is served").params
    }) {
        assert_eq!(told, [("blocks", "10".to_owned()), ("shape", "ring".to_owned())]);
    }
}

/// Bands of one algorithm that receives other params are served otherwise; those of two rules that
/// give it the same are one.
#[test]
fn bands_are_told_apart_by_params() {
    let limit = |params, below| {
        let mut rule = policy("tunable/set", params).rules()[0].clone();
        (rule.last, rule.chain[0].bytes.high) = (false, below);
        rule
    };
    let default = [("blocks", ParamValue::Count(36))];
    let (four, ring) = ([("blocks", ParamValue::Count(4))], ParamValue::Word("ring".into()));
    let rules = vec![
        limit(&four, Some(1024)),
        limit(&default, Some(2048)),
        limit(&[], Some(4096)),
        limit(&[("shape", ring)], None),
    ];
    let contract = policy("tunable", &[]).contract;
    let words = |params: &[(&'static str, String)]| {
        params.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
    };
    for (sweep, told) in run(2, &plan(Policy::new(contract, rules)), |comm| {
        let call = |count| comm.signature::<u8>(Op::AllReduce, count);
        (comm.plan().sweep(&call(0).kind()), [1, 1024, 4096].map(|n| comm.explain(&call(n))))
    }) {
        assert!(
            sweep.iter().all(|band| band.target.as_deref() == Some("tunable/set")),
            "{sweep:?}"
        );
        let bands: Vec<_> = sweep.iter().map(|band| (band.from, words(&band.params))).collect();
        let want = [(0, "blocks 4"), (1024, ""), (4096, "shape ring")];
        assert_eq!(bands, want.map(|(from, params)| (from, params.to_owned())));
        let holds = told.iter().map(|e| e.holds).collect::<Vec<_>>();
        assert_eq!(holds, [(0, Some(1023)), (1024, Some(4095)), (4096, None)]);
        let next = told.each_ref().map(|e| e.next.as_ref().map(|n| (n.at, words(&n.params))));
        let want = [Some((1024, String::new())), Some((4096, "shape ring".to_owned())), None];
        assert_eq!(next, want);
    }
}
