//! A complete checkpoint.

use std::{
    fs::{self, DirBuilder},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use blake3::Hash;

use super::{
    CheckpointFile, CheckpointManifest, Result, StoreError, checksum,
    draft::{FILES, IMAGES},
    sound::SoundFiles,
};
use crate::directory::{self, ContentObjects};

/// Complete checkpoint in the store.
#[derive(Debug, Clone)]
pub struct StoredCheckpoint {
    directory: PathBuf,
    manifest: Box<CheckpointManifest>,
    /// Bytes of the manifest that were sealed, and the seal.
    sealed: (Vec<u8>, Hash),
    /// Records of the files with memory pages that needn't be read again, as they are unchanged since they were verified.
    sound: SoundFiles,
}

impl StoredCheckpoint {
    pub(crate) fn new(
        directory: PathBuf,
        manifest: CheckpointManifest,
        sealed: (Vec<u8>, Hash),
        sound: SoundFiles,
    ) -> Self {
        Self { directory, manifest: Box::new(manifest), sealed, sound }
    }

    /// Returns the sealed text of the manifest, and its seal.
    pub(super) fn sealed_manifest(&self) -> (&[u8], &[u8; 32]) {
        (&self.sealed.0, self.sealed.1.as_bytes())
    }

    /// Returns the manifest of the checkpoint, as it is stored beside its images.
    #[must_use]
    pub fn manifest(&self) -> &CheckpointManifest {
        &self.manifest
    }

    /// Returns the directory of the checkpoint.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the directory of CRIU's files.
    #[must_use]
    pub fn images_directory(&self) -> PathBuf {
        self.directory.join(IMAGES)
    }

    pub(crate) fn files_directory(&self) -> PathBuf {
        self.directory.join(FILES)
    }

    /// Checks that the checkpoint is whole (undamaged): reads every file and compares it with its checksum, except pages that are
    /// known to be unchanged.
    ///
    /// # Errors
    ///
    /// [`StoreError::Damaged`] for the first file that differs.
    pub fn verify_files(&self) -> Result<()> {
        self.verify_all_but_pages()?;
        self.verify_pages()
    }

    /// Verifies every file that CRIU or the task interprets, and only the sizes of the files with memory pages.
    pub(crate) fn verify_all_but_pages(&self) -> Result<()> {
        for entry in &self.manifest.images {
            if checksum::is_pages(&entry.name) {
                checksum::verify_size(&self.images_directory(), entry)?;
            } else {
                checksum::verify_file(&self.images_directory(), entry)?;
            }
        }
        let contents = self.manifest.file_contents().into_iter();
        let mut entries = contents.map(|(digest, size)| CheckpointFile::content_file(digest, size));
        entries.try_for_each(|entry| checksum::verify_file(&self.files_directory(), &entry))
    }

    /// Verifies the files with the task's memory, except those known to be unchanged since they were digested.
    pub(crate) fn verify_pages(&self) -> Result<()> {
        let images = self.images_directory();
        let pages = self.manifest.images.iter().filter(|e| checksum::is_pages(&e.name));
        let mut unknown =
            pages.filter(|e| !self.sound.has_digest(&images.join(&e.name), &e.blake3));
        unknown.try_for_each(|entry| checksum::verify_file(&images, entry))
    }

    /// Restores the contents of the task's directory, and gives them to the owner of that directory. Checks that files outside of
    /// that directory that the task had open are unchanged. Nothing else may use the directory.
    ///
    /// # Errors
    ///
    /// A file can't be written, or one outside the directory has changed.
    pub fn restore_files(&self, task_directory: &Path) -> Result<()> {
        // As the worker makes it for a task that begins.
        let mut make = DirBuilder::new();
        let made = make.recursive(true).mode(0o700).create(task_directory);
        made.map_err(StoreError::file_error("create", task_directory))?;
        let objects = ContentObjects::new(self.files_directory(), Vec::new());
        directory::restore_directory(task_directory, &self.manifest.files, &objects)?;
        for file in &self.manifest.open_files {
            if file.path.starts_with(task_directory) {
                continue;
            }
            let found = fs::metadata(&file.path).map(|m| m.len());
            if !found.as_ref().is_ok_and(|found| *found == file.size) {
                return Err(StoreError::OutsideFile {
                    path: file.path.clone(),
                    expected: file.size,
                    found: found.map_or_else(|_| "none".to_owned(), |n| n.to_string()),
                });
            }
        }
        Ok(())
    }
}
