//! A checkpoint in the making.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use super::{
    Checkpoint, Error, FileEntry, ImageKey, Manifest, OpenFile, Progress, Result, checksum,
    full::{NoRoom, no_space},
    sound::Sound,
};
use crate::{
    criu::Keepsakes,
    directory::{self, Node, Objects},
    picture::TaskPicture,
    workspace::TaskName,
};

pub(crate) const MANIFEST: &str = "manifest.json";
/// The seal of the manifest, in hexadecimal.
pub(crate) const SEAL: &str = "manifest.seal";
pub(crate) const IMAGES: &str = "images";
pub(crate) const FILES: &str = "files";

/// A checkpoint in the making; dropped without [`Draft::commit`], it is removed.
#[derive(Debug)]
pub struct Draft {
    directory: PathBuf,
    task: TaskName,
    sequence: u64,
    committed: bool,
    key: ImageKey,
    sound: Sound,
    /// Directories of earlier checkpoints of the task, newest first.
    earlier: Vec<PathBuf>,
    /// Laid over its images, where the store is full.
    no_room: Option<NoRoom>,
    /// What CRIU loses of the task.
    keepsakes: Option<Keepsakes>,
    picture: Option<TaskPicture>,
}

impl Draft {
    pub(crate) fn create(
        directory: PathBuf,
        task: TaskName,
        sequence: u64,
        (is_full, key, sound): (bool, ImageKey, Sound),
        earlier: Vec<PathBuf>,
    ) -> Result<Self> {
        for path in [directory.join(IMAGES), directory.join(FILES)] {
            fs::create_dir_all(&path).map_err(Error::file("create", &path))?;
        }
        let no_room = is_full.then(|| NoRoom::over(&directory.join(IMAGES))).transpose()?;
        let (committed, keepsakes, picture) = (false, None, None);
        Ok(Self {
            directory,
            task,
            sequence,
            committed,
            key,
            sound,
            earlier,
            no_room,
            keepsakes,
            picture,
        })
    }

    /// The checkpoint's directory, for logs.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Where CRIU puts its files.
    #[must_use]
    pub fn images(&self) -> PathBuf {
        self.directory.join(IMAGES)
    }

    pub(crate) fn files(&self) -> PathBuf {
        self.directory.join(FILES)
    }

    /// The contents of the task's files, shared with earlier checkpoints where they have not changed.
    pub(super) fn objects(&self) -> Objects {
        let earlier = self.earlier.iter().map(|directory| directory.join(FILES)).collect();
        Objects::new(self.files(), earlier)
    }

    /// Saves the directory of the task, which must stand still: what is in it, for [`Draft::commit`].
    ///
    /// # Errors
    /// Where it has something that cannot be saved, or a file cannot be read or written.
    pub fn save_files(&self, task_directory: &Path) -> Result<Vec<Node>> {
        Ok(directory::snapshot(task_directory, &self.objects())?)
    }

    /// The same, with what CRIU loses of the task, and what the kernel said of it.
    #[must_use]
    pub(crate) fn keeping(
        mut self,
        keepsakes: Option<Keepsakes>,
        picture: Option<TaskPicture>,
    ) -> Self {
        (self.keepsakes, self.picture) = (keepsakes, picture);
        self
    }

    /// Completes the checkpoint, with the task's files as they were saved. `known` holds digests of images that need
    /// not be read again.
    pub(crate) fn commit(
        mut self,
        program: String,
        progress: Progress,
        (files, open_files): (Vec<Node>, Vec<OpenFile>),
        criu: String,
        known: &BTreeMap<String, (u64, String)>,
    ) -> Result<Checkpoint> {
        let manifest = Manifest {
            format: Manifest::FORMAT,
            task: self.task.clone(),
            sequence: self.sequence,
            program,
            progress,
            taken_unix_ms: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX)),
            criu,
            kernel: nix::sys::utsname::uname()
                .map(|u| u.release().to_string_lossy().into_owned())
                .unwrap_or_default(),
            open_files,
            files,
            images: checksum::list(&self.images(), known)?,
            keepsakes: self.keepsakes.take(),
            picture: self.picture.take(),
        };
        manifest.images.iter().for_each(|entry| self.note_sound(entry));
        let json = serde_json::to_vec_pretty(&manifest)
            .map_err(|source| Error::Manifest { path: self.directory.clone(), source })?;
        self.seal(manifest, json)
    }

    /// Notes that the digest of an image was computed from what is in it, so that pages are not read again here.
    pub(super) fn note_sound(&self, entry: &FileEntry) {
        if checksum::is_pages(&entry.name) {
            self.sound.note(&self.images().join(&entry.name), entry.size, &entry.blake3);
        }
    }

    /// Renames the manifest, which is `json`, into place: from here on the checkpoint exists.
    pub(crate) fn seal(mut self, manifest: Manifest, json: Vec<u8>) -> Result<Checkpoint> {
        let path = self.directory.join(MANIFEST);
        if self.no_room.is_some() {
            return Err(Error::file("write", &path)(no_space()));
        }
        let seal = self.key.seal(&json);
        let sealed = self.directory.join(SEAL);
        fs::write(&sealed, seal.to_hex().as_str()).map_err(Error::file("write", &sealed))?;
        let partial = path.with_extension("partial");
        fs::write(&partial, &json).map_err(Error::file("write", &partial))?;
        fs::rename(&partial, &path).map_err(Error::file("create", &path))?;
        self.committed = true;
        let directory = std::mem::take(&mut self.directory);
        Ok(Checkpoint::new(directory, manifest, (json, seal), self.sound.clone()))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        drop(self.no_room.take());
        if !self.committed {
            self.sound.forget(&self.directory);
            // What cannot be removed now is swept at the next start.
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}
