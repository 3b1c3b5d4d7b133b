//! The trace of a run: every event in order, one line each, and its digest.

use std::fmt::{self, Write as _};

/// Lines of what happened, as a digest and, if wanted, as text.
#[derive(Debug)]
pub struct Trace {
    hasher: blake3::Hasher,
    lines: u64,
    line: String,
    text: Option<String>,
}

impl Trace {
    /// An empty trace, which keeps its text if that is wanted.
    #[must_use]
    pub fn new(keeps_text: bool) -> Self {
        let text = keeps_text.then(String::new);
        Self { hasher: blake3::Hasher::new(), lines: 0, line: String::new(), text }
    }

    /// Adds a line: something that happened so many microseconds after the run's start.
    pub fn line(&mut self, at_us: u64, what: fmt::Arguments<'_>) {
        self.line.clear();
        // Writing to a string never fails.
        let _ = writeln!(self.line, "{}.{:06} {what}", at_us / 1_000_000, at_us % 1_000_000);
        self.hasher.update(self.line.as_bytes());
        self.lines += 1;
        if let Some(text) = &mut self.text {
            text.push_str(&self.line);
        }
    }

    /// The number of lines so far.
    #[must_use]
    pub const fn lines(&self) -> u64 {
        self.lines
    }

    /// The digest of all lines, and their text if it was kept.
    #[must_use]
    pub fn finish(self) -> (String, Option<String>) {
        (self.hasher.finalize().to_hex().to_string(), self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_that_of_the_text() {
        let mut trace = Trace::new(true);
        trace.line(1_500_000, format_args!("one"));
        trace.line(2_000_001, format_args!("two"));
        let (digest, text) = trace.finish();
        let text = text.expect("it was kept");
        assert_eq!(text, "1.500000 one\n2.000001 two\n");
        assert_eq!(digest, blake3::hash(text.as_bytes()).to_hex().to_string());
    }
}
