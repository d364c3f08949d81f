//! What is known of all pairs, and what follows for others.

use crossover_device::verdict::nccl::advice;
use crossover_device::verdict::observation::judge;
use crossover_device::verdict::{Pair, Verdict, Verdicts};
use proptest::prelude::*;

use crate::{device, good, mirrored, pair};

fn late() -> Verdict {
    Verdict::Inconclusive("late".to_owned())
}

#[test]
fn what_speaks_most_against_a_pair_holds() {
    let broken = judge(&mirrored());
    let found = Verdicts::of([
        (pair(1, 0), Verdict::Proven),
        (pair(0, 1), Verdict::Proven),
        (pair(1, 0), broken.clone()),
        (pair(1, 0), late()),
        (pair(1, 1), late()),
    ]);
    assert_eq!(found.pairs, [(pair(0, 1), Verdict::Proven), (pair(1, 0), broken)]);
    let (at, how) = found.veto().unwrap();
    let veto = format!("{at} is {how}");
    assert!(veto.starts_with("GPU-1 using memory of GPU-0 is broken: writes land"), "{veto}");
}

#[test]
fn one_device_needs_no_peer() {
    let found = Verdicts::of([(pair(3, 3), judge(&good()))]);
    assert_eq!((found.pairs.len(), found.veto()), (0, None));
}

#[test]
fn nccl_is_advised_and_users_are_heeded() {
    let of = |verdict| Verdicts::of([(pair(0, 1), Verdict::Proven), (pair(1, 0), verdict)]);
    let given = advice(&of(judge(&mirrored())), |_| None).unwrap();
    assert_eq!((given.variable, given.value), ("NCCL_P2P_DISABLE", "1"));
    assert!(given.reason.contains("only the writer sees"));
    assert_eq!(advice(&of(judge(&mirrored())), |_| Some("0".to_owned())), None);
    assert!(advice(&of(late()), |_| None).is_some());
    // Of the driver's no it learns by itself, and of what works nothing is to be said.
    assert_eq!(advice(&of(Verdict::Refused("no".to_owned())), |_| None), None);
    assert_eq!(advice(&of(Verdict::Proven), |_| None), None);
}

proptest! {
    /// Peers are allowed exactly where everything that was found is proven, in whatever order.
    #[test]
    fn only_what_all_allow_is_allowed(
        found in prop::collection::vec((0_usize..3, 0_usize..3, 0..8), 0..20),
    ) {
        let verdict = |word| match word {
            5 => Verdict::Refused("no".to_owned()),
            6 => judge(&mirrored()),
            7 => late(),
            _ => Verdict::Proven,
        };
        let pairs = found.iter().map(|(user, owner, word)| {
            let pair = Pair { user: device(*user), owner: device(*owner) };
            (pair, verdict(*word))
        });
        let right = found.iter().all(|(user, owner, word)| user == owner || *word < 5);
        let all: Vec<_> = pairs.collect();
        let turned = Verdicts::of(all.iter().rev().cloned());
        prop_assert_eq!(Verdicts::of(all).veto().is_none(), right);
        prop_assert_eq!(turned.veto().is_none(), right);
    }
}
