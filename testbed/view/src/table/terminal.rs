//! Terminals, and what they can show.

use super::Tone;

/// The width of a terminal, and whether it shows colours. The program that owns it finds this out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Width in columns, to which lines of a table are broken; `None`: as wide as they are.
    pub width: Option<u16>,
    /// Whether text may be coloured.
    pub has_colour: bool,
}

impl Terminal {
    /// A terminal without colours and limit: files, pipes and tests.
    pub const PLAIN: Self = Self { width: None, has_colour: false };

    /// A text as good or bad news.
    #[must_use]
    pub fn verdict(self, is_good: bool, text: &str) -> String {
        self.toned(Tone::verdict(is_good), text)
    }

    /// A text that is not the point, shown faintly.
    #[must_use]
    pub fn dim(self, text: &str) -> String {
        self.toned(Tone::Dim, text)
    }

    /// A text in this tone.
    #[must_use]
    pub fn toned(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Good => "1;32",
            Tone::Bad => "1;31",
            Tone::Dim => "2",
            Tone::Plain => return text.to_owned(),
        };
        match self.has_colour && !text.is_empty() {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }
}
