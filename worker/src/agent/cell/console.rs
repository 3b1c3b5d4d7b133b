//! The console of a cell: what its first process has written since it was last read.

use std::{
    fs::OpenOptions,
    io::{self, Read as _, Seek as _, SeekFrom},
    path::Path,
};

use dormouse_tasks::left;

/// Name of the console's file in a cell's directory.
const CONSOLE: &str = "stdout";
/// Most bytes of a console that one report holds.
const PART_BYTES: u64 = 16 << 10;
/// Most bytes of a console that are read, whatever a program has made of the file: what its first process writes, with its last line.
const MOST_BYTES: u64 = dormouse_tasks::cell_init::CONSOLE_BYTES as u64 + 256;

/// Reads the console of the cell in a directory from byte `from` on, at most a report's part of it.
///
/// # Errors
///
/// The console can't be read, or is not a regular file any more.
pub(crate) fn read_console(directory: &Path, from: u64) -> io::Result<Vec<u8>> {
    let mut file = left::open(&directory.join(CONSOLE), OpenOptions::new().read(true))?;
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(PART_BYTES.min(MOST_BYTES.saturating_sub(from))).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// How far a console was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ConsoleReader {
    read: u64,
}

impl ConsoleReader {
    /// Returns the byte from which on the console is to be read.
    pub(crate) const fn next_byte(self) -> u64 {
        self.read
    }

    /// Converts bytes that were read to text; a character at the end of which not all bytes are there yet waits for the next part,
    /// unless this is the last one (`is_last`). Bytes that are no text become U+FFFD.
    pub(crate) fn take_text(&mut self, bytes: &[u8], is_last: bool) -> Option<String> {
        let is_end = is_last && (bytes.len() as u64) < PART_BYTES;
        let whole = if is_end { bytes.len() } else { whole_characters(bytes) };
        let taken = bytes.get(..whole).unwrap_or_default();
        self.read += taken.len() as u64;
        (!taken.is_empty()).then(|| String::from_utf8_lossy(taken).into_owned())
    }
}

/// Returns the length of the bytes without a character at their end that is not complete.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_console_is_read_in_parts_and_its_characters_stay_whole() {
        let folder = tempfile::tempdir().unwrap();
        let text = "ä".repeat(12_000);
        std::fs::write(folder.path().join(CONSOLE), &text).unwrap();
        let (mut reader, mut read) = (ConsoleReader::default(), String::new());
        for _ in 0..2 {
            let bytes = read_console(folder.path(), reader.next_byte()).unwrap();
            read.push_str(&reader.take_text(&bytes, false).unwrap());
        }
        assert_eq!(read, text);
        let mut reader = ConsoleReader::default();
        assert_eq!(reader.take_text(b"a\xc3", false).as_deref(), Some("a"));
        assert_eq!(reader.take_text(b"\xc3", false), None);
        assert_eq!(reader.take_text(b"\xc3", true).as_deref(), Some("\u{fffd}"));
        assert_eq!(reader.take_text(b"", true), None);
        assert_eq!(reader.next_byte(), 2);
    }

    #[test]
    fn a_console_that_is_a_link_is_not_read() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let secret = elsewhere.path().join("secret");
        std::fs::write(&secret, "secret").unwrap();
        std::os::unix::fs::symlink(&secret, folder.path().join(CONSOLE)).unwrap();
        read_console(folder.path(), 0).unwrap_err();
    }
}
