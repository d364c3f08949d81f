//! Where nothing is wrong nothing is said.

use super::job::engines;

#[test]
fn a_long_run_in_which_ranks_are_now_and_then_late() {
    // Four processes for two cores or more; 3,200 calls and 1,600 notes in two groups.
    let ended = engines(4, "").with("--double --steps 800 --jitter 300").run();
    assert_eq!(ended.well().warnings(), 0, "{ended:#?}");
    assert!(ended.ends.iter().all(|end| !end.stderr.contains("ERROR")), "{ended:#?}");
}
