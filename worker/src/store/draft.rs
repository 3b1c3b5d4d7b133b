//! A checkpoint in the making.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use dormouse_folders::remove_tree;

use super::{
    CheckpointFile, CheckpointManifest, ImageKey, OpenFile, Result, SavedProgress, StoreError,
    StoredCheckpoint, checksum,
    full::{NoRoom, no_space},
    sound::SoundFiles,
};
use crate::{
    criu::TaskKeepsakes,
    directory::{self, ContentObjects, DirectoryNode},
    picture::TaskPicture,
    workspace::TaskName,
};

pub(crate) const MANIFEST: &str = "manifest.json";
/// File name of the manifest's seal, which is in hexadecimal.
pub(crate) const SEAL: &str = "manifest.seal";
pub(crate) const IMAGES: &str = "images";
pub(crate) const FILES: &str = "files";

/// Checkpoint that isn't complete yet. Its files are removed if it is dropped without [`CheckpointDraft::commit_checkpoint`].
#[derive(Debug)]
pub struct CheckpointDraft {
    directory: PathBuf,
    task: TaskName,
    sequence: u64,
    committed: bool,
    key: ImageKey,
    sound: SoundFiles,
    /// Directories of earlier checkpoints of the task, the newest first.
    earlier: Vec<PathBuf>,
    /// Full file system that is mounted over the checkpoint's images; `None`: the store needn't behave like a full disk.
    no_room: Option<NoRoom>,
    /// Facts about the task that CRIU doesn't save; `None`: the checkpoint has no such facts.
    keepsakes: Option<TaskKeepsakes>,
    picture: Option<TaskPicture>,
}

impl CheckpointDraft {
    pub(crate) fn create_draft(
        directory: PathBuf,
        task: TaskName,
        sequence: u64,
        (is_full, key, sound): (bool, ImageKey, SoundFiles),
        earlier: Vec<PathBuf>,
    ) -> Result<Self> {
        for path in [directory.join(IMAGES), directory.join(FILES)] {
            fs::create_dir_all(&path).map_err(StoreError::file_error("create", &path))?;
        }
        let no_room =
            is_full.then(|| NoRoom::over_directory(&directory.join(IMAGES))).transpose()?;
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

    /// Returns the directory of the checkpoint, for logs.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the directory into which CRIU writes its files.
    #[must_use]
    pub fn images_directory(&self) -> PathBuf {
        self.directory.join(IMAGES)
    }

    pub(crate) fn files_directory(&self) -> PathBuf {
        self.directory.join(FILES)
    }

    /// Returns the contents of the task's files, which are shared with earlier checkpoints if they are unchanged.
    pub(super) fn content_objects(&self) -> ContentObjects {
        let earlier = self.earlier.iter().map(|directory| directory.join(FILES)).collect();
        ContentObjects::new(self.files_directory(), earlier)
    }

    /// Saves the contents of the task's directory, for [`CheckpointDraft::commit_checkpoint`]. The task must be
    /// stopped.
    ///
    /// # Errors
    ///
    /// A file in the directory can't be saved, read or written.
    pub fn save_files(&self, task_directory: &Path) -> Result<Vec<DirectoryNode>> {
        Ok(directory::snapshot_directory(task_directory, &self.content_objects())?)
    }

    /// Adds the facts that CRIU doesn't save, and the kernel's description of the task, to the checkpoint's manifest.
    #[must_use]
    pub(crate) fn with_keepsakes(
        mut self,
        keepsakes: Option<TaskKeepsakes>,
        picture: Option<TaskPicture>,
    ) -> Self {
        (self.keepsakes, self.picture) = (keepsakes, picture);
        self
    }

    /// Completes the checkpoint, with the task's files as they were saved. `known` has digests of images that needn't
    /// be read again.
    pub(crate) fn commit_checkpoint(
        mut self,
        program: String,
        progress: SavedProgress,
        (files, open_files): (Vec<DirectoryNode>, Vec<OpenFile>),
        criu: String,
        known: &BTreeMap<String, (u64, String)>,
    ) -> Result<StoredCheckpoint> {
        let manifest = CheckpointManifest {
            format: CheckpointManifest::FORMAT,
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
            images: checksum::list_files(&self.images_directory(), known)?,
            keepsakes: self.keepsakes.take(),
            picture: self.picture.take(),
        };
        manifest.images.iter().for_each(|entry| self.note_sound(entry));
        let json = serde_json::to_vec_pretty(&manifest)
            .map_err(|source| StoreError::Manifest { path: self.directory.clone(), source })?;
        self.seal_manifest(manifest, json)
    }

    /// Records that the digest of an image was computed from its contents, so that this worker needn't read the image's pages
    /// again.
    pub(super) fn note_sound(&self, entry: &CheckpointFile) {
        if checksum::is_pages(&entry.name) {
            self.sound.note_digest(
                &self.images_directory().join(&entry.name),
                entry.size,
                &entry.blake3,
            );
        }
    }

    /// Renames the manifest `json` into place. From then on the checkpoint is complete.
    pub(crate) fn seal_manifest(
        mut self,
        manifest: CheckpointManifest,
        json: Vec<u8>,
    ) -> Result<StoredCheckpoint> {
        let path = self.directory.join(MANIFEST);
        if self.no_room.is_some() {
            return Err(StoreError::file_error("write", &path)(no_space()));
        }
        let seal = self.key.seal(&json);
        let sealed = self.directory.join(SEAL);
        fs::write(&sealed, seal.to_hex().as_str())
            .map_err(StoreError::file_error("write", &sealed))?;
        let partial = path.with_extension("partial");
        fs::write(&partial, &json).map_err(StoreError::file_error("write", &partial))?;
        fs::rename(&partial, &path).map_err(StoreError::file_error("create", &path))?;
        self.committed = true;
        let directory = std::mem::take(&mut self.directory);
        Ok(StoredCheckpoint::new(directory, manifest, (json, seal), self.sound.clone()))
    }
}

impl Drop for CheckpointDraft {
    fn drop(&mut self) {
        drop(self.no_room.take());
        if !self.committed {
            self.sound.forget_directory(&self.directory);
            // What cannot be removed now is swept at the next start.
            let _ = remove_tree(&self.directory);
        }
    }
}
