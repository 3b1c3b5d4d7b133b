//! Writing a log.

use std::io::{self, Write};

use super::header::Header;
use super::job::SwfJob;

/// Writes a log to `W`, which should buffer.
#[derive(Debug)]
pub struct SwfWriter<W> {
    to: W,
}

impl<W: Write> SwfWriter<W> {
    /// A log that begins with `header`.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn new(mut to: W, header: &Header) -> io::Result<Self> {
        for (name, value) in header.directives() {
            writeln!(to, "; {name}: {value}")?;
        }
        Ok(Self { to })
    }

    /// Writes a job.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn write(&mut self, job: &SwfJob) -> io::Result<()> {
        for (n, field) in job.fields().into_iter().enumerate() {
            let before = if n == 0 { "" } else { " " };
            write!(self.to, "{before}{field}")?;
        }
        self.to.write_all(b"\n")
    }

    /// Ends the log and gives back what it was written to.
    ///
    /// # Errors
    ///
    /// Flushing failed.
    pub fn finish(mut self) -> io::Result<W> {
        self.to.flush()?;
        Ok(self.to)
    }
}
