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
    ended: (Sender<io::Result<()>>, Receiver<io::Result<()>>),
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
            let prefix = prefix.clone();
            self.start(move || pass_on(out, prefix.as_bytes(), io::stdout()));
        }
        if let Some(error) = error {
            self.start(move || {
                // Nobody is left to tell if it cannot be written.
                let _ = pass_on(error, prefix.as_bytes(), io::stderr());
                Ok(())
            });
        }
    }

    /// Waits for the last lines.
    ///
    /// # Errors
    ///
    /// Lines were lost, since they could not be written to standard output.
    pub(super) fn finish(self) -> io::Result<()> {
        let until = Instant::now() + LINGER;
        let mut outcome = Ok(());
        for _ in 0..self.count {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(ended) = self.ended.1.recv_timeout(left) else { break };
            outcome = outcome.and(ended);
        }
        outcome
    }

    fn start(&mut self, pass_on: impl FnOnce() -> io::Result<()> + Send + 'static) {
        let ended = self.ended.0.clone();
        self.count += 1;
        thread::spawn(move || ended.send(pass_on()));
    }
}

/// Copies lines. Goes on reading when it can write no more, so that the rank is not held up.
///
/// # Errors
///
/// Lines could not be written, and not since their reader is gone: that was the reader's choice.
fn pass_on(from: impl Read, prefix: &[u8], mut to: impl Write) -> io::Result<()> {
    let mut from = BufReader::new(from);
    let mut line = prefix.to_vec();
    let mut outcome = Ok(());
    // A pipe that cannot be read has ended; the rank's own end tells the rest.
    while from.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
        if line.last() != Some(&b'\n') {
            line.push(b'\n');
        }
        outcome = outcome.and_then(|()| to.write_all(&line).and_then(|()| to.flush()));
        line.truncate(prefix.len());
    }
    match outcome {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
    }
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

    #[test]
    fn lines_that_are_lost_are_an_error_unless_their_reader_is_gone() {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut from = &b"a\nb\n"[..];
        let lost = pass_on(&mut from, b"", full).unwrap_err();
        assert_eq!((lost.kind(), from), (io::ErrorKind::StorageFull, &b""[..]));
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        pass_on(&b"a\n"[..], b"", writer).unwrap();
    }
}
