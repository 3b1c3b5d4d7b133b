//! Output of commands: on standard output, where a closed pipe is not a failure, and in files.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use serde_json::json;

use super::failure::Failure;
use super::terminal;

/// Prints a result, as JSON or in words.
pub(crate) fn show(
    as_json: bool,
    value: impl Serialize,
    words: impl FnOnce() -> String,
) -> Result<(), Failure> {
    print(&if as_json { format!("{:#}", json!(value)) } else { words() })
}

/// Prints to standard output, with control characters escaped except for colours on a terminal. It is not a failure if nobody reads
/// the output any more.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_to_reader(text).map(drop)
}

/// Prints to standard output as [`print`] does; returns whether the output still has a reader.
pub(crate) fn print_to_reader(text: &str) -> Result<bool, Failure> {
    let shown = terminal::stdout().shown(text);
    let mut out = io::stdout().lock();
    let written = out.write_all(shown.as_bytes()).and_then(|()| out.write_all(b"\n"));
    match written.and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::Broken(format!("can't write to standard output: {error}"))),
    }
}

/// Writes a file that was requested.
pub(crate) fn save(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(refused(path))
}

/// The failure for a file that can't be written.
pub(crate) fn refused(path: &Path) -> impl Fn(io::Error) -> Failure + '_ {
    |error| Failure::Broken(format!("can't write {}: {error}", path.display()))
}
