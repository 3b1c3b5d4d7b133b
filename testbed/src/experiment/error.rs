//! What is wrong with an input: where, what, and what would be right.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, or the option of the command line.
    pub source: Arc<str>,
    /// Line and column in the file, from 1.
    pub at: Option<(usize, usize)>,
    /// The key's path in the document, such as `scheduler.alpha`.
    pub path: String,
}

impl Place {
    /// A whole file or option.
    #[must_use]
    pub fn of(source: &str) -> Self {
        Self { source: source.into(), at: None, path: String::new() }
    }

    /// The place of `key` inside this one.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        let path = match self.path.as_str() {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        };
        Self { path, ..self.clone() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        if let Some((line, column)) = self.at {
            write!(f, ":{line}:{column}")?;
        }
        if self.path.is_empty() { Ok(()) } else { write!(f, ": {}", self.path) }
    }
}

/// Bad input: one line with the place, what is wrong and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}; {remedy}")]
pub struct InputError {
    /// The place in the input: file, line and key.
    pub place: Place,
    /// The mistake, in words.
    pub what: String,
    /// What would be right.
    pub remedy: String,
}

impl InputError {
    /// Bad input at `place`.
    pub fn new(place: &Place, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        let one_line = |text: String| text.split('\n').collect::<Vec<_>>().join(" ");
        Self { place: place.clone(), what: one_line(what.into()), remedy: one_line(remedy.into()) }
    }

    /// A file that can't be read.
    #[must_use]
    pub fn unreadable(path: &Path, error: &std::io::Error) -> Self {
        let remedy = match error.kind() {
            std::io::ErrorKind::NotFound => "give the path of an existing file",
            std::io::ErrorKind::IsADirectory => "give a file, not a directory",
            std::io::ErrorKind::PermissionDenied => "make it readable to you",
            std::io::ErrorKind::InvalidData => "give a text file in UTF-8",
            _ => "check the path and the disk",
        };
        Self::new(&Place::of(&path.display().to_string()), error.to_string(), remedy)
    }
}
