//! `crossover policy schema`: what an editor needs to complete and check policy files.

use crate::failure::Failure;
use crate::out::Out;

/// Print the JSON Schema of policy files, for editors
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args) -> Result<(), Failure> {
    let registry = crossover_backends::registry()?;
    Out::new().json(&crossover_policy::schema::schema(&registry))
}
