//! UCC's strings: every layer scores every size, an entry changes the score of its sizes, and for a
//! size the layer of the highest score serves.

use crossover_core::call::Op;
use crossover_core::facts::Topology;
use crossover_policy::import::{Format, import};
use proptest::prelude::*;

use crate::{around, call, group, imported_rule, plans};

/// `inf` as a score.
const INF: u64 = i32::MAX as u64;

/// One entry of a layer's string. The end is as UCC has it: a size that two ranges share.
#[derive(Clone, Debug)]
struct Entry {
    layer: usize,
    op: Op,
    low: u64,
    high: u64,
    score: u64,
}

/// The layers, what each scores by itself, and the backend that is its equal.
const LAYERS: [(&str, u64, &str); 2] = [("CUDA", 40, "ipc"), ("NCCL", 20, "nccl")];

const ENDS: [u64; 7] = [0, 1, 4 << 10, 32 << 10, 64 << 10, 1 << 20, u64::MAX];

/// Every size of each layer and op in at most one entry, all with scores of their own.
fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let scores = Just(vec![5, 10, 15, 25, 30, 35, 45, 60, 70, 80, 90, INF]).prop_shuffle();
    let ends = || prop::sample::subsequence(ENDS.to_vec(), 2..=4);
    let kept = prop::collection::vec(any::<bool>(), 12);
    (scores, (ends(), ends(), ends(), ends()), kept).prop_map(|(scores, ends, kept)| {
        let ends = [ends.0, ends.1, ends.2, ends.3];
        let strings =
            [(0, Op::AllReduce), (0, Op::AllGather), (1, Op::AllReduce), (1, Op::AllGather)];
        let ranges = strings.into_iter().zip(&ends).flat_map(|((layer, op), ends)| {
            ends.windows(2).map(move |w| Entry { layer, op, low: w[0], high: w[1], score: 0 })
        });
        let scored = ranges.zip(scores).map(|(entry, score)| Entry { score, ..entry });
        scored.zip(kept).filter(|(_, kept)| *kept).map(|(entry, _)| entry).collect()
    })
}

fn text(entries: &[Entry]) -> String {
    let mut text = String::new();
    for (layer, (name, ..)) in LAYERS.iter().enumerate() {
        let word = |entry: &Entry| {
            let op = if entry.op == Op::AllGather { "allgather" } else { "allreduce" };
            let high =
                if entry.high == u64::MAX { "inf".to_owned() } else { entry.high.to_string() };
            let score = if entry.score == INF { "inf".to_owned() } else { entry.score.to_string() };
            format!("{op}:{}-{high}:cuda:{score}", entry.low)
        };
        let words: Vec<String> = entries.iter().filter(|e| e.layer == layer).map(word).collect();
        if !words.is_empty() {
            text += &format!("UCC_TL_{name}_TUNE={}\n", words.join("#"));
        }
    }
    text
}

/// The score and the layer that wins between two neighbouring ends, and whether an entry says so.
fn winner(entries: &[Entry], op: Op, after: u64) -> (u64, usize, bool) {
    let of_layer = |layer: usize| {
        let entry = entries
            .iter()
            .find(|e| e.layer == layer && e.op == op && e.low <= after && after < e.high);
        entry.map_or((LAYERS[layer].1, layer, false), |entry| (entry.score, layer, true))
    };
    of_layer(0).max(of_layer(1))
}

/// Who serves a size. One that two ranges share is the greater score's, else the upper range's.
fn serves(entries: &[Entry], op: Op, bytes: u64) -> (usize, bool) {
    let upper = winner(entries, op, bytes.min(u64::MAX - 1));
    let lower = winner(entries, op, bytes.saturating_sub(1));
    let (_, layer, is_named) = if lower.0 > upper.0 { lower } else { upper };
    (layer, is_named)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn ucc_strings_decide_as_before_or_say_so(entries in entries()) {
        prop_assume!(!entries.is_empty());
        let text = text(&entries);
        let imported = import(Format::UccTune, "random", &text).unwrap();
        let group = group("sm90", 4, 1, Topology::NvlinkFull);
        let plan = &plans(Format::UccTune, &text, std::slice::from_ref(&group))[0];
        let named: Vec<u64> = entries.iter().flat_map(|e| [e.low, e.high]).collect();
        for op in [Op::AllReduce, Op::AllGather] {
            // A rank's receive buffer.
            let scale = if op == Op::AllGather { 4 } else { 1 };
            for bytes in around(&named, scale).into_iter().filter(|b| b.checked_mul(scale).is_some()) {
                let (layer, is_named) = serves(&entries, op, bytes * scale);
                let choice = plan.decide(&call(op), bytes);
                let rule = imported_rule(plan, choice, "ucc-tune-");
                let case = format!("{op} {bytes} B\n{text}{}", imported.policy);
                if is_named {
                    prop_assert!(rule.is_some(), "no rule for {case}");
                    let name = choice.map(|choice| plan.name_of(choice).to_string()).unwrap_or_default();
                    let backend = name.split('/').next();
                    prop_assert_eq!(backend, Some(LAYERS[layer].2), "{}", case);
                } else if rule.is_some() {
                    let told = imported.losses.iter().any(|l| l.message.contains("by itself"));
                    prop_assert!(told, "not told: {case}");
                }
            }
        }
    }
}
