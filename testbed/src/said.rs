//! Messages of a command beside its results: on standard error, a line at a time, without characters that a terminal
//! would obey.

use std::io::{self, Write as _};

use dormouse_units::printable;

/// Prints a line for the user of the command.
pub(crate) fn line(text: &str) {
    // Where nobody can be told there is nobody to tell that.
    let _ = writeln!(io::stderr().lock(), "{}", printable(text));
}

/// Prints a line on standard error, with `dormouse: ` before it.
pub(crate) fn note(text: &str) {
    line(&format!("dormouse: {text}"));
}
