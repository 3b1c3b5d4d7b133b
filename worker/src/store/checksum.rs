//! Checksums of the files of a checkpoint.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use blake3::Hasher;

use super::{CheckpointFile, Result, StoreError};
use crate::sparse;

/// Bytes that are read at once: enough for the wide SIMD code of BLAKE3, and few enough for the second-level cache.
const CHUNK: usize = 256 * 1024;
/// Pause of the thread that digests a dump's files while CRIU writes them, when CRIU has written nothing new.
const PAUSE: Duration = Duration::from_micros(300);

/// Returns whether a file has memory pages. Those files are large, and CRIU only appends to them.
pub(crate) fn is_pages(name: &str) -> bool {
    name.starts_with("pages-")
}

/// Reads the rest of `file` into the hasher. Returns the number of bytes read.
fn feed_file(hasher: &mut Hasher, file: &mut File, buffer: &mut [u8]) -> io::Result<u64> {
    let mut total = 0;
    loop {
        match file.read(buffer) {
            Ok(0) => return Ok(total),
            Ok(n) => {
                hasher.update(buffer.get(..n).unwrap_or_default());
                total += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// Returns the size and digest of one file.
pub(crate) fn digest_file(path: &Path) -> Result<(u64, String)> {
    let (size, found) = File::open(path)
        .and_then(|mut file| sparse::digest_file(&mut file, u64::MAX))
        .map_err(StoreError::file_error("read", path))?;
    Ok((size, found.to_hex().to_string()))
}

/// Checks that the file in `directory` has the size and digest of `entry`.
pub(crate) fn verify_file(directory: &Path, entry: &CheckpointFile) -> Result<()> {
    let path = directory.join(&entry.name);
    verify_size(directory, entry)?;
    let (_, blake3) = digest_file(&path)?;
    if blake3 != entry.blake3 {
        return Err(StoreError::Damaged { path, what: "does not match its checksum".to_owned() });
    }
    Ok(())
}

/// Checks that the file has the size of `entry`, without reading it.
pub(crate) fn verify_size(directory: &Path, entry: &CheckpointFile) -> Result<()> {
    let path = directory.join(&entry.name);
    match fs::metadata(&path) {
        Ok(metadata) if metadata.is_file() && metadata.len() == entry.size => Ok(()),
        Ok(metadata) => Err(StoreError::Damaged {
            path,
            what: format!("has {} bytes instead of {}", metadata.len(), entry.size),
        }),
        Err(e) => Err(StoreError::Damaged { path, what: format!("can't be read ({e})") }),
    }
}

/// Lists all regular files below `directory`, with size and digest, sorted by name. Files in `known` (by name) aren't
/// read again.
pub(crate) fn list_files(
    directory: &Path,
    known: &BTreeMap<String, (u64, String)>,
) -> Result<Vec<CheckpointFile>> {
    let mut entries = Vec::new();
    for name in regular_files(directory)? {
        let path = directory.join(&name);
        let size = fs::metadata(&path).map_err(StoreError::file_error("read", &path))?.len();
        let (size, blake3) = match known.get(&name) {
            Some(known) if known.0 == size => known.clone(),
            _ => digest_file(&path)?,
        };
        entries.push(CheckpointFile { name, size, blake3 });
    }
    Ok(entries)
}

/// Returns the names of all regular files below `directory`, sorted. Other files (links, devices, and those whose
/// names aren't UTF-8) aren't part of a checkpoint.
pub(crate) fn regular_files(directory: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let mut directories = vec![PathBuf::new()];
    while let Some(relative) = directories.pop() {
        let path = directory.join(&relative);
        for entry in fs::read_dir(&path).map_err(StoreError::file_error("list", &path))? {
            let entry = entry.map_err(StoreError::file_error("list", &path))?;
            let relative = relative.join(entry.file_name());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => directories.push(relative),
                Ok(kind) if kind.is_file() => names.extend(relative.to_str().map(str::to_owned)),
                _ => {}
            }
        }
    }
    names.sort();
    Ok(names)
}

/// Digests the files of pages in `directory` while CRIU writes them, until `done`. As this runs on another core, the
/// checksums add hardly any time to a dump.
///
/// The digest of a file that was rewritten, and not appended to, is wrong; the first restore would find that. Errors
/// are ignored: files without a digest are read afterwards.
pub(crate) fn follow_pages(directory: &Path, done: &AtomicBool) -> BTreeMap<String, (u64, String)> {
    let mut followed: BTreeMap<String, (File, Hasher, u64)> = BTreeMap::new();
    let mut buffer = vec![0; CHUNK];
    loop {
        // Asked before reading: what was written before it was set is read after.
        let last = done.load(Ordering::Acquire);
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else {
                continue;
            };
            if is_pages(&name)
                && !followed.contains_key(&name)
                && let Ok(file) = File::open(entry.path())
            {
                followed.insert(name, (file, Hasher::new(), 0));
            }
        }
        let mut news = 0;
        followed.retain(|_, (file, hasher, size)| {
            feed_file(hasher, file, &mut buffer).is_ok_and(|n| {
                *size += n;
                news += n;
                true
            })
        });
        if last {
            break;
        }
        if news == 0 {
            thread::park_timeout(PAUSE);
        }
    }
    followed
        .into_iter()
        .map(|(name, (_, hasher, size))| (name, (size, hasher.finalize().to_hex().to_string())))
        .collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn following_a_growing_file_gives_its_digest() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pages-1.img");
        let done = AtomicBool::new(false);
        let found = thread::scope(|scope| {
            let follower = scope.spawn(|| follow_pages(dir.path(), &done));
            let mut file = File::create(&path).unwrap();
            for n in 0..64_u8 {
                file.write_all(&vec![n; 10_000]).unwrap();
                thread::yield_now();
            }
            fs::write(dir.path().join("core-1.img"), "x").unwrap();
            done.store(true, Ordering::Release);
            follower.join().unwrap()
        });
        assert_eq!(found.len(), 1);
        assert_eq!(found["pages-1.img"], digest_file(&path).unwrap());
        assert_eq!(found["pages-1.img"].0, 640_000);
    }

    #[test]
    fn damage_is_told_from_absence() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a"), "hello").unwrap();
        let [entry] = list_files(dir.path(), &BTreeMap::new()).unwrap().try_into().unwrap();
        verify_file(dir.path(), &entry).unwrap();
        fs::write(dir.path().join("a"), "hellO").unwrap();
        let said = verify_file(dir.path(), &entry).unwrap_err().to_string();
        assert!(said.ends_with("does not match its checksum"), "{said}");
        fs::write(dir.path().join("a"), "hell").unwrap();
        let said = verify_file(dir.path(), &entry).unwrap_err().to_string();
        assert!(said.ends_with("has 4 bytes instead of 5"), "{said}");
        fs::remove_file(dir.path().join("a")).unwrap();
        assert!(verify_file(dir.path(), &entry).unwrap_err().to_string().contains("can't be read"));
    }
}
