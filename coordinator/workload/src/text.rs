//! Text that is read a line at a time, plain or gzipped, however long it is.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

/// Longest line, in bytes, of a file that we read.
pub(crate) const LONGEST_LINE: u64 = 64 * 1024;

/// The lines of a file, with one of them in memory at a time.
pub(crate) struct Text {
    input: Box<dyn BufRead + Send>,
    line: Vec<u8>,
    number: u64,
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Text").field("line", &self.number).finish_non_exhaustive()
    }
}

/// Result of one attempt to read a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// There is no further line.
    End,
    /// The whole line was read.
    Read,
    /// The line is longer than [`LONGEST_LINE`] bytes, and only its beginning was kept.
    TooLong,
}

impl Text {
    /// The text of `file`, whose first bytes tell whether it is gzipped.
    ///
    /// # Errors
    ///
    /// The file can't be read.
    pub(crate) fn of(file: impl Read + Send + 'static) -> io::Result<Self> {
        let mut file = BufReader::with_capacity(1 << 16, file);
        let is_gzip = file.fill_buf()?.starts_with(&[0x1f, 0x8b]);
        Ok(Self::new(if is_gzip {
            Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(file)))
        } else {
            Box::new(file)
        }))
    }

    pub(crate) fn new(input: Box<dyn BufRead + Send>) -> Self {
        Self { input, line: Vec::new(), number: 0 }
    }

    /// The line read last, with its line break.
    pub(crate) fn line(&self) -> &[u8] {
        &self.line
    }

    /// Number of the line read last, from 1; 0 before the first.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// Reads the next line.
    pub(crate) fn read_line(&mut self) -> io::Result<Line> {
        self.line.clear();
        let mut within = (&mut self.input).take(LONGEST_LINE);
        let read = within.read_until(b'\n', &mut self.line)?;
        if read == 0 {
            return Ok(Line::End);
        }
        self.number += 1;
        if read as u64 == LONGEST_LINE && self.line.last() != Some(&b'\n') {
            self.drop_rest_of_line()?;
            return Ok(Line::TooLong);
        }
        Ok(Line::Read)
    }

    /// Reads past the end of a line without keeping it.
    fn drop_rest_of_line(&mut self) -> io::Result<()> {
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                return Ok(());
            }
            let end = buffer.iter().position(|&b| b == b'\n');
            let used = end.map_or(buffer.len(), |at| at + 1);
            self.input.consume(used);
            if end.is_some() {
                return Ok(());
            }
        }
    }
}
