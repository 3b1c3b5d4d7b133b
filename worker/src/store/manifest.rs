//! The manifest of a checkpoint, which describes the checkpoint.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{Result, StoreError};
use crate::{
    criu::TaskKeepsakes,
    directory::{self, DirectoryNode, InvalidNode},
    picture::TaskPicture,
    workspace::TaskName,
};

/// Progress of a task at a checkpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedProgress {
    /// Number of the attempt at the task that was checkpointed; the first is 1.
    pub attempt: u32,
    /// Part of the task's work, in millionths, that counts as done if the task continues from the checkpoint. The checkpoint may
    /// contain more.
    pub progress_ppm: u32,
    /// CPU time used for the task so far, on all VMs, in nanoseconds.
    pub cpu_ns: u64,
}

/// Regular file that the task had open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenFile {
    /// Absolute path of the file.
    pub path: PathBuf,
    /// Size of the file in bytes. CRIU refuses to restore the task if the size has changed.
    pub size: u64,
}

/// File of the checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointFile {
    /// Path of the file, relative to `images/`.
    pub name: String,
    /// Size of the file in bytes.
    pub size: u64,
    /// BLAKE3 digest of the file's content, in hexadecimal.
    pub blake3: String,
}

impl CheckpointFile {
    /// Makes the entry of a file in `files/`, which is named by the digest of its contents.
    pub(super) fn content_file(digest: String, size: u64) -> Self {
        Self { name: digest.clone(), size, blake3: digest }
    }
}

/// Description of a checkpoint, written when it is complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointManifest {
    /// Version of the manifest's format.
    pub format: u32,
    /// Task that was checkpointed.
    pub task: TaskName,
    /// Number of the checkpoint, counted for each task.
    pub sequence: u64,
    /// Kind of program that the task runs.
    pub program: String,
    /// Progress of the task.
    pub progress: SavedProgress,
    /// Time at which the checkpoint was taken, in milliseconds since 1970.
    pub taken_unix_ms: u64,
    /// Version of the CRIU that took the checkpoint.
    pub criu: String,
    /// Version of the kernel on which the checkpoint was taken.
    pub kernel: String,
    /// Regular files that the task had open.
    pub open_files: Vec<OpenFile>,
    /// Files and directories in the task's directory; the contents of the files are in `files/`.
    pub files: Vec<DirectoryNode>,
    /// Files that CRIU wrote.
    pub images: Vec<CheckpointFile>,
    /// Facts about the task that CRIU doesn't save. `None`: only the task's directory is saved, or an older version of the worker
    /// took the checkpoint. That version stopped all processes of a program by a signal, so that they are stopped in its images
    /// too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keepsakes: Option<TaskKeepsakes>,
    /// Kernel's description of the task's processes just before the dump, to be compared with their description after a restore.
    /// `None`: only the task's directory is saved, the task is a parallel job, or an older version of the worker took the
    /// checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picture: Option<TaskPicture>,
}

impl CheckpointManifest {
    /// Version of the format that this program writes and reads.
    pub const FORMAT: u32 = 3;

    /// Reads a manifest from `origin`, and checks everything that can be checked without the files.
    ///
    /// # Errors
    ///
    /// The text is not a manifest, has another format, or names impossible files.
    pub fn parse(json: &[u8], origin: &Path) -> Result<Self> {
        let manifest: Self = serde_json::from_slice(json)
            .map_err(|source| StoreError::Manifest { path: origin.to_owned(), source })?;
        if manifest.format != Self::FORMAT {
            return Err(StoreError::Format {
                path: origin.to_owned(),
                found: manifest.format,
                expected: Self::FORMAT,
            });
        }
        directory::check_nodes(&manifest.files).map_err(|wrong| match wrong {
            InvalidNode::Path(name) => StoreError::Path { name },
            InvalidNode::Digest(digest) => StoreError::Damaged {
                path: origin.to_owned(),
                what: format!("names the content {digest:?}, which is not a digest"),
            },
        })?;
        for entry in &manifest.images {
            let mut components = Path::new(&entry.name).components();
            let plain = components.all(|c| matches!(c, Component::Normal(_)));
            if entry.name.is_empty() || !plain {
                return Err(StoreError::Path { name: entry.name.clone() });
            }
        }
        Ok(manifest)
    }

    /// Returns the size of all files of the checkpoint together, in bytes.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        let files =
            self.files.iter().filter_map(DirectoryNode::file_content).map(|(_, bytes)| bytes);
        files.chain(self.images.iter().map(|f| f.size)).fold(0, u64::saturating_add)
    }

    /// Returns the contents of the task's files with their sizes in bytes, each content once, in the order of their
    /// digests.
    pub(crate) fn file_contents(&self) -> BTreeMap<String, u64> {
        let contents = self.files.iter().filter_map(DirectoryNode::file_content);
        contents.map(|(digest, bytes)| (digest.to_owned(), bytes)).collect()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::directory::NodeKind;

    fn manifest() -> CheckpointManifest {
        CheckpointManifest {
            format: CheckpointManifest::FORMAT,
            task: TaskName::new("r", "t").unwrap(),
            sequence: 3,
            program: "vector".to_owned(),
            progress: SavedProgress::default(),
            taken_unix_ms: 1,
            criu: "4.1.1".to_owned(),
            kernel: "6.18".to_owned(),
            open_files: vec![],
            files: vec![DirectoryNode::plain_node("a", NodeKind::Directory { mode: 0o700 })],
            images: vec![CheckpointFile { name: "a/b".to_owned(), size: 1, blake3: String::new() }],
            keepsakes: None,
            picture: None,
        }
    }

    #[test]
    fn a_manifest_reads_back() {
        let json = serde_json::to_vec(&manifest()).unwrap();
        assert_eq!(CheckpointManifest::parse(&json, Path::new("m")).unwrap(), manifest());
    }

    #[test]
    fn paths_that_lead_out_are_refused() {
        for name in ["../x", "/etc/passwd", "", "a/../../b", "./a"] {
            let mut manifest = manifest();
            let mut other = manifest.clone();
            name.clone_into(&mut manifest.images[0].name);
            name.clone_into(&mut other.files[0].path);
            for wrong in [manifest, other] {
                let json = serde_json::to_vec(&wrong).unwrap();
                let error = CheckpointManifest::parse(&json, Path::new("m")).unwrap_err();
                assert!(matches!(error, StoreError::Path { .. }), "{name}: {error}");
            }
        }
    }

    #[test]
    fn other_formats_and_nonsense_are_refused() {
        let mut other = manifest();
        other.format = 1;
        let json = serde_json::to_vec(&other).unwrap();
        assert!(matches!(
            CheckpointManifest::parse(&json, Path::new("m")),
            Err(StoreError::Format { found: 1, .. })
        ));
        assert!(matches!(
            CheckpointManifest::parse(&json[..40], Path::new("m")),
            Err(StoreError::Manifest { .. })
        ));
    }
}
