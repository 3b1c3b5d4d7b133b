//! The secret of a run, where it is kept, and the check that every call must pass.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dormouse_proto::{SECRET_KEY, Secret};
use tonic::service::Interceptor;
use tonic::{Request, Status};

use crate::CoordinatorError;
use crate::candidates::Caller;

/// Name of the secret's file in the output folder; only its owner can read it.
const FILE: &str = "secret";
/// Names the file of a secret that workers have been given before there is a run.
const GIVEN: &str = "DORMOUSE_SECRET_FILE";

/// The file of the secret of the run in this folder.
pub(crate) fn file(out: &Path) -> PathBuf {
    out.join(FILE)
}

/// The file of a secret that workers have been given before there is a run, if the environment names one.
pub(crate) fn given() -> Option<PathBuf> {
    std::env::var_os(GIVEN).filter(|name| !name.is_empty()).map(PathBuf::from)
}

/// The secret of the run in this folder, which is made: that which is `given`, or else a new one; or
/// where the run `goes_on` that which its workers have.
pub(crate) fn of_run(
    out: &Path,
    goes_on: bool,
    given: Option<&Path>,
) -> Result<Secret, CoordinatorError> {
    let path = file(out);
    fs::create_dir_all(out)
        .map_err(|source| CoordinatorError::Output { path: out.to_owned(), source })?;
    let kept = if goes_on { read(&path) } else { Ok(None) };
    let refuse = |why| CoordinatorError::Secret { path: path.clone(), why };
    if let Some(secret) = kept.map_err(refuse)? {
        return Ok(secret);
    }
    let secret = match given {
        Some(given) => read(given)
            .and_then(|found| found.ok_or("it is not there".to_owned()))
            .map_err(|why| CoordinatorError::GivenSecret { path: given.to_owned(), why })?,
        None => {
            let mut bytes = [0; 32];
            getrandom::fill(&mut bytes).map_err(|error| CoordinatorError::Output {
                path: path.clone(),
                source: error.into(),
            })?;
            Secret::new(bytes)
        }
    };
    match write(&path, &secret) {
        Ok(()) => Ok(secret),
        Err(source) => Err(CoordinatorError::Output { path, source }),
    }
}

/// The run is over: nobody needs it any more.
pub(crate) fn forget(out: &Path) -> io::Result<()> {
    match fs::remove_file(file(out)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The secret that is kept there. A file that is empty was being written when the coordinator was
/// killed: nobody has it.
fn read(path: &Path) -> Result<Option<Secret>, String> {
    match fs::read_to_string(path) {
        Ok(text) if text.is_empty() => Ok(None),
        Ok(text) => {
            text.parse().map(Some).map_err(|error: dormouse_proto::SecretError| error.to_string())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// Made anew, so that it is nobody else's file and was never open to others.
fn write(path: &Path, secret: &Secret) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(secret.line().as_bytes())?;
    file.sync_all()
}

/// Lets only those calls in that carry the secret.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    secret: Secret,
    refused: Arc<AtomicU64>,
}

impl Guard {
    pub(crate) fn new(secret: Secret) -> Self {
        Self { secret, refused: Arc::default() }
    }
}

impl Interceptor for Guard {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let what = match request.metadata().get(SECRET_KEY) {
            Some(carried) if self.secret.is(carried) => {
                if let Some(caller) = request.extensions().get::<Caller>() {
                    caller.candidate.admit();
                }
                return Ok(request);
            }
            Some(_) => "the secret is not that of this run",
            None => "the secret of the run is missing",
        };
        let times = self.refused.fetch_add(1, Ordering::Relaxed) + 1;
        // Whoever calls all the time does not fill the log.
        if times.is_power_of_two() {
            let caller = request.extensions().get::<Caller>();
            let from = caller.and_then(|caller| caller.address).map(|it| it.to_string());
            tracing::warn!(from, times, "a call was refused: {what}");
        }
        Err(Status::unauthenticated(format!(
            "{what}: give --secret-file with a copy of the file `{FILE}` in the run's folder on the \
             coordinator's host"
        )))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn it_is_kept_for_its_owner_alone_and_only_by_a_run_that_goes_on() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let out = dir.path().join("run");
        let first = of_run(&out, false, None).expect("a secret");
        let mode = fs::metadata(file(&out)).expect("its file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(of_run(&out, true, None).expect("the same").line(), first.line());
        assert_ne!(of_run(&out, false, None).expect("another").line(), first.line());
        // A link that somebody else has put there is not followed.
        let theirs = dir.path().join("theirs");
        fs::write(&theirs, "").expect("room");
        fs::remove_file(file(&out)).expect("it was there");
        std::os::unix::fs::symlink(&theirs, file(&out)).expect("a link");
        of_run(&out, false, None).expect("a secret");
        assert_eq!(fs::read_to_string(&theirs).expect("readable"), "");
        fs::write(file(&out), "nonsense").expect("room");
        let no = of_run(&out, true, None).expect_err("no secret").to_string();
        assert!(no.contains("run/secret") && no.contains("64 hexadecimal digits"), "{no}");
        fs::write(&theirs, "a5".repeat(32)).expect("room");
        let given = of_run(&out, false, Some(&theirs)).expect("what was given");
        assert_eq!(given.line(), format!("{}\n", "a5".repeat(32)));
        assert_eq!(fs::read_to_string(file(&out)).expect("readable"), given.line());
        let no =
            of_run(&out, false, Some(&dir.path().join("none"))).expect_err("no secret").to_string();
        assert!(no.contains("/none: it is not there") && no.contains(GIVEN), "{no}");
        forget(&out).expect("it goes");
        forget(&out).expect("it is gone");
    }
}
