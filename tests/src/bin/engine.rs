//! An engine that goes wrong as it is told. What has ended it is its own last line on stderr, which
//! starts with `engine: `, and design's exit code.
//!
//! `engine [--steps N] [--graphs] [--double] [--jitter MS] [--wire VERSION] [--fault FAULT]...`, with
//! faults as `rank=1,step=6,at=logits,skip`: prints `ready` once its groups are formed.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use std::process::ExitCode;
use std::time::Duration;

use crossover::Builder;
use crossover_tests::engine::fault::{self, Fault, Faults};
use crossover_tests::engine::{Engine, Work, form};

fn main() -> ExitCode {
    tracing_subscriber::fmt().with_writer(fault::log).with_ansi(false).init();
    let options = match Options::read(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(e) => return end(2, &e),
    };
    let builder = match Builder::from_env() {
        Ok(builder) => builder,
        Err(e) => return end(e.exit_code(), &e.to_string()),
    };
    let settings = match builder.settings() {
        Ok(settings) => settings,
        Err(e) => return end(2, &e.to_string()),
    };
    let (rank, local_rank) =
        builder.launch().map_or((0, 0), |launch| (launch.rank(), launch.local_rank()));
    let faults = Faults::of(rank, &options.faults);
    let wire = options.wire.as_deref();
    let groups = match form(&builder, &settings, wire, options.is_double, &faults) {
        Ok(groups) => groups,
        Err(e) => return end(e.exit_code(), &e.to_string()),
    };
    println!("ready");
    let engine = match Engine::new(groups, &settings, local_rank, faults, options.work) {
        Ok(engine) => engine,
        Err(e) => return end(1, &e.to_string()),
    };
    match engine.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => end(e.exit_code(), &e.to_string()),
    }
}

fn end(code: u8, why: &str) -> ExitCode {
    eprintln!("engine: {why}");
    ExitCode::from(code)
}

struct Options {
    work: Work,
    is_double: bool,
    wire: Option<String>,
    faults: Vec<Fault>,
}

impl Options {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
        let work = Work { steps: 10, graphs: false, jitter: Duration::ZERO };
        let mut options = Options { work, is_double: false, wire: None, faults: Vec::new() };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} wants a value"));
            let number = |text: String| text.parse::<u32>().map_err(|e| format!("{text}: {e}"));
            match word.as_str() {
                "--steps" => options.work.steps = number(value()?)?,
                "--graphs" => options.work.graphs = true,
                "--double" => options.is_double = true,
                "--jitter" => {
                    options.work.jitter = Duration::from_millis(number(value()?)?.into());
                }
                "--wire" => options.wire = Some(value()?),
                "--fault" => options.faults.push(value()?.parse()?),
                other => return Err(format!("there is no option {other}")),
            }
        }
        Ok(options)
    }
}
