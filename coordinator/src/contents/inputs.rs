//! Users' input files, which are stored as contents at the start of a run.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use blake3::{Hash, Hasher};
use dormouse_tasks::own::FileRef;

use super::ContentPool;
use super::pool::{ContentRefusal, INPUTS, add_name};

impl ContentPool {
    /// Stores a user's file until the run is over, to be placed at this path of a task's directory.
    ///
    /// # Errors
    ///
    /// The file can't be read, isn't regular, or changes meanwhile; or the disk is full.
    pub fn take_in(&self, file: &Path, path: &str) -> io::Result<FileRef> {
        let mut source = File::open(file)?;
        let found = source.metadata()?;
        if !found.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        let mut hasher = Hasher::new();
        let bytes = io::copy(&mut source, &mut hasher)?;
        let digest = hasher.finalize();
        if !self.holds_content(&digest)? {
            let mut incoming = self.receive_content(digest, bytes)?;
            let (mut source, mut buffer) = (File::open(file)?, vec![0; 256 << 10]);
            let changed = |refused| match refused {
                ContentRefusal::Io(error) => error,
                ContentRefusal::Another { .. } => io::Error::other("it changes while it is read"),
            };
            loop {
                match source.read(&mut buffer)? {
                    0 => break,
                    n => incoming.write(buffer.get(..n).unwrap_or_default()).map_err(changed)?,
                }
            }
            self.finish_content(incoming).map_err(changed)?;
        }
        self.keep_as_input(&digest)?;
        let executable = found.mode() & 0o111 != 0;
        let digest = digest.to_hex().to_string();
        Ok(FileRef { path: path.to_owned(), digest, bytes, executable })
    }

    /// Keeps a stored content until the run is over.
    pub(crate) fn keep_as_input(&self, digest: &Hash) -> io::Result<()> {
        let inputs = self.root.join(INPUTS);
        fs::create_dir_all(&inputs)?;
        add_name(&self.content_path(digest), &inputs.join(digest.to_hex().as_str()))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn an_input_is_taken_in_once_and_stays() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let contents = ContentPool::open(&dir.path().join("contents")).expect("room");
        let file = dir.path().join("solve");
        fs::write(&file, "#!/bin/sh").expect("room");
        let taken = contents.take_in(&file, "bin/solve").expect("it is a file");
        assert_eq!((&*taken.path, taken.bytes, taken.executable), ("bin/solve", 9, false));
        assert_eq!(taken.digest, blake3::hash(b"#!/bin/sh").to_hex().as_str());
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("it is ours");
        let again = contents.take_in(&file, "solve").expect("it is a file");
        assert!(again.executable && again.digest == taken.digest);
        let digest = blake3::hash(b"#!/bin/sh");
        let names = fs::metadata(contents.content_path(&digest)).expect("it is there").nlink();
        assert_eq!(names, 2, "no sweep takes it");
        assert!(contents.take_in(dir.path(), "folder").is_err());
    }
}
