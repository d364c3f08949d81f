//! The split model is the unsplit one, whichever ranks and algorithms add its partial sums up.

use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};

use serde_json::Value;
use tensor_parallel::encoder::{Encoder, Reduce};
use tensor_parallel::tokenise::{LONGEST, Tokens};
use tensor_parallel::weights::{Part, Weights};
use tensor_parallel::{Error, default_model, greatest_difference, reference};

const SENTENCES: [&str; 4] = [
    "A man is playing a guitar on the stage.",
    "Somebody performs music with a guitar.",
    "The stock market fell sharply on Tuesday.",
    "",
];

/// Does the model lie where `cargo xtask model` puts it? If not, says so.
fn model() -> Option<std::path::PathBuf> {
    let model = default_model();
    let there = model.join("model.safetensors").exists();
    if !there {
        let words = b"SKIPPED: no model here; fetch it with `cargo xtask model`\n";
        std::io::Write::write_all(&mut std::io::stderr(), words).expect("stderr");
    }
    there.then_some(model)
}

/// A thread that adds up in rank order, with nothing of the library: a channel to, and one from,
/// each rank. A rank that panics drops its ends, so that nobody waits for it.
#[derive(Default)]
struct Thread {
    to: Vec<Sender<Vec<f32>>>,
    from: Vec<Receiver<Vec<f32>>>,
}

impl Thread {
    fn ranks(ranks: usize) -> Vec<Thread> {
        let mut all: Vec<Thread> = (0..ranks).map(|_| Thread::default()).collect();
        for sender in 0..ranks {
            for receiver in 0..ranks {
                let (to, from) = channel();
                all[sender].to.push(to);
                all[receiver].from.push(from);
            }
        }
        all
    }
}

impl Reduce for Thread {
    fn all_reduce(&mut self, partial: &mut [f32]) -> Result<(), Error> {
        for peer in &self.to {
            peer.send(partial.to_vec()).expect("no rank panics");
        }
        let receive = |from: &Receiver<Vec<f32>>| from.recv().expect("no rank panics");
        partial.copy_from_slice(&receive(&self.from[0]));
        for from in &self.from[1..] {
            for (sum, value) in partial.iter_mut().zip(receive(from)) {
                *sum += value;
            }
        }
        Ok(())
    }
}

fn split(weights: &Weights, ranks: usize, tokens: &[u32]) -> Vec<Vec<f32>> {
    std::thread::scope(|scope| {
        let run = |(rank, mut thread): (usize, Thread)| {
            scope.spawn(move || {
                let part = Part::new(rank, ranks).expect("it divides");
                let encoder = Encoder::new(weights, part).expect("the model's weights");
                encoder.embed(tokens, &mut thread).expect("it adds up")
            })
        };
        let all: Vec<_> = Thread::ranks(ranks).into_iter().enumerate().map(run).collect();
        all.into_iter().map(|rank| rank.join().expect("no rank panics")).collect()
    })
}

fn bits(embedding: &[f32]) -> Vec<u32> {
    embedding.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn every_split_is_the_unsplit_model() {
    let Some(model) = model() else { return };
    let weights = Weights::load(&model).expect("weights");
    let tokens = Tokens::load(&model).expect("a tokeniser");
    let long = "Every rank holds a part of each matrix. ".repeat(40);
    let others = ["Zürich \u{1F980} 東京, e\u{301}tude", &long];
    for sentence in SENTENCES.into_iter().chain(others) {
        let tokens = tokens.of(sentence).expect("tokens").tokens;
        let whole = [reference::embed(&weights, &tokens).expect("the whole model")];
        for ranks in 1..=4 {
            let all = split(&weights, ranks, &tokens);
            let alike = all.iter().all(|e| bits(e) == bits(&all[0]));
            assert!(alike, "ranks of {ranks} differ on {sentence:?}");
            let off = greatest_difference(&all[..1], &whole);
            assert!(off < 1e-5, "{ranks} ranks, {sentence:?}: off by {off:e}");
        }
    }
}

#[test]
fn long_sentences_are_cut_and_keep_their_end() {
    let Some(model) = model() else { return };
    let tokeniser = Tokens::load(&model).expect("a tokeniser");
    // Both markers take a place.
    for (words, is_cut) in [(LONGEST - 2, false), (LONGEST - 1, true), (1000, true)] {
        let sequence = tokeniser.of(&"word ".repeat(words)).expect("tokens");
        let tokens = sequence.tokens;
        assert_eq!((tokens.len(), sequence.is_cut), (LONGEST, is_cut), "{words} words");
        assert_eq!((tokens[0], tokens[LONGEST - 1]), (101, 102), "[CLS] and [SEP]");
    }
}

#[test]
fn what_is_not_a_number_is_not_a_small_difference() {
    let unsplit = [vec![0.5, 0.25]];
    assert_eq!(greatest_difference(&[vec![0.5, 0.125]], &unsplit), 0.125);
    for wrong in [vec![vec![f32::NAN, 0.25]], vec![vec![0.5, f32::NAN]], vec![vec![0.5]], vec![]] {
        assert_eq!(greatest_difference(&wrong, &unsplit), f64::INFINITY, "{wrong:?}");
    }
}

#[test]
fn a_split_that_does_not_divide_is_refused() {
    for ranks in [0, 5, 7, 8] {
        let error = Part::new(0, ranks).expect_err("12 heads").to_string();
        assert!(error.contains(&format!("do not split over {ranks} ranks")), "{error}");
    }
    let missing = Weights::load(Path::new("/nowhere")).err().expect("no model").to_string();
    assert!(missing.contains("cargo xtask model"), "{missing}");
}

/// The program, on real ranks.
fn program(ranks: u32, target: Option<&str>) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tensor-parallel"));
    command.args(["--json", "--check", "-n", &ranks.to_string()]);
    if let Some(target) = target {
        command.args(["--use", target]);
    }
    let output = command.args(SENTENCES).output().expect("it starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{ranks} ranks, {target:?}: {stderr}");
    serde_json::from_slice(&output.stdout).expect("JSON alone")
}

#[test]
fn real_ranks_agree_with_the_unsplit_model_and_with_each_other() {
    if model().is_none() {
        return;
    }
    for ranks in 1..=4 {
        let chosen = program(ranks, None);
        assert!(chosen["difference_to_unsplit"].as_f64().expect("compared") < 1e-5);
        assert_eq!(chosen["same_bits_on_every_rank"], true);
        let lines = chosen["collectives"].as_array().expect("lines");
        let lines: Vec<&str> = lines.iter().map(|line| line.as_str().expect("text")).collect();
        let (counted, sizes) = lines.split_last().expect("at least what was counted");
        let first = |line: &str| line.split_whitespace().next().and_then(|n| n.parse::<u64>().ok());
        let calls: u64 = sizes.iter().map(|line| first(line).expect("a number")).sum();
        assert_eq!(calls, 12 * SENTENCES.len() as u64, "two all-reduces a layer");
        let numbers = counted.split([' ', ',']).filter_map(|word| word.parse::<u64>().ok());
        assert_eq!(numbers.sum::<u64>(), calls, "and the counters say so: {counted}");
        assert!(sizes.iter().all(|line| ranks == 1 || line.contains(" by rule ")), "{sizes:?}");
        let alike = |a: usize, b: usize| chosen["similarities"][a][b].as_f64().expect("a number");
        assert!(alike(0, 1) > alike(0, 2) + 0.3, "guitars are nearer than markets");
        if ranks > 1 {
            let one = program(ranks, Some("host/one_shot"));
            let two = program(ranks, Some("host/two_shot"));
            assert!(one["collectives"].to_string().contains("host/one_shot"));
            assert!(two["collectives"].to_string().contains("host/two_shot"));
            assert_eq!(one["embeddings"], two["embeddings"], "the same bits by both algorithms");
            assert_eq!(one["embeddings"], chosen["embeddings"]);
        }
    }
}

#[test]
fn what_fails_on_every_rank_is_said_once() {
    let folder = std::env::temp_dir().join("crossover-no-model-is-here");
    let folder = folder.to_str().expect("a temporary folder with a plain name");
    for (arguments, want) in [
        (["-n", "5"].as_slice(), "do not split over 5 ranks"),
        (&["-n", "4", "--model", folder], "cargo xtask model"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_tensor-parallel"))
            .args(arguments)
            .arg("hello")
            .output()
            .expect("it starts");
        assert_eq!(output.status.code(), Some(2));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert!(stderr.contains(want), "{stderr}");
    }
}
