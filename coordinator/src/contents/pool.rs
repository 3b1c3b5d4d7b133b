//! The contents themselves: received, found, shared and swept.

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

use crate::system::world::{Disk, StoreFile, World};

/// So many bytes of a content are written before it is looked again whether the disk has room.
const LOOK_AFTER: u64 = 16 << 20;
/// So many bytes are received before it is looked for what nobody needs.
const SWEEP_AFTER: u64 = 256 << 20;
/// How long a content is kept that nobody has named yet: a worker that has sent it still sends what refers to it.
const LEASE: Duration = Duration::from_secs(600);
pub(super) const INPUTS: &str = "inputs";
const CHECKPOINTS: &str = "checkpoints";

/// The number of a checkpoint and the attempt that took it.
pub(crate) type Which = (u32, u32);

/// The contents of a run, in a folder. Its methods block.
#[derive(Debug)]
pub struct Contents {
    pub(super) root: PathBuf,
    /// Those that were whole when they were written or last read, in the life of this process. Held, too, by whoever
    /// looks whether a content may go.
    sound: Mutex<BTreeSet<[u8; 32]>>,
    /// Bytes received since it was last swept.
    fresh: AtomicU64,
    parts: AtomicU64,
    /// What is being laid out from it.
    layouts: TaskTracker,
    world: World,
    /// Whether the life of the coordinator is over that has them: held by whoever changes something.
    is_over: RwLock<bool>,
}

/// A content that is being received. Dropped before [`Incoming::finish`], it leaves nothing.
#[derive(Debug)]
pub(crate) struct Incoming {
    part: PathBuf,
    file: Box<dyn StoreFile>,
    disk: Arc<dyn Disk>,
    hasher: Hasher,
    digest: Hash,
    /// The bytes that it should have, and those that it has.
    length: u64,
    bytes: u64,
    /// The bytes that it has when it is looked again whether the disk has room.
    look_at: u64,
}

/// Why a content is not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error("what was received is not the content {digest}: {what}")]
    Another { digest: Hash, what: String },
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Contents {
    /// The folder of the contents in a run's.
    pub const FOLDER: &str = "contents";

    /// The contents in this folder, which is made; parts left by a crash are removed.
    ///
    /// # Errors
    ///
    /// The folder can't be made or read.
    pub fn open(root: &Path) -> io::Result<Self> {
        Self::open_in(root, World::default())
    }

    /// The contents in this folder of a coordinator in this world; see [`Self::open`].
    pub(crate) fn open_in(root: &Path, world: World) -> io::Result<Self> {
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
        for path in contents.all()? {
            renew(&path)?;
        }
        Ok(contents)
    }

    /// The folder of the contents.
    pub(crate) fn folder(&self) -> &Path {
        &self.root
    }

    /// The run's folder, which the contents are in.
    pub(super) fn run_folder(&self) -> &Path {
        self.root.parent().unwrap_or(&self.root)
    }

    fn sound(&self) -> MutexGuard<'_, BTreeSet<[u8; 32]>> {
        // A set of digests is whole whoever panicked with it.
        self.sound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn layouts(&self) -> &TaskTracker {
        &self.layouts
    }

    /// The world of the coordinator that has them.
    pub(crate) const fn world(&self) -> &World {
        &self.world
    }

    /// The coordinator's life is over, and with it its lock of the log: what is still under way changes nothing any more of
    /// what another coordinator may have by now. Waits for a change that is being made.
    pub(crate) fn end_life(&self) {
        *self.is_over.write().unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// Has the coordinator live for as long as the guard does.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::NotConnected`]: its life is over.
    pub(crate) fn keep_alive(&self) -> io::Result<RwLockReadGuard<'_, bool>> {
        let is_over = self.is_over.read().unwrap_or_else(PoisonError::into_inner);
        match *is_over {
            false => Ok(is_over),
            true => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Waits until all that tasks have left is laid out.
    pub(crate) async fn laid_out(&self) {
        self.layouts.close();
        self.layouts.wait().await;
    }

    pub(super) fn path(&self, digest: &Hash) -> PathBuf {
        let hex = digest.to_hex();
        let (folder, name) = hex.split_at(2);
        self.root.join(folder).join(name)
    }

    /// Whether a content is here and whole. One that is damaged is removed; one that is whole stays for a while.
    pub(crate) fn holds(&self, digest: &Hash) -> io::Result<bool> {
        let path = self.path(digest);
        {
            let sound = self.sound();
            if !path.exists() {
                return Ok(false);
            }
            renew(&path)?;
            if sound.contains(digest.as_bytes()) {
                return Ok(true);
            }
        }
        let mut hasher = Hasher::new();
        io::copy(&mut File::open(&path)?, &mut hasher)?;
        if hasher.finalize() == *digest {
            self.sound().insert(*digest.as_bytes());
            return Ok(true);
        }
        self.drop_damaged(digest)?;
        Ok(false)
    }

    /// Removes a content that is not what its digest says, so that it can come again.
    pub(crate) fn drop_damaged(&self, digest: &Hash) -> io::Result<()> {
        let path = self.path(digest);
        tracing::warn!(path = %path.display(), "a file of the store was damaged and is removed: it \
                 has to be sent again");
        self.sound().remove(digest.as_bytes());
        self.world.disk.remove_file(&path)?;
        self.world.disk.remove_file(&self.root.join(INPUTS).join(digest.to_hex().as_str()))
    }

    /// Begins to receive a content of so many bytes.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::StorageFull`] where what is free of the disk is kept for the log; or the system refuses.
    pub(crate) fn receive(&self, digest: Hash, length: u64) -> io::Result<Incoming> {
        let _alive = self.keep_alive()?;
        let disk = Arc::clone(&self.world.disk);
        disk.has_room(&self.root)?;
        let part = self.root.join(format!("{}.part", self.parts.fetch_add(1, Ordering::Relaxed)));
        let file = disk.create_file(&part)?;
        let look_at = LOOK_AFTER;
        let (hasher, bytes) = (Hasher::new(), 0);
        Ok(Incoming { part, file, disk, hasher, digest, length, bytes, look_at })
    }

    /// Takes what has come, all of it, for good. Its bytes.
    ///
    /// # Errors
    ///
    /// It is another content, or the system refuses.
    pub(crate) fn finish(&self, incoming: Incoming) -> Result<u64, Refused> {
        let (digest, bytes) = (incoming.digest, incoming.bytes);
        let found = incoming.hasher.finalize();
        if bytes != incoming.length || found != digest {
            let what =
                format!("it has {bytes} of {} bytes and the digest {found}", incoming.length);
            return Err(Refused::Another { digest, what });
        }
        let _alive = self.keep_alive()?;
        let path = self.path(&digest);
        if let Some(folder) = path.parent() {
            self.world.disk.make_folder(folder)?;
        }
        {
            let mut sound = self.sound();
            self.world.disk.rename_file(&incoming.part, &path)?;
            sound.insert(*digest.as_bytes());
        }
        if self.fresh.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) > SWEEP_AFTER {
            self.fresh.store(0, Ordering::Relaxed);
            self.sweep(LEASE)?;
        }
        Ok(bytes)
    }

    /// Opens a content.
    ///
    /// # Errors
    ///
    /// It is not here.
    pub(crate) fn open_content(&self, digest: &Hash) -> io::Result<File> {
        File::open(self.path(digest))
    }

    fn checkpoint(&self, task: u32, (number, attempt): Which) -> PathBuf {
        self.checkpoints(task).join(format!("{number}.{attempt}"))
    }

    fn checkpoints(&self, task: u32) -> PathBuf {
        self.root.join(CHECKPOINTS).join(task.to_string())
    }

    /// Keeps contents for a checkpoint that refers to them.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::NotFound`] where one of them is not here; or the system refuses.
    pub(crate) fn keep_for(&self, task: u32, which: Which, digests: &[Hash]) -> io::Result<()> {
        if digests.is_empty() {
            return Ok(());
        }
        let folder = self.checkpoint(task, which);
        self.world.disk.make_folder(&folder)?;
        digests.iter().try_for_each(|digest| {
            let to = folder.join(digest.to_hex().as_str());
            also(&self.path(digest), &to)
        })
    }

    /// Keeps no contents any more for checkpoints of a task other than these.
    pub(crate) fn retain(&self, task: u32, stored: &BTreeSet<Which>) -> io::Result<()> {
        let folder = self.checkpoints(task);
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        let kept: BTreeSet<_> = stored.iter().map(|which| self.checkpoint(task, *which)).collect();
        for entry in entries {
            let path = entry?.path();
            if !kept.contains(&path) {
                self.world.disk.remove_folder(&path)?;
            }
        }
        Ok(())
    }

    /// Keeps no contents any more for checkpoints of a task.
    pub(crate) fn forget(&self, task: u32) -> io::Result<()> {
        self.world.disk.remove_folder(&self.checkpoints(task))
    }

    /// Whether a stored checkpoint of a task refers to a content.
    pub(crate) fn is_of_checkpoint(&self, task: u32, digest: &Hash) -> io::Result<bool> {
        let name = digest.to_hex();
        let entries = match fs::read_dir(self.checkpoints(task)) {
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

    /// Removes the contents that have no other name than their digest's and that nobody has asked for within `lease`.
    fn sweep(&self, lease: Duration) -> io::Result<()> {
        for path in self.all()? {
            // Nobody is told meanwhile that it is here.
            let mut sound = self.sound();
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

    /// The paths of all contents.
    fn all(&self) -> io::Result<Vec<PathBuf>> {
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

    /// Forgets all contents, and the folder.
    pub(crate) fn close(&self) -> io::Result<()> {
        self.sound().clear();
        self.world.disk.remove_folder(&self.root)
    }
}

impl Incoming {
    /// Writes what comes next.
    ///
    /// # Errors
    ///
    /// More comes than there is to be; what is free of the disk is kept; or the system refuses.
    pub(crate) fn write(&mut self, data: &[u8]) -> Result<(), Refused> {
        self.bytes = self.bytes.saturating_add(data.len() as u64);
        if self.bytes > self.length {
            let what = format!("it has more than {} bytes", self.length);
            return Err(Refused::Another { digest: self.digest, what });
        }
        if self.bytes >= self.look_at {
            self.look_at = self.bytes.saturating_add(LOOK_AFTER);
            self.disk.has_room(&self.part)?;
        }
        self.hasher.update(data);
        Ok(self.file.write_all(data)?)
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        // After its end there is nothing; what can't be removed now is when the folder is opened again.
        let _ = self.disk.remove_file(&self.part);
    }
}

/// Gives a content one more name.
pub(super) fn also(content: &Path, name: &Path) -> io::Result<()> {
    match fs::hard_link(content, name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    }
}

/// Has a content stay for a while.
fn renew(path: &Path) -> io::Result<()> {
    File::open(path)?.set_modified(SystemTime::now())
}

fn digest_of(path: &Path) -> Option<Hash> {
    let folder = path.parent()?.file_name()?.to_str()?;
    Hash::from_hex(format!("{folder}{}", path.file_name()?.to_str()?)).ok()
}

/// Copies a content to where there is nothing, comparing it with its digest. Whether it was whole.
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

    pub(in crate::contents) fn put(contents: &Contents, content: &[u8]) -> Hash {
        let digest = blake3::hash(content);
        let mut incoming = contents.receive(digest, content.len() as u64).expect("room");
        content.chunks(3).for_each(|chunk| incoming.write(chunk).expect("room"));
        assert_eq!(contents.finish(incoming).expect("it is whole"), content.len() as u64);
        digest
    }

    #[test]
    fn a_content_is_there_once_it_is_whole_and_outlives_the_coordinator() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let contents = Contents::open(dir.path()).expect("room");
        let digest = put(&contents, b"content");
        assert!(contents.holds(&digest).expect("readable"));
        let other = blake3::hash(b"other");
        assert!(!contents.holds(&other).expect("readable"));
        for wrong in ["othe", "otheR", "other and more"] {
            let mut incoming = contents.receive(other, 5).expect("room");
            let taken = incoming.write(wrong.as_bytes()).and_then(|()| contents.finish(incoming));
            assert!(matches!(taken, Err(Refused::Another { .. })), "{wrong}");
            assert!(!contents.holds(&other).expect("readable"));
        }
        // A crash runs no destructors.
        std::mem::forget(contents.receive(other, 5).expect("room"));
        let again = Contents::open(dir.path()).expect("room");
        assert!(again.holds(&digest).expect("readable"));
        let left = fs::read_dir(dir.path()).expect("a folder").count();
        assert_eq!(left, 1, "the part has gone");
        again.close().expect("it goes");
        assert!(!dir.path().exists());
    }

    #[test]
    fn a_damaged_content_is_not_said_to_be_here() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let contents = Contents::open(dir.path()).expect("room");
        let digest = put(&contents, b"content");
        fs::write(contents.path(&digest), "contenT").expect("room");
        // It was whole when this process wrote it: another one looks again.
        let again = Contents::open(dir.path()).expect("room");
        assert!(!again.holds(&digest).expect("readable"));
        assert!(!again.path(&digest).exists());
        put(&again, b"content");
        assert!(again.holds(&digest).expect("readable"));
    }

    #[test]
    fn what_nobody_names_goes_and_what_checkpoints_refer_to_stays() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let contents = Contents::open(dir.path()).expect("room");
        let [one, two, three] = [b"one", b"two", b"thr"].map(|content| put(&contents, content));
        contents.keep_for(7, (1, 1), &[one, two]).expect("they are here");
        contents.keep_for(7, (2, 1), &[two]).expect("it is here");
        contents.sweep(LEASE).expect("a folder");
        assert!(contents.holds(&three).expect("readable"), "it is fresh");
        contents.sweep(Duration::ZERO).expect("a folder");
        let here = |digest| contents.holds(digest).expect("readable");
        assert_eq!([here(&one), here(&two), here(&three)], [true, true, false]);
        assert!(contents.is_of_checkpoint(7, &one).expect("a folder"));
        assert!(!contents.is_of_checkpoint(8, &one).expect("no folder"));
        let absent = contents.keep_for(7, (3, 1), &[three]).expect_err("it has gone");
        assert_eq!(absent.kind(), io::ErrorKind::NotFound);
        contents.retain(7, &BTreeSet::from([(2, 1)])).expect("a folder");
        contents.sweep(Duration::ZERO).expect("a folder");
        let here = |digest| contents.holds(digest).expect("readable");
        assert_eq!([here(&one), here(&two)], [false, true]);
        contents.forget(7).expect("it goes");
        contents.sweep(Duration::ZERO).expect("a folder");
        assert!(!contents.holds(&two).expect("readable"));
    }
}
