//! Text that is written a line at a time, to the system in large pieces.

use std::io::{self, Write};

/// Number of bytes that are gathered before they are written.
const PIECE: usize = 1 << 16;

/// Lines on their way to `W`, which need not buffer: a line is made where it waits to be written.
/// Lines that wait are written on drop, too, but then a failure goes unnoticed.
#[derive(Debug)]
pub struct Lines<W: Write> {
    to: W,
    text: Vec<u8>,
}

impl<W: Write> Lines<W> {
    /// A buffer without lines, for `to`.
    #[must_use]
    pub fn new(to: W) -> Self {
        Self { to, text: Vec::with_capacity(PIECE + PIECE / 8) }
    }

    /// Adds a line, which `make` appends to the text that waits.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn add(&mut self, make: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        make(&mut self.text);
        self.text.push(b'\n');
        if self.text.len() < PIECE { Ok(()) } else { self.write() }
    }

    /// Writes what was gathered. It is not written a second time, whether this succeeds or not.
    fn write(&mut self) -> io::Result<()> {
        let written = self.to.write_all(&self.text);
        self.text.clear();
        written
    }

    /// Writes the lines that still wait.
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
