//! An example of a command line.

/// A command line that can be typed as it stands, and what it is good for.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// The words that a shell is given, redirections included.
    pub line: &'static str,
    /// The result, in a few words.
    pub about: &'static str,
    /// Requirement beside this program and the files that earlier examples leave, such as root; `None`: none.
    pub needs: Option<&'static str>,
}

/// The examples of a command, by its path without `dormouse`.
pub(super) type Examples = (&'static str, &'static [Example]);

impl Example {
    pub(super) const fn new(line: &'static str, about: &'static str) -> Self {
        Self { line, about, needs: None }
    }

    /// An example that can't be run wherever this program is.
    pub(super) const fn needing(
        needs: &'static str,
        line: &'static str,
        about: &'static str,
    ) -> Self {
        Self { line, about, needs: Some(needs) }
    }
}
