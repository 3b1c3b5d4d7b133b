//! A checkpoint as a stream of bytes, to be shipped to another worker.
//!
//! The stream is the magic number, the length of the manifest (4 bytes, big endian), the
//! manifest, its seal (32 bytes), the contents of the task's smaller files in the order of their digests, and the
//! images in the manifest's order; their lengths and checksums are in the manifest. Larger contents go by
//! themselves, those alone that whoever stores the checkpoint lacks.

use std::{
    fs::File,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use blake3::Hash;
use dormouse_identity::CheckpointHead;

use super::{Checkpoint, Draft, Error, Expected, FileEntry, Manifest, Result, Store};
use crate::contents::Incoming;

const CHUNK: usize = 256 * 1024;
/// The length from which on a content goes by itself, in bytes: what asking for it costs is little beside it then.
const LARGE: u64 = 64 << 10;

impl Manifest {
    /// The larger contents of the task's files, which are in no stream, each with its length in bytes.
    pub(crate) fn large_contents(&self) -> Vec<(Hash, u64)> {
        let large = self.contents().into_iter().filter(|&(_, bytes)| bytes >= LARGE);
        large.filter_map(|(hex, bytes)| Some((Hash::from_hex(hex).ok()?, bytes))).collect()
    }

    /// The files that are in a stream, in their order: contents in the directory `files`, images in `images`.
    fn parts(&self, files: &Path, images: &Path) -> Vec<(PathBuf, FileEntry)> {
        let small = self.contents().into_iter().filter(|&(_, bytes)| bytes < LARGE);
        let contents = small.map(|(hex, bytes)| (files.join(&hex), FileEntry::content(hex, bytes)));
        let images = self.images.iter().map(|entry| (images.join(&entry.name), entry.clone()));
        contents.chain(images).collect()
    }
}

impl Checkpoint {
    /// Writes the checkpoint as a stream of bytes, all but its larger contents. Returns how many.
    ///
    /// # Errors
    /// Where a file cannot be read, has changed in size, or the stream fails. Contents are not
    /// verified here but where they arrive.
    pub fn export(&self, to: &mut impl Write) -> Result<u64> {
        let (json, seal) = self.sealed();
        let sending = |source| Error::Transfer { action: "sending it", source };
        let head = CheckpointHead { manifest: json.to_vec(), seal: *seal }.to_bytes();
        to.write_all(&head).map_err(sending)?;
        let mut total = head.len() as u64;
        for (path, entry) in self.manifest().parts(&self.files(), &self.images()) {
            let mut file = File::open(&path).map_err(Error::file("read", &path))?;
            let sent = io::copy(&mut (&mut file).take(entry.size), to).map_err(sending)?;
            if sent != entry.size {
                return Err(Error::Damaged {
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
    /// Where there is none with this digest.
    pub(crate) fn open_content(&self, digest: &Hash) -> Result<File> {
        let path = self.files().join(digest.to_hex().as_str());
        File::open(&path).map_err(Error::file("read", path))
    }
}

/// A checkpoint from elsewhere, whose larger contents have still to come. Dropped before
/// [`Arrival::complete`], it leaves nothing.
#[derive(Debug)]
pub struct Arrival {
    draft: Draft,
    manifest: Manifest,
    json: Vec<u8>,
    missing: Vec<(Hash, u64)>,
    store: Store,
}

impl Arrival {
    /// The contents that have to come, each with its length in bytes: all that no checkpoint of the task has here.
    #[must_use]
    pub fn missing(&self) -> &[(Hash, u64)] {
        &self.missing
    }

    /// Begins to receive one of the contents.
    ///
    /// # Errors
    /// Where its file cannot be made.
    pub fn receive(&self, digest: Hash, bytes: u64) -> Result<Incoming> {
        Ok(Incoming::begin(&self.draft.files(), digest, bytes)?)
    }

    /// Puts the checkpoint into the store, all of it having come.
    ///
    /// # Errors
    /// [`Error::Missing`] where a content has not come; or the disk is full.
    pub fn complete(self) -> Result<Checkpoint> {
        let Self { draft, manifest, json, missing, store } = self;
        for (digest, _) in missing {
            if !draft.objects().path(&digest).exists() {
                return Err(Error::Missing { digest: digest.to_hex().to_string() });
            }
        }
        let checkpoint = draft.seal(manifest, json)?;
        store.prune(&checkpoint.manifest().task)?;
        Ok(checkpoint)
    }
}

impl Store {
    /// Reads a checkpoint from a stream of bytes, whose larger contents no stream has, and puts it into the store.
    ///
    /// # Errors
    /// As [`Store::receive`] and [`Arrival::complete`] have it.
    pub fn import(&self, from: &mut impl Read, expected: &Expected) -> Result<Checkpoint> {
        self.receive(from, expected)?.complete()
    }

    /// Reads a checkpoint from a stream of bytes, to be put into the store under the task and
    /// number it had, having compared its seal and every checksum. Nothing is left of one that fails.
    ///
    /// # Errors
    /// Where the stream breaks off, is no checkpoint, a damaged one or not the one that is expected, or
    /// the disk is full.
    pub fn receive(&self, from: &mut impl Read, expected: &Expected) -> Result<Arrival> {
        let head = CheckpointHead::read(from).map_err(|source| match source.kind() {
            io::ErrorKind::InvalidData => Error::Stream { what: source.to_string() },
            _ => Error::Transfer { action: "receiving it", source },
        })?;
        let origin = Path::new("in the stream");
        if !head.is_of(self.key()) {
            return Err(Error::Seal { path: origin.to_owned() });
        }
        let json = head.manifest;
        let manifest = Manifest::parse(&json, origin)?;
        expected.check(&manifest)?;
        let draft = self.begin_as(&manifest.task, manifest.sequence)?;
        receive_parts(from, &draft, &manifest)?;
        let (mut missing, objects) = (manifest.large_contents(), draft.objects());
        missing.retain(|(digest, bytes)| !objects.share_sound(digest, *bytes));
        Ok(Arrival { draft, manifest, json, missing, store: self.clone() })
    }
}

fn receive_parts(from: &mut impl Read, draft: &Draft, manifest: &Manifest) -> Result<()> {
    let mut buffer = vec![0; CHUNK];
    for (path, entry) in manifest.parts(&draft.files(), &draft.images()) {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(Error::file("create", parent))?;
        }
        let mut file = File::create(&path).map_err(Error::file("create", &path))?;
        let mut hasher = blake3::Hasher::new();
        let mut left = entry.size;
        while left > 0 {
            let wanted = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
            let chunk = buffer.get_mut(..wanted).unwrap_or_default();
            receive(from, chunk)?;
            hasher.update(chunk);
            file.write_all(chunk).map_err(Error::file("write", &path))?;
            left -= wanted as u64;
        }
        if hasher.finalize().to_hex().as_str() != entry.blake3 {
            return Err(Error::Damaged { path, what: "does not match its checksum".to_owned() });
        }
        drop(file);
        if path == draft.images().join(&entry.name) {
            draft.note_sound(&entry);
        }
    }
    Ok(())
}

fn receive(from: &mut impl Read, buffer: &mut [u8]) -> Result<()> {
    from.read_exact(buffer).map_err(|source| Error::Transfer { action: "receiving it", source })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::{
        store::{ImageKey, Progress},
        workspace::TaskName,
    };
    use std::{collections::BTreeMap, fs};

    fn store(dir: &Path) -> Store {
        Store::open(dir).unwrap().with_key(ImageKey::new(&[5; 32]).unwrap())
    }

    fn expected() -> Expected {
        Expected {
            task: TaskName::new("run", "t1").unwrap(),
            sequence: 1,
            attempts: 2..=2,
            program: "vector".to_owned(),
            bytes: 1 << 20,
        }
    }

    fn exported(dir: &Path) -> (TaskName, Vec<u8>) {
        let name = TaskName::new("run", "t1").unwrap();
        let draft = store(dir).begin(&name).unwrap();
        fs::write(draft.images().join("pages-1.img"), vec![7; 600_000]).unwrap();
        let task = tempfile::tempdir().unwrap();
        fs::create_dir(task.path().join("sub")).unwrap();
        fs::write(task.path().join("sub/out"), "text").unwrap();
        fs::write(task.path().join("empty"), "").unwrap();
        let files = draft.save_files(task.path()).unwrap();
        let progress = Progress { attempt: 2, progress_ppm: 500_000, cpu_ns: 77 };
        let checkpoint = draft
            .commit(
                "vector".to_owned(),
                progress,
                (files, vec![]),
                "4.1.1".to_owned(),
                &BTreeMap::new(),
            )
            .unwrap();
        let mut bytes = Vec::new();
        assert_eq!(checkpoint.export(&mut bytes).unwrap(), bytes.len() as u64);
        (name, bytes)
    }

    #[test]
    fn a_checkpoint_travels() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (name, bytes) = exported(a.path());
        let store = store(b.path());
        let arrived = store.import(&mut bytes.as_slice(), &expected()).unwrap();
        assert_eq!(arrived.manifest().progress.cpu_ns, 77);
        let latest = store.latest_valid(&name).unwrap();
        assert_eq!(latest.checkpoint.unwrap().manifest(), arrived.manifest());
        // Twice is the same as once, and for who takes it of an earlier attempt, too.
        let of_any = Expected { attempts: 1..=5, ..expected() };
        store.import(&mut bytes.as_slice(), &of_any).unwrap();
        assert_eq!(store.complete(&name).unwrap(), [1]);
    }

    #[test]
    fn what_is_not_what_was_asked_for_leaves_nothing() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (_, bytes) = exported(a.path());
        let store = store(b.path());
        let other = TaskName::new("other", "t1").unwrap();
        for wrong in [
            Expected { task: other, ..expected() },
            Expected { sequence: 2, ..expected() },
            Expected { attempts: 1..=1, ..expected() },
            Expected { attempts: 3..=7, ..expected() },
            Expected { program: "ep".to_owned(), ..expected() },
            Expected { bytes: 600_003, ..expected() },
        ] {
            let error = store.import(&mut bytes.as_slice(), &wrong).unwrap_err();
            assert!(matches!(error, Error::Another { .. }), "{error}");
        }
        // A worker of another run, or nobody's: all is right but the key.
        let strange = store.with_key(ImageKey::new(&[6; 32]).unwrap());
        let error = strange.import(&mut bytes.as_slice(), &expected()).unwrap_err();
        assert!(matches!(error, Error::Seal { .. }), "{error}");
        assert_eq!(fs::read_dir(b.path()).unwrap().count(), 0);
    }

    #[test]
    fn broken_streams_leave_nothing() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (name, bytes) = exported(a.path());
        let store = store(b.path());
        for cut in [0, 5, 11, 100, bytes.len() / 2, bytes.len() - 1] {
            let error = store.import(&mut &bytes[..cut], &expected()).unwrap_err();
            assert!(matches!(error, Error::Transfer { .. }), "{cut}: {error}");
        }
        let mut flipped = bytes.clone();
        *flipped.last_mut().unwrap() ^= 1;
        assert!(matches!(
            store.import(&mut flipped.as_slice(), &expected()),
            Err(Error::Damaged { .. })
        ));
        let nonsense = [0; 64];
        assert!(matches!(
            store.import(&mut nonsense.as_slice(), &expected()),
            Err(Error::Stream { .. })
        ));
        let mut huge = CheckpointHead::MAGIC.to_vec();
        huge.extend([0xff; 4]);
        assert!(matches!(
            store.import(&mut huge.as_slice(), &expected()),
            Err(Error::Stream { .. })
        ));
        assert!(store.complete(&name).unwrap().is_empty());
        assert_eq!(fs::read_dir(b.path().join("run/t1")).unwrap().count(), 0);
    }
}
