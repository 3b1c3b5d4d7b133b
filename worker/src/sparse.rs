//! A file that is written without its zeros.

use std::{
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::Path,
};

use blake3::Hasher;

/// The length of what becomes a hole where it is all zeros: a page of a tmpfs.
const BLOCK: usize = 4096;
const ZEROS: [u8; BLOCK] = [0; BLOCK];
/// Large enough for the wide SIMD paths of BLAKE3, small enough for the second-level cache.
const CHUNK: usize = 256 << 10;

/// An empty file that is written from its beginning to its end. Blocks of zeros become holes, so that a sparse
/// file stays sparse wherever it goes.
#[derive(Debug)]
pub(crate) struct SparseFile {
    file: File,
    length: u64,
    hasher: Hasher,
}

impl SparseFile {
    pub(crate) fn new(empty: File) -> Self {
        Self { file: empty, length: 0, hasher: Hasher::new() }
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update(bytes);
        let mut rest = bytes;
        while !rest.is_empty() {
            let (zeros, after) = rest.split_at(leading(rest, true));
            let (data, after) = after.split_at(leading(after, false));
            self.length += zeros.len() as u64;
            if !data.is_empty() {
                self.file.write_all_at(data, self.length)?;
            }
            self.length += data.len() as u64;
            rest = after;
        }
        Ok(())
    }

    /// Writes all that there is to read, at most so many bytes.
    pub(crate) fn fill(&mut self, from: &mut impl Read, most: u64) -> io::Result<()> {
        let most = most.saturating_sub(self.length);
        // Of thousands of small files each would have a large one.
        let mut buffer = vec![0; CHUNK.min(usize::try_from(most).unwrap_or(CHUNK)).max(1)];
        let mut from = from.take(most);
        loop {
            match from.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(n) => self.write(buffer.get(..n).unwrap_or_default())?,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// The file with its whole length, and the digest of what was written.
    pub(crate) fn finish(self) -> io::Result<(File, blake3::Hash)> {
        self.file.set_len(self.length)?;
        Ok((self.file, self.hasher.finalize()))
    }
}

/// The bytes that the blocks at the beginning have in all which are zeros, or are not.
fn leading(bytes: &[u8], are_zeros: bool) -> usize {
    let is_zero = |block: &[u8]| ZEROS.get(..block.len()) == Some(block);
    bytes.chunks(BLOCK).take_while(|block| is_zero(block) == are_zeros).map(<[u8]>::len).sum()
}

/// Length and digest of what there is to read, of which at most so many bytes are read.
pub(crate) fn digest(from: &mut impl Read, most: u64) -> io::Result<(u64, blake3::Hash)> {
    let (mut hasher, mut length) = (Hasher::new(), 0);
    let (mut buffer, mut from) = (vec![0; CHUNK], from.take(most));
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok((length, hasher.finalize())),
            Ok(n) => {
                hasher.update(buffer.get(..n).unwrap_or_default());
                length += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// Creates a file that is the worker's alone, in place of what a broken copy left.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::{io::Read as _, os::unix::fs::MetadataExt as _};

    use super::*;

    #[test]
    fn zeros_take_no_room_and_are_read_all_the_same() {
        let mut content = vec![0; 3 << 20];
        content[1 << 20] = 7;
        content.extend([1, 2, 3]);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sparse");
        let mut sparse = SparseFile::new(File::create_new(&path).unwrap());
        sparse.fill(&mut content.as_slice(), u64::MAX).unwrap();
        assert_eq!(sparse.length(), content.len() as u64);
        let (file, digest) = sparse.finish().unwrap();
        assert_eq!(digest, blake3::hash(&content));
        assert!(file.metadata().unwrap().blocks() * 512 <= 16 << 10);
        let mut back = Vec::new();
        File::open(&path).unwrap().read_to_end(&mut back).unwrap();
        assert!(back == content);
        // One that ends with a hole.
        let mut sparse = SparseFile::new(tempfile::tempfile().unwrap());
        sparse.fill(&mut [0; 9000].as_slice(), 8000).unwrap();
        assert_eq!(sparse.finish().unwrap().0.metadata().unwrap().len(), 8000);
    }
}
