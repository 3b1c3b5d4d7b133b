//! Line reader with a limit on the length of lines.

use std::fmt;
use std::io::{self, BufRead, Read};

use crate::Source;

/// Longest line that is read, in bytes.
pub const LONGEST_LINE: u64 = 64 * 1024;

/// Reads a file line by line, with one line in memory at a time.
pub struct Text {
    input: Box<dyn BufRead + Send>,
    line: Vec<u8>,
    number: u64,
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Text").field("line", &self.number).finish_non_exhaustive()
    }
}

/// Result of reading a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// The end of the file was reached.
    End,
    /// The whole line was read.
    Read,
    /// The line is longer than [`LONGEST_LINE`] bytes; only its beginning was kept.
    TooLong,
}

impl Text {
    /// Reads `file`, which may be packed.
    ///
    /// # Errors
    ///
    /// The file can't be read or unpacked.
    pub fn from_file(file: impl Read + Send + 'static) -> io::Result<Self> {
        Ok(Self::new(Source::new(file)?.into_input()))
    }

    /// Reads the lines of `input`, which must not be packed.
    #[must_use]
    pub fn new(input: Box<dyn BufRead + Send>) -> Self {
        Self { input, line: Vec::new(), number: 0 }
    }

    /// The line read last, with its line break.
    #[must_use]
    pub fn line(&self) -> &[u8] {
        &self.line
    }

    /// Number of the line read last, from 1; 0 before the first line.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Reads the next line.
    ///
    /// # Errors
    ///
    /// The file can't be read or unpacked.
    pub fn read_line(&mut self) -> io::Result<Line> {
        self.line.clear();
        let mut within = (&mut self.input).take(LONGEST_LINE);
        let read = within.read_until(b'\n', &mut self.line)?;
        if read == 0 {
            return Ok(Line::End);
        }
        self.number += 1;
        if self.number == 1 && is_of_old_macs(&self.line) {
            let what = "its lines end with CR alone; convert them to end with LF";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        if read as u64 == LONGEST_LINE && self.line.last() != Some(&b'\n') {
            self.drop_rest_of_line()?;
            return Ok(Line::TooLong);
        }
        Ok(Line::Read)
    }

    /// Skips the rest of a line.
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

/// True if an apparent first line is several lines that end with a CR alone, as on old Macs.
fn is_of_old_macs(line: &[u8]) -> bool {
    line.last() != Some(&b'\n') && line.trim_ascii_end().contains(&b'\r')
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn lines_that_end_with_a_cr_alone_are_refused() {
        let mut text = Text::from_file(Cursor::new(b"a,b\r1,2\r".to_vec())).unwrap();
        let error = text.read_line().unwrap_err();
        assert_eq!(error.to_string(), "its lines end with CR alone; convert them to end with LF");
        for fine in ["a,b\r\n1,2\r\n", "a,b\r", "a", "a\rb\n", ""] {
            let mut text = Text::from_file(Cursor::new(fine.as_bytes().to_vec())).unwrap();
            assert!(text.read_line().is_ok(), "{fine:?}");
        }
    }
}
