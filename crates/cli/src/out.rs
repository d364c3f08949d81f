//! The two streams: results on stdout, all else on stderr.

use std::io::{self, IsTerminal as _, StdoutLock, Write};

use serde::Serialize;

use crate::failure::Failure;

/// Stdout. A reader that has gone away (`| head`) is not an error: what is written after that
/// vanishes, so that a rank in the middle of a measurement still keeps its peers company.
pub(crate) struct Out {
    stdout: StdoutLock<'static>,
    open: bool,
}

impl Out {
    pub(crate) fn new() -> Out {
        Out { stdout: io::stdout().lock(), open: true }
    }

    /// Writes a value as JSON, and a line break.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        serde_json::to_writer_pretty(&mut *self, value)?;
        writeln!(self)?;
        Ok(self.flush()?)
    }

    fn unless_gone<T>(&mut self, result: io::Result<T>, instead: T) -> io::Result<T> {
        match result {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {
                self.open = false;
                Ok(instead)
            }
            other => other,
        }
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.open {
            return Ok(bytes.len());
        }
        let written = self.stdout.write(bytes);
        self.unless_gone(written, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.open {
            return Ok(());
        }
        let flushed = self.stdout.flush();
        self.unless_gone(flushed, ())
    }
}

/// Says on stderr why the program ends. Mistakes in policies bring their own headings.
pub(crate) fn complain(failure: &Failure) {
    if failure.is_silent() {
        return;
    }
    let text = failure.to_string();
    let heading = match text.starts_with("error[") {
        true => "",
        false if io::stderr().is_terminal() && !no_color() => "\x1b[1;31merror:\x1b[0m ",
        false => "error: ",
    };
    note(&format!("{heading}{text}"));
}

/// A line on stderr. One write, so that the lines of several ranks do not mix; nobody is left to
/// tell if it fails.
pub(crate) fn note(line: &str) {
    let _ = io::stderr().lock().write_all(format!("{line}\n").as_bytes());
}

/// Has the user asked for no colours (no-color.org)?
pub(crate) fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}
