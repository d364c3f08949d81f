//! The model's weights, and one rank's part of them.

use std::collections::HashMap;
use std::path::Path;

use candle_core::{Device, Tensor};

use crate::{Error, model_file};

/// Width of a token's state.
pub const HIDDEN: usize = 384;
/// Attention heads of a layer.
pub const HEADS: usize = 12;
/// Width of a layer's MLP.
pub const INTERMEDIATE: usize = 1536;
/// Layers.
pub const LAYERS: usize = 6;
/// What layer norms add to a variance (the model's config).
pub const NORM_EPSILON: f64 = 1e-12;

/// The file of the weights.
pub const FILE: &str = "model.safetensors";

/// All weights, whole, by their names in the file.
pub struct Weights(HashMap<String, Tensor>);

impl Weights {
    /// Reads `model.safetensors`.
    ///
    /// # Errors
    ///
    /// There is no such file, or it is not the model's.
    pub fn load(model: &Path) -> Result<Weights, Error> {
        let file = model_file(model, FILE)?;
        Ok(Weights(candle_core::safetensors::load(file, &Device::Cpu)?))
    }

    /// A weight, whole.
    ///
    /// # Errors
    ///
    /// The file has no weight of this name.
    pub fn whole(&self, name: &str) -> Result<&Tensor, Error> {
        let missing = || candle_core::Error::CannotFindTensor { path: name.to_owned() };
        Ok(self.0.get(name).ok_or_else(missing)?)
    }
}

/// A rank's place in the split.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    rank: usize,
    ranks: usize,
}

impl Part {
    /// Part `rank` of `ranks`.
    ///
    /// # Errors
    ///
    /// The model does not split over so many.
    pub fn new(rank: usize, ranks: usize) -> Result<Part, Error> {
        if ranks == 0 || !HEADS.is_multiple_of(ranks) || !INTERMEDIATE.is_multiple_of(ranks) {
            return Err(Error::Split { heads: HEADS, intermediate: INTERMEDIATE, ranks });
        }
        Ok(Part { rank, ranks })
    }

    /// Heads of this part.
    pub fn heads(self) -> usize {
        HEADS / self.ranks
    }

    fn cut(self, tensor: &Tensor, dim: usize) -> Result<Tensor, Error> {
        let width = tensor.dim(dim)? / self.ranks;
        Ok(tensor.narrow(dim, self.rank * width, width)?.contiguous()?)
    }
}

/// A matrix and its bias: `y = x W^T + b`.
pub struct Linear {
    weight: Tensor,
    /// `None` where the bias is added once, after the partial sums.
    bias: Option<Tensor>,
}

impl Linear {
    /// The part that computes some of the outputs.
    pub(crate) fn by_output(w: &Weights, name: &str, part: Part) -> Result<Linear, Error> {
        let weight = part.cut(w.whole(&format!("{name}.weight"))?, 0)?;
        let bias = part.cut(w.whole(&format!("{name}.bias"))?, 0)?;
        Ok(Linear { weight, bias: Some(bias) })
    }

    /// The part that computes a partial sum of every output.
    pub(crate) fn by_input(w: &Weights, name: &str, part: Part) -> Result<Linear, Error> {
        Ok(Linear { weight: part.cut(w.whole(&format!("{name}.weight"))?, 1)?, bias: None })
    }

    pub(crate) fn forward(&self, x: &Tensor) -> Result<Tensor, Error> {
        let y = x.matmul(&self.weight.t()?)?;
        match &self.bias {
            Some(bias) => Ok(y.broadcast_add(bias)?),
            None => Ok(y),
        }
    }
}
