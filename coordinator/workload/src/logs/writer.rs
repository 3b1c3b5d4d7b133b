//! Writer of SWF logs.

use std::io::{self, Write};

use super::header::Header;
use super::job::SwfJob;
use crate::decimal::whole;
use crate::lines::Lines;

/// Writes an SWF log to `W`, which needs no buffer of its own.
#[derive(Debug)]
pub struct SwfWriter<W: Write>(Lines<W>);

impl<W: Write> SwfWriter<W> {
    /// Begins a log with `header`.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn new(to: W, header: &Header) -> io::Result<Self> {
        let mut lines = Lines::new(to);
        for (name, value) in header.directives() {
            lines.add(|line| line.extend_from_slice(format!("; {name}: {value}").as_bytes()))?;
        }
        Ok(Self(lines))
    }

    /// Writes a job.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn write(&mut self, job: &SwfJob) -> io::Result<()> {
        self.0.add(|line| append_fields(line, job, b' '))
    }

    /// Ends the log.
    ///
    /// # Errors
    ///
    /// Writing or flushing failed.
    pub fn finish(self) -> io::Result<()> {
        self.0.finish()
    }
}

/// Appends a job's fields with this separator between them.
pub(super) fn append_fields(line: &mut Vec<u8>, job: &SwfJob, separator: u8) {
    for (n, field) in job.fields().into_iter().enumerate() {
        // More than half of the fields are not known.
        if field == -1 {
            line.extend_from_slice(&[b'-', b'1', separator]);
            continue;
        }
        if field < 0 {
            line.push(b'-');
        }
        whole(line, field.unsigned_abs());
        if n == 16 {
            for other in &job.preceding_others {
                line.push(b'&');
                whole(line, other.unsigned_abs());
            }
        }
        line.push(separator);
    }
    // There is no separator after the last field.
    line.pop();
}
