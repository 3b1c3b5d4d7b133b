//! A checkpoint as a stream of bytes, to be shipped to another worker.
//!
//! The stream is the magic number, the length of the manifest (4 bytes, big endian), the
//! manifest, and the contents of its files and images in the manifest's order; their lengths
//! and checksums are in the manifest.

use std::{
    fs::File,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use super::{Checkpoint, Draft, Error, FileEntry, Manifest, Result, Store};

const MAGIC: &[u8; 8] = b"DORMCKP1";
/// A manifest has about 150 bytes per file and a task a few dozen files.
const MANIFEST_LIMIT: u32 = 16 << 20;
const CHUNK: usize = 256 * 1024;

impl Checkpoint {
    /// Writes the checkpoint as a stream of bytes. Returns how many.
    ///
    /// # Errors
    /// Where a file cannot be read, has changed in size, or the stream fails. Contents are not
    /// verified here but where they arrive.
    pub fn export(&self, to: &mut impl Write) -> Result<u64> {
        let json = serde_json::to_vec(self.manifest())
            .map_err(|source| Error::Manifest { path: self.directory().to_owned(), source })?;
        let length = u32::try_from(json.len()).unwrap_or(u32::MAX);
        let sending = |source| Error::Transfer { action: "sending it", source };
        to.write_all(MAGIC).map_err(sending)?;
        to.write_all(&length.to_be_bytes()).map_err(sending)?;
        to.write_all(&json).map_err(sending)?;
        let mut total = MAGIC.len() as u64 + 4 + u64::from(length);
        for (path, entry) in self.parts(&self.files(), &self.images()) {
            let mut file = File::open(&path).map_err(Error::file("read", &path))?;
            let sent = io::copy(&mut (&mut file).take(entry.size), to).map_err(sending)?;
            if sent != entry.size {
                return Err(Error::Damaged {
                    path,
                    what: format!("has {sent} bytes and not {}", entry.size),
                });
            }
            total += sent;
        }
        to.flush().map_err(sending)?;
        Ok(total)
    }

    fn parts(&self, files: &Path, images: &Path) -> Vec<(PathBuf, &FileEntry)> {
        parts(self.manifest(), files, images)
    }
}

impl Store {
    /// Reads a checkpoint from a stream of bytes and puts it into the store, under the task and
    /// number it had, having compared every checksum. Nothing is left of one that fails.
    ///
    /// # Errors
    /// Where the stream breaks off, is no checkpoint or a damaged one, or the disk is full.
    pub fn import(&self, from: &mut impl Read) -> Result<Checkpoint> {
        let mut head = [0; 12];
        receive(from, &mut head)?;
        let ([magic @ .., _, _, _, _], [.., a, b, c, d]) = (&head, &head);
        if magic != MAGIC {
            return Err(Error::Stream { what: "it does not begin like one".to_owned() });
        }
        let length = u32::from_be_bytes([*a, *b, *c, *d]);
        if length > MANIFEST_LIMIT {
            return Err(Error::Stream { what: format!("its manifest would have {length} bytes") });
        }
        let mut json = vec![0; length as usize];
        receive(from, &mut json)?;
        let manifest = Manifest::parse(&json, Path::new("in the stream"))?;
        let draft = self.begin_as(&manifest.task, manifest.sequence)?;
        self.receive_parts(from, &draft, &manifest)?;
        let checkpoint = draft.seal(manifest)?;
        self.prune(&checkpoint.manifest().task)?;
        Ok(checkpoint)
    }

    fn receive_parts(
        &self,
        from: &mut impl Read,
        draft: &Draft,
        manifest: &Manifest,
    ) -> Result<()> {
        let mut buffer = vec![0; CHUNK];
        for (path, entry) in parts(manifest, &draft.files(), &draft.images()) {
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
                return Err(Error::Damaged {
                    path,
                    what: "does not match its checksum".to_owned(),
                });
            }
        }
        Ok(())
    }
}

fn parts<'a>(manifest: &'a Manifest, files: &Path, images: &Path) -> Vec<(PathBuf, &'a FileEntry)> {
    let files = manifest.files.iter().map(|e| (files.join(&e.name), e));
    let images = manifest.images.iter().map(|e| (images.join(&e.name), e));
    files.chain(images).collect()
}

fn receive(from: &mut impl Read, buffer: &mut [u8]) -> Result<()> {
    from.read_exact(buffer).map_err(|source| Error::Transfer { action: "receiving it", source })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::{store::Progress, workspace::TaskName};
    use std::{collections::BTreeMap, fs};

    fn exported(dir: &Path) -> (TaskName, Vec<u8>) {
        let name = TaskName::new("run", "t1").unwrap();
        let draft = Store::open(dir).unwrap().begin(&name).unwrap();
        fs::write(draft.images().join("pages-1.img"), vec![7; 600_000]).unwrap();
        fs::create_dir(draft.files().join("sub")).unwrap();
        fs::write(draft.files().join("sub/out"), "text").unwrap();
        fs::write(draft.files().join("empty"), "").unwrap();
        let progress = Progress { attempt: 2, progress_ppm: 500_000, cpu_ns: 77 };
        let checkpoint =
            draft.commit(progress, vec![], "4.1.1".to_owned(), &BTreeMap::new()).unwrap();
        let mut bytes = Vec::new();
        assert_eq!(checkpoint.export(&mut bytes).unwrap(), bytes.len() as u64);
        (name, bytes)
    }

    #[test]
    fn a_checkpoint_travels() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (name, bytes) = exported(a.path());
        let store = Store::open(b.path()).unwrap();
        let arrived = store.import(&mut bytes.as_slice()).unwrap();
        assert_eq!(arrived.manifest().progress.cpu_ns, 77);
        let latest = store.latest_valid(&name).unwrap();
        assert_eq!(latest.checkpoint.unwrap().manifest(), arrived.manifest());
        // Twice is the same as once.
        store.import(&mut bytes.as_slice()).unwrap();
        assert_eq!(store.complete(&name).unwrap(), [1]);
    }

    #[test]
    fn broken_streams_leave_nothing() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (name, bytes) = exported(a.path());
        let store = Store::open(b.path()).unwrap();
        for cut in [0, 5, 11, 100, bytes.len() / 2, bytes.len() - 1] {
            let error = store.import(&mut &bytes[..cut]).unwrap_err();
            assert!(matches!(error, Error::Transfer { .. }), "{cut}: {error}");
        }
        let mut flipped = bytes.clone();
        *flipped.last_mut().unwrap() ^= 1;
        assert!(matches!(store.import(&mut flipped.as_slice()), Err(Error::Damaged { .. })));
        let nonsense = [0; 64];
        assert!(matches!(store.import(&mut nonsense.as_slice()), Err(Error::Stream { .. })));
        let mut huge = MAGIC.to_vec();
        huge.extend([0xff; 4]);
        assert!(matches!(store.import(&mut huge.as_slice()), Err(Error::Stream { .. })));
        assert!(store.complete(&name).unwrap().is_empty());
        assert_eq!(fs::read_dir(b.path().join("run/t1")).unwrap().count(), 0);
    }
}
