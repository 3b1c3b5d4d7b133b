//! Contents of saved files, each under its digest.

use std::{
    fs::{self, File},
    io::{self, Seek as _},
    path::{Path, PathBuf},
};

use blake3::Hash;

use crate::sparse::{SparseFile, copy_whole, create_private, digest_file};

/// Length in bytes below which a content is written without a check whether it exists already.
const SMALL: u64 = 64 << 10;

/// A directory of contents, each in a file named by its digest. A content that is in an earlier directory of contents isn't copied:
/// both share the file (by a hard link).
#[derive(Debug)]
pub struct ContentObjects {
    root: PathBuf,
    /// Directories of earlier checkpoints, whose contents may be shared.
    earlier: Vec<PathBuf>,
}

impl ContentObjects {
    /// Opens the existing directory of contents `root`, which shares files with the directories in `earlier`.
    #[must_use]
    pub fn new(root: PathBuf, earlier: Vec<PathBuf>) -> Self {
        Self { root, earlier }
    }

    /// Returns the path of the file with a content.
    pub(crate) fn content_path(&self, digest: &Hash) -> PathBuf {
        self.root.join(digest.to_hex().as_str())
    }

    /// Stores the content of a file of at most `most` bytes; returns its length and digest.
    ///
    /// # Errors
    ///
    /// The file can't be read, or there is no room.
    pub(crate) fn keep_content(&self, file: &mut File, most: u64) -> io::Result<(u64, Hash)> {
        let (length, part) = (file.metadata()?.len(), self.root.join("part"));
        let (length, found) = if length > SMALL && !self.earlier.is_empty() {
            let (length, found) = digest_file(file, most)?;
            if self.content_path(&found).exists() || self.share_earlier(&found) {
                return Ok((length, found));
            }
            file.rewind()?;
            // Its task stands still: the content is the same.
            copy_whole(file, create_private(&part)?, length)?;
            (length, found)
        } else {
            let mut copy = SparseFile::new(create_private(&part)?);
            copy.fill_from(file, most)?;
            (copy.length(), copy.finish_file()?.1)
        };
        fs::rename(&part, self.content_path(&found))?;
        Ok((length, found))
    }

    /// Links the file of an earlier checkpoint that has this content; false if no earlier checkpoint has it.
    fn share_earlier(&self, found: &Hash) -> bool {
        let (name, to) = (found.to_hex(), self.content_path(found));
        self.earlier.iter().any(|earlier| fs::hard_link(earlier.join(name.as_str()), &to).is_ok())
    }

    /// Links the file of an earlier checkpoint that has this content, if the file is undamaged; false if there is no such file.
    pub(crate) fn share_sound(&self, found: &Hash, length: u64) -> bool {
        let shared = self.content_path(found).exists() || self.share_earlier(found);
        if shared && !is_sound(&self.content_path(found), (found, length)) {
            let _ = fs::remove_file(self.content_path(found));
            return false;
        }
        shared
    }
}

/// Returns whether a file has this content and length.
pub(super) fn is_sound(path: &Path, (expected, length): (&Hash, u64)) -> bool {
    let read =
        File::open(path).and_then(|mut file| digest_file(&mut file, length.saturating_add(1)));
    read.is_ok_and(|(found, hash)| found == length && hash == *expected)
}
