//! Rank-variant eligibility and agreement do not compile. Each file below `compile_fail` is one
//! way in which a per-rank value tries to steer selection or set-up; beside it stands what the
//! compiler says. `compile_pass` holds the straight twin that must compile.

#[test]
fn rank_variant_code_does_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/compile_pass/*.rs");
    cases.compile_fail("tests/compile_fail/*.rs");
}
