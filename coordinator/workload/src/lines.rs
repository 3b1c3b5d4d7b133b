//! Buffered output of text lines, written to the system in large pieces.

use std::io::{self, Write};

/// Number of bytes that are collected before they are written.
const PIECE: usize = 1 << 16;

/// Buffered writer of lines to `W`, which needs no buffer of its own: a line is formatted in place
/// in the buffer. Buffered lines are written on drop, too, but then errors are lost.
#[derive(Debug)]
pub struct Lines<W: Write> {
    to: W,
    text: Vec<u8>,
}

impl<W: Write> Lines<W> {
    /// An empty buffer that writes to `to`.
    #[must_use]
    pub fn new(to: W) -> Self {
        Self { to, text: Vec::with_capacity(PIECE + PIECE / 8) }
    }

    /// Adds a line, which `make` appends to the buffer.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn add(&mut self, make: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        self.append(|text| {
            make(text);
            text.push(b'\n');
        })
    }

    /// Adds a piece of a line, which `make` appends to the buffer.
    pub(crate) fn append(&mut self, make: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        make(&mut self.text);
        if self.text.len() < PIECE { Ok(()) } else { self.write() }
    }

    /// Writes the buffer. The buffer is emptied whether this succeeds or not, so that nothing is
    /// written twice.
    fn write(&mut self) -> io::Result<()> {
        let written = self.to.write_all(&self.text);
        self.text.clear();
        written
    }

    /// Writes the remaining lines and flushes.
    ///
    /// # Errors
    ///
    /// Writing or flushing failed.
    pub fn finish(mut self) -> io::Result<()> {
        self.write()?;
        self.to.flush()
    }
}

impl<W: Write> Drop for Lines<W> {
    fn drop(&mut self) {
        let _ = self.write();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_out_whole_and_in_order_however_many_there_are() {
        for is_dropped in [false, true] {
            let mut written = Vec::new();
            let mut lines = Lines::new(&mut written);
            let all: Vec<String> = (0..20_000).map(|n| format!("line {n}")).collect();
            for line in &all {
                lines.add(|text| text.extend_from_slice(line.as_bytes())).expect("to memory");
            }
            if is_dropped {
                drop(lines);
            } else {
                lines.finish().expect("to memory");
            }
            assert_eq!(String::from_utf8_lossy(&written), all.join("\n") + "\n");
        }
    }
}
