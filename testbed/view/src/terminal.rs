//! What a terminal can show.

/// The width of a terminal, and whether it shows colours. Found out by whoever owns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Columns; lines of a table are broken to fit. `None`: as wide as it takes.
    pub width: Option<u16>,
    /// Whether text may be coloured.
    pub has_colour: bool,
}

impl Terminal {
    /// No colours and no limit: files, pipes and tests.
    pub const PLAIN: Self = Self { width: None, has_colour: false };

    /// Good or bad news.
    #[must_use]
    pub fn verdict(self, is_good: bool, text: &str) -> String {
        self.styled(if is_good { "1;32" } else { "1;31" }, text)
    }

    /// What is not the point.
    #[must_use]
    pub fn dim(self, text: &str) -> String {
        self.styled("2", text)
    }

    fn styled(self, code: &str, text: &str) -> String {
        if self.has_colour && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}
