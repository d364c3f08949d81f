//! Rank-variant eligibility and agreement do not compile. Each file below `compile_fail` is one
//! way in which a per-rank value tries to steer selection or set-up; beside it stands what the
//! compiler says. The library holds the straight twin that must compile.

use crossover_compile_fail as _;
use crossover_core::registry::Registry;

#[test]
fn rank_variant_code_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}

#[test]
fn the_straight_twin_is_linked() {
    let registry = Registry::linked().expect("its descriptor is valid");
    assert!(registry.is_linked("straight"));
}
