//! Storage of contents: they are received, found, shared and removed when unused.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, SystemTime};

use blake3::{Hash, Hasher};
use tokio_util::task::TaskTracker;

use crate::system::world::{CoordinatorWorld, LogDisk, StoreFile};

/// Number of bytes of a content after which the free disk space is checked again.
const LOOK_AFTER: u64 = 16 << 20;
/// Number of received bytes after which unused contents are removed.
const SWEEP_AFTER: u64 = 256 << 20;
/// Time for which a content is kept that nothing refers to yet: its worker may still be sending the checkpoint that
/// does.
const LEASE: Duration = Duration::from_secs(600);
pub(super) const INPUTS: &str = "inputs";
const CHECKPOINTS: &str = "checkpoints";

/// Number of a checkpoint, and the attempt that took it.
pub(crate) type Which = (u32, u32);

/// The contents of files of a run by their digests, in a folder. Its methods block.
#[derive(Debug)]
pub struct ContentPool {
    pub(super) root: PathBuf,
    /// Contents that were intact when this process last wrote or read them. Locked too while a content may be
    /// removed.
    sound: Mutex<BTreeSet<[u8; 32]>>,
    /// Bytes received since unused contents were last removed.
    fresh: AtomicU64,
    parts: AtomicU64,
    /// Tracks the outputs that are being written from the pool.
    layouts: TaskTracker,
    world: CoordinatorWorld,
    /// Whether the session of the coordinator that owns the contents is over; locked while contents are changed.
    is_over: RwLock<bool>,
}

/// A content that is being received. Dropped before [`ContentPool::finish_content`], it leaves nothing.
#[derive(Debug)]
pub(crate) struct IncomingContent {
    part: PathBuf,
    file: Box<dyn StoreFile>,
    disk: Arc<dyn LogDisk>,
    hasher: Hasher,
    digest: Hash,
    /// Announced length of the content, in bytes.
    length: u64,
    /// Number of bytes of the content that were received so far.
    bytes: u64,
    /// Number of bytes at which the free disk space is checked next.
    look_at: u64,
}

/// Reasons why a content isn't accepted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ContentRefusal {
    #[error("what was received is not the content {digest}: {what}")]
    Another { digest: Hash, what: String },
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl ContentPool {
    /// Name of the contents' folder in a run's folder.
    pub const FOLDER: &str = "contents";

    /// Opens the contents in this folder, which is created if need be; partial files left by a crash are removed.
    ///
    /// # Errors
    ///
    /// The folder can't be created or read.
    pub fn open(root: &Path) -> io::Result<Self> {
        Self::open_in(root, CoordinatorWorld::default())
    }

    /// Opens the contents as [`Self::open`] does, with the disk and clock of `world`: the system's, or simulated ones.
    pub(crate) fn open_in(root: &Path, world: CoordinatorWorld) -> io::Result<Self> {
        // Files of tasks are nobody else's to read.
        world.disk.make_folder(root)?;
        fs::set_permissions(root, Permissions::from_mode(0o700))?;
        for entry in fs::read_dir(root)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                world.disk.remove_file(&entry.path())?;
            }
        }
        let contents = Self {
            root: root.to_owned(),
            sound: Mutex::default(),
            fresh: AtomicU64::new(0),
            parts: AtomicU64::new(0),
            layouts: TaskTracker::new(),
            world,
            is_over: RwLock::new(false),
        };
        // Whoever sent one before the run broke off may still name it.
        for path in contents.all_paths()? {
            renew_lease(&path)?;
        }
        Ok(contents)
    }

    /// Returns the folder of the contents.
    pub(crate) fn folder(&self) -> &Path {
        &self.root
    }

    /// Returns the run's folder, in which the contents' folder is.
    pub(super) fn run_folder(&self) -> &Path {
        self.root.parent().unwrap_or(&self.root)
    }

    fn sound_contents(&self) -> MutexGuard<'_, BTreeSet<[u8; 32]>> {
        // A set of digests is whole whoever panicked with it.
        self.sound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn layouts(&self) -> &TaskTracker {
        &self.layouts
    }

    /// Returns the disk, clocks and threads of the pool's coordinator: the system's, or simulated ones.
    pub(crate) const fn world(&self) -> &CoordinatorWorld {
        &self.world
    }

    /// Ends the session of the coordinator that owns the contents, and with it the lock of the log. Blocking work that
    /// is still under way changes nothing any more, since another coordinator may own the folder by now. Waits for a
    /// change that is being made.
    pub(crate) fn end_life(&self) {
        *self.is_over.write().unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// Keeps the coordinator's session from ending for as long as the guard exists.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::NotConnected`]: the session is over.
    pub(crate) fn keep_alive(&self) -> io::Result<RwLockReadGuard<'_, bool>> {
        let is_over = self.is_over.read().unwrap_or_else(PoisonError::into_inner);
        match *is_over {
            false => Ok(is_over),
            true => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Waits until the outputs of all tasks are written.
    pub(crate) async fn laid_out(&self) {
        self.layouts.close();
        self.layouts.wait().await;
    }

    pub(super) fn content_path(&self, digest: &Hash) -> PathBuf {
        let hex = digest.to_hex();
        let (folder, name) = hex.split_at(2);
        self.root.join(folder).join(name)
    }

    /// Returns whether a content is stored and undamaged. A damaged content is removed; an undamaged one is kept for a
    /// while.
    pub(crate) fn holds_content(&self, digest: &Hash) -> io::Result<bool> {
        let path = self.content_path(digest);
        {
            let sound = self.sound_contents();
            if !path.exists() {
                return Ok(false);
            }
            renew_lease(&path)?;
            if sound.contains(digest.as_bytes()) {
                return Ok(true);
            }
        }
        let mut hasher = Hasher::new();
        io::copy(&mut File::open(&path)?, &mut hasher)?;
        if hasher.finalize() == *digest {
            self.sound_contents().insert(*digest.as_bytes());
            return Ok(true);
        }
        self.drop_damaged(digest)?;
        Ok(false)
    }

    /// Removes a damaged content, so that it can be received again.
    pub(crate) fn drop_damaged(&self, digest: &Hash) -> io::Result<()> {
        let path = self.content_path(digest);
        tracing::warn!(path = %path.display(), "a file of the store was damaged and is removed: it \
                 has to be sent again");
        self.sound_contents().remove(digest.as_bytes());
        self.world.disk.remove_file(&path)?;
        self.world.disk.remove_file(&self.root.join(INPUTS).join(digest.to_hex().as_str()))
    }

    /// Begins to receive a content of `length` bytes.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::StorageFull`] if the free disk space is reserved for the log; or the system refuses.
    pub(crate) fn receive_content(&self, digest: Hash, length: u64) -> io::Result<IncomingContent> {
        let _alive = self.keep_alive()?;
        let disk = Arc::clone(&self.world.disk);
        disk.has_room(&self.root)?;
        let part = self.root.join(format!("{}.part", self.parts.fetch_add(1, Ordering::Relaxed)));
        let file = disk.create_file(&part)?;
        let look_at = LOOK_AFTER;
        let (hasher, bytes) = (Hasher::new(), 0);
        Ok(IncomingContent { part, file, disk, hasher, digest, length, bytes, look_at })
    }

    /// Accepts a completely received content; returns its length in bytes.
    ///
    /// # Errors
    ///
    /// The received bytes are another content, or the system refuses.
    pub(crate) fn finish_content(&self, incoming: IncomingContent) -> Result<u64, ContentRefusal> {
        let (digest, bytes) = (incoming.digest, incoming.bytes);
        let found = incoming.hasher.finalize();
        if bytes != incoming.length || found != digest {
            let what =
                format!("it has {bytes} of {} bytes and the digest {found}", incoming.length);
            return Err(ContentRefusal::Another { digest, what });
        }
        let _alive = self.keep_alive()?;
        let path = self.content_path(&digest);
        if let Some(folder) = path.parent() {
            self.world.disk.make_folder(folder)?;
        }
        {
            let mut sound = self.sound_contents();
            self.world.disk.rename_file(&incoming.part, &path)?;
            sound.insert(*digest.as_bytes());
        }
        if self.fresh.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) > SWEEP_AFTER {
            self.fresh.store(0, Ordering::Relaxed);
            self.sweep_unused(LEASE)?;
        }
        Ok(bytes)
    }

    /// Opens a content.
    ///
    /// # Errors
    ///
    /// The content isn't stored.
    pub(crate) fn open_content(&self, digest: &Hash) -> io::Result<File> {
        File::open(self.content_path(digest))
    }

    fn checkpoint_folder(&self, task: u32, (number, attempt): Which) -> PathBuf {
        self.checkpoints_folder(task).join(format!("{number}.{attempt}"))
    }

    fn checkpoints_folder(&self, task: u32) -> PathBuf {
        self.root.join(CHECKPOINTS).join(task.to_string())
    }

    /// Keeps contents for a checkpoint that refers to them.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::NotFound`] if one of them isn't here; or the system refuses.
    pub(crate) fn keep_for(&self, task: u32, which: Which, digests: &[Hash]) -> io::Result<()> {
        if digests.is_empty() {
            return Ok(());
        }
        let folder = self.checkpoint_folder(task, which);
        self.world.disk.make_folder(&folder)?;
        digests.iter().try_for_each(|digest| {
            let to = folder.join(digest.to_hex().as_str());
            add_name(&self.content_path(digest), &to)
        })
    }

    /// Keeps the contents of these checkpoints of a task, and releases those of all other checkpoints of the task.
    pub(crate) fn retain_only(&self, task: u32, stored: &BTreeSet<Which>) -> io::Result<()> {
        let folder = self.checkpoints_folder(task);
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        let kept: BTreeSet<_> =
            stored.iter().map(|which| self.checkpoint_folder(task, *which)).collect();
        for entry in entries {
            let path = entry?.path();
            if !kept.contains(&path) {
                self.world.disk.remove_folder(&path)?;
            }
        }
        Ok(())
    }

    /// Releases the contents of all checkpoints of a task.
    pub(crate) fn forget_task(&self, task: u32) -> io::Result<()> {
        self.world.disk.remove_folder(&self.checkpoints_folder(task))
    }

    /// Returns whether a stored checkpoint of a task refers to a content.
    pub(crate) fn is_of_checkpoint(&self, task: u32, digest: &Hash) -> io::Result<bool> {
        let name = digest.to_hex();
        let entries = match fs::read_dir(self.checkpoints_folder(task)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            entries => entries?,
        };
        for entry in entries {
            if entry?.path().join(name.as_str()).exists() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Removes contents to which nothing refers and which no call has asked for within `lease`.
    fn sweep_unused(&self, lease: Duration) -> io::Result<()> {
        for path in self.all_paths()? {
            // Nobody is told meanwhile that it is here.
            let mut sound = self.sound_contents();
            let Ok(found) = fs::metadata(&path) else { continue };
            let age = found.modified()?.elapsed().unwrap_or_default();
            if found.nlink() > 1 || age < lease {
                continue;
            }
            self.world.disk.remove_file(&path)?;
            if let Some(digest) = digest_of(&path) {
                sound.remove(digest.as_bytes());
            }
        }
        Ok(())
    }

    /// Returns the paths of all contents.
    fn all_paths(&self) -> io::Result<Vec<PathBuf>> {
        let mut all = Vec::new();
        for folder in fs::read_dir(&self.root)? {
            let folder = folder?;
            if folder.file_name().len() == 2 && folder.file_type()?.is_dir() {
                for content in fs::read_dir(folder.path())? {
                    all.push(content?.path());
                }
            }
        }
        Ok(all)
    }

    /// Removes all contents and the folder.
    pub(crate) fn close(&self) -> io::Result<()> {
        self.sound_contents().clear();
        self.world.disk.remove_folder(&self.root)
    }
}

impl IncomingContent {
    /// Writes the next received bytes of the content to its file.
    ///
    /// # Errors
    ///
    /// They exceed the announced length, the free disk space is reserved, or the system refuses.
    pub(crate) fn write(&mut self, data: &[u8]) -> Result<(), ContentRefusal> {
        self.bytes = self.bytes.saturating_add(data.len() as u64);
        if self.bytes > self.length {
            let what = format!("it has more than {} bytes", self.length);
            return Err(ContentRefusal::Another { digest: self.digest, what });
        }
        if self.bytes >= self.look_at {
            self.look_at = self.bytes.saturating_add(LOOK_AFTER);
            self.disk.has_room(&self.part)?;
        }
        self.hasher.update(data);
        Ok(self.file.write_all(data)?)
    }
}

impl Drop for IncomingContent {
    fn drop(&mut self) {
        // After its end there is nothing; what can't be removed now is when the folder is opened again.
        let _ = self.disk.remove_file(&self.part);
    }
}

/// Gives a content another name.
pub(super) fn add_name(content: &Path, name: &Path) -> io::Result<()> {
    match fs::hard_link(content, name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    }
}

/// Renews the time for which a content is kept.
fn renew_lease(path: &Path) -> io::Result<()> {
    File::open(path)?.set_modified(SystemTime::now())
}

fn digest_of(path: &Path) -> Option<Hash> {
    let folder = path.parent()?.file_name()?.to_str()?;
    Hash::from_hex(format!("{folder}{}", path.file_name()?.to_str()?)).ok()
}

/// Copies a content to a path where no file is, and compares it with its digest. Returns whether it was whole.
pub(super) fn copy_whole(mut from: File, to: &Path, digest: &Hash) -> io::Result<bool> {
    let mut copy = OpenOptions::new().write(true).create_new(true).open(to)?;
    let (mut hasher, mut buffer) = (Hasher::new(), vec![0; 256 << 10]);
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(hasher.finalize() == *digest),
            n => {
                let read = buffer.get(..n).unwrap_or_default();
                hasher.update(read);
                copy.write_all(read)?;
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::contents) fn put_content(contents: &ContentPool, content: &[u8]) -> Hash {
        let digest = blake3::hash(content);
        let mut incoming = contents.receive_content(digest, content.len() as u64).expect("room");
        content.chunks(3).for_each(|chunk| incoming.write(chunk).expect("room"));
        assert_eq!(contents.finish_content(incoming).expect("it is whole"), content.len() as u64);
        digest
    }

    #[test]
    fn a_content_is_there_once_it_is_whole_and_outlives_the_coordinator() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let contents = ContentPool::open(dir.path()).expect("room");
        let digest = put_content(&contents, b"content");
        assert!(contents.holds_content(&digest).expect("readable"));
        let other = blake3::hash(b"other");
        assert!(!contents.holds_content(&other).expect("readable"));
        for wrong in ["othe", "otheR", "other and more"] {
            let mut incoming = contents.receive_content(other, 5).expect("room");
            let taken =
                incoming.write(wrong.as_bytes()).and_then(|()| contents.finish_content(incoming));
            assert!(matches!(taken, Err(ContentRefusal::Another { .. })), "{wrong}");
            assert!(!contents.holds_content(&other).expect("readable"));
        }
        // A crash runs no destructors.
        std::mem::forget(contents.receive_content(other, 5).expect("room"));
        let again = ContentPool::open(dir.path()).expect("room");
        assert!(again.holds_content(&digest).expect("readable"));
        let left = fs::read_dir(dir.path()).expect("a folder").count();
        assert_eq!(left, 1, "the part has gone");
        again.close().expect("it goes");
        assert!(!dir.path().exists());
    }

    #[test]
    fn a_damaged_content_is_not_said_to_be_here() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let contents = ContentPool::open(dir.path()).expect("room");
        let digest = put_content(&contents, b"content");
        fs::write(contents.content_path(&digest), "contenT").expect("room");
        // It was whole when this process wrote it: another one looks again.
        let again = ContentPool::open(dir.path()).expect("room");
        assert!(!again.holds_content(&digest).expect("readable"));
        assert!(!again.content_path(&digest).exists());
        put_content(&again, b"content");
        assert!(again.holds_content(&digest).expect("readable"));
    }

    #[test]
    fn what_nobody_names_goes_and_what_checkpoints_refer_to_stays() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let contents = ContentPool::open(dir.path()).expect("room");
        let [one, two, three] =
            [b"one", b"two", b"thr"].map(|content| put_content(&contents, content));
        contents.keep_for(7, (1, 1), &[one, two]).expect("they are here");
        contents.keep_for(7, (2, 1), &[two]).expect("it is here");
        contents.sweep_unused(LEASE).expect("a folder");
        assert!(contents.holds_content(&three).expect("readable"), "it is fresh");
        contents.sweep_unused(Duration::ZERO).expect("a folder");
        let here = |digest| contents.holds_content(digest).expect("readable");
        assert_eq!([here(&one), here(&two), here(&three)], [true, true, false]);
        assert!(contents.is_of_checkpoint(7, &one).expect("a folder"));
        assert!(!contents.is_of_checkpoint(8, &one).expect("no folder"));
        let absent = contents.keep_for(7, (3, 1), &[three]).expect_err("it has gone");
        assert_eq!(absent.kind(), io::ErrorKind::NotFound);
        contents.retain_only(7, &BTreeSet::from([(2, 1)])).expect("a folder");
        contents.sweep_unused(Duration::ZERO).expect("a folder");
        let here = |digest| contents.holds_content(digest).expect("readable");
        assert_eq!([here(&one), here(&two)], [false, true]);
        contents.forget_task(7).expect("it goes");
        contents.sweep_unused(Duration::ZERO).expect("a folder");
        assert!(!contents.holds_content(&two).expect("readable"));
    }
}
