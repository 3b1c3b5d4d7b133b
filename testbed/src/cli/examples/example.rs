//! An example of a command line.

/// A command line that can be typed unchanged, and its purpose.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// The line for the shell, redirections included.
    pub line: &'static str,
    /// The result, in a few words.
    pub about: &'static str,
    /// Requirement beside this program and the files that earlier examples leave, such as root; `None`: no other
    /// requirement.
    pub needs: Option<&'static str>,
}

/// The examples of one command: the command's path without `dormouse`, and the examples.
pub(super) type Examples = (&'static str, &'static [Example]);

impl Example {
    pub(super) const fn new(line: &'static str, about: &'static str) -> Self {
        Self { line, about, needs: None }
    }

    /// An example that can't be run on every host with this program; with its requirement.
    pub(super) const fn needing(
        needs: &'static str,
        line: &'static str,
        about: &'static str,
    ) -> Self {
        Self { line, about, needs: Some(needs) }
    }
}
