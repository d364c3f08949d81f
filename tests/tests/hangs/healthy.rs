//! Where nothing is wrong nothing is said.

use super::job::engines;

#[test]
fn a_long_run_in_which_ranks_are_now_and_then_late() {
    // Four processes for two cores or more; on host memory 3,000 calls and 1,200 notes in two groups. An
    // emulated device is a thousand times slower.
    let plan = engines(4, "").with("--double --jitter 300");
    let steps = if plan.is_on_device() { 60 } else { 600 };
    let ended = plan.with(&format!("--steps {steps}")).run();
    assert_eq!(ended.well().warnings(), 0, "{ended:#?}");
    assert!(ended.ends.iter().all(|end| !end.stderr.contains("ERROR")), "{ended:#?}");
}
