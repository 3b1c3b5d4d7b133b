//! A checkpoint in the making.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use super::{
    Checkpoint, Error, Manifest, OpenFile, Progress, Result, checksum,
    full::{NoRoom, no_space},
};
use crate::workspace::TaskName;

pub(crate) const MANIFEST: &str = "manifest.json";
pub(crate) const IMAGES: &str = "images";
pub(crate) const FILES: &str = "files";

/// A checkpoint in the making; dropped without [`Draft::commit`], it is removed.
#[derive(Debug)]
pub struct Draft {
    directory: PathBuf,
    task: TaskName,
    sequence: u64,
    committed: bool,
    /// Laid over its images, where the store is full.
    no_room: Option<NoRoom>,
}

impl Draft {
    pub(crate) fn create(
        directory: PathBuf,
        task: TaskName,
        sequence: u64,
        is_full: bool,
    ) -> Result<Self> {
        for path in [directory.join(IMAGES), directory.join(FILES)] {
            fs::create_dir_all(&path).map_err(Error::file("create", &path))?;
        }
        let no_room = is_full.then(|| NoRoom::over(&directory.join(IMAGES))).transpose()?;
        Ok(Self { directory, task, sequence, committed: false, no_room })
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

    /// Saves the directory of the task, which must stand still.
    ///
    /// # Errors
    /// Where a file cannot be read or written.
    pub fn save_files(&self, task_directory: &Path) -> Result<()> {
        for name in checksum::regular_files(task_directory)? {
            let (from, to) = (task_directory.join(&name), self.files().join(&name));
            if let Some(parent) = to.parent() {
                fs::create_dir_all(parent).map_err(Error::file("create", parent))?;
            }
            fs::copy(&from, &to).map_err(Error::file("save a copy of", from))?;
        }
        Ok(())
    }

    /// Completes the checkpoint. `known` holds digests of images that need not be read again.
    pub(crate) fn commit(
        self,
        progress: Progress,
        open_files: Vec<OpenFile>,
        criu: String,
        known: &BTreeMap<String, (u64, String)>,
    ) -> Result<Checkpoint> {
        let manifest = Manifest {
            format: Manifest::FORMAT,
            task: self.task.clone(),
            sequence: self.sequence,
            progress,
            taken_unix_ms: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX)),
            criu,
            kernel: nix::sys::utsname::uname()
                .map(|u| u.release().to_string_lossy().into_owned())
                .unwrap_or_default(),
            open_files,
            files: checksum::list(&self.files(), &BTreeMap::new())?,
            images: checksum::list(&self.images(), known)?,
        };
        self.seal(manifest)
    }

    /// Renames the manifest into place: from here on the checkpoint exists.
    pub(crate) fn seal(mut self, manifest: Manifest) -> Result<Checkpoint> {
        let path = self.directory.join(MANIFEST);
        if self.no_room.is_some() {
            return Err(Error::file("write", &path)(no_space()));
        }
        let partial = path.with_extension("partial");
        let json = serde_json::to_vec_pretty(&manifest)
            .map_err(|source| Error::Manifest { path: path.clone(), source })?;
        fs::write(&partial, json).map_err(Error::file("write", &partial))?;
        fs::rename(&partial, &path).map_err(Error::file("create", &path))?;
        self.committed = true;
        Ok(Checkpoint::new(std::mem::take(&mut self.directory), manifest))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        drop(self.no_room.take());
        if !self.committed {
            // What cannot be removed now is swept at the next start.
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}
