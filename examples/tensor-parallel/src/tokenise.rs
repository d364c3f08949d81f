//! From a sentence to token numbers.

use std::path::Path;

use tokenizers::Tokenizer;

use crate::{Error, model_file};

/// Longer sentences are cut: the model was trained on no more.
pub const LONGEST: usize = 256;

/// The file of the tokeniser.
pub const FILE: &str = "tokenizer.json";

/// What the model sees of a sentence.
pub struct Sequence {
    /// Token numbers, start and end markers included: never empty.
    pub tokens: Vec<u32>,
    /// Was the sentence longer than [`LONGEST`]?
    pub is_cut: bool,
}

/// The model's own tokeniser.
pub struct Tokens(Tokenizer);

impl Tokens {
    /// Reads `tokenizer.json`.
    ///
    /// # Errors
    ///
    /// There is no such file, or it is no tokeniser.
    pub fn load(model: &Path) -> Result<Tokens, Error> {
        let file = model_file(model, FILE)?;
        let mut tokenizer = Tokenizer::from_file(file).map_err(|e| Error::Tokens(e.to_string()))?;
        // One sentence at a time: nothing to pad to, and the end marker stays when it is cut.
        tokenizer.with_padding(None);
        let cut = tokenizers::TruncationParams { max_length: LONGEST, ..Default::default() };
        tokenizer.with_truncation(Some(cut)).map_err(|e| Error::Tokens(e.to_string()))?;
        Ok(Tokens(tokenizer))
    }

    /// A sentence's tokens.
    ///
    /// # Errors
    ///
    /// The tokeniser fails.
    pub fn of(&self, sentence: &str) -> Result<Sequence, Error> {
        let encoding = self.0.encode(sentence, true).map_err(|e| Error::Tokens(e.to_string()))?;
        let is_cut = !encoding.get_overflowing().is_empty();
        Ok(Sequence { tokens: encoding.get_ids().to_vec(), is_cut })
    }
}
