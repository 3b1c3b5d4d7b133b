//! The secret of a run, from which the keys that seal checkpoints are derived: one for each session of a worker, and
//! one for the coordinator.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use dormouse_identity::{ImageKey, write_private};

use crate::CoordinatorError;
use crate::system::world::RandomSource;

/// Name of the secret's file in the output folder; only its owner can read it.
const FILE: &str = "image-key";
const BYTES: usize = 32;

/// Secret of a run from which the keys are derived with which its workers and its coordinator seal checkpoints. No
/// worker learns the secret.
#[derive(Clone, Default)]
pub(crate) struct ImageSecret(Vec<u8>);

impl ImageSecret {
    /// Reads or makes the secret of the run in this folder: a resumed run (`goes_on`) keeps the one with which its
    /// checkpoints are sealed. Without it, stored checkpoints can't be restored.
    pub(crate) fn of_run(
        out: &Path,
        goes_on: bool,
        chance: &RandomSource,
    ) -> Result<Self, CoordinatorError> {
        let path = out.join(FILE);
        let made = || match goes_on {
            true => match read(&path)? {
                Some(kept) => Ok(kept),
                None => make_secret(&path, chance),
            },
            false => make_secret(&path, chance),
        };
        made().map(Self).map_err(|source| CoordinatorError::Output { path: path.clone(), source })
    }

    /// Returns the secret's bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Derives the key for one session of a worker, from the worker's name and incarnation. The key doesn't depend on
    /// the host's number: a worker gets another number if the coordinator that welcomed it was killed before that was
    /// logged.
    pub(crate) fn told_to(&self, life: (&str, u64)) -> [u8; 32] {
        ImageKey::told_to(life, &self.0)
    }
}

/// Removes the secret of a run that is over.
pub(crate) fn forget_secret(out: &Path) -> io::Result<()> {
    match fs::remove_file(out.join(FILE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Never shows the secret.
impl fmt::Debug for ImageSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ImageSecret")
    }
}

/// Reads the secret; `None`: the file doesn't exist or is incomplete.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes).filter(|bytes| bytes.len() == BYTES))
}

/// Makes a new secret and stores it.
fn make_secret(path: &Path, chance: &RandomSource) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; BYTES];
    chance.fill_bytes(&mut bytes)?;
    write_private(path, &bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn a_run_that_goes_on_has_the_same_secret_and_another_run_has_not() {
        let dir = tempfile::tempdir().expect("a folder");
        let key = |goes_on| {
            ImageSecret::of_run(dir.path(), goes_on, &RandomSource::System)
                .expect("a secret")
                .bytes()
                .to_vec()
        };
        let first = key(true);
        let told = |worker, life| ImageSecret(first.clone()).told_to((worker, life));
        assert!(told("a", 1) != told("b", 1) && told("a", 1) != told("a", 2));
        assert_eq!((first.len(), key(true) == first), (BYTES, true));
        let mode = fs::metadata(dir.path().join(FILE)).expect("its file").mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_ne!(key(false), first);
        // It was being written when the coordinator was killed: nobody has it.
        fs::write(dir.path().join(FILE), "half").expect("half a key");
        assert_eq!(key(true).len(), BYTES);
        forget_secret(dir.path()).and_then(|()| forget_secret(dir.path())).expect("it goes, once");
        assert!(!dir.path().join(FILE).exists());
    }
}
