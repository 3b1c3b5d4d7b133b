//! The tokens that a run refuses: renewed ones and revoked ones. All certificates obtained with a refused token are
//! refused too.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use dormouse_identity::{IdentityError, Role, Token, TokenId, now_s};

use super::folder::AUTHORITY;

/// Name of the list of revoked tokens in the authority's folder: a line for each with its name and when it was
/// revoked.
const REFUSED: &str = "refused";
/// Name of the folder, beside the list of revoked tokens, of tokens with which one worker may join once.
const ONCE: &str = "once";

fn list_path(folder: &Path) -> PathBuf {
    folder.join(AUTHORITY).join(REFUSED)
}

/// Revokes a token and all certificates obtained with it: a running coordinator of this folder closes their sessions
/// within a second. The list is durable when this returns.
///
/// # Errors
///
/// The list can't be written.
pub fn refuse_token(folder: &Path, token: TokenId) -> Result<(), IdentityError> {
    let path = list_path(folder);
    let write = || {
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path)?;
        file.write_all(format!("{token} {}\n", now_s()).as_bytes())?;
        file.sync_all()?;
        File::open(folder.join(AUTHORITY))?.sync_all()
    };
    write().map_err(|source| IdentityError::File { path: path.clone(), source })
}

/// Returns the tokens that the run in this folder has revoked.
///
/// # Errors
///
/// The list exists but can't be read: then no token should be accepted, as it might be on the list.
pub fn refused_tokens(folder: &Path) -> io::Result<BTreeSet<TokenId>> {
    let text = match std::fs::read_to_string(list_path(folder)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(error) => return Err(error),
    };
    // One that a crash tore was never said to be refused.
    Ok(text.lines().filter_map(|line| line.split(' ').next()?.parse().ok()).collect())
}

/// Copies the list of an identity made before the run into the run's folder.
pub(crate) fn copy_refused(given: &Path, out: &Path) -> io::Result<()> {
    match std::fs::copy(list_path(given), list_path(out)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn old_path(folder: &Path, token: TokenId) -> PathBuf {
    folder.join(AUTHORITY).join(ONCE).join(token.to_string())
}

/// Stores a token with which one worker may join once.
pub(super) fn keep_once(folder: &Path, token: &Token) -> Result<(), IdentityError> {
    let path = old_path(folder, token.id());
    let write = || {
        path.parent().map_or(Ok(()), dormouse_identity::make_folder)?;
        dormouse_identity::write_private(&path, token.line().as_bytes())
    };
    write().map_err(|source| IdentityError::File { path: path.clone(), source })
}

/// Takes a token with which one worker may join, so that it can't be used again. `None`: no such token is left.
pub(super) fn take_once(folder: &Path, carried: &[u8]) -> Option<Token> {
    let shown: Token = std::str::from_utf8(carried).ok()?.parse().ok()?;
    let path = old_path(folder, shown.id());
    let kept: Token = std::fs::read_to_string(&path).ok()?.parse().ok()?;
    let is_it = kept.is(carried) && kept.role == Role::Worker && !kept.has_expired();
    // Of those who show it at once one removes it.
    (is_it && std::fs::remove_file(&path).is_ok()).then_some(kept)
}
