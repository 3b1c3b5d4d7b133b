//! The secret of a run, as a worker is given it.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use dormouse_proto::Secret;

use super::{AgentError, Result};

/// More than any file of a secret has.
const MOST: u64 = 1024;

/// Reads the secret that a file holds.
///
/// # Errors
/// The file can't be read, or holds something else.
pub fn read_secret(path: &Path) -> Result<Secret> {
    let wrong = |why: String| AgentError::Secret { path: path.to_owned(), why };
    let read = || {
        let mut text = Vec::new();
        File::open(path)?.take(MOST).read_to_end(&mut text)?;
        io::Result::Ok(String::from_utf8_lossy(&text).into_owned())
    };
    let text = read().map_err(|error| wrong(error.to_string()))?;
    text.parse().map_err(|error: dormouse_proto::SecretError| wrong(error.to_string()))
}
