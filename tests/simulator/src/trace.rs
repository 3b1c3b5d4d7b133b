//! The trace of a run: every event in order, one line each, and its digest.

use std::fmt::{self, Write as _};

/// What is done with the lines of a trace, besides computing their digest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lines {
    /// No line is kept.
    #[default]
    Digested,
    /// The lines are kept as text.
    Kept,
    /// The lines are printed as they come.
    Printed,
}

/// The lines of a run's events, as a digest and, if wanted, as text.
#[derive(Debug)]
pub struct Trace {
    hasher: blake3::Hasher,
    lines: u64,
    line: String,
    wanted: Lines,
    text: String,
    /// Path of the run's folder, which differs each time: in lines, `RUN` replaces it.
    folder: String,
}

impl Trace {
    /// The empty trace of a run in this folder.
    #[must_use]
    pub fn new(wanted: Lines, folder: String) -> Self {
        let (hasher, line, text) = (blake3::Hasher::new(), String::new(), String::new());
        Self { hasher, lines: 0, line, wanted, text, folder }
    }

    /// Adds a line about an event, so many microseconds after the run's start.
    pub fn line(&mut self, at_us: u64, what: fmt::Arguments<'_>) {
        self.line.clear();
        // Writing to a string never fails.
        let _ = writeln!(self.line, "{}.{:06} {what}", at_us / 1_000_000, at_us % 1_000_000);
        // Hardly any line has a path: to look for one byte is cheaper than for a word.
        let may_have_path = !self.folder.is_empty() && self.line.as_bytes().contains(&b'/');
        if may_have_path && self.line.contains(&self.folder) {
            self.line = self.line.replace(&self.folder, "RUN");
        }
        self.hasher.update(self.line.as_bytes());
        self.lines += 1;
        match self.wanted {
            Lines::Digested => {}
            Lines::Kept => self.text.push_str(&self.line),
            Lines::Printed => print!("{}", self.line),
        }
    }

    /// The number of lines added so far.
    #[must_use]
    pub const fn lines(&self) -> u64 {
        self.lines
    }

    /// The digest of all lines, and their text if it was kept.
    #[must_use]
    pub fn finish(self) -> (String, String) {
        (self.hasher.finalize().to_hex().to_string(), self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_that_of_the_text() {
        let mut trace = Trace::new(Lines::Kept, "/a/folder".to_owned());
        trace.line(1_500_000, format_args!("one"));
        trace.line(2_000_001, format_args!("two in /a/folder/run"));
        let (digest, text) = trace.finish();
        assert_eq!(text, "1.500000 one\n2.000001 two in RUN/run\n");
        assert_eq!(digest, blake3::hash(text.as_bytes()).to_hex().to_string());
    }
}
