//! A complete checkpoint.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    Error, Manifest, Result, checksum,
    draft::{FILES, IMAGES},
};

/// A complete checkpoint in the store.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    directory: PathBuf,
    manifest: Manifest,
}

impl Checkpoint {
    pub(crate) fn new(directory: PathBuf, manifest: Manifest) -> Self {
        Self { directory, manifest }
    }

    /// The checkpoint's description, as it is stored beside its images.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The checkpoint's directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The directory of CRIU's files.
    #[must_use]
    pub fn images(&self) -> PathBuf {
        self.directory.join(IMAGES)
    }

    pub(crate) fn files(&self) -> PathBuf {
        self.directory.join(FILES)
    }

    /// Reads every file and compares it with its checksum.
    ///
    /// # Errors
    /// [`Error::Damaged`] at the first that differs.
    pub fn verify(&self) -> Result<()> {
        self.verify_all_but_pages()?;
        self.verify_pages()
    }

    /// Everything CRIU or the task interprets, and the sizes of the rest.
    pub(crate) fn verify_all_but_pages(&self) -> Result<()> {
        for entry in &self.manifest.images {
            if checksum::is_pages(&entry.name) {
                checksum::verify_size(&self.images(), entry)?;
            } else {
                checksum::verify(&self.images(), entry)?;
            }
        }
        self.manifest.files.iter().try_for_each(|entry| checksum::verify(&self.files(), entry))
    }

    /// The contents of the task's memory.
    pub(crate) fn verify_pages(&self) -> Result<()> {
        let mut pages = self.manifest.images.iter().filter(|e| checksum::is_pages(&e.name));
        pages.try_for_each(|entry| checksum::verify(&self.images(), entry))
    }

    /// Makes the files in the task's directory what they were, and checks that the others it
    /// had open still are.
    ///
    /// # Errors
    /// Where a file cannot be written, or one outside the directory has changed.
    pub fn restore_files(&self, task_directory: &Path) -> Result<()> {
        fs::create_dir_all(task_directory).map_err(Error::file("create", task_directory))?;
        for name in checksum::regular_files(task_directory)? {
            // Written after the checkpoint: from a future that did not happen.
            if !self.manifest.files.iter().any(|f| f.name == name) {
                let path = task_directory.join(&name);
                fs::remove_file(&path).map_err(Error::file("remove", &path))?;
            }
        }
        for entry in &self.manifest.files {
            let (from, to) = (self.files().join(&entry.name), task_directory.join(&entry.name));
            if let Some(parent) = to.parent() {
                fs::create_dir_all(parent).map_err(Error::file("create", parent))?;
            }
            fs::copy(&from, &to).map_err(Error::file("restore", &to))?;
        }
        for file in &self.manifest.open_files {
            if file.path.starts_with(task_directory) {
                continue;
            }
            let found = fs::metadata(&file.path).map(|m| m.len());
            if !found.as_ref().is_ok_and(|found| *found == file.size) {
                return Err(Error::OutsideFile {
                    path: file.path.clone(),
                    expected: file.size,
                    found: found.map_or_else(|_| "none".to_owned(), |n| n.to_string()),
                });
            }
        }
        Ok(())
    }
}
