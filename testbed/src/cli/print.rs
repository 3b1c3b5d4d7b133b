//! Printing that does not mind a closed pipe.

use std::io::{self, Write};

use super::failure::Failure;

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
