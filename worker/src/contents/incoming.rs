//! A content that is being received.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use blake3::Hash;

use crate::sparse::{SparseFile, create_private};

/// Counter by which contents that are received at the same time get different file names: two tasks may wait for the same content.
static RECEIVED: AtomicU64 = AtomicU64::new(0);

/// Reasons why a content wasn't received.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// The file of the content can't be written.
    #[error("can't write the content {digest}")]
    File {
        /// BLAKE3 of the content, in hexadecimal.
        digest: Hash,
        /// The system's error.
        source: io::Error,
    },
    /// A content other than the wanted one arrived.
    #[error("what was received as the content {digest} is different: {what}")]
    Another {
        /// BLAKE3 of the content that was wanted, in hexadecimal.
        digest: Hash,
        /// What is wrong with the content.
        what: String,
    },
}

/// A content that is being received. If it is dropped before [`ContentDownload::finish_download`], nothing of it is
/// kept.
#[derive(Debug)]
pub struct ContentDownload {
    /// File that the content is written to; `None` once the content is complete.
    file: Option<SparseFile>,
    part: PathBuf,
    place: PathBuf,
    digest: Hash,
    length: u64,
}

impl ContentDownload {
    /// Begins to receive a content of `bytes` bytes into the directory `root`, under its digest.
    ///
    /// # Errors
    /// The file can't be made.
    pub(crate) fn begin_download(
        root: &Path,
        digest: Hash,
        length: u64,
    ) -> Result<Self, ContentError> {
        let place = root.join(digest.to_hex().as_str());
        let number = RECEIVED.fetch_add(1, Ordering::Relaxed);
        let part = place.with_extension(format!("{number}.part"));
        let file = create_private(&part).map_err(|source| ContentError::File { digest, source })?;
        Ok(Self { file: Some(SparseFile::new(file)), part, place, digest, length })
    }

    /// Writes the next bytes.
    ///
    /// # Errors
    ///
    /// The disk is full, or there are more bytes than announced.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), ContentError> {
        let (digest, length) = (self.digest, self.length);
        let Some(file) = &mut self.file else { return Ok(()) };
        if file.length().saturating_add(bytes.len() as u64) > length {
            let what = format!("it has more than {length} bytes");
            return Err(ContentError::Another { digest, what });
        }
        file.write(bytes).map_err(|source| ContentError::File { digest, source })
    }

    /// Stores the content under its digest, if it matches.
    ///
    /// # Errors
    ///
    /// Another content arrived, or too few bytes.
    pub fn finish_download(mut self) -> Result<(), ContentError> {
        let (digest, length) = (self.digest, self.length);
        let Some(file) = self.file.take() else { return Ok(()) };
        let came = file.length();
        let failed = |source| ContentError::File { digest, source };
        let (_, found) = file.finish_file().map_err(failed)?;
        if came != length {
            let what = format!("it has {came} bytes and not {length}");
            return Err(ContentError::Another { digest, what });
        }
        if found != digest {
            let what = "its digest does not fit".to_owned();
            return Err(ContentError::Another { digest, what });
        }
        fs::rename(&self.part, &self.place).map_err(failed)
    }
}

impl Drop for ContentDownload {
    fn drop(&mut self) {
        // After the rename there is nothing; what can't be removed now is with the worker's next start.
        let _ = fs::remove_file(&self.part);
    }
}
