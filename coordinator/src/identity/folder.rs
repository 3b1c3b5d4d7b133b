//! The identity of a run, and where it is kept: the authority in a folder of its own, a file for
//! the token of each role beside it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dormouse_identity::{
    Authority, IdentityError, Role, Token, TokenError, make_folder, write_private,
};

use super::refused::{copy_refused, keep_once, refuse_token};
use crate::CoordinatorError;

/// Name of the authority's folder in a run's folder.
pub(super) const AUTHORITY: &str = "identity";
/// Environment variable with the folder of an identity made before the run.
const GIVEN: &str = "DORMOUSE_IDENTITY";
/// Former environment variable with a bare secret that workers were given before the run.
const FORMERLY_GIVEN: &str = "DORMOUSE_SECRET_FILE";
/// Validity of tokens by default. A worker that has joined stays, and reconnects with its certificate.
const VALID: Duration = Duration::from_hours(7 * 24);

/// Authority of a run, with the folder of its tokens.
#[derive(Debug)]
pub(crate) struct RunIdentity {
    pub(crate) authority: Authority,
    pub(crate) folder: PathBuf,
}

/// Returns the file of a role's token in this folder.
pub(crate) fn token_file(folder: &Path, role: Role) -> PathBuf {
    folder.join(role.file())
}

/// Returns the folder of an identity made before the run, if the environment names one.
///
/// # Errors
///
/// The environment names a file with a bare secret, as in older versions.
pub(crate) fn given_folder() -> Result<Option<PathBuf>, CoordinatorError> {
    let named = |name| std::env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    match (named(GIVEN), named(FORMERLY_GIVEN)) {
        (Some(folder), _) => Ok(Some(folder)),
        (None, Some(path)) if is_bare(&path) => {
            let why = "it holds a bare secret, which can't prove a coordinator: make an identity with `dormouse \
                       identity DIR`, and give the coordinator $DORMOUSE_IDENTITY with DIR and its \
                       workers the file DIR/secret";
            Err(CoordinatorError::GivenIdentity { path, why: why.to_owned() })
        }
        // It is for whoever dials.
        (None, _) => Ok(None),
    }
}

fn is_bare(path: &Path) -> bool {
    fs::read_to_string(path)
        .is_ok_and(|text| matches!(text.parse::<Token>(), Err(TokenError::Bare)))
}

/// Makes an identity before a run: a certificate authority, and a token for each role that is valid for this time.
///
/// # Errors
///
/// The identity can't be written, or the folder has one already.
pub fn make_identity(folder: &Path, valid: Duration) -> Result<(), IdentityError> {
    let wrong = |why: &str| IdentityError::Content { path: folder.to_owned(), why: why.to_owned() };
    match make_folder(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(wrong("its parent folder does not exist"));
        }
        made => made.map_err(|source| IdentityError::File { path: folder.to_owned(), source })?,
    }
    if Authority::load(&folder.join(AUTHORITY))?.is_some() {
        return Err(wrong(
            "it holds an identity already; `dormouse token DIR --renew` makes a new token of it",
        ));
    }
    let authority = Authority::generate()?;
    for role in Role::ALL {
        write_token(folder, &Token::generate(role, authority.fingerprint(), valid)?)?;
    }
    // What makes it an identity is written last.
    authority.save(&folder.join(AUTHORITY))
}

/// Replaces a role's token by a new one with this validity. A running coordinator accepts the new token at once; it
/// no longer accepts the old one, nor certificates obtained with it.
///
/// # Errors
///
/// The folder has no identity, or can't be written.
pub fn renew_token(folder: &Path, role: Role, valid: Duration) -> Result<Token, IdentityError> {
    let authority = authority_of(folder)?;
    // First of all the former one, and the certificates that it was joined with, open nothing more.
    if let Ok(former) = read_token(&token_file(folder, role)) {
        refuse_token(folder, former.id())?;
    }
    let token = Token::generate(role, authority.fingerprint(), valid)?;
    write_token(folder, &token)?;
    Ok(token)
}

/// Makes a token with which one worker may join once, within this time. The token isn't in a file that other workers
/// are given.
///
/// # Errors
///
/// The folder has no identity, or can't be written.
pub fn make_token_for_one(folder: &Path, valid: Duration) -> Result<Token, IdentityError> {
    let token = Token::generate(Role::Worker, authority_of(folder)?.fingerprint(), valid)?;
    keep_once(folder, &token)?;
    Ok(token)
}

fn authority_of(folder: &Path) -> Result<Authority, IdentityError> {
    let at = folder.join(AUTHORITY);
    Authority::load(&at)?.ok_or_else(|| IdentityError::Content {
        path: at,
        why: "there is no identity: the run is over, or was a virtual run".to_owned(),
    })
}

fn write_token(folder: &Path, token: &Token) -> Result<(), IdentityError> {
    let path = token_file(folder, token.role);
    write_private(&path, token.line().as_bytes())
        .map_err(|source| IdentityError::File { path, source })
}

impl RunIdentity {
    /// Makes the identity of the run in this folder: a copy of the `given` one, or else a new one; a resumed run
    /// (`goes_on`) keeps the one that its workers know.
    pub(crate) fn of_run(
        out: &Path,
        goes_on: bool,
        given: Option<&Path>,
    ) -> Result<Self, CoordinatorError> {
        fs::create_dir_all(out)
            .map_err(|source| CoordinatorError::Output { path: out.to_owned(), source })?;
        let own = out.join(AUTHORITY);
        let kept = if goes_on { Authority::load(&own)? } else { None };
        let authority = match (kept, given) {
            (Some(authority), _) => authority,
            (None, None) => {
                // One that was given up half made, or is of a run that was replaced.
                remove(&own).map_err(|source| CoordinatorError::Output { path: own, source })?;
                make_identity(out, VALID)?;
                return Self::of_run(out, true, None);
            }
            (None, Some(given)) => copy_identity(given, out)?,
        };
        for role in Role::ALL {
            let path = token_file(out, role);
            // A token that is lost, or was never whole, nobody has.
            if !path.exists() {
                write_token(out, &Token::generate(role, authority.fingerprint(), VALID)?)?;
            }
            let token = read_token(&path)
                .map_err(|why| CoordinatorError::Secret { path: path.clone(), why })?;
            if token.authority != authority.fingerprint() || token.role != role {
                let why = format!("it is not a {role}'s token of this run");
                return Err(CoordinatorError::Secret { path, why });
            }
        }
        Ok(Self { authority, folder: out.to_owned() })
    }
}

/// Copies an identity made before the run into the run's folder.
fn copy_identity(given: &Path, out: &Path) -> Result<Authority, CoordinatorError> {
    let refuse =
        |path: &Path, why: String| CoordinatorError::GivenIdentity { path: path.to_owned(), why };
    let authority = Authority::load(&given.join(AUTHORITY))
        .map_err(|error| refuse(given, error.to_string()))?
        .ok_or_else(|| {
            let why = "it holds no identity: `dormouse identity DIR` makes one; $DORMOUSE_IDENTITY names it";
            refuse(given, why.to_owned())
        })?;
    for role in Role::ALL {
        let path = token_file(given, role);
        let token = read_token(&path).map_err(|why| refuse(&path, why))?;
        write_token(out, &token)?;
    }
    authority.save(&out.join(AUTHORITY))?;
    copy_refused(given, out)
        .map_err(|source| CoordinatorError::Output { path: out.join(AUTHORITY), source })?;
    Ok(authority)
}

fn read_token(path: &Path) -> Result<Token, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    text.parse().map_err(|error: TokenError| error.to_string())
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes the identity of a run that is over.
pub(crate) fn forget_identity(out: &Path) -> io::Result<()> {
    for role in Role::ALL {
        match fs::remove_file(token_file(out, role)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    remove(&out.join(AUTHORITY))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn worker_line(folder: &Path) -> String {
        fs::read_to_string(token_file(folder, Role::Worker)).expect("a token")
    }

    #[test]
    fn it_is_kept_for_its_owner_alone_and_only_by_a_run_that_goes_on() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let out = dir.path().join("run");
        let first = RunIdentity::of_run(&out, false, None).expect("an identity");
        let (pin, line) = (first.authority.fingerprint(), worker_line(&out));
        let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode();
        assert_eq!(mode(&out.join(AUTHORITY)) & 0o777, 0o700);
        for file in ["secret", "secret.observer", "secret.operator", "identity/authority.key"] {
            assert_eq!(mode(&out.join(file)) & 0o777, 0o600, "{file}");
        }
        let again = RunIdentity::of_run(&out, true, None).expect("the same");
        assert_eq!((again.authority.fingerprint(), worker_line(&out)), (pin, line.clone()));
        let another = RunIdentity::of_run(&out, false, None).expect("another");
        assert!(another.authority.fingerprint() != pin && worker_line(&out) != line);
        // A link that somebody else has put there is not followed.
        let theirs = dir.path().join("theirs");
        fs::write(&theirs, "").expect("room");
        fs::remove_file(token_file(&out, Role::Worker)).expect("it was there");
        std::os::unix::fs::symlink(&theirs, token_file(&out, Role::Worker)).expect("a link");
        RunIdentity::of_run(&out, false, None).expect("an identity");
        assert_eq!(fs::read_to_string(&theirs).expect("readable"), "");
        fs::write(token_file(&out, Role::Worker), "nonsense").expect("room");
        let no = RunIdentity::of_run(&out, true, None).expect_err("no token").to_string();
        assert!(no.contains("run/secret") && no.contains("begins with `dm1.`"), "{no}");
        forget_identity(&out).expect("it goes");
        forget_identity(&out).expect("it is gone");
        assert_eq!(fs::read_dir(&out).expect("a folder").count(), 0);
    }

    #[test]
    fn an_identity_that_is_given_becomes_the_runs_and_stays_where_it_is() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (given, out) = (dir.path().join("given"), dir.path().join("run"));
        let no = RunIdentity::of_run(&out, false, Some(&given)).expect_err("nothing is given");
        assert!(no.to_string().contains("dormouse identity DIR"), "{no}");
        make_identity(&given, VALID).expect("an identity");
        let no = make_identity(&given, VALID).expect_err("there is one").to_string();
        assert!(no.contains("--renew"), "{no}");
        let run = RunIdentity::of_run(&out, false, Some(&given)).expect("the same");
        let own = Authority::load(&given.join(AUTHORITY)).expect("readable").expect("one");
        assert_eq!(run.authority.fingerprint(), own.fingerprint());
        assert_eq!(worker_line(&out), worker_line(&given));
        let renewed = renew_token(&out, Role::Worker, VALID).expect("a new token");
        assert_eq!(worker_line(&out), renewed.line());
        assert_ne!(worker_line(&out), worker_line(&given));
        forget_identity(&out).expect("it goes");
        renew_token(&out, Role::Worker, VALID).expect_err("it is over");
        assert!(worker_line(&given).starts_with("dm1.worker."));
    }
}
