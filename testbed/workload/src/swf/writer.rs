//! Writing a log.

use std::io::{self, Write};

use super::header::Header;
use super::job::SwfJob;
use crate::decimal::whole;

/// Writes a log to `W`, which should buffer.
#[derive(Debug)]
pub struct SwfWriter<W> {
    to: W,
    line: Vec<u8>,
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
        Ok(Self { to, line: Vec::with_capacity(256) })
    }

    /// Writes a job.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn write(&mut self, job: &SwfJob) -> io::Result<()> {
        let line = &mut self.line;
        line.clear();
        for field in job.fields() {
            // More than half are not known.
            if field == -1 {
                line.extend_from_slice(b"-1 ");
                continue;
            }
            if field < 0 {
                line.push(b'-');
            }
            whole(line, field.unsigned_abs());
            line.push(b' ');
        }
        // The blank after the last field.
        line.pop();
        line.push(b'\n');
        self.to.write_all(line)
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
