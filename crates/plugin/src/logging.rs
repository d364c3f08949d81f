//! What the library logs, to stderr: an engine has no other way to see it.

use tracing_subscriber::EnvFilter;

/// Which events are shown, such as `info` or `crossover::form=debug`.
const FILTER: &str = "CROSSOVER_LOG";
/// What is shown where nobody says; who sets `CROSSOVER_EXPLAIN` wants to see what it logs.
const USUAL: &str = "warn,crossover::explain=info";

/// Once in a process's life; a subscriber that is there stays.
pub(crate) fn init() {
    let filter = EnvFilter::try_from_env(FILTER).unwrap_or_else(|_| EnvFilter::new(USUAL));
    let logging = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false);
    // The second group finds the first one's.
    let _ = logging.try_init();
}
