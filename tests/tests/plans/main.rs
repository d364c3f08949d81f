//! Properties of compiled policies: any policy, any group, any call.

mod clauses;
mod examples;
mod generators;
mod oracle;
mod overlaps;
mod params;

use crossover_core::call::{CallKind, Dtype, Mode, Op, ReduceOp};
use crossover_core::contract::{Contract, Determinism, Deviation, Deviations};
use crossover_core::explain::Verdict;
use crossover_core::plan::{Choice, Plan};
use crossover_core::policy::{Basis, ByteRange, Candidate, Layer, Match, Origin, Policy, Rule};
use generators::{groups, kinds, offers, policies, sizes};
use oracle::{oracle, whole};
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn decisions_are_the_oracles(
        policy in policies(), group in groups(), offers in offers(), call in kinds(),
        sizes in vec(sizes(), 8),
    ) {
        // One plan that is compiled for the call's contract, and one that must walk.
        let fast = Plan::compile(group.clone(), call.contract, &policy, offers.clone());
        let slow = Plan::compile(group.clone(), Contract {
            determinism: Determinism::Any, accept: Deviations::of(&[Deviation::LossyFp8]),
        }, &policy, offers.clone());
        for bytes in sizes {
            let bytes = whole(call.op, bytes, group.world);
            for plan in [&fast, &slow] {
                let contract = plan.contract().intersection(call.contract);
                let want = oracle(&policy, &group, &offers, &CallKind { contract, ..call }, bytes);
                prop_assert_eq!(&plan.decide(&call, bytes).map(|c| plan.name_of(c)), &want);
            }
        }
    }

    #[test]
    fn explanations_agree_with_decisions(
        policy in policies(), group in groups(), offers in offers(), call in kinds(), bytes in sizes(),
    ) {
        let plan = Plan::compile(group, call.contract, &policy, offers);
        let explained = plan.explain_kind(&call, bytes);
        let choice = plan.decide(&call, bytes);
        let told = explained.chosen.as_ref().map(|c| c.target.clone());
        prop_assert_eq!(told, choice.map(|c| plan.name_of(c)));
        let chosen = explained.considered.iter().filter(|c| c.verdict == Verdict::Chosen).count();
        let serves = matches!(choice, Some(Choice::Serve { .. }));
        prop_assert_eq!(chosen, usize::from(serves));
        for c in &explained.considered {
            prop_assert_eq!(c.reason.is_empty(), c.verdict == Verdict::Chosen, "{:?}", c);
        }
        // The band is true at both ends, and what follows is something else: said of sizes that
        // meet the same multiples, as far as those lie inside.
        let target = |bytes| plan.decide(&call, bytes).map(|c| plan.name_of(c));
        let (from, to) = explained.holds;
        prop_assert!(from <= bytes && to.is_none_or(|to| bytes <= to));
        let alike = |at: u64| if bytes % 16 == 0 { at.checked_next_multiple_of(16) } else { Some(at | 1) };
        if let Some(first) = alike(from).filter(|first| *first <= bytes) {
            prop_assert_eq!(target(first), target(bytes));
        }
        if let Some(next) = &explained.next {
            prop_assert_eq!(to, Some(next.at - 1));
            prop_assert_ne!(&next.target, &target(bytes));
            let there = alike(next.at).map(|at| (at, plan.explain_kind(&call, at).holds.0));
            if let Some((at, _)) = there.filter(|(_, from)| *from <= next.at) {
                prop_assert_eq!(&target(at), &next.target);
            }
        }
    }

    #[test]
    fn a_policy_with_a_floor_leaves_nothing_unserved(
        policy in policies(), group in groups(), offers in offers(), call in kinds(), bytes in sizes(),
    ) {
        let mut rules = policy.rules().to_vec();
        rules.iter_mut().for_each(|r| r.last = false);
        rules.push(Rule {
            id: "floor".to_owned(),
            layer: Layer::Builtin,
            origin: Origin::default(),
            priority: -100,
            last: false,
            forced: false,
            when: Match::default(),
            chain: vec![Candidate {
                backend: "floor".to_owned(),
                algorithm: None,
                bytes: ByteRange::ANY,
                basis: Basis::Input,
                optional: false,
                params: Vec::new(),
            }],
            evidence: None,
        });
        let plan = Plan::compile(group, call.contract, &Policy::new(Contract::DEFAULT, rules), offers);
        prop_assert!(plan.decide(&call, bytes).is_some());
    }

    #[test]
    fn digests_tell_policies_apart_and_ignore_files(policy in policies()) {
        let mut moved = policy.rules().to_vec();
        moved.iter_mut().for_each(|r| r.origin = Origin { file: "elsewhere".to_owned(), line: 7 });
        prop_assert_eq!(Policy::new(policy.contract, moved.clone()).digest(), policy.digest());
        if let Some(rule) = moved.first_mut() {
            rule.priority += 100;
            prop_assert_ne!(Policy::new(policy.contract, moved).digest(), policy.digest());
        }
    }

    #[test]
    fn every_kind_of_call_is_told_as_it_is_decided(
        policy in policies(), group in groups(), offers in offers(), contract in kinds(),
        bytes in sizes(),
    ) {
        let plan = Plan::compile(group, contract.contract, &policy, offers);
        for (op, dtype) in Op::ALL.iter().flat_map(|op| Dtype::ALL.iter().map(move |d| (*op, *d))) {
            for (mode, reduce_op) in Mode::ALL.iter().flat_map(|m| ReduceOp::ALL.iter().map(move |r| (*m, *r))) {
                let call = CallKind { op, dtype, reduce_op, mode, contract: contract.contract };
                let told = plan.explain_kind(&call, bytes).chosen.map(|c| (c.target, c.rule));
                let decided = plan.decide(&call, bytes).map(|choice| {
                    (plan.name_of(choice), plan.rule_of(choice).map(|r| r.id.clone()).unwrap_or_default())
                });
                prop_assert_eq!(told, decided, "{:?}", call);
            }
        }
    }

    #[test]
    fn the_order_in_which_unequal_rules_are_given_changes_nothing(
        policy in policies(), group in groups(), offers in offers(), call in kinds(),
        sizes in vec(sizes(), 4), seed in any::<u64>(),
    ) {
        // Of equal precedence, the first given goes first: so here, none are equal.
        let mut rules = policy.rules().to_vec();
        (0..).zip(&mut rules).for_each(|(at, rule)| rule.priority = at);
        let mut shuffled = rules.clone();
        let mut rng = crossover_tests::data::Rng(seed);
        (1..shuffled.len()).for_each(|at| shuffled.swap(at, rng.below(at as u64 + 1) as usize));
        let [one, other] = [rules, shuffled].map(|rules| Policy::new(policy.contract, rules));
        prop_assert_eq!(one.digest(), other.digest());
        let [one, other] = [one, other]
            .map(|p| Plan::compile(group.clone(), call.contract, &p, offers.clone()));
        for bytes in sizes {
            prop_assert_eq!(one.decide(&call, bytes), other.decide(&call, bytes));
        }
    }
}
