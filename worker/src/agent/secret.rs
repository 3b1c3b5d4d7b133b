//! The token of a run, as a worker reads it.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _};
use std::path::Path;
use std::time::{Duration, Instant};

use dormouse_identity::{Token, TokenError};

use super::{AgentError, Result};

/// Largest file of a token, in bytes.
const MAX_TOKEN_BYTES: u64 = 1024;

/// Path that stands for the standard input.
const STDIN: &str = "-";

/// Interval at which the worker looks whether the token file exists.
const LOOK: Duration = Duration::from_millis(100);

/// Reads the token in a file. Waits for the file if it doesn't exist yet, as when a coordinator and its workers are
/// started at once; calls `look` repeatedly during the wait, and `look` may end it.
///
/// # Errors
///
/// The file isn't there in time, can't be read, or doesn't hold a token; or `look` ends the wait with an error.
pub fn read_token_within<E: From<AgentError>>(
    path: &Path,
    patience: Duration,
    mut look: impl FnMut() -> std::result::Result<(), E>,
) -> std::result::Result<Token, E> {
    let begun = Instant::now();
    let is_missing = || match std::fs::metadata(path) {
        _ if path == Path::new(STDIN) => false,
        // It is being written.
        Ok(file) => file.is_file() && file.len() == 0,
        Err(error) => error.kind() == ErrorKind::NotFound,
    };
    while is_missing() && begun.elapsed() < patience {
        look()?;
        std::thread::sleep(LOOK);
    }
    if is_missing() {
        look()?;
    }
    Ok(read_token(path)?)
}

/// Reads the token in a file; `-`: the first line of the standard input.
///
/// # Errors
///
/// The file can't be read, or doesn't hold a token.
pub fn read_token(path: &Path) -> Result<Token> {
    let wrong = |why: String| AgentError::Secret { path: path.to_owned(), why };
    let read = || {
        let mut text = Vec::new();
        if path == Path::new(STDIN) {
            BufReader::new(io::stdin().take(MAX_TOKEN_BYTES)).read_until(b'\n', &mut text)?;
        } else {
            File::open(path)?.take(MAX_TOKEN_BYTES).read_to_end(&mut text)?;
        }
        io::Result::Ok(String::from_utf8_lossy(&text).into_owned())
    };
    let text = read().map_err(|error| wrong(error.to_string()))?;
    text.parse().map_err(|error: TokenError| wrong(error.to_string()))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_is_not_there_yet_is_waited_for_until_it_is_known_not_to_come() {
        let folder = tempfile::tempdir().unwrap();
        let (path, line) = (folder.path().join("secret"), Token::of_nobody().line());
        let never = || -> Result<()> { panic!("it is not to be waited for") };
        let missing = read_token_within(&path, Duration::ZERO, || -> Result<()> { Ok(()) });
        let missing = missing.unwrap_err();
        assert!(missing.to_string().contains("No such file"), "{missing}");
        let long = Duration::from_secs(60);
        let mut looks = 0;
        let given_up = read_token_within(&path, long, || {
            looks += 1;
            let why = "it will not come".to_owned();
            if looks < 3 { Ok(()) } else { Err(AgentError::Secret { path: path.clone(), why }) }
        });
        assert!(given_up.unwrap_err().to_string().contains("it will not come"));
        // It is made, and then written, while it is waited for.
        let mut writes = 0;
        let written = read_token_within(&path, long, || -> Result<()> {
            writes += 1;
            if writes == 1 {
                std::fs::write(&path, "").unwrap();
                let (path, line) = (path.clone(), line.clone());
                std::thread::spawn(move || std::fs::write(path, line).unwrap());
            }
            Ok(())
        });
        assert!(written.is_ok() && writes >= 1, "{written:?}");
        read_token_within(&path, long, never).unwrap();
        std::fs::write(&path, "no secret").unwrap();
        read_token_within(&path, long, never).unwrap_err();
    }
}
