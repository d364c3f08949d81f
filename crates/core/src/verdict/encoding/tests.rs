use proptest::prelude::*;

use super::*;

/// Texts that fit, with characters of one to four bytes.
fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(any::<char>(), 0..120).prop_map(String::from_iter)
}

/// As many ranks as travel without being cut, in any order.
fn ranks() -> impl Strategy<Value = Vec<u32>> {
    let few = prop::collection::vec(any::<u32>(), 0..=MOST_RUNS);
    let all_but_one = (2u32..4096).prop_flat_map(|world| {
        (0..world).prop_map(move |own| (0..world).filter(|rank| *rank != own).collect())
    });
    prop_oneof![few, all_but_one]
}

fn plain() -> impl Strategy<Value = Verdict> {
    let aborted =
        (any::<u32>(), text()).prop_map(|(rank, reason)| Verdict::Aborted { rank, reason });
    let late = (text(), any::<u64>(), ranks(), any::<u64>()).prop_map(|(step, seq, ranks, ns)| {
        Verdict::Late { step, seq, ranks, waited: Duration::from_nanos(ns) }
    });
    let lost = (text(), any::<u64>(), any::<u32>(), text())
        .prop_map(|(step, seq, rank, how)| Verdict::Lost { step, seq, rank, how });
    let mismatch = (any::<u64>(), text()).prop_map(|(seq, what)| Verdict::Mismatch { seq, what });
    prop_oneof![aborted, late, lost, mismatch]
}

fn verdict() -> impl Strategy<Value = Verdict> {
    (plain(), any::<[bool; 2]>()).prop_map(|(plain, [found, whole])| {
        let verdict = if found { Verdict::Found(Box::new(plain)) } else { plain };
        if whole { verdict.of_the_whole() } else { verdict }
    })
}

/// Makes the check right again.
fn proven(mut bytes: [u8; Verdict::BYTES]) -> [u8; Verdict::BYTES] {
    let check = check(&bytes);
    bytes[CHECK..RUNS].copy_from_slice(&check.to_le_bytes());
    bytes
}

fn is_plain_abort(verdict: &Verdict, blamed: u32) -> bool {
    matches!(verdict, Verdict::Aborted { rank, reason } if *rank == blamed && reason.contains("cannot"))
}

proptest! {
    #[test]
    fn what_was_written_is_read(verdict in verdict()) {
        let mut bytes = verdict.encode().to_vec();
        bytes.resize(4096, 0xA5); // size: of a page that it lies in
        prop_assert_eq!(Verdict::decode(&bytes, 9), verdict);
    }

    #[test]
    fn a_bit_that_flips_is_seen(verdict in verdict(), bit in 0..8 * Verdict::BYTES) {
        let mut bytes = verdict.encode();
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(is_plain_abort(&Verdict::decode(&bytes, 9), 9));
    }

    #[test]
    fn other_bytes_are_a_plain_abort(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        prop_assert!(is_plain_abort(&Verdict::decode(&bytes, 3), 3));
    }

    /// Whoever writes nonsense with a check that is right does not make a reader panic, nor take much.
    #[test]
    fn nonsense_that_proves_itself_is_read_or_refused(
        head in prop::collection::vec(any::<u8>(), RUNS + RUN),
        small in any::<bool>(),
        of in verdict(),
    ) {
        let mut bytes = of.encode();
        bytes[..RUNS + RUN].copy_from_slice(&head);
        bytes[0] = VERSION;
        if small {
            // Lengths that can be, so that what is behind them is read.
            for high in [3, 5, 7] {
                bytes[high] = 0;
            }
            bytes[1] &= 0x83;
        }
        if let Verdict::Late { ranks, .. } = Verdict::decode(&proven(bytes), 3) {
            prop_assert!(ranks.len() as u64 <= MOST_RANKS);
        }
    }

    #[test]
    fn what_is_too_long_is_cut_and_stays_what_it_is(step in "\\PC{0,900}", how in "\\PC{0,900}") {
        let long = Verdict::Lost { step: step.clone(), seq: 1, rank: 2, how: how.clone() };
        let Verdict::Lost { step: told_step, seq: 1, rank: 2, how: told_how } =
            Verdict::decode(&long.encode(), 0)
        else {
            panic!("it is another kind");
        };
        prop_assert!(step.starts_with(&told_step) && how.starts_with(&told_how));
        // A character has four bytes at most: no more is lost of a text that must be cut.
        prop_assert!(told_step == step || told_step.len() + how.len().min(ROOM / 2) + 4 > ROOM);
        prop_assert!(told_how == how || told_step.len() + told_how.len() + 4 > ROOM);
    }
}

#[test]
fn of_ranks_in_too_many_runs_the_rest_is_cut() {
    let odd: Vec<u32> = (0..200).map(|nth| 2 * nth + 1).collect();
    let late = Verdict::Late {
        step: "run".to_owned(),
        seq: 1,
        ranks: odd.clone(),
        waited: Duration::from_secs(1),
    };
    let Verdict::Late { ranks, .. } = Verdict::decode(&late.encode(), 0) else {
        panic!("it is another kind");
    };
    assert_eq!(ranks, odd[..MOST_RUNS]);
}

#[test]
fn an_abort_in_full_has_room() {
    let aborted = Verdict::aborted(3, &"ß".repeat(Verdict::LONGEST_REASON));
    assert_eq!(Verdict::decode(&aborted.encode(), 0), aborted);
}

#[test]
fn of_a_part_of_a_part_one_mark_is_left() {
    let aborted = Verdict::aborted(3, "enough").of_the_whole();
    assert_eq!(Verdict::decode(&aborted.clone().of_the_whole().encode(), 0), aborted);
}

/// A rank of another build must not take this for something else.
#[test]
fn bytes_are_where_they_were() {
    let late = Verdict::Late {
        step: "x".to_owned(),
        seq: 0x0102_0304_0506_0708,
        ranks: vec![0, 1, 2, 5],
        waited: Duration::from_nanos(9),
    };
    let bytes = late.of_the_whole().encode();
    assert_eq!(bytes[..8], [1, 0x81, 2, 0, 1, 0, 0, 0]);
    assert_eq!(bytes[8..16], [8, 7, 6, 5, 4, 3, 2, 1]);
    assert_eq!(bytes[16..28], [9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes[32..48], [0, 0, 0, 0, 3, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(bytes[288], b'x');
}
