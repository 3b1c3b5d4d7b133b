//! The cache of the contents of input files on this worker.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use blake3::Hash;

use super::{ContentDownload, ContentError};

/// Most bytes of contents that a worker keeps.
const MAX_BYTES: u64 = 4 << 30;

/// Contents of input files on this worker, in a directory of their own. The least recently used ones are removed.
#[derive(Clone, Debug)]
pub struct ContentCache {
    root: PathBuf,
    most: u64,
    known: Arc<Mutex<KnownContents>>,
}

/// The facts about the stored contents that are known without reading the disk.
#[derive(Debug, Default)]
struct KnownContents {
    contents: BTreeMap<[u8; 32], CachedContent>,
    /// Counter of uses, by which the least recently used content is found.
    uses: u64,
}

#[derive(Clone, Copy, Debug)]
struct CachedContent {
    bytes: u64,
    /// True once all bytes of the content have arrived.
    whole: bool,
    /// The number of tasks that hold the content; it isn't removed while a task holds it.
    holders: u32,
    used: u64,
}

/// Contents that stay in the cache until this value is dropped.
#[derive(Debug)]
pub struct HeldContents {
    cache: ContentCache,
    digests: BTreeSet<[u8; 32]>,
}

impl ContentCache {
    /// Opens the contents in the directory `root`, which is created if need be. Contents that an earlier process of the
    /// worker left are removed.
    ///
    /// # Errors
    ///
    /// The directory can't be created or emptied.
    pub fn open(root: &Path) -> io::Result<Self> {
        Self::with_bound(root, MAX_BYTES)
    }

    fn with_bound(root: &Path, most: u64) -> io::Result<Self> {
        fs::create_dir_all(root)?;
        for entry in fs::read_dir(root)? {
            fs::remove_file(entry?.path())?;
        }
        Ok(Self { root: root.to_owned(), most, known: Arc::default() })
    }

    fn known_contents(&self) -> MutexGuard<'_, KnownContents> {
        // Every change of it is whole, whoever panicked with it.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn content_path(&self, digest: &[u8; 32]) -> PathBuf {
        self.root.join(Hash::from_bytes(*digest).to_hex().as_str())
    }

    /// Makes room for `contents`, each with its length in bytes, and keeps them from being removed, whether they have arrived or
    /// not.
    ///
    /// # Errors
    ///
    /// All held contents together are more than the worker keeps.
    pub fn hold_contents(
        &self,
        wanted: impl IntoIterator<Item = (Hash, u64)>,
    ) -> io::Result<HeldContents> {
        let mut held = HeldContents { cache: self.clone(), digests: BTreeSet::new() };
        let mut known = self.known_contents();
        for (digest, bytes) in wanted {
            let key = *digest.as_bytes();
            if held.digests.insert(key) {
                known.uses += 1;
                let used = known.uses;
                let new = CachedContent { bytes, whole: false, holders: 0, used };
                let content = known.contents.entry(key).or_insert(new);
                (content.used, content.holders) = (used, content.holders + 1);
            }
        }
        let gone = known.make_room(self.most);
        drop(known);
        let Some(gone) = gone else {
            let why =
                format!("the inputs of this worker's tasks have more than {} bytes", self.most);
            return Err(io::Error::new(io::ErrorKind::StorageFull, why));
        };
        for digest in gone {
            // One that cannot be removed is replaced, or goes with the worker's next start.
            let _ = fs::remove_file(self.content_path(&digest));
        }
        Ok(held)
    }

    /// Returns the sum of the lengths of all contents, in bytes.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.known_contents().total_bytes()
    }
}

impl KnownContents {
    fn total_bytes(&self) -> u64 {
        self.contents.values().map(|content| content.bytes).fold(0, u64::saturating_add)
    }

    /// Forgets contents that no task holds, the least recently used first, until the rest is at most `most` bytes. Returns the
    /// digests of the contents to be removed; `None`: the held contents alone are more.
    fn make_room(&mut self, most: u64) -> Option<Vec<[u8; 32]>> {
        let mut bytes = self.total_bytes();
        let mut idle: Vec<_> = self.contents.iter().filter(|(_, it)| it.holders == 0).collect();
        idle.sort_by_key(|(_, content)| content.used);
        let mut gone = Vec::new();
        for (digest, content) in idle {
            if bytes <= most {
                break;
            }
            bytes -= content.bytes;
            gone.push(*digest);
        }
        for digest in &gone {
            self.contents.remove(digest);
        }
        (bytes <= most).then_some(gone)
    }
}

impl HeldContents {
    /// Returns the digests of the held contents that haven't arrived.
    #[must_use]
    pub fn missing_contents(&self) -> Vec<Hash> {
        let known = self.cache.known_contents();
        let is_whole = |digest: &[u8; 32]| known.contents.get(digest).is_some_and(|it| it.whole);
        let missing = self.digests.iter().filter(|digest| !is_whole(digest));
        missing.map(|digest| Hash::from_bytes(*digest)).collect()
    }

    /// Begins to receive one of the held contents, which replaces a file that already exists under its digest.
    ///
    /// # Errors
    ///
    /// The file can't be created.
    pub fn receive_content(
        &self,
        digest: Hash,
        length: u64,
    ) -> Result<ContentDownload, ContentError> {
        ContentDownload::begin_download(&self.cache.root, digest, length)
    }

    /// Records that a content has arrived.
    pub fn content_came(&self, digest: &Hash) {
        if let Some(content) = self.cache.known_contents().contents.get_mut(digest.as_bytes()) {
            content.whole = true;
        }
    }

    /// Opens a content.
    ///
    /// # Errors
    ///
    /// The content hasn't arrived, or the disk fails.
    pub fn open(&self, digest: &Hash) -> io::Result<File> {
        File::open(self.cache.content_path(digest.as_bytes()))
    }

    /// Records that a content is damaged and must be fetched again.
    pub fn forget_content(&self, digest: &Hash) {
        if let Some(content) = self.cache.known_contents().contents.get_mut(digest.as_bytes()) {
            content.whole = false;
        }
        let _ = fs::remove_file(self.cache.content_path(digest.as_bytes()));
    }
}

impl Drop for HeldContents {
    fn drop(&mut self) {
        let mut known = self.cache.known_contents();
        for digest in &self.digests {
            if let Some(content) = known.contents.get_mut(digest) {
                content.holders = content.holders.saturating_sub(1);
                if content.holders == 0 && !content.whole {
                    known.contents.remove(digest);
                }
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn key(content: &[u8]) -> (Hash, u64) {
        (blake3::hash(content), content.len() as u64)
    }

    fn fetch(held: &HeldContents, content: &[u8]) {
        let (digest, length) = key(content);
        let mut incoming = held.receive_content(digest, length).unwrap();
        content.chunks(7).for_each(|chunk| incoming.write(chunk).unwrap());
        incoming.finish_download().unwrap();
        held.content_came(&digest);
    }

    #[test]
    fn what_nobody_holds_goes_for_what_is_wanted_and_the_one_used_last_stays() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("left"), "by a former life").unwrap();
        let cache = ContentCache::with_bound(dir.path(), 20).unwrap();
        let (one, two, three) = (b"0123456789", b"abcdefghij", b"ABCDEFGHIJ");
        let first = cache.hold_contents([key(one)]).unwrap();
        assert_eq!(first.missing_contents(), [key(one).0]);
        fetch(&first, one);
        assert!(first.missing_contents().is_empty());
        let second = cache.hold_contents([key(two)]).unwrap();
        fetch(&second, two);
        let refused = cache.hold_contents([key(three)]).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::StorageFull);
        drop((first, second));
        // Used again: the other one was used longer ago.
        drop(cache.hold_contents([key(one)]).unwrap());
        let third = cache.hold_contents([key(three)]).unwrap();
        assert_eq!(cache.total_bytes(), 20);
        assert!(third.open(&key(one).0).is_ok() && third.open(&key(two).0).is_err());
        // It never came: nothing of it is counted.
        drop(third);
        assert_eq!(cache.total_bytes(), 10);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_another_content_is_not_taken() {
        let dir = tempfile::tempdir().unwrap();
        let cache = ContentCache::open(dir.path()).unwrap();
        let (digest, length) = key(b"what is wanted");
        let held = cache.hold_contents([(digest, length)]).unwrap();
        for other in ["what is Wanted", "what", "what is wanted and more"] {
            let mut incoming = held.receive_content(digest, length).unwrap();
            let error = incoming.write(other.as_bytes()).and_then(|()| incoming.finish_download());
            let said = error.unwrap_err().to_string();
            assert!(said.contains("is different"), "{said}");
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        assert_eq!(held.missing_contents(), [digest]);
    }
}
