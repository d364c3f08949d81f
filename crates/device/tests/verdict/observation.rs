//! The judge of what a probe saw.

use crossover_device::verdict::Verdict;
use crossover_device::verdict::observation::{Observation, judge};
use proptest::prelude::*;

use crate::{good, is_broken, is_inconclusive, mirrored};

#[test]
fn what_the_owner_reads_decides() {
    assert_eq!(judge(&good()), Verdict::Proven);
    assert!(is_broken(&judge(&mirrored()), "a copy that only the writer sees"));
    let lost = Observation { user_read: vec![0; 64], ..mirrored() };
    assert!(is_broken(&judge(&lost), "writes are lost"));
    let deaf = Observation { user_read: vec![0; 64], ..good() };
    assert!(is_broken(&judge(&deaf), "writes arrive, and reads give something else: 64 of 64"));
}

#[test]
fn the_first_wrong_word_is_said() {
    let mut seen = good();
    seen.owner_read[5] = 0xbad;
    seen.owner_read[9] = 0xbad;
    let expected =
        format!("2 of 64 words, the first at 5: 0x00000bad instead of {:#010x}", seen.wrote[5]);
    assert!(is_broken(&judge(&seen), &expected), "{}", judge(&seen));
}

#[test]
fn a_probe_that_proves_nothing_is_inconclusive() {
    let seen = |change: fn(&mut Observation)| {
        let mut seen = good();
        change(&mut seen);
        judge(&seen)
    };
    let short = seen(|seen| seen.owner_read.truncate(63));
    assert!(is_inconclusive(&short, "wrote 64 words, and read 64 as user and 63 as owner"));
    let empty = Observation { before: 0, wrote: vec![], user_read: vec![], owner_read: vec![] };
    assert!(is_inconclusive(&judge(&empty), "wrote 0 words"));
    assert!(is_inconclusive(&seen(|seen| seen.before = seen.wrote[3]), "word 3 as it was before"));
}

proptest! {
    /// Proven is exactly: both read all words that were written, and none was there before.
    #[test]
    fn only_what_arrived_is_proven(
        before in 0_u32..3,
        wrote in prop::collection::vec(0_u32..3, 0..4),
        user_read in prop::collection::vec(0_u32..3, 0..4),
        owner_read in prop::collection::vec(0_u32..3, 0..4),
    ) {
        let right = !wrote.is_empty()
            && !wrote.contains(&before)
            && user_read == wrote
            && owner_read == wrote;
        let verdict = judge(&Observation { before, wrote, user_read, owner_read });
        prop_assert_eq!(verdict == Verdict::Proven, right);
    }
}
