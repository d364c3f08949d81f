//! A sign of life on stderr, where results do not show on a terminal by themselves.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use crossover_policy::bytes::size_text;

/// Between two lines, where stderr is no terminal.
const QUIET: Duration = Duration::from_secs(5);

pub(super) struct Progress {
    wanted: bool,
    between: Duration,
    last: Instant,
}

impl Progress {
    /// `speaks` on the one rank that reports.
    pub(super) fn new(speaks: bool, json: bool) -> Progress {
        let between = if std::io::stderr().is_terminal() { Duration::ZERO } else { QUIET };
        let shows = std::io::stdout().is_terminal() && !json;
        Progress { wanted: speaks && !shows, between, last: Instant::now() }
    }

    /// Says where the measurement is, if it has been silent for long enough.
    pub(super) fn at(&mut self, size: u64, (done, of): (usize, usize)) {
        if self.wanted && self.last.elapsed() >= self.between {
            self.last = Instant::now();
            crate::out::note(&format!("perf: {} ({} of {of} sizes)", size_text(size), done + 1));
        }
    }
}
