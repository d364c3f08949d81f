//! `crossover policy import`: another system's table as a policy file, and what of it is lost.

use std::io::{Read as _, Write};
use std::path::{Path, PathBuf};

use crossover_policy::import::{Format, Imported, import};

use crate::failure::Failure;
use crate::out::{Out, note};

/// Make a policy file of another system's table: it goes to stdout, what is lost to stderr
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Whose table it is
    format: Whose,
    /// The file; `-` for stdin
    file: PathBuf,
    /// Anything lost is an error; notes of how the file was read are not
    #[arg(long)]
    strict: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Whose {
    /// The CSV of NCCL's example tuner plug-in
    Nccl,
    /// The rules of Open MPI's coll/tuned, classic or JSON
    Openmpi,
    /// A TUNE string of UCC
    Ucc,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let format = match args.format {
        Whose::Nccl => Format::NcclTuner,
        Whose::Openmpi => Format::OpenMpi,
        Whose::Ucc => Format::UccTune,
    };
    let (name, text) = read(&args.file)?;
    let Imported { policy, losses, notes, .. } =
        import(format, &name, &text).map_err(|mistakes| {
            let mistakes: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
            Failure::usage(mistakes.join("\n\n"))
        })?;
    for told in losses.iter().chain(&notes) {
        note(&format!("{told}\n"));
    }
    if args.strict && !losses.is_empty() {
        let lost = match losses.len() {
            1 => format!("1 thing of {name} is lost"),
            count => format!("{count} things of {name} are lost"),
        };
        return Err(Failure::check(lost));
    }
    let mut out = Out::new();
    write!(out, "{policy}")?;
    Ok(out.flush()?)
}

fn read(file: &Path) -> Result<(String, String), Failure> {
    let (name, text) = match file.to_str() {
        Some("-") => {
            let mut text = String::new();
            ("stdin".to_owned(), std::io::stdin().read_to_string(&mut text).map(|_| text))
        }
        _ => (file.display().to_string(), std::fs::read_to_string(file)),
    };
    let text = text.map_err(|e| Failure::usage(format!("{name} cannot be read: {e}")))?;
    Ok((name, text))
}
