//! Printing that does not mind a closed pipe.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::json;

use super::failure::Failure;

/// Prints what came out, as JSON or in words.
pub(crate) fn show(
    as_json: bool,
    value: impl Serialize,
    words: impl FnOnce() -> String,
) -> Result<(), Failure> {
    print(&if as_json { format!("{:#}", json!(value)) } else { words() })
}

/// Prints to standard output. A reader that has gone away is no failure.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out
        .write_all(text.as_bytes())
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush())
    {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::Broken(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}
