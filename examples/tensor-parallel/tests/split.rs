//! The split model is the unsplit one, whichever ranks and algorithms add its partial sums up.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::{Barrier, Mutex};

use serde_json::Value;
use tensor_parallel::encoder::{Encoder, Reduce};
use tensor_parallel::tokenise::{LONGEST, Tokens};
use tensor_parallel::weights::{Part, Weights};
use tensor_parallel::{Error, default_model, reference};

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

/// Threads that add up in rank order, with nothing of the library.
struct Threads<'a> {
    rank: usize,
    parts: &'a Mutex<BTreeMap<usize, Vec<f32>>>,
    barrier: &'a Barrier,
}

impl Reduce for Threads<'_> {
    fn all_reduce(&mut self, partial: &mut [f32]) -> Result<(), Error> {
        self.parts.lock().expect("no rank panics").insert(self.rank, partial.to_vec());
        self.barrier.wait();
        let parts = self.parts.lock().expect("no rank panics").clone();
        for (at, value) in partial.iter_mut().enumerate() {
            *value = parts.values().skip(1).fold(parts[&0][at], |sum, part| sum + part[at]);
        }
        self.barrier.wait();
        Ok(())
    }
}

fn split(weights: &Weights, ranks: usize, tokens: &[u32]) -> Vec<Vec<f32>> {
    let (parts, barrier) = (Mutex::new(BTreeMap::new()), Barrier::new(ranks));
    std::thread::scope(|scope| {
        let run = |rank| {
            let (parts, barrier) = (&parts, &barrier);
            scope.spawn(move || {
                let part = Part::new(rank, ranks).expect("it divides");
                let encoder = Encoder::new(weights, part).expect("the model's weights");
                encoder.embed(tokens, &mut Threads { rank, parts, barrier }).expect("it adds up")
            })
        };
        let all: Vec<_> = (0..ranks).map(run).collect();
        all.into_iter().map(|rank| rank.join().expect("no rank panics")).collect()
    })
}

fn difference(a: &[f32], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max)
}

#[test]
fn every_split_is_the_unsplit_model() {
    let Some(model) = model() else { return };
    let weights = Weights::load(&model).expect("weights");
    let tokens = Tokens::load(&model).expect("a tokeniser");
    for sentence in SENTENCES.into_iter().chain(["Zürich \u{1F980} 東京, e\u{301}tude"]) {
        let tokens = tokens.of(sentence).expect("tokens");
        let whole = reference::embed(&weights, &tokens).expect("the whole model");
        for ranks in 1..=4 {
            let all = split(&weights, ranks, &tokens);
            assert!(all.iter().all(|e| e == &all[0]), "ranks of {ranks} differ on {sentence:?}");
            let off = difference(&all[0], &whole);
            assert!(off < 1e-5, "{ranks} ranks, {sentence:?}: off by {off:e}");
        }
    }
}

#[test]
fn long_sentences_are_cut_and_keep_their_end() {
    let Some(model) = model() else { return };
    let tokens =
        Tokens::load(&model).expect("a tokeniser").of(&"word ".repeat(1000)).expect("tokens");
    assert_eq!(tokens.len(), LONGEST);
    assert_eq!((tokens[0], tokens[LONGEST - 1]), (101, 102), "[CLS] and [SEP]");
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
        let calls: u64 = chosen["collectives"]
            .as_array()
            .expect("lines")
            .iter()
            .map(|line| line.as_str().expect("text").split_whitespace().next().expect("a number"))
            .map(|calls| calls.parse::<u64>().expect("a number"))
            .sum();
        assert_eq!(calls, 12 * SENTENCES.len() as u64, "two all-reduces a layer");
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
fn a_number_of_ranks_that_does_not_divide_is_one_sentence() {
    let output = Command::new(env!("CARGO_BIN_EXE_tensor-parallel"))
        .args(["-n", "5", "hello"])
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.contains("do not split over 5 ranks"), "{stderr}");
}
