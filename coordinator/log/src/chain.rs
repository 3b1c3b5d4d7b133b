//! Hash chain over the lines of a log.
//!
//! The head after a line is BLAKE3 over the previous head and the line, with its line break; before the first line the
//! head is 32 zero bytes. So a head stands for every byte up to its line, a writer continues from it, and a reader
//! obtains it by reading the lines. Heads are not stored in the lines: logs of older versions read the same.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// State of the hash chain over the lines of a log that were written or read so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    head: [u8; 32],
    lines: u64,
    bytes: u64,
}

/// The number of a line; `None` for the header, which has none.
#[derive(Deserialize)]
pub(crate) struct Numbered {
    pub(crate) seq: Option<u64>,
}

/// Head of a log's hash chain after some line; it identifies everything up to that line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Number of lines so far, the header included.
    pub lines: u64,
    /// Number of bytes of the lines so far.
    pub bytes: u64,
    /// BLAKE3 hash at the head of the chain, in hexadecimal digits.
    pub blake3: String,
}

impl Chain {
    /// The hash chain over the first `length` bytes of a file, which end with a line.
    ///
    /// # Errors
    ///
    /// The file can't be read.
    pub fn of_file(path: &Path, length: u64) -> io::Result<Self> {
        let mut chain = Self::default();
        let mut file = BufReader::new(File::open(path)?).take(length);
        let mut line = Vec::new();
        while file.read_until(b'\n', &mut line)? > 0 {
            chain.add(&line);
            line.clear();
        }
        Ok(chain)
    }

    /// The hash chain over the lines of a log up to the first line that can't be a line of a run: each line is a JSON object with
    /// its line break, and each line after the header has the `seq` after that of the line before. A hole, or a sector from
    /// elsewhere on the disk, ends the lines.
    ///
    /// # Errors
    ///
    /// The file can't be read.
    pub fn of_readable_lines(path: &Path) -> io::Result<Self> {
        let mut chain = Self::default();
        let mut file = BufReader::new(File::open(path)?);
        let (mut line, mut last) = (Vec::new(), None);
        while file.read_until(b'\n', &mut line)? > 0 && line.ends_with(b"\n") {
            let Ok(Numbered { seq }) = serde_json::from_slice(&line) else { break };
            let is_step = chain.lines > 0;
            if !line.starts_with(b"{") || (is_step && seq.is_none()) {
                break;
            }
            if let (Some(seq), Some(last)) = (seq, last)
                && Some(seq) != u64::checked_add(last, 1)
            {
                break;
            }
            last = seq.or(last);
            chain.add(&line);
            line.clear();
        }
        Ok(chain)
    }

    /// Extends the hash chain by a line, line break included.
    pub fn add(&mut self, line: &[u8]) {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.head).update(line);
        self.head = *hasher.finalize().as_bytes();
        self.lines += 1;
        self.bytes += line.len() as u64;
    }

    /// Number of bytes of all lines so far.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The head of the hash chain after the last line.
    #[must_use]
    pub fn head(&self) -> Head {
        let blake3 = blake3::Hash::from(self.head).to_hex().to_string();
        Head { lines: self.lines, bytes: self.bytes, blake3 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over(lines: &[&str]) -> Head {
        let mut chain = Chain::default();
        lines.iter().for_each(|line| chain.add(line.as_bytes()));
        chain.head()
    }

    #[test]
    fn a_head_stands_for_every_byte_and_for_where_lines_end() {
        let head = over(&["{}\n", "{\"seq\":0}\n"]);
        assert_eq!((head.lines, head.bytes), (2, 13));
        for other in [
            &["{}\n", "{\"seq\":1}\n"][..],
            &["{\"seq\":0}\n", "{}\n"],
            &["{}\n{\"seq\":0}\n"],
            &["{}\n"],
        ] {
            assert_ne!(over(other).blake3, head.blake3, "{other:?}");
        }
    }

    #[test]
    fn the_first_head_is_the_hash_that_others_reckon_too() {
        // b3sum of 32 zero bytes and "{}\n".
        let mut text = vec![0; 32];
        text.extend(b"{}\n");
        assert_eq!(over(&["{}\n"]).blake3, blake3::hash(&text).to_hex().to_string());
    }

    #[test]
    fn a_file_is_read_up_to_where_it_was_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        std::fs::write(&path, "{}\n{\"seq\":0}\n{\"torn").expect("room");
        assert_eq!(
            Chain::of_file(&path, 13).expect("read").head(),
            over(&["{}\n", "{\"seq\":0}\n"])
        );
        assert_eq!(Chain::of_file(&path, 0).expect("read"), Chain::default());
    }

    #[test]
    fn lines_are_readable_up_to_a_hole_or_a_sector_of_another_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        let (header, steps) = ("{\"format\":2}\n", ["{\"seq\":0}\n", "{\"seq\":1}\n"]);
        let whole = [header, steps[0], steps[1]];
        for rest in [
            "",
            "{\"seq\":2}",
            "\0\0\0}\n{\"seq\":3}\n",
            "[3]\n",
            "{\"a\":1}\n",
            steps[0],
            "{\"seq\":3}\n",
        ] {
            std::fs::write(&path, whole.concat() + rest).expect("room");
            let readable = Chain::of_readable_lines(&path).expect("read").head();
            assert_eq!(readable, over(&whole), "{rest:?}");
        }
    }
}
