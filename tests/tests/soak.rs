//! Mixed collectives on several groups at once, under random delays, stay exact: a little of it
//! here, and a million calls, a matter of minutes, with
//! `cargo test -p crossover-tests --release --test soak -- --ignored`. A failure tells its seed:
//! `CROSSOVER_SOAK_SEED` repeats it, `CROSSOVER_SOAK_CALLS` says how many.

use crossover_tests::data::Rng;
use crossover_tests::reference;
use crossover_tests::soak::{Fault, Fleet, Shape, expected, input, soak};

#[test]
fn some_thousand_calls_stay_exact() {
    soak(1, 20_000).unwrap_or_else(|wrong| panic!("{wrong}"));
}

#[test]
#[ignore = "takes minutes; see above"]
fn a_million_calls_stay_exact() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse().unwrap());
    let clock = || std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    let seed = number("CROSSOVER_SOAK_SEED").unwrap_or_else(clock);
    let calls = number("CROSSOVER_SOAK_CALLS").unwrap_or(1_000_000);
    soak(seed, calls).unwrap_or_else(|wrong| panic!("{wrong}"));
}

#[test]
fn results_are_expected_as_the_reference_has_them() {
    let mut rng = Rng::new(7, 0);
    for seed in 0..3000 {
        let world = 2 + rng.below(5) as usize;
        let shape = Shape::draw(&mut rng, world, 600);
        let call = shape.call();
        let inputs: Vec<Vec<u8>> = (0..world).map(|r| input(&call, seed, r, world)).collect();
        for rank in 0..world {
            let want = reference::output(&call, rank, &inputs);
            assert_eq!(
                expected(&call, seed, rank, world),
                want,
                "rank {rank} of {world}: {call:?}"
            );
        }
    }
}

#[test]
fn stale_data_of_one_rank_is_found() {
    is_found(Fault::GivesStaleData, |wrong| wrong.contains("is wrong in"));
}

#[test]
fn a_wrong_expectation_is_found() {
    is_found(Fault::ExpectsTheNext, |wrong| wrong.starts_with("member 1, call 99"));
}

/// Every call but the hundredth is right, and that one is found to be wrong.
fn is_found(fault: Fault, by: impl Fn(&str) -> bool) {
    let all = vec![0, 1, 2];
    let groups = vec![(all.clone(), "host/one_shot"), (all, "host/two_shot")];
    // Of this seed the hundredth call reduces or copies something that rank 1 has a part in.
    let seed = 5;
    let right = Fleet { seed, members: 3, groups, calls: 100, most: 4096, fault: None };
    right.run().unwrap();
    let wrong = Fleet { fault: Some((1, 99, fault)), ..right }.run().unwrap_err();
    assert!(by(&wrong) && wrong.contains("call 99"), "{wrong}");
}
