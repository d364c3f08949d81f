//! What is printed.

use std::fmt::Write as _;

use serde_json::json;
use tensor_parallel::greatest_difference;
use tensor_parallel::tokenise::{LONGEST, Sequence};

/// The most that an embedding's number may differ from the unsplit model's: f32 sums in another
/// order than f64 ones.
const TOLERANCE: f64 = 1e-5;

pub(crate) struct Report<'a> {
    sentences: &'a [String],
    sequences: &'a [Sequence],
    embeddings: Vec<Vec<f32>>,
    ranks: usize,
    served: Vec<String>,
    /// Same bits on every rank, if asked.
    pub(crate) alike: Option<bool>,
    /// Greatest difference to the unsplit model, if asked.
    difference: Option<f64>,
}

impl<'a> Report<'a> {
    pub(crate) fn new(
        sentences: &'a [String],
        sequences: &'a [Sequence],
        embeddings: Vec<Vec<f32>>,
        ranks: usize,
        served: Vec<String>,
    ) -> Self {
        Report { sentences, sequences, embeddings, ranks, served, alike: None, difference: None }
    }

    pub(crate) fn all_values(&self) -> Vec<f32> {
        self.embeddings.concat()
    }

    pub(crate) fn compare(&mut self, unsplit: &[Vec<f64>]) {
        self.difference = Some(greatest_difference(&self.embeddings, unsplit));
    }

    pub(crate) fn passes(&self) -> bool {
        self.alike != Some(false) && self.difference.is_none_or(|d| d <= TOLERANCE)
    }

    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out).expect("a string takes all that is written to it");
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "embeddings, over {} ranks", self.ranks)?;
        let inputs = self.sentences.iter().zip(self.sequences);
        for ((sentence, sequence), e) in inputs.zip(&self.embeddings) {
            let first: Vec<String> = e.iter().take(4).map(|v| format!("{v:+.6}")).collect();
            let (first, norm) = (first.join(", "), similarity(e, e).sqrt());
            let cut =
                if sequence.is_cut { format!(", cut to {LONGEST} tokens") } else { "".into() };
            writeln!(out, "  [{first}, ...] norm {norm:.6}{cut}: {sentence:?}")?;
        }
        writeln!(out, "similarities")?;
        for a in &self.embeddings {
            let row: Vec<String> =
                self.embeddings.iter().map(|b| format!("{:7.4}", similarity(a, b))).collect();
            writeln!(out, "  {}", row.join(" "))?;
        }
        writeln!(out, "collectives, on rank 0")?;
        for line in &self.served {
            writeln!(out, "  {line}")?;
        }
        if let Some(alike) = self.alike {
            let verdict = if alike { "the same bits" } else { "DIFFERENT BITS" };
            writeln!(out, "on every rank: {verdict}")?;
        }
        if let Some(d) = self.difference {
            let verdict = if d <= TOLERANCE { "ok" } else { "TOO MUCH" };
            writeln!(
                out,
                "greatest difference to the unsplit model: {d:.1e} ({verdict}, at most {TOLERANCE:.0e})"
            )?;
        }
        Ok(())
    }

    pub(crate) fn json(&self) -> String {
        let row = |a: &Vec<f32>| -> Vec<f64> {
            self.embeddings.iter().map(|b| similarity(a, b)).collect()
        };
        let similarities: Vec<Vec<f64>> = self.embeddings.iter().map(row).collect();
        let report = json!({
            "ranks": self.ranks,
            "sentences": self.sentences,
            "tokens": self.sequences.iter().map(|s| s.tokens.len()).collect::<Vec<_>>(),
            "cut": self.sequences.iter().map(|s| s.is_cut).collect::<Vec<_>>(),
            "embeddings": self.embeddings,
            "similarities": similarities,
            "collectives": self.served,
            "same_bits_on_every_rank": self.alike,
            "difference_to_unsplit": self.difference,
        });
        format!("{report:#}\n")
    }
}

/// The cosine: embeddings have length 1.
fn similarity(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}
