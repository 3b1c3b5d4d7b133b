//! Files that are known to have their digests, as long as nobody has touched them.

use std::{
    collections::BTreeMap,
    fs::{self, Metadata},
    ops::Bound,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Records of the files whose digests this process computed while it wrote or read them. Clones share the records.
///
/// Reading the memory of a large task once more before each restore would take as long as the restore. A file that was neither
/// written, nor replaced, nor given other attributes since then is unchanged. If a disk damages such a file, reading it wouldn't
/// show the damage either, as long as the file is in the kernel's cache.
#[derive(Clone, Debug, Default)]
pub(crate) struct SoundFiles(Arc<Mutex<BTreeMap<PathBuf, (FileStamp, String)>>>);

/// Attributes of a file that the kernel changes with every change of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileStamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileStamp {
    fn read(path: &Path) -> Option<Self> {
        fs::symlink_metadata(path).ok().filter(Metadata::is_file).map(|it| Self {
            device: it.dev(),
            inode: it.ino(),
            size: it.size(),
            modified: (it.mtime(), it.mtime_nsec()),
            changed: (it.ctime(), it.ctime_nsec()),
        })
    }
}

impl SoundFiles {
    fn known_files(&self) -> MutexGuard<'_, BTreeMap<PathBuf, (FileStamp, String)>> {
        // Every change of it is whole, whoever panicked with it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the digest of a whole file.
    pub(crate) fn note_digest(&self, path: &Path, size: u64, blake3: &str) {
        if let Some(stamp) = FileStamp::read(path).filter(|stamp| stamp.size == size) {
            self.known_files().insert(path.to_owned(), (stamp, blake3.to_owned()));
        }
    }

    /// Returns whether the digest of a file is known to be `blake3`, and the file is unchanged since that was recorded.
    pub(crate) fn has_digest(&self, path: &Path, blake3: &str) -> bool {
        let noted =
            self.known_files().get(path).filter(|(_, digest)| digest == blake3).map(|it| it.0);
        noted.is_some() && noted == FileStamp::read(path)
    }

    /// Forgets the files below a directory, which are about to be removed.
    pub(crate) fn forget_directory(&self, directory: &Path) {
        let mut files = self.known_files();
        let from = (Bound::Included(directory), Bound::Unbounded);
        let below = files.range::<Path, _>(from).map(|(path, _)| path);
        let below: Vec<_> = below.take_while(|path| path.starts_with(directory)).cloned().collect();
        for path in below {
            files.remove(&path);
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_until_it_is_touched() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let sound = SoundFiles::default();
        for name in ["a/x", "a/y", "ab"] {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), name).unwrap();
            sound.note_digest(&at(name), name.len() as u64, "digest");
            assert!(
                sound.has_digest(&at(name), "digest") && !sound.has_digest(&at(name), "another")
            );
        }
        // Another file in its place, with the same content and length.
        fs::write(at("other"), "a/x").unwrap();
        fs::rename(at("other"), at("a/x")).unwrap();
        assert!(!sound.has_digest(&at("a/x"), "digest"));
        // The same file, written again.
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::write(at("a/y"), "a/Y").unwrap();
        assert!(!sound.has_digest(&at("a/y"), "digest"));
        sound.note_digest(&at("a/y"), 3, "digest");
        sound.forget_directory(&at("a"));
        assert!(!sound.has_digest(&at("a/y"), "digest") && sound.has_digest(&at("ab"), "digest"));
        sound.note_digest(&at("ab"), 7, "digest of another length");
        assert!(!sound.has_digest(&at("ab"), "digest of another length"));
        fs::remove_file(at("ab")).unwrap();
        assert!(!sound.has_digest(&at("ab"), "digest"));
    }
}
