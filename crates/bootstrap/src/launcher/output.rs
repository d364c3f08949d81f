//! What becomes of the ranks' output.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::process::Rank;

/// What becomes of the ranks' standard output and error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Output {
    /// Both are this process's own.
    Inherited,
    /// Line by line, each after `[rank] `.
    Prefixed,
    /// Standard output of rank 0 alone, unchanged, so that it can be piped; standard error of all,
    /// line by line, each after `[rank] `.
    RankZero,
}

/// A process that left a rank's group may still hold its output; it is not waited for longer.
const LINGER: Duration = Duration::from_secs(1);

/// Threads that pass lines on. Whole lines are written at once, so that ranks' lines do not mix.
pub(super) struct Readers {
    output: Output,
    count: usize,
    ended: (Sender<()>, Receiver<()>),
}

impl Readers {
    pub(super) fn new(output: Output) -> Self {
        Readers { output, count: 0, ended: channel() }
    }

    /// Takes over what `rank`'s process has piped.
    pub(super) fn read(&mut self, rank: &mut Rank) {
        let prefix = format!("[{}] ", rank.number());
        let (out, error) = rank.take_pipes();
        if let (Some(out), Output::Prefixed) = (out, self.output) {
            self.start(out, prefix.clone(), io::stdout());
        }
        if let Some(error) = error {
            self.start(error, prefix, io::stderr());
        }
    }

    /// Waits for the last lines.
    pub(super) fn finish(self) {
        let until = Instant::now() + LINGER;
        for _ in 0..self.count {
            let left = until.saturating_duration_since(Instant::now());
            if self.ended.1.recv_timeout(left).is_err() {
                return;
            }
        }
    }

    fn start(
        &mut self,
        from: impl Read + Send + 'static,
        prefix: String,
        to: impl Write + Send + 'static,
    ) {
        let ended = self.ended.0.clone();
        self.count += 1;
        thread::spawn(move || {
            // A closed standard output is the reader's choice; the rank's own end tells the rest.
            let _ = pass_on(from, prefix.as_bytes(), to);
            let _ = ended.send(());
        });
    }
}

/// Copies lines. Goes on reading when it can write no more, so that the rank is not held up.
fn pass_on(from: impl Read, prefix: &[u8], mut to: impl Write) -> io::Result<()> {
    let mut from = BufReader::new(from);
    let mut line = prefix.to_vec();
    let mut outcome = Ok(());
    while from.read_until(b'\n', &mut line)? > 0 {
        if line.last() != Some(&b'\n') {
            line.push(b'\n');
        }
        outcome = outcome.and_then(|()| to.write_all(&line).and_then(|()| to.flush()));
        line.truncate(prefix.len());
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_its_rank() {
        let mut to = Vec::new();
        pass_on(&b"a\n\nb \xff"[..], b"[3] ", &mut to).unwrap();
        assert_eq!(to, b"[3] a\n[3] \n[3] b \xff\n");
    }
}
