//! What users have tuned elsewhere, as policies: NCCL tuner files, UCC's `TUNE` strings, Open MPI's
//! rules for `coll/tuned`.
//!
//! Those systems pass over what they do not understand, or take it for something else. Here it is
//! an error with its place. What is understood and cannot be said in a policy is a loss; how
//! something was read of which nothing is lost is a note. Both are listed, and in short they stand
//! at the top of the file.

mod draft;
mod findings;
mod nccl;
mod openmpi;
mod ranges;
mod ucc;
mod writer;

use std::fmt;

use crate::diagnostic::{Code, Diagnostic, Source};
use draft::Draft;
use findings::Findings;

/// What another system's file is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// The comma-separated file that NCCL's example tuner plug-in reads.
    NcclTuner,
    /// UCC's `TUNE` strings: one alone, or lines such as `UCC_TL_UCP_TUNE=...`.
    UccTune,
    /// Open MPI's rules for `coll/tuned`, counted integers or JSON; which, shows their first sign.
    OpenMpi,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::NcclTuner => "NCCL tuner",
            Format::UccTune => "UCC tune",
            Format::OpenMpi => "Open MPI tuned",
        })
    }
}

impl Format {
    /// How the names of its rules begin.
    const fn prefix(self) -> &'static str {
        match self {
            Format::NcclTuner => "nccl-tuner",
            Format::UccTune => "ucc-tune",
            Format::OpenMpi => "openmpi-tuned",
        }
    }
}

/// A file of another system as a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Imported {
    /// The text of a policy file.
    pub policy: String,
    /// What of the input it does not do, or does otherwise, in the order of the input: warnings.
    pub losses: Vec<Diagnostic>,
    /// How the input was read, where that is worth a word, in its order: nothing of it is lost.
    pub notes: Vec<Diagnostic>,
}

/// Turns another system's file into a policy. `name` is how people know the file.
///
/// # Errors
///
/// A file without rules, what is malformed, and every word that the other system does not have: all of them at once, but
/// for those of a file that is full of them, unless the rest cannot be made out.
pub fn import(format: Format, name: &str, text: &str) -> Result<Imported, Vec<Diagnostic>> {
    let source = Source { name: name.to_owned(), text: text.to_owned() };
    let mut findings = Findings::new(&source);
    let mut draft = Draft::default();
    let has_rows = match format {
        Format::NcclTuner => nccl::read(&mut findings, &mut draft),
        Format::UccTune => ucc::read(&mut findings, &mut draft),
        Format::OpenMpi => openmpi::read(&mut findings, &mut draft),
    };
    let (losses, notes) = findings.finish()?;
    if losses.is_empty() && !has_rows {
        let help = format!("it was read as {format}; is it the file that was meant?");
        let message = "there is nothing to import: the file has no rules";
        return Err(vec![source.diagnostic(Code::Foreign, 0..0, message, Some(help))]);
    }
    Ok(Imported { policy: writer::text(format, name, draft, &losses, &notes), losses, notes })
}
