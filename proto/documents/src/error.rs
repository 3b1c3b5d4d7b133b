//! Mistakes in an input, with place and remedy.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Place of a value in the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file or the option of the command line.
    pub source: Arc<str>,
    /// Line and column (in characters) in the file, from 1: those of the key, if the value has one; `None`: the place
    /// has no line.
    pub at: Option<(usize, usize)>,
    /// The key's path in the document, such as `scheduler.alpha`.
    pub path: String,
    /// Text of the line at this place; `None`: the place has no line.
    pub line: Option<Arc<str>>,
}

impl Place {
    /// The place of a whole file or option.
    #[must_use]
    pub fn whole(source: &str) -> Self {
        Self { source: source.into(), at: None, path: String::new(), line: None }
    }

    /// The place of byte `at` in a text.
    #[must_use]
    pub fn in_text(source: &str, text: &str, at: usize) -> Self {
        let before = &text[..text.floor_char_boundary(at)];
        let start = before.rfind('\n').map_or(0, |n| n + 1);
        let column = before[start..].chars().count() + 1;
        let line = text[start..].lines().next().unwrap_or_default();
        let at = Some((before.matches('\n').count() + 1, column));
        Self { at, line: Some(line.into()), ..Self::whole(source) }
    }

    /// The place of a line of a file, at its first column.
    #[must_use]
    pub fn line(path: &Path, number: usize, text: &str) -> Self {
        let (at, line) = (Some((number, 1)), Some(text.into()));
        Self { at, line, ..Self::whole(&path.display().to_string()) }
    }

    /// The place of `key` inside the value at this place.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        let path = match self.path.as_str() {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        };
        Self { path, ..self.clone() }
    }

    /// Path of a file named by a text at this place: relative to the file that contains the text,
    /// or, for options, to the working directory.
    #[must_use]
    pub fn file(&self, text: &str) -> PathBuf {
        match (self.at, Path::new(&*self.source).parent()) {
            (Some(_), Some(folder)) => folder.join(text),
            _ => PathBuf::from(text),
        }
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

/// Greatest number of characters of a line that are shown.
const WIDEST: usize = 160;

/// One mistake in an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The place in the input: file, line and key.
    pub place: Place,
    /// Description of the mistake.
    pub what: String,
    /// Description of the remedy.
    pub remedy: String,
}

impl Mistake {
    /// A mistake at `place`.
    pub fn new(place: &Place, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        let one_line = |text: String| text.split('\n').collect::<Vec<_>>().join(" ");
        Self { place: place.clone(), what: one_line(what.into()), remedy: one_line(remedy.into()) }
    }

    /// The line of the mistake with a caret under its place; empty if the mistake has no line.
    fn excerpt(&self) -> String {
        let (Some((line, column)), Some(text)) = (self.place.at, &self.place.line) else {
            return String::new();
        };
        // A line that no terminal has room for is cut to what is around the place.
        let cut = if text.chars().count() > WIDEST { column.saturating_sub(WIDEST / 2) } else { 0 };
        let text: String = text.chars().skip(cut).take(WIDEST).collect();
        // Tabs stand above tabs, so that the caret is where it should be however wide they are.
        let blank = |c: char| if c == '\t' { '\t' } else { ' ' };
        let before: String = text.chars().take(column - 1 - cut).map(blank).collect();
        let number = line.to_string();
        let margin = " ".repeat(number.len());
        format!("\n {margin} |\n {number} | {text}\n {margin} | {before}^")
    }
}

/// Prints one line: place, mistake and remedy.
impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.place, self.what, self.remedy)
    }
}

/// Remedy for a file that is not valid text.
const TEXT: &str = "give a text file in UTF-8";

/// Remedy for a file that can't be read.
const fn remedy_for(kind: std::io::ErrorKind) -> &'static str {
    match kind {
        std::io::ErrorKind::NotFound => "give the path of an existing file",
        std::io::ErrorKind::IsADirectory => "give a file, not a directory",
        std::io::ErrorKind::PermissionDenied => "make it readable to you",
        std::io::ErrorKind::InvalidData => TEXT,
        _ => "check the path and the disk",
    }
}

/// Error for a bad input: all its mistakes by place; printed one per line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError(Vec<Mistake>);

impl InputError {
    /// Error with one mistake.
    pub fn new(place: &Place, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self(vec![Mistake::new(place, what, remedy)])
    }

    /// The error for a file that can't be read.
    #[must_use]
    pub fn unreadable(path: &Path, error: &std::io::Error) -> Self {
        let text = error.to_string();
        let (what, remedy) = match error.kind() {
            // Ours say what would be right.
            std::io::ErrorKind::InvalidData if error.get_ref().is_some() => {
                text.rsplit_once("; ").unwrap_or((&text, TEXT))
            }
            kind => (&*text, remedy_for(kind)),
        };
        Self::new(&Place::whole(&path.display().to_string()), what, remedy)
    }

    /// All mistakes in the input.
    #[must_use]
    pub fn mistakes(&self) -> &[Mistake] {
        &self.0
    }

    /// Text for a terminal: each mistake with its line and a caret under the place.
    #[must_use]
    pub fn with_lines(&self) -> String {
        let all: Vec<_> = self.0.iter().map(|one| format!("{one}{}", one.excerpt())).collect();
        all.join("\n")
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<_> = self.0.iter().map(Mistake::to_string).collect();
        f.write_str(&all.join("\n"))
    }
}

impl std::error::Error for InputError {}

/// Collects the mistakes of an input, and remarks that are no mistakes.
#[derive(Debug, Default)]
pub struct Mistakes(Vec<Mistake>, Vec<String>);

impl Mistakes {
    /// Adds a mistake at `place`.
    pub fn add(&mut self, place: &Place, what: impl Into<String>, remedy: impl Into<String>) {
        self.0.push(Mistake::new(place, what, remedy));
    }

    /// Adds a remark for the author of the input.
    pub fn note(&mut self, note: String) {
        if !self.1.contains(&note) {
            self.1.push(note);
        }
    }

    /// Removes and returns the remarks.
    #[must_use]
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.1)
    }

    /// The value of a successful read; `None` on an error, whose mistakes are added to the mistakes collected here.
    pub fn take<T>(&mut self, read: Result<T, InputError>) -> Option<T> {
        read.map_err(|error| self.0.extend(error.0)).ok()
    }

    /// True if there is a mistake in the section with this path.
    #[must_use]
    pub fn inside(&self, path: &str) -> bool {
        let inside = |one: &Mistake| {
            one.place
                .path
                .strip_prefix(path)
                .is_some_and(|rest| rest.is_empty() || path.is_empty() || rest.starts_with('.'))
        };
        self.0.iter().any(inside)
    }

    /// Number of mistakes found so far.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The value if there are no mistakes.
    ///
    /// # Errors
    ///
    /// All mistakes that were found; also an error if there is no value.
    pub fn or<T>(mut self, value: Option<T>) -> Result<T, InputError> {
        self.0.sort_by_key(|one| one.place.at);
        self.0.dedup();
        match value {
            Some(value) if self.0.is_empty() => Ok(value),
            _ => Err(InputError(self.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_shows_the_line_and_a_caret_under_the_place() {
        let place = Place {
            at: Some((12, 3)),
            path: "scheduler.alpha".into(),
            line: Some("\t alpha = 2".into()),
            ..Place::whole("x.toml")
        };
        let mut found = Mistakes::default();
        found.add(&place, "2 is out of range", "write a number from 0 to 1");
        found.add(&Place::whole("--set"), "nothing\nis set", "write KEY=VALUE");
        let error = found.or(None::<()>).expect_err("two mistakes");
        assert_eq!(
            error.to_string(),
            "--set: nothing is set; write KEY=VALUE\n\
             x.toml:12:3: scheduler.alpha: 2 is out of range; write a number from 0 to 1"
        );
        assert!(error.with_lines().ends_with("\n    |\n 12 | \t alpha = 2\n    | \t ^"), "{error}");
    }

    #[test]
    fn a_file_that_is_no_text_says_what_would_be_right() {
        let said = |text: &str| {
            let error = std::io::Error::new(std::io::ErrorKind::InvalidData, text);
            InputError::unreadable(Path::new("a"), &error).to_string()
        };
        assert_eq!(said("it is broken; fetch it again"), "a: it is broken; fetch it again");
        assert_eq!(said("it is latin"), "a: it is latin; give a text file in UTF-8");
    }

    #[test]
    fn of_a_long_line_what_is_around_the_place_is_shown() {
        let text = format!("{}X{}", "a".repeat(1_000), "b".repeat(1_000));
        let error = InputError::new(&Place::in_text("x.json", &text, 1_000), "no", "yes");
        let lines: Vec<String> = error.with_lines().lines().map(str::to_owned).collect();
        assert_eq!(lines[0], "x.json:1:1001: no; yes");
        assert_eq!(lines[2].chars().count(), lines[2].find('X').unwrap_or_default() + 81);
        assert_eq!(lines[2].find('X'), lines[3].find('^'));
    }
}
