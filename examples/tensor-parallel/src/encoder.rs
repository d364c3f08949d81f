//! The forward pass of one rank.

use candle_core::{Device, Tensor};
use candle_nn::ops::{layer_norm, softmax_last_dim};

use crate::Error;
use crate::weights::{HEADS, HIDDEN, LAYERS, Linear, NORM_EPSILON, Part, Weights};

/// Adds up every rank's partial sums, in place.
pub trait Reduce {
    /// # Errors
    ///
    /// The collective failed.
    fn all_reduce(&mut self, partial: &mut [f32]) -> Result<(), Error>;
}

/// One rank's encoder.
pub struct Encoder {
    words: Tensor,
    positions: Tensor,
    kind: Tensor,
    norm: Norm,
    layers: Vec<Layer>,
}

struct Layer {
    heads: usize,
    query: Linear,
    key: Linear,
    value: Linear,
    attention_out: Linear,
    attention_bias: Tensor,
    attention_norm: Norm,
    up: Linear,
    down: Linear,
    down_bias: Tensor,
    down_norm: Norm,
}

struct Norm {
    weight: Tensor,
    bias: Tensor,
}

impl Encoder {
    /// A rank's part of the model.
    ///
    /// # Errors
    ///
    /// The weights are not this model's.
    pub fn new(w: &Weights, part: Part) -> Result<Encoder, Error> {
        Ok(Encoder {
            words: w.whole("embeddings.word_embeddings.weight")?.clone(),
            positions: w.whole("embeddings.position_embeddings.weight")?.clone(),
            kind: w.whole("embeddings.token_type_embeddings.weight")?.narrow(0, 0, 1)?,
            norm: Norm::new(w, "embeddings.LayerNorm")?,
            layers: (0..LAYERS).map(|at| Layer::new(w, at, part)).collect::<Result<_, _>>()?,
        })
    }

    /// The embedding of a sentence, of length 1.
    ///
    /// # Errors
    ///
    /// A collective failed.
    pub fn embed(&self, tokens: &[u32], reduce: &mut dyn Reduce) -> Result<Vec<f32>, Error> {
        let count = tokens.len();
        let words = self.words.index_select(&Tensor::new(tokens, &Device::Cpu)?, 0)?;
        let positions = self.positions.narrow(0, 0, count)?;
        let mut x = self.norm.forward(&(words + positions)?.broadcast_add(&self.kind)?)?;
        for layer in &self.layers {
            x = layer.forward(&x, reduce)?;
        }
        // One sentence without padding: the mean is over all of its tokens.
        let mean = x.mean(0)?;
        let norm = mean.sqr()?.sum_all()?.sqrt()?;
        Ok(mean.broadcast_div(&norm)?.to_vec1()?)
    }
}

impl Layer {
    fn new(w: &Weights, at: usize, part: Part) -> Result<Layer, Error> {
        let name = |suffix: &str| format!("encoder.layer.{at}.{suffix}");
        let bias = |dense: &str| w.whole(&name(&format!("{dense}.bias"))).cloned();
        Ok(Layer {
            heads: part.heads(),
            query: Linear::by_output(w, &name("attention.self.query"), part)?,
            key: Linear::by_output(w, &name("attention.self.key"), part)?,
            value: Linear::by_output(w, &name("attention.self.value"), part)?,
            attention_out: Linear::by_input(w, &name("attention.output.dense"), part)?,
            attention_bias: bias("attention.output.dense")?,
            attention_norm: Norm::new(w, &name("attention.output.LayerNorm"))?,
            up: Linear::by_output(w, &name("intermediate.dense"), part)?,
            down: Linear::by_input(w, &name("output.dense"), part)?,
            down_bias: bias("output.dense")?,
            down_norm: Norm::new(w, &name("output.LayerNorm"))?,
        })
    }

    fn forward(&self, x: &Tensor, reduce: &mut dyn Reduce) -> Result<Tensor, Error> {
        let partial = self.attention_out.forward(&self.attend(x)?)?;
        let attended = sum(partial, reduce)?.broadcast_add(&self.attention_bias)?;
        let x = self.attention_norm.forward(&(attended + x)?)?;
        let partial = self.down.forward(&self.up.forward(&x)?.gelu_erf()?)?;
        let fed = sum(partial, reduce)?.broadcast_add(&self.down_bias)?;
        self.down_norm.forward(&(fed + &x)?)
    }

    /// This rank's heads, side by side.
    fn attend(&self, x: &Tensor) -> Result<Tensor, Error> {
        const WIDTH: usize = HIDDEN / HEADS;
        let tokens = x.dim(0)?;
        let by_head = |linear: &Linear| -> Result<Tensor, Error> {
            let y = linear.forward(x)?.reshape((tokens, self.heads, WIDTH))?;
            Ok(y.transpose(0, 1)?.contiguous()?)
        };
        let (q, k, v) = (by_head(&self.query)?, by_head(&self.key)?, by_head(&self.value)?);
        let scores = (q.matmul(&k.transpose(1, 2)?.contiguous()?)? / (WIDTH as f64).sqrt())?;
        let mixed = softmax_last_dim(&scores)?.matmul(&v)?;
        Ok(mixed.transpose(0, 1)?.contiguous()?.reshape((tokens, self.heads * WIDTH))?)
    }
}

/// The all-reduce of a block.
fn sum(partial: Tensor, reduce: &mut dyn Reduce) -> Result<Tensor, Error> {
    let shape = partial.shape().clone();
    let mut values: Vec<f32> = partial.flatten_all()?.to_vec1()?;
    reduce.all_reduce(&mut values)?;
    Ok(Tensor::from_vec(values, shape, &Device::Cpu)?)
}

impl Norm {
    fn new(w: &Weights, name: &str) -> Result<Norm, Error> {
        let whole = |suffix: &str| w.whole(&format!("{name}.{suffix}")).cloned();
        Ok(Norm { weight: whole("weight")?, bias: whole("bias")? })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor, Error> {
        Ok(layer_norm(x, &self.weight, &self.bias, NORM_EPSILON as f32)?)
    }
}
