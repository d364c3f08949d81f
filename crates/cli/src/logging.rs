//! What the libraries log while a group forms: to stderr, since stdout belongs to results.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// Which events are shown, such as `info` or `crossover::form=debug`.
const FILTER: &str = "CROSSOVER_LOG";
/// What is shown where nobody says. Decisions are logged at `info` for the ops that
/// `CROSSOVER_EXPLAIN` asks for, and to ask for them is to want to see them.
const USUAL: &str = "warn,crossover::explain=info";

pub(crate) fn init() {
    let filter = EnvFilter::try_from_env(FILTER).unwrap_or_else(|_| EnvFilter::new(USUAL));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && !crate::out::no_color())
        .init();
}
