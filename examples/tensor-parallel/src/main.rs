//! `tensor-parallel -n 2 "a sentence" "another"`: embeddings and their similarities, computed by N
//! ranks that each hold a part of the model.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

mod group;
mod report;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use crossover::bootstrap::launcher::{Job, Output};
use crossover::{Builder, call_exit_code};
use tensor_parallel::encoder::Encoder;
use tensor_parallel::tokenise::{self, Tokens};
use tensor_parallel::weights::{self, Part, Weights};
use tensor_parallel::{Error, default_model, model_file, reference};

use crate::group::Group;
use crate::report::Report;

/// Embeds sentences with a model that is split over ranks
#[derive(Parser)]
struct Args {
    /// Ranks to start, where no launcher has started this process
    #[arg(short = 'n', default_value_t = 1)]
    ranks: u32,
    /// Folder of the model
    #[arg(long, default_value_os_t = default_model())]
    model: PathBuf,
    /// Backend or algorithm to force, such as host/two_shot
    #[arg(long = "use", value_name = "ID[/ALGO]")]
    target: Option<String>,
    /// Compare with the unsplit model and between ranks; a difference is exit code 1
    #[arg(long)]
    check: bool,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
    /// What to embed
    #[arg(required = true)]
    sentences: Vec<String>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(code) => ExitCode::from(code),
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::from(match &e {
                Error::Call(call) => call_exit_code(call),
                Error::Form(form) => form.exit_code(),
                _ => 2,
            })
        }
    }
}

fn run(args: &Args) -> Result<u8, Error> {
    let launched = Builder::from_env()?.launch().is_some();
    if !launched && args.ranks != 1 {
        return start_ranks(args);
    }
    let mut group = Group::form(args.target.as_deref())?;
    let (rank, ranks) = (group.comm.rank() as usize, group.comm.world() as usize);
    let tokens = Tokens::load(&args.model)?;
    let weights = Weights::load(&args.model)?;
    let encoder = Encoder::new(&weights, Part::new(rank, ranks)?)?;

    let sequences: Vec<_> =
        args.sentences.iter().map(|sentence| tokens.of(sentence)).collect::<Result<_, _>>()?;
    let mut embeddings = Vec::new();
    for sequence in &sequences {
        embeddings.push(encoder.embed(&sequence.tokens, &mut group)?);
    }
    let served = group.served();
    let mut report = Report::new(&args.sentences, &sequences, embeddings, ranks, served);
    if args.check {
        report.alike = Some(group.alike(&report.all_values())?);
        if rank == 0 {
            let whole = sequences.iter().map(|s| reference::embed(&weights, &s.tokens));
            let unsplit = whole.collect::<Result<Vec<_>, _>>()?;
            report.compare(&unsplit);
        }
    }
    if rank == 0 {
        print!("{}", if args.json { report.json() } else { report.text() });
    }
    group.comm.close()?;
    Ok(u8::from(!report.passes()))
}

/// Copies of this process, one a rank; rank 0's output is this process's. What would fail on every
/// rank is said once, before there are any.
fn start_ranks(args: &Args) -> Result<u8, Error> {
    Part::new(0, args.ranks as usize)?;
    for file in [weights::FILE, tokenise::FILE] {
        model_file(&args.model, file)?;
    }
    let program = std::env::current_exe()
        .unwrap_or_else(|_| std::env::args_os().next().unwrap_or_default().into());
    let job = Job::new(args.ranks, program, std::env::args_os().skip(1))
        .variable("RAYON_NUM_THREADS", "1") // ranks share the processors
        .output(Output::RankZero);
    match job.run() {
        Ok(outcome) => Ok(outcome.code),
        Err(e) => {
            eprintln!("error: {e}");
            Ok(2)
        }
    }
}
