//! A checkpoint as a stream of bytes, to be shipped to another worker.
//!
//! The stream is the magic number, the length of the manifest (4 bytes, big endian), the manifest, its seal (32 bytes),
//! the contents of the task's smaller files in the order of their digests, and the images in the manifest's order;
//! their lengths and checksums are in the manifest. Larger contents are sent separately, and only those that the
//! receiver lacks.

use std::{
    fs::File,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use blake3::Hash;
use dormouse_identity::CheckpointHead;

use super::{
    CheckpointDraft, CheckpointFile, CheckpointManifest, ExpectedCheckpoint, LocalCheckpoints,
    Result, StoreError, StoredCheckpoint,
};
use crate::contents::ContentDownload;

const CHUNK: usize = 256 * 1024;
/// Least size in bytes of a content that is sent separately: from this size on, the extra request is cheap compared with the
/// transfer.
const LARGE: u64 = 64 << 10;

impl CheckpointManifest {
    /// Returns the larger contents of the task's files, which are sent outside of the stream, each with its length in
    /// bytes.
    pub(crate) fn large_contents(&self) -> Vec<(Hash, u64)> {
        let large = self.file_contents().into_iter().filter(|&(_, bytes)| bytes >= LARGE);
        large.filter_map(|(hex, bytes)| Some((Hash::from_hex(hex).ok()?, bytes))).collect()
    }

    /// Returns the files in a stream, in their order: contents in the directory `files`, images in `images`.
    fn stream_parts(&self, files: &Path, images: &Path) -> Vec<(PathBuf, CheckpointFile)> {
        let small = self.file_contents().into_iter().filter(|&(_, bytes)| bytes < LARGE);
        let contents =
            small.map(|(hex, bytes)| (files.join(&hex), CheckpointFile::content_file(hex, bytes)));
        let images = self.images.iter().map(|entry| (images.join(&entry.name), entry.clone()));
        contents.chain(images).collect()
    }
}

impl StoredCheckpoint {
    /// Writes the checkpoint as a stream of bytes, without its larger contents. Returns the number of bytes.
    ///
    /// # Errors
    ///
    /// A file can't be read or has changed in size, or the stream fails. Contents are verified only by the receiver.
    pub fn export_checkpoint(&self, to: &mut impl Write) -> Result<u64> {
        let (json, seal) = self.sealed_manifest();
        let sending = |source| StoreError::Transfer { action: "sending it", source };
        let head = CheckpointHead { manifest: json.to_vec(), seal: *seal }.to_bytes();
        to.write_all(&head).map_err(sending)?;
        let mut total = head.len() as u64;
        for (path, entry) in
            self.manifest().stream_parts(&self.files_directory(), &self.images_directory())
        {
            let mut file = File::open(&path).map_err(StoreError::file_error("read", &path))?;
            let sent = io::copy(&mut (&mut file).take(entry.size), to).map_err(sending)?;
            if sent != entry.size {
                return Err(StoreError::Damaged {
                    path,
                    what: format!("has {sent} bytes instead of {}", entry.size),
                });
            }
            total += sent;
        }
        to.flush().map_err(sending)?;
        Ok(total)
    }

    /// Opens a content of the task's files.
    ///
    /// # Errors
    ///
    /// No content has this digest.
    pub(crate) fn open_content(&self, digest: &Hash) -> Result<File> {
        let path = self.files_directory().join(digest.to_hex().as_str());
        File::open(&path).map_err(StoreError::file_error("read", path))
    }
}

/// Checkpoint from a different worker whose larger contents are still to be received. If it is dropped before
/// [`CheckpointArrival::complete_arrival`], all its files are removed.
#[derive(Debug)]
pub struct CheckpointArrival {
    draft: CheckpointDraft,
    manifest: CheckpointManifest,
    json: Vec<u8>,
    missing: Vec<(Hash, u64)>,
    store: LocalCheckpoints,
}

impl CheckpointArrival {
    /// Returns the contents to receive, each with its length in bytes: those that no checkpoint of the task on this host has.
    #[must_use]
    pub fn missing_contents(&self) -> &[(Hash, u64)] {
        &self.missing
    }

    /// Begins to receive one of the contents.
    ///
    /// # Errors
    ///
    /// Its file can't be made.
    pub fn receive_content(&self, digest: Hash, bytes: u64) -> Result<ContentDownload> {
        Ok(ContentDownload::begin_download(&self.draft.files_directory(), digest, bytes)?)
    }

    /// Puts the checkpoint into the store once all of it was received.
    ///
    /// # Errors
    ///
    /// [`StoreError::Missing`] if a content is missing; or the disk is full.
    pub fn complete_arrival(self) -> Result<StoredCheckpoint> {
        let Self { draft, manifest, json, missing, store } = self;
        for (digest, _) in missing {
            if !draft.content_objects().content_path(&digest).exists() {
                return Err(StoreError::Missing { digest: digest.to_hex().to_string() });
            }
        }
        let checkpoint = draft.seal_manifest(manifest, json)?;
        store.prune_task(&checkpoint.manifest().task)?;
        Ok(checkpoint)
    }
}

impl LocalCheckpoints {
    /// Reads a checkpoint without larger contents from a stream of bytes, and puts it into the store.
    ///
    /// # Errors
    ///
    /// Those of [`LocalCheckpoints::receive`] and [`CheckpointArrival::complete_arrival`].
    pub fn import_checkpoint(
        &self,
        from: &mut impl Read,
        expected: &ExpectedCheckpoint,
    ) -> Result<StoredCheckpoint> {
        self.receive_checkpoint(from, expected)?.complete_arrival()
    }

    /// Reads a checkpoint from a stream of bytes, for the store, under its original task and number. Compares its seal and every
    /// checksum. If this fails, nothing of the checkpoint is left.
    ///
    /// # Errors
    ///
    /// The stream breaks off; it is not a checkpoint, a damaged one or not the expected one; or the disk is full.
    pub fn receive_checkpoint(
        &self,
        from: &mut impl Read,
        expected: &ExpectedCheckpoint,
    ) -> Result<CheckpointArrival> {
        let head = CheckpointHead::read(from).map_err(|source| match source.kind() {
            io::ErrorKind::InvalidData => StoreError::Stream { what: source.to_string() },
            _ => StoreError::Transfer { action: "receiving it", source },
        })?;
        let origin = Path::new("in the stream");
        if !head.is_of(self.key()) {
            return Err(StoreError::Seal { path: origin.to_owned() });
        }
        let json = head.manifest;
        let manifest = CheckpointManifest::parse(&json, origin)?;
        expected.check_manifest(&manifest)?;
        let draft = self.begin_as(&manifest.task, manifest.sequence)?;
        receive_parts(from, &draft, &manifest)?;
        let (mut missing, objects) = (manifest.large_contents(), draft.content_objects());
        missing.retain(|(digest, bytes)| !objects.share_sound(digest, *bytes));
        Ok(CheckpointArrival { draft, manifest, json, missing, store: self.clone() })
    }
}

fn receive_parts(
    from: &mut impl Read,
    draft: &CheckpointDraft,
    manifest: &CheckpointManifest,
) -> Result<()> {
    let mut buffer = vec![0; CHUNK];
    for (path, entry) in manifest.stream_parts(&draft.files_directory(), &draft.images_directory())
    {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(StoreError::file_error("create", parent))?;
        }
        let mut file = File::create(&path).map_err(StoreError::file_error("create", &path))?;
        let mut hasher = blake3::Hasher::new();
        let mut left = entry.size;
        while left > 0 {
            let wanted = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
            let chunk = buffer.get_mut(..wanted).unwrap_or_default();
            receive_bytes(from, chunk)?;
            hasher.update(chunk);
            file.write_all(chunk).map_err(StoreError::file_error("write", &path))?;
            left -= wanted as u64;
        }
        if hasher.finalize().to_hex().as_str() != entry.blake3 {
            return Err(StoreError::Damaged {
                path,
                what: "does not match its checksum".to_owned(),
            });
        }
        drop(file);
        if path == draft.images_directory().join(&entry.name) {
            draft.note_sound(&entry);
        }
    }
    Ok(())
}

fn receive_bytes(from: &mut impl Read, buffer: &mut [u8]) -> Result<()> {
    from.read_exact(buffer)
        .map_err(|source| StoreError::Transfer { action: "receiving it", source })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::{
        store::{ImageKey, SavedProgress},
        workspace::TaskName,
    };
    use std::{collections::BTreeMap, fs};

    fn store(dir: &Path) -> LocalCheckpoints {
        LocalCheckpoints::open(dir).unwrap().with_key(ImageKey::new(&[5; 32]).unwrap())
    }

    fn expected() -> ExpectedCheckpoint {
        ExpectedCheckpoint {
            task: TaskName::new("run", "t1").unwrap(),
            sequence: 1,
            attempts: 2..=2,
            program: "vector".to_owned(),
            bytes: 1 << 20,
        }
    }

    fn exported(dir: &Path) -> (TaskName, Vec<u8>) {
        let name = TaskName::new("run", "t1").unwrap();
        let draft = store(dir).begin_checkpoint(&name).unwrap();
        fs::write(draft.images_directory().join("pages-1.img"), vec![7; 600_000]).unwrap();
        let task = tempfile::tempdir().unwrap();
        fs::create_dir(task.path().join("sub")).unwrap();
        fs::write(task.path().join("sub/out"), "text").unwrap();
        fs::write(task.path().join("empty"), "").unwrap();
        let files = draft.save_files(task.path()).unwrap();
        let progress = SavedProgress { attempt: 2, progress_ppm: 500_000, cpu_ns: 77 };
        let checkpoint = draft
            .commit_checkpoint(
                "vector".to_owned(),
                progress,
                (files, vec![]),
                "4.1.1".to_owned(),
                &BTreeMap::new(),
            )
            .unwrap();
        let mut bytes = Vec::new();
        assert_eq!(checkpoint.export_checkpoint(&mut bytes).unwrap(), bytes.len() as u64);
        (name, bytes)
    }

    #[test]
    fn a_checkpoint_travels() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (name, bytes) = exported(a.path());
        let store = store(b.path());
        let arrived = store.import_checkpoint(&mut bytes.as_slice(), &expected()).unwrap();
        assert_eq!(arrived.manifest().progress.cpu_ns, 77);
        let latest = store.latest_undamaged(&name).unwrap();
        assert_eq!(latest.checkpoint.unwrap().manifest(), arrived.manifest());
        // Twice is the same as once, and for who takes it of an earlier attempt, too.
        let of_any = ExpectedCheckpoint { attempts: 1..=5, ..expected() };
        store.import_checkpoint(&mut bytes.as_slice(), &of_any).unwrap();
        assert_eq!(store.complete_numbers(&name).unwrap(), [1]);
    }

    #[test]
    fn what_is_not_what_was_asked_for_leaves_nothing() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (_, bytes) = exported(a.path());
        let store = store(b.path());
        let other = TaskName::new("other", "t1").unwrap();
        for wrong in [
            ExpectedCheckpoint { task: other, ..expected() },
            ExpectedCheckpoint { sequence: 2, ..expected() },
            ExpectedCheckpoint { attempts: 1..=1, ..expected() },
            ExpectedCheckpoint { attempts: 3..=7, ..expected() },
            ExpectedCheckpoint { program: "ep".to_owned(), ..expected() },
            ExpectedCheckpoint { bytes: 600_003, ..expected() },
        ] {
            let error = store.import_checkpoint(&mut bytes.as_slice(), &wrong).unwrap_err();
            assert!(matches!(error, StoreError::Another { .. }), "{error}");
        }
        // A worker of another run, or nobody's: all is right but the key.
        let strange = store.with_key(ImageKey::new(&[6; 32]).unwrap());
        let error = strange.import_checkpoint(&mut bytes.as_slice(), &expected()).unwrap_err();
        assert!(matches!(error, StoreError::Seal { .. }), "{error}");
        assert_eq!(fs::read_dir(b.path()).unwrap().count(), 0);
    }

    #[test]
    fn broken_streams_leave_nothing() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (name, bytes) = exported(a.path());
        let store = store(b.path());
        for cut in [0, 5, 11, 100, bytes.len() / 2, bytes.len() - 1] {
            let error = store.import_checkpoint(&mut &bytes[..cut], &expected()).unwrap_err();
            assert!(matches!(error, StoreError::Transfer { .. }), "{cut}: {error}");
        }
        let mut flipped = bytes.clone();
        *flipped.last_mut().unwrap() ^= 1;
        assert!(matches!(
            store.import_checkpoint(&mut flipped.as_slice(), &expected()),
            Err(StoreError::Damaged { .. })
        ));
        let nonsense = [0; 64];
        assert!(matches!(
            store.import_checkpoint(&mut nonsense.as_slice(), &expected()),
            Err(StoreError::Stream { .. })
        ));
        let mut huge = CheckpointHead::MAGIC.to_vec();
        huge.extend([0xff; 4]);
        assert!(matches!(
            store.import_checkpoint(&mut huge.as_slice(), &expected()),
            Err(StoreError::Stream { .. })
        ));
        assert!(store.complete_numbers(&name).unwrap().is_empty());
        assert_eq!(fs::read_dir(b.path().join("run/t1")).unwrap().count(), 0);
    }
}
