//! Unpacking of compressed files, detected by their first bytes.

use std::fmt;
use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::bufread::{DeflateDecoder, MultiGzDecoder};
use lzma_rust2::XzReader;
use rawzip::{CompressionMethod, ZipArchive};
use ruzstd::decoding::StreamingDecoder;
use ruzstd::decoding::errors::FrameDecoderError;

/// Number of bytes to read at a time.
const PIECE: usize = 1 << 16;
/// Greatest size of a zip file in bytes; a zip file is held in memory, since its table of contents comes last.
const LARGEST_ZIP: u64 = 1 << 30;
/// Memory limit for unpacking an xz file, in KiB: twice what `xz -9` needs.
const XZ_MEMORY_KIB: u32 = 132 << 10;
/// Memory limit for unpacking a zstd file, in bytes: what `zstd --long` needs.
const ZSTD_WINDOW: u64 = 1 << 27;

/// Compression format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// The file is not compressed.
    Plain,
    /// Packed with gzip, in one or more members.
    Gzip,
    /// A zip archive, which has to contain exactly one file.
    Zip,
    /// Packed with xz, in one or more streams.
    Xz,
    /// Packed with zstd, in one or more frames.
    Zstd,
}

impl Packing {
    /// The packing of a file that begins with these bytes; as an error, the name of a packing that is not supported.
    fn detect_packing(begins: &[u8]) -> Result<Self, &'static str> {
        // The magic numbers of each format's specification.
        match begins {
            [0x1f, 0x8b, ..] => Ok(Self::Gzip),
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Ok(Self::Zip),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Ok(Self::Xz),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Ok(Self::Zstd),
            // A skippable frame of zstd, with which some writers begin.
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Ok(Self::Zstd),
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Err("bzip2"),
            [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => Err("7z"),
            [0x1f, 0x9d, ..] => Err("compress (.Z)"),
            [b'R', b'a', b'r', b'!', ..] => Err("rar"),
            [b'P', b'A', b'R', b'1', ..] => Err("Parquet"),
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Err("UTF-16 text"),
            [b'S', b'Q', b'L', b'i', b't', b'e', ..] => Err("SQLite"),
            _ => Ok(Self::Plain),
        }
    }
}

impl fmt::Display for Packing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "plain",
            Self::Gzip => "gzip",
            Self::Zip => "zip",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
        })
    }
}

/// The content of a file, unpacked as it is read.
pub struct Source {
    packing: Packing,
    input: Box<dyn BufRead + Send>,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("packing", &self.packing).finish_non_exhaustive()
    }
}

impl Source {
    /// The content of `file`, unpacked, without the byte order mark that it may begin with.
    ///
    /// # Errors
    ///
    /// The file can't be read, is packed in a way that is not supported, or is a zip archive with more or less than one
    /// file in it.
    pub fn new(file: impl Read + Send + 'static) -> io::Result<Self> {
        let mut file = BufReader::with_capacity(PIECE, file);
        let packing = Packing::detect_packing(fill_buffer(&mut file)?).map_err(|name| {
            invalid_content(format!(
                "it is {name}, which can't be read here; unpack or convert it first"
            ))
        })?;
        let mut input: Box<dyn BufRead + Send> = match packing {
            Packing::Plain => Box::new(file),
            Packing::Gzip => checked_reader(packing, MultiGzDecoder::new(file)),
            Packing::Zip => only_file(file)?,
            Packing::Xz => {
                checked_reader(packing, XzReader::new_mem_limit(file, true, XZ_MEMORY_KIB))
            }
            Packing::Zstd => checked_reader(packing, ZstdFrames { input: Some(file), frame: None }),
        };
        if fill_buffer(&mut input)?.starts_with(b"\xef\xbb\xbf") {
            input.consume(3);
        }
        Ok(Self { packing, input })
    }

    /// Packing of the file, detected by its first bytes.
    #[must_use]
    pub const fn packing(&self) -> Packing {
        self.packing
    }

    /// The next bytes of the file, which are not consumed; at least one, unless the file is over.
    ///
    /// # Errors
    ///
    /// The file can't be read or unpacked.
    pub fn next_bytes(&mut self) -> io::Result<&[u8]> {
        fill_buffer(&mut self.input)
    }

    /// Whether the rest of the input is JSON: its first byte that is not white space opens an object or a list.
    ///
    /// # Errors
    ///
    /// The file can't be read or unpacked.
    pub fn is_json(&mut self) -> io::Result<bool> {
        let next = self.next_bytes()?;
        Ok(matches!(next.iter().find(|b| !b.is_ascii_whitespace()), Some(b'{' | b'[')))
    }

    /// Reads the rest of the file as text.
    ///
    /// # Errors
    ///
    /// The file can't be read or unpacked, is no UTF-8, or is longer than `most` bytes.
    pub fn into_text(self, most: u64) -> io::Result<String> {
        let mut text = String::new();
        self.input.take(most.saturating_add(1)).read_to_string(&mut text).map_err(|error| {
            match error.kind() {
                io::ErrorKind::InvalidData if error.get_ref().is_none() => {
                    invalid_content("it is not text in UTF-8".to_owned())
                }
                _ => error,
            }
        })?;
        if text.len() as u64 > most {
            return Err(invalid_content(format!(
                "it is longer than {} MiB unpacked; give a part of it",
                most >> 20
            )));
        }
        Ok(text)
    }

    /// A reader of the file's content.
    #[must_use]
    pub fn into_input(self) -> Box<dyn BufRead + Send> {
        self.input
    }
}

fn buffer_pieces<R: Read>(from: R) -> BufReader<R> {
    BufReader::with_capacity(PIECE, from)
}

/// Reads the next bytes into the buffer; a call that was interrupted is repeated.
fn fill_buffer<R: BufRead + ?Sized>(input: &mut R) -> io::Result<&[u8]> {
    loop {
        match input.fill_buf() {
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    // The bytes are there: this does not read.
    input.fill_buf()
}

fn invalid_content(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// The content of a packed file, whose errors say that the file is broken.
struct CheckedUnpacking<R> {
    packing: Packing,
    from: R,
}

impl<R: Read> Read for CheckedUnpacking<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.from.read(to).map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => error,
            io::ErrorKind::OutOfMemory => invalid_content(format!(
                "it is a {} file that needs too much memory to be unpacked here; unpack it first",
                self.packing
            )),
            // The file itself can't be read.
            _ if error.raw_os_error().is_some() => error,
            _ => broken_file(self.packing),
        })
    }
}

fn checked_reader(packing: Packing, from: impl Read + Send + 'static) -> Box<dyn BufRead + Send> {
    Box::new(buffer_pieces(CheckedUnpacking { packing, from }))
}

fn broken_file(packing: Packing) -> io::Error {
    invalid_content(format!("it is a {packing} file that is cut off or damaged; download it again"))
}

/// The only file of a zip archive, whose checksum is verified; folders, and the files that macOS adds to each archive,
/// don't count.
fn only_file(file: impl Read) -> io::Result<Box<dyn BufRead + Send>> {
    let mut bytes = Vec::new();
    file.take(LARGEST_ZIP + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST_ZIP {
        return Err(invalid_content(
            "it is a zip file of more than 1 GiB; unpack it first".to_owned(),
        ));
    }
    let broken = |_: rawzip::Error| broken_file(Packing::Zip);
    let archive = ZipArchive::from_slice(&bytes).map_err(broken)?;
    let (mut entries, mut files) = (archive.entries(), Vec::new());
    while let Some(entry) = entries.next_entry().map_err(broken)? {
        let name = String::from_utf8_lossy(entry.file_path().as_ref()).into_owned();
        if !entry.is_dir() && !name.starts_with("__MACOSX/") {
            files.push((name, entry));
        }
    }
    let entry = match &files[..] {
        [(_, entry)] => entry,
        [] => return Err(invalid_content("it is a zip file without a file in it".to_owned())),
        several => {
            let names: Vec<_> = several.iter().take(4).map(|(name, _)| name.as_str()).collect();
            let what = format!(
                "it is a zip file of {} files ({}{}); unpack it and give the one that is meant",
                several.len(),
                names.join(", "),
                if several.len() > names.len() { ", …" } else { "" },
            );
            return Err(invalid_content(what));
        }
    };
    if entry.flags().is_encrypted() {
        return Err(invalid_content(
            "it is a zip file with a password; unpack it first".to_owned(),
        ));
    }
    let method = entry.compression_method();
    let entry = archive.get_entry(entry.wayfinder()).map_err(broken)?;
    let packed = Cursor::new(entry.data().to_vec());
    match method {
        CompressionMethod::STORE => {
            Ok(checked_reader(Packing::Zip, entry.verifying_reader(packed)))
        }
        CompressionMethod::DEFLATE => {
            let unpacked = DeflateDecoder::new(packed);
            Ok(checked_reader(Packing::Zip, entry.verifying_reader(unpacked)))
        }
        other => Err(invalid_content(format!(
            "it is a zip file packed by method {other:?}; unpack it first"
        ))),
    }
}

/// The frames of a zstd file, one after the other.
struct ZstdFrames<R: BufRead> {
    /// The packed file while the reader is between two frames; `None` while a frame is being read.
    input: Option<R>,
    frame: Option<StreamingDecoder<R, ruzstd::decoding::FrameDecoder>>,
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = &mut self.frame {
                let read = frame.read(to)?;
                if read > 0 || to.is_empty() {
                    return Ok(read);
                }
                self.input = self.frame.take().map(StreamingDecoder::into_inner);
            }
            let Some(mut input) = self.input.take() else { return Ok(0) };
            match fill_buffer(&mut input)? {
                [] => return Ok(0),
                [first, 0x2a, 0x4d, 0x18, length @ ..] if (0x50..=0x5f).contains(first) => {
                    let length = length.first_chunk().map_or(0, |four| u32::from_le_bytes(*four));
                    let skipped = 8 + u64::from(length);
                    io::copy(&mut (&mut input).take(skipped), &mut io::sink())?;
                    self.input = Some(input);
                }
                _ => {
                    let frame = StreamingDecoder::new_with_max_window_size(input, ZSTD_WINDOW);
                    self.frame = Some(frame.map_err(|error| match error {
                        FrameDecoderError::WindowSizeTooBig { .. } => {
                            io::ErrorKind::OutOfMemory.into()
                        }
                        error => invalid_content(error.to_string()),
                    })?);
                }
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;

    /// The text "1 2\n3 4\n", packed by the programs xz, zstd, zip, gzip, or zip with two files.
    pub(super) fn packed(name: &str) -> Vec<u8> {
        let hex = match name {
            "xz" => include_str!("../tests/packed/xz.hex"),
            "zstd" => include_str!("../tests/packed/zstd.hex"),
            "zip" => include_str!("../tests/packed/zip.hex"),
            "zip-stored" => include_str!("../tests/packed/zip-stored.hex"),
            "zip-two" => include_str!("../tests/packed/zip-two.hex"),
            "gzip" => include_str!("../tests/packed/gzip.hex"),
            _ => "",
        };
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let pair = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
        digits.chunks(2).map(pair).collect()
    }

    fn read(bytes: Vec<u8>) -> io::Result<(Packing, String)> {
        let source = Source::new(Cursor::new(bytes))?;
        let packing = source.packing();
        Ok((packing, source.into_text(1 << 20)?))
    }

    #[test]
    fn a_file_is_unpacked_by_what_it_begins_with() {
        let text = "1 2\n3 4\n".to_owned();
        for (name, packing) in [
            ("xz", Packing::Xz),
            ("zstd", Packing::Zstd),
            ("zip", Packing::Zip),
            ("zip-stored", Packing::Zip),
            ("gzip", Packing::Gzip),
        ] {
            assert_eq!(read(packed(name)).unwrap(), (packing, text.clone()), "{name}");
            if packing != Packing::Zip {
                let twice = [packed(name), packed(name)].concat();
                assert_eq!(read(twice).unwrap().1, text.repeat(2), "{name} twice");
            }
            // Half of a packed file is an error, and not half of its text.
            let mut half = packed(name);
            half.truncate(half.len() * 2 / 3);
            let error = read(half).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{name}");
            let says =
                format!("it is a {packing} file that is cut off or damaged; download it again");
            assert_eq!(error.to_string(), says, "{name} cut");
        }
        let marked = b"\xef\xbb\xbf1 2\n".to_vec();
        assert_eq!(read(marked).unwrap(), (Packing::Plain, "1 2\n".to_owned()));
        assert_eq!(read(Vec::new()).unwrap(), (Packing::Plain, String::new()));
    }

    #[test]
    fn what_is_not_read_is_named() {
        let two = read(packed("zip-two")).unwrap_err().to_string();
        assert!(two.contains("2 files (a.txt, b.txt)"), "{two}");
        for (bytes, name) in [
            (&b"BZh91AY"[..], "bzip2"),
            (b"7z\xbc\xaf\x27\x1c", "7z"),
            (b"PAR1", "Parquet"),
            (b"\xff\xfe1\0", "UTF-16"),
        ] {
            let error = read(bytes.to_vec()).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
        let latin = read(b"caf\xe9\n".to_vec()).unwrap_err().to_string();
        assert!(latin.contains("not text in UTF-8"), "{latin}");
        let long = Source::new(Cursor::new(vec![b'x'; 2 << 20])).unwrap().into_text(1 << 20);
        assert!(long.unwrap_err().to_string().contains("longer than 1 MiB"));
    }

    #[test]
    fn json_is_told_by_its_first_letter() {
        for (text, is_json) in
            [(" \n{\"a\": 1}", true), ("[1]", true), ("a,b\n", false), ("", false)]
        {
            let mut source = Source::new(Cursor::new(text.as_bytes().to_vec())).unwrap();
            assert_eq!(source.is_json().unwrap(), is_json, "{text}");
        }
    }
}
