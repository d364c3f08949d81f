//! A real model on the collectives: the sentence encoder all-MiniLM-L6-v2 (BERT, 6 layers, 12 heads,
//! 384 wide), split over ranks as inference engines split transformers.
//!
//! Each rank holds some heads of every attention block and some columns of every MLP. The matrices
//! that lead into a block are cut by output (each rank computes its own heads), those that lead out
//! by input, so that each rank has a partial sum of the whole output: one all-reduce a block, two a
//! layer ([Megatron-LM](https://arxiv.org/abs/1909.08053), section 3). Embeddings, norms and pooling
//! are on every rank.
//!
//! [`weights`] loads and cuts, [`tokenise`] makes tokens, [`encoder`] is the split forward pass,
//! [`mod@reference`] the whole model in one piece, written apart and in f64, to compare with.

pub mod encoder;
pub mod reference;
pub mod tokenise;
pub mod weights;

use std::path::{Path, PathBuf};

/// The example could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A collective failed.
    #[error(transparent)]
    Call(#[from] crossover::CallError),
    /// The mathematics failed: shapes that do not fit the model.
    #[error("the model cannot be computed: {0}")]
    Candle(#[from] candle_core::Error),
    /// The group did not form.
    #[error(transparent)]
    Form(#[from] crossover::Error),
    /// There is no model here.
    #[error("there is no model in {}: fetch it with `cargo xtask model`, or name its folder with --model", .0.display())]
    NoModel(PathBuf),
    /// The model does not split over so many ranks.
    #[error(
        "{heads} heads and {intermediate} columns do not split over {ranks} ranks: take a number that divides both, such as 2, 3 or 4"
    )]
    Split {
        /// Attention heads.
        heads: usize,
        /// Width of the MLP.
        intermediate: usize,
        /// Ranks asked for.
        ranks: usize,
    },
    /// The tokeniser failed.
    #[error("the tokeniser cannot read this: {0}")]
    Tokens(String),
}

/// A file of the model.
///
/// # Errors
///
/// It is not there.
pub fn model_file(model: &Path, name: &str) -> Result<PathBuf, Error> {
    let file = model.join(name);
    if file.exists() { Ok(file) } else { Err(Error::NoModel(model.to_owned())) }
}

/// The greatest difference between embeddings, in any of their numbers. A number that is not one,
/// and one without a partner, differs infinitely: the greatest of NaN and 0 would be 0.
pub fn greatest_difference(split: &[Vec<f32>], unsplit: &[Vec<f64>]) -> f64 {
    if !split.iter().map(Vec::len).eq(unsplit.iter().map(Vec::len)) {
        return f64::INFINITY;
    }
    let pairs = split.iter().flatten().zip(unsplit.iter().flatten());
    pairs
        .map(|(a, b)| (f64::from(*a) - b).abs())
        .map(|difference| if difference.is_nan() { f64::INFINITY } else { difference })
        .fold(0.0, f64::max)
}

/// Where `cargo xtask model` puts the model.
pub fn default_model() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/models/all-MiniLM-L6-v2"))
}
