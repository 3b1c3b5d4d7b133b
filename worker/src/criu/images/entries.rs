//! Reading an image file: a magic number, and then messages, each after its length.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    marker::PhantomData,
    path::Path,
};

use prost::Message;

/// Magic number with which all image files begin, except the inventory (CRIU's `magic.h`).
const COMMON_MAGIC: u32 = 0x5456_4319;
/// The longest message that is read, in bytes: the list of filters of a task has some ten thousand bytes.
const LONGEST: u32 = 1 << 20;
/// Most messages of a file that are read: all processes of a task together have fewer open files.
const MOST: usize = 1 << 18;

/// The kinds of image files that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ImageKind {
    Inventory,
    Tree,
    Core,
    Ids,
    Directories,
    Files,
    Filters,
    Ghost,
}

impl ImageKind {
    /// The magic number of image files of this kind.
    pub(super) const fn magic_number(self) -> u32 {
        match self {
            Self::Inventory => 0x5831_3116,
            Self::Tree => 0x5027_3030,
            Self::Core => 0x5505_3847,
            Self::Ids => 0x5443_2030,
            Self::Directories => 0x5140_3912,
            Self::Files => 0x5630_3138,
            Self::Filters => 0x6441_3049,
            Self::Ghost => 0x5258_3605,
        }
    }
}

/// Messages of an image file, read one by one, so that only one is held at a time.
pub(super) struct ImageEntries<M> {
    file: BufReader<File>,
    left: usize,
    of: PhantomData<M>,
}

impl<M: Message + Default> ImageEntries<M> {
    /// Opens an image file, and checks that its magic number is that of `kind`.
    ///
    /// # Errors
    ///
    /// The file can't be read or is of another kind.
    pub(super) fn open(path: &Path, kind: ImageKind) -> io::Result<Self> {
        let mut file = BufReader::new(File::open(path)?);
        let common = kind == ImageKind::Inventory || read_word(&mut file)? == Some(COMMON_MAGIC);
        if !common || read_word(&mut file)? != Some(kind.magic_number()) {
            return Err(wrong_image(format!("it does not begin like a file of {kind:?}")));
        }
        Ok(Self { file, left: MOST, of: PhantomData })
    }

    /// Returns the next message; `None` at the end of the file.
    ///
    /// # Errors
    ///
    /// The file breaks off, a message is too long or invalid, or there are too many.
    pub(super) fn next(&mut self) -> io::Result<Option<M>> {
        let Some(length) = read_word(&mut self.file)? else { return Ok(None) };
        if length > LONGEST {
            return Err(wrong_image(format!("a message of it would have {length} bytes")));
        }
        self.left =
            self.left.checked_sub(1).ok_or_else(|| wrong_image("it has too many messages"))?;
        // No more is allocated than there is.
        let mut bytes = Vec::new();
        (&mut self.file).take(u64::from(length)).read_to_end(&mut bytes)?;
        if bytes.len() != length as usize {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        M::decode(bytes.as_slice()).map(Some).map_err(|e| wrong_image(e.to_string()))
    }

    /// Returns the first message of a file that must have one.
    ///
    /// # Errors
    ///
    /// The file has none; or the errors of [`ImageEntries::next`].
    pub(super) fn first_entry(&mut self) -> io::Result<M> {
        self.next()?.ok_or_else(|| wrong_image("it has no message"))
    }

    /// Returns the only message of a file.
    ///
    /// # Errors
    ///
    /// The file has no message or a second one; or the errors of [`ImageEntries::next`].
    pub(super) fn only_entry(mut self) -> io::Result<M> {
        let only = self.first_entry()?;
        match read_word(&mut self.file)? {
            None => Ok(only),
            Some(_) => Err(wrong_image("it has more than one message")),
        }
    }
}

fn wrong_image(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

/// Reads a number of four bytes; `None` at the end of the file.
fn read_word(file: &mut impl Read) -> io::Result<Option<u32>> {
    let mut bytes = Vec::new();
    file.take(4).read_to_end(&mut bytes)?;
    match <[u8; 4]>::try_from(bytes.as_slice()) {
        Ok(bytes) => Ok(Some(u32::from_le_bytes(bytes))),
        Err(_) if bytes.is_empty() => Ok(None),
        Err(_) => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
