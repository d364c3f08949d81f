//! The whole model in one piece: plain loops in f64 over plain vectors, no tensor library, no split.
//! Slow, and independent of everything it is compared with.

use crate::Error;
use crate::weights::{HEADS, HIDDEN, INTERMEDIATE, LAYERS, NORM_EPSILON, Weights};

const WORDS: &str = "embeddings.word_embeddings.weight";

/// A row of numbers for each token.
type Rows = Vec<Vec<f64>>;

/// The embedding of a sentence, of length 1.
///
/// # Errors
///
/// The weights are not this model's.
pub fn embed(w: &Weights, tokens: &[u32]) -> Result<Vec<f64>, Error> {
    let positions = matrix(w, "embeddings.position_embeddings.weight", HIDDEN)?;
    let kinds = matrix(w, "embeddings.token_type_embeddings.weight", HIDDEN)?;
    let mut x = Rows::new();
    for (token, position) in tokens.iter().zip(&positions) {
        // One row of 30522: the table as a whole takes longer to convert than the rest to compute.
        let word: Vec<f32> = w.whole(WORDS)?.get(*token as usize)?.to_vec1()?;
        x.push((0..HIDDEN).map(|i| f64::from(word[i]) + position[i] + kinds[0][i]).collect());
    }
    normalise(w, "embeddings.LayerNorm", &mut x)?;
    for layer in 0..LAYERS {
        let name = |suffix: &str| format!("encoder.layer.{layer}.{suffix}");
        let attended = attention(w, &name, &x)?;
        x = add(&linear(w, &name("attention.output.dense"), &attended, HIDDEN)?, &x);
        normalise(w, &name("attention.output.LayerNorm"), &mut x)?;
        let mut up = linear(w, &name("intermediate.dense"), &x, HIDDEN)?;
        up.iter_mut().flatten().for_each(|v| *v = gelu(*v));
        x = add(&linear(w, &name("output.dense"), &up, INTERMEDIATE)?, &x);
        normalise(w, &name("output.LayerNorm"), &mut x)?;
    }
    let mean: Vec<f64> =
        (0..HIDDEN).map(|i| x.iter().map(|row| row[i]).sum::<f64>() / x.len() as f64).collect();
    let norm = mean.iter().map(|v| v * v).sum::<f64>().sqrt();
    Ok(mean.into_iter().map(|v| v / norm).collect())
}

fn attention(w: &Weights, name: &dyn Fn(&str) -> String, x: &Rows) -> Result<Rows, Error> {
    let width = HIDDEN / HEADS;
    let q = linear(w, &name("attention.self.query"), x, HIDDEN)?;
    let k = linear(w, &name("attention.self.key"), x, HIDDEN)?;
    let v = linear(w, &name("attention.self.value"), x, HIDDEN)?;
    let mut out = vec![vec![0.0; HIDDEN]; x.len()];
    for head in 0..HEADS {
        let columns = head * width..(head + 1) * width;
        for (at, query) in q.iter().enumerate() {
            let dot = |key: &Vec<f64>| columns.clone().map(|c| query[c] * key[c]).sum::<f64>();
            let scores: Vec<f64> = k.iter().map(|key| dot(key) / (width as f64).sqrt()).collect();
            let most = scores.iter().copied().fold(f64::MIN, f64::max);
            let weights: Vec<f64> = scores.iter().map(|s| (s - most).exp()).collect();
            let total: f64 = weights.iter().sum();
            for c in columns.clone() {
                out[at][c] = weights.iter().zip(&v).map(|(s, row)| s * row[c]).sum::<f64>() / total;
            }
        }
    }
    Ok(out)
}

fn linear(w: &Weights, name: &str, x: &Rows, width: usize) -> Result<Rows, Error> {
    let weight = matrix(w, &format!("{name}.weight"), width)?;
    let bias = vector(w, &format!("{name}.bias"))?;
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    Ok(x.iter()
        .map(|row| weight.iter().zip(&bias).map(|(out, bias)| dot(row, out) + bias).collect())
        .collect())
}

fn normalise(w: &Weights, name: &str, x: &mut Rows) -> Result<(), Error> {
    let weight = vector(w, &format!("{name}.weight"))?;
    let bias = vector(w, &format!("{name}.bias"))?;
    for row in x {
        let mean = row.iter().sum::<f64>() / HIDDEN as f64;
        let variance = row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / HIDDEN as f64;
        for (at, v) in row.iter_mut().enumerate() {
            *v = (*v - mean) / (variance + NORM_EPSILON).sqrt() * weight[at] + bias[at];
        }
    }
    Ok(())
}

fn add(a: &Rows, b: &Rows) -> Rows {
    a.iter().zip(b).map(|(a, b)| a.iter().zip(b).map(|(a, b)| a + b).collect()).collect()
}

/// x Phi(x), with the error function as a series where that converges fast, and as a continued
/// fraction beyond (Abramowitz and Stegun 7.1.6 and 7.1.14).
fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + erf(x / std::f64::consts::SQRT_2))
}

fn erf(x: f64) -> f64 {
    let z = x.abs();
    let root_pi = std::f64::consts::PI.sqrt();
    let value = if z < 3.0 {
        let (mut term, mut sum) = (z, z);
        for n in 1..200 {
            term *= 2.0 * z * z / f64::from(2 * n + 1);
            sum += term;
        }
        2.0 / root_pi * (-z * z).exp() * sum
    } else {
        let fraction = (1..60).rev().fold(z, |below, n| z + f64::from(n) / 2.0 / below);
        1.0 - (-z * z).exp() / (root_pi * fraction)
    };
    value.copysign(x)
}

fn matrix(w: &Weights, name: &str, width: usize) -> Result<Rows, Error> {
    Ok(vector(w, name)?.chunks(width).map(<[f64]>::to_vec).collect())
}

fn vector(w: &Weights, name: &str) -> Result<Vec<f64>, Error> {
    let values: Vec<f32> = w.whole(name)?.flatten_all()?.to_vec1()?;
    Ok(values.into_iter().map(f64::from).collect())
}

#[cfg(test)]
mod tests {
    use super::erf;

    #[test]
    fn the_error_function_is_the_tables() {
        // Abramowitz and Stegun, table 7.1.
        for (x, want) in
            [(0.0, 0.0), (0.5, 0.520_499_877_8), (1.0, 0.842_700_792_9), (2.0, 0.995_322_265_0)]
        {
            assert!((erf(x) - want).abs() < 1e-10, "{x}");
            assert!((erf(-x) + want).abs() < 1e-10, "-{x}");
        }
        assert!((erf(2.999_999) - erf(3.000_001)).abs() < 1e-8, "both forms meet");
    }
}
