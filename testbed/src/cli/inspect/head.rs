//! The beginning of a file, from which the file's kind is detected.

use std::borrow::Cow;
use std::io::{self, Cursor};

use dormouse_input::{Packing, Row, Rows, Source};

/// The beginning of a file.
#[derive(Debug)]
pub(super) struct Head {
    /// Packing of the inspected file, detected from its first bytes.
    pub(super) packing: Packing,
    is_json: bool,
    /// First bytes of the file, unpacked.
    bytes: Vec<u8>,
    /// Name of the character that separates the cells of a row; `None` for a file without such rows.
    separator: Option<&'static str>,
}

impl Head {
    /// Looks at the beginning of a file without consuming it.
    ///
    /// # Errors
    ///
    /// The file can't be read or unpacked.
    pub(super) fn peek(source: &mut Source) -> io::Result<Self> {
        let (packing, is_json) = (source.packing(), source.is_json()?);
        let bytes = source.next_bytes()?.to_vec();
        let mut head = Self { packing, is_json, bytes, separator: None };
        if !is_json {
            head.separator = head.told_separator();
        }
        Ok(head)
    }

    /// Name of the character that separates the cells of the first row, if the row has several.
    fn told_separator(&self) -> Option<&'static str> {
        let rows = Source::new(self.as_file()).and_then(Rows::new).ok()?;
        rows.first().filter(|row| row.len() > 1).map(|_| rows.separator().name())
    }

    /// Whether the inspected file contains only blanks.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.iter().all(u8::is_ascii_whitespace)
    }

    /// Whether the inspected file is JSON.
    pub(super) const fn is_json(&self) -> bool {
        self.is_json
    }

    /// Whether the inspected file is JSON that has a key of this name near its beginning.
    pub(super) fn has_key(&self, key: &str) -> bool {
        let key = format!("\"{key}\"");
        self.is_json && self.bytes.windows(key.len()).any(|part| part == key.as_bytes())
    }

    /// Whether `is` accepts the first row of the file.
    ///
    /// # Errors
    ///
    /// The beginning of the file can't be read as rows.
    pub(super) fn begins_with(&self, is: impl FnOnce(&Row<'_>) -> bool) -> io::Result<bool> {
        if self.is_json {
            return Ok(false);
        }
        let rows = Source::new(self.as_file()).and_then(Rows::new)?;
        Ok(rows.first().is_some_and(|first| is(&first)))
    }

    /// First bytes of the file, unpacked.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The lines of the beginning of the inspected file; the last one may be cut off.
    pub(super) fn lines(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.bytes.split(|byte| *byte == b'\n').map(String::from_utf8_lossy)
    }

    /// The first line of the inspected file that is not blank.
    fn line(&self) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned()
    }

    /// The first characters of the inspected file, for a message.
    pub(super) fn begins(&self) -> String {
        const SHOWN: usize = 60;
        self.line().chars().take(SHOWN).map(|c| if c.is_control() { '?' } else { c }).collect()
    }

    /// The first bytes of the inspected file, to be read like a file.
    pub(super) fn as_file(&self) -> Cursor<Vec<u8>> {
        Cursor::new(self.bytes.clone())
    }

    /// Name of the character that separates the cells of the file; `None` if the file has no rows.
    pub(super) const fn separator(&self) -> Option<&'static str> {
        self.separator
    }
}
