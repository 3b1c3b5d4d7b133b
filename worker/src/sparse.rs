//! Files with holes, which are neither read nor written.

use std::{
    fs::{self, File},
    io::{self, Read as _, Seek as _},
    os::{
        fd::AsRawFd as _,
        unix::fs::{FileExt as _, OpenOptionsExt as _},
    },
    path::Path,
};

use blake3::Hasher;

/// Block size in bytes: a block of zeros becomes a hole. It is the page size of a tmpfs.
const BLOCK: usize = 4096;
const ZEROS: [u8; BLOCK] = [0; BLOCK];
/// Bytes that are read at once: enough for the wide SIMD code of BLAKE3, and few enough for the second-level cache.
const CHUNK: usize = 256 << 10;

/// File that is written from its beginning to its end. Blocks of zeros become holes, so that a sparse file stays sparse
/// when it is copied.
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
        write_blocks(&self.file, self.length, bytes)?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Appends the rest of the file `from`, beginning at its current offset, but at most `most` bytes. Holes of
    /// `from` aren't read.
    pub(crate) fn fill_from(&mut self, from: &mut File, most: u64) -> io::Result<()> {
        let most = most.saturating_sub(self.length);
        read_pieces(from, most, |piece| match piece {
            FilePiece::Data(bytes) => self.write(bytes),
            FilePiece::Hole(length) => {
                update_with_zeros(&mut self.hasher, length);
                self.length += length;
                Ok(())
            }
        })
    }

    /// Sets the whole length of the file, and returns it with the digest of its contents.
    pub(crate) fn finish_file(self) -> io::Result<(File, blake3::Hash)> {
        self.file.set_len(self.length)?;
        Ok((self.file, self.hasher.finalize()))
    }
}

/// Returns the length of the leading blocks of `bytes` that are all zeros if `are_zeros` is true, or aren't if it is false.
fn leading_bytes(bytes: &[u8], are_zeros: bool) -> usize {
    let is_zero = |block: &[u8]| ZEROS.get(..block.len()) == Some(block);
    bytes.chunks(BLOCK).take_while(|block| is_zero(block) == are_zeros).map(<[u8]>::len).sum()
}

/// Part of a file.
enum FilePiece<'a> {
    Data(&'a [u8]),
    /// Hole: the given number of zero bytes, which the file system doesn't store.
    Hole(u64),
}

/// Calls a function with each piece of a file, from the current offset to the end, but for at most a given number of bytes. Finds
/// holes by `SEEK_DATA` and `SEEK_HOLE` (lseek(2)). A file system that doesn't support these reports the whole file as data.
fn read_pieces(
    from: &mut File,
    most: u64,
    mut see: impl FnMut(FilePiece<'_>) -> io::Result<()>,
) -> io::Result<()> {
    // Of thousands of small files each would have a large one.
    let mut buffer = vec![0; CHUNK.min(usize::try_from(most).unwrap_or(CHUNK)).max(1)];
    let mut at = from.stream_position()?;
    let end = at.saturating_add(most);
    while at < end {
        let data = seek_next(from, at, libc::SEEK_DATA)?;
        // Behind the last data there may be a hole, up to the end of the file.
        let length = from.metadata()?.len().max(at);
        let next = data.unwrap_or(length).min(end);
        if next > at {
            see(FilePiece::Hole(next - at))?;
            at = next;
        }
        if data.is_none() {
            break;
        }
        let hole = seek_next(from, at, libc::SEEK_HOLE)?.unwrap_or(end).min(end);
        from.seek(io::SeekFrom::Start(at))?;
        while at < hole {
            let wanted = usize::try_from(hole - at).unwrap_or(CHUNK).min(buffer.len());
            match from.read(buffer.get_mut(..wanted).unwrap_or_default()) {
                // It has become shorter meanwhile.
                Ok(0) => return Ok(()),
                Ok(n) => {
                    see(FilePiece::Data(buffer.get(..n).unwrap_or_default()))?;
                    at += n as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
    from.seek(io::SeekFrom::Start(at))?;
    Ok(())
}

/// Returns the offset at which the next data or hole begins; `None` if no data follow.
fn seek_next(file: &File, from: u64, what: libc::c_int) -> io::Result<Option<u64>> {
    let from = i64::try_from(from).map_err(io::Error::other)?;
    #[expect(unsafe_code, reason = "the standard library seeks to no data")]
    // SAFETY: takes numbers, of a file that is open.
    let found = unsafe { libc::lseek64(file.as_raw_fd(), from, what) };
    match u64::try_from(found) {
        Ok(found) => Ok(Some(found)),
        Err(_) => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ENXIO) => Ok(None),
            // A pipe or a file of the kernel's: all of it is data.
            error if error.raw_os_error() == Some(libc::EINVAL) && what == libc::SEEK_DATA => {
                Ok(u64::try_from(from).ok())
            }
            error if error.raw_os_error() == Some(libc::EINVAL) => Ok(None),
            error => Err(error),
        },
    }
}

/// Writes bytes into a hole of a file, except blocks of zeros.
fn write_blocks(file: &File, mut at: u64, bytes: &[u8]) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let (zeros, after) = rest.split_at(leading_bytes(rest, true));
        let (data, after) = after.split_at(leading_bytes(after, false));
        at += zeros.len() as u64;
        if !data.is_empty() {
            file.write_all_at(data, at)?;
        }
        at += data.len() as u64;
        rest = after;
    }
    Ok(())
}

fn update_with_zeros(hasher: &mut Hasher, mut length: u64) {
    static MANY: [u8; CHUNK] = [0; CHUNK];
    while length > 0 {
        let now = usize::try_from(length).unwrap_or(CHUNK).min(CHUNK);
        hasher.update(MANY.get(..now).unwrap_or_default());
        length -= now as u64;
    }
}

/// Copies a file of `length` bytes into the empty file `empty`, and keeps its holes.
///
/// # Errors
///
/// The file is shorter than `length`, or the system refuses.
pub(crate) fn copy_whole(from: &mut File, empty: File, length: u64) -> io::Result<File> {
    let mut copied = 0;
    read_pieces(from, length, |piece| {
        copied += match piece {
            FilePiece::Data(bytes) => {
                write_blocks(&empty, copied, bytes)?;
                bytes.len() as u64
            }
            FilePiece::Hole(length) => length,
        };
        Ok(())
    })?;
    if copied != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    empty.set_len(length)?;
    Ok(empty)
}

/// Returns the length and digest of a file from its current offset, reading at most `most` bytes. Its holes aren't
/// read.
pub(crate) fn digest_file(from: &mut File, most: u64) -> io::Result<(u64, blake3::Hash)> {
    let (mut hasher, mut length) = (Hasher::new(), 0);
    read_pieces(from, most, |piece| {
        match piece {
            FilePiece::Data(bytes) => {
                hasher.update(bytes);
                length += bytes.len() as u64;
            }
            FilePiece::Hole(zeros) => {
                update_with_zeros(&mut hasher, zeros);
                length += zeros;
            }
        }
        Ok(())
    })?;
    Ok((length, hasher.finalize()))
}

/// Creates a file that only the worker's user can use. Replaces a file that an interrupted copy left.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::{io::Read as _, os::unix::fs::MetadataExt as _, time::Instant};

    use super::*;

    /// Creates a file of `length` bytes that has `bytes` from offset `at` on, and holes before and after them.
    fn file_with(length: u64, at: u64, bytes: &[u8]) -> File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(length).unwrap();
        file.write_all_at(bytes, at).unwrap();
        file
    }

    #[test]
    fn zeros_take_no_room_and_are_read_all_the_same() {
        let mut content = vec![0; 3 << 20];
        content[1 << 20] = 7;
        content.extend([1, 2, 3]);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sparse");
        let mut written = tempfile::tempfile().unwrap();
        written.write_all_at(&content, 0).unwrap();
        let mut sparse = SparseFile::new(File::create_new(&path).unwrap());
        sparse.fill_from(&mut written, u64::MAX).unwrap();
        assert_eq!(sparse.length(), content.len() as u64);
        let (file, digest) = sparse.finish_file().unwrap();
        assert_eq!(digest, blake3::hash(&content));
        assert!(file.metadata().unwrap().blocks() * 512 <= 16 << 10);
        let mut back = Vec::new();
        File::open(&path).unwrap().read_to_end(&mut back).unwrap();
        assert!(back == content);
        // One that ends with a hole.
        let mut sparse = SparseFile::new(tempfile::tempfile().unwrap());
        sparse.fill_from(&mut file_with(9000, 0, &[]), 8000).unwrap();
        assert_eq!(sparse.finish_file().unwrap().0.metadata().unwrap().len(), 8000);
    }

    #[test]
    fn a_file_with_holes_has_the_digest_of_what_is_read_in_it() {
        for (length, at, most) in [
            (1 << 20, 300_000, u64::MAX),
            (1 << 20, 0, 1 << 19),
            (700_001, 700_000, 700_001),
            (0, 0, 9),
        ] {
            let mut file = file_with(length, at, if length == 0 { &[] } else { &[5] });
            let mut content = Vec::new();
            (&file).take(most).read_to_end(&mut content).unwrap();
            file.rewind().unwrap();
            let found = digest_file(&mut file, most).unwrap();
            assert_eq!(found, (content.len() as u64, blake3::hash(&content)), "{length} {at}");
            file.rewind().unwrap();
            let copy = copy_whole(&mut file, tempfile::tempfile().unwrap(), content.len() as u64);
            let mut copied = Vec::new();
            let mut copy = copy.unwrap();
            copy.rewind().unwrap();
            copy.read_to_end(&mut copied).unwrap();
            assert!(copied == content, "{length} {at}");
            file.rewind().unwrap();
            let longer = copy_whole(&mut file, tempfile::tempfile().unwrap(), length + 1);
            assert_eq!(longer.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        }
    }

    /// A file that would take a minute to read is copied without reading its hole.
    #[test]
    fn a_hole_of_a_tebibyte_is_copied_at_once() {
        let (length, begun) = (1 << 40, Instant::now());
        let mut file = file_with(length, length - 1, &[9]);
        let copy = copy_whole(&mut file, tempfile::tempfile().unwrap(), length).unwrap();
        let mut last = [0];
        copy.read_exact_at(&mut last, length - 1).unwrap();
        assert_eq!((last, copy.metadata().unwrap().len()), ([9], length));
        assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    }
}
