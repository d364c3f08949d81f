//! Any text as a policy file: it is refused with its mistakes, or it loads, compiles for any group,
//! explains, and can be linted; nothing panics, and explanation and decision agree.

#![no_main]

use crossover_core::call::{CallKind, Dtype, Mode, Op, ReduceOp};
use crossover_core::contract::Contract;
use crossover_core::plan::{Offer, OfferState, Plan};
use crossover_policy::lint::{Options, lint};
use crossover_policy::{Sources, StatedGroup};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let registry = crossover_backends::registry().expect("well-formed backends");
    let sources = Sources::isolated(Vec::new()).with_text("fuzz.toml", text);
    let effective = match sources.load(&registry) {
        Ok(effective) => effective,
        Err(mistakes) => return drop(mistakes.to_string()),
    };
    for (arch, world) in [("sm90", 8), ("gfx942", 3), ("host", 2)] {
        let group = StatedGroup {
            arch: Some(arch.to_owned()),
            world: Some(world),
            ..StatedGroup::default()
        };
        let open = |descriptor| Offer { descriptor, state: OfferState::Open { capacity: 1 << 24 } };
        let offers = registry.descriptors().into_iter().map(open).collect();
        let plan = Plan::compile(group.profile(), Contract::DEFAULT, &effective.policy, offers);
        for op in Op::ALL {
            let call = CallKind {
                op: *op,
                dtype: Dtype::Bf16,
                reduce_op: ReduceOp::Sum,
                mode: Mode::Eager,
                contract: plan.contract(),
            };
            for bytes in [0, 1, 65536, 65537, u64::MAX] {
                let told = plan.explain_kind(&call, bytes);
                let chosen = plan.decide(&call, bytes).map(|choice| plan.name_of(choice));
                assert_eq!(told.chosen.map(|c| c.target), chosen);
            }
        }
    }
    let _ = lint(&sources, &registry, &Options::default());
});
