//! The console of a cell: a bounded part of what its programs write.

use std::io;

/// Most bytes that a console holds; further output is dropped.
pub const CONSOLE_BYTES: usize = 1 << 20;

/// A console of at most [`CONSOLE_BYTES`].
pub(super) struct CellConsole<W> {
    output: W,
    written: usize,
}

impl<W: io::Write> CellConsole<W> {
    pub(super) const fn new(output: W) -> Self {
        Self { output, written: 0 }
    }

    /// Adds output, as far as there is room. Output that the disk has no room for is lost.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        let room = CONSOLE_BYTES - self.written;
        if room == 0 {
            return;
        }
        let kept = bytes.get(..room.min(bytes.len())).unwrap_or(bytes);
        let _ = self.output.write_all(kept).and_then(|()| self.output.flush());
        self.written += kept.len();
        if self.written == CONSOLE_BYTES {
            let last = format!(
                "\n[dormouse: the console is full: {CONSOLE_BYTES} bytes; what follows is dropped]\n"
            );
            let _ = self.output.write_all(last.as_bytes()).and_then(|()| self.output.flush());
        }
    }

    /// Adds a line of the first process itself.
    pub(super) fn say(&mut self, line: &str) {
        self.add(format!("[dormouse: {line}]\n").as_bytes());
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn a_console_holds_so_much_and_says_that_it_is_full() {
        let mut console = CellConsole::new(Vec::new());
        console.add(&vec![b'a'; CONSOLE_BYTES - 1]);
        assert_eq!(console.output.len(), CONSOLE_BYTES - 1);
        console.add(b"bc");
        console.add(b"d");
        let text = String::from_utf8(console.output).unwrap();
        assert!(
            text.ends_with("is dropped]\n") && text.contains("ab\n[dormouse"),
            "{}",
            text.len()
        );
        assert!(!text.contains('c') || !text[..CONSOLE_BYTES].contains('c'));
    }
}
