//! Rows of cells with any of several separators.

use std::io;

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use crate::text::{LONGEST_LINE, Line, Text};
use crate::{Packing, Source};

/// Separator between the cells of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellSeparator {
    /// A comma between cells.
    Comma,
    /// A semicolon, used where decimals have a comma: both `0.5` and `0,5` are then a half.
    Semicolon,
    /// A tab between cells.
    Tab,
    /// A vertical bar.
    Bar,
}

impl CellSeparator {
    /// Detects the separator from a file's first row; a comma for a row of one cell.
    fn from_row(row: &str) -> Self {
        let mut is_quoted = false;
        let mut counts = [(Self::Tab, 0), (Self::Bar, 0), (Self::Semicolon, 0), (Self::Comma, 0)];
        for letter in row.bytes() {
            is_quoted ^= letter == b'"';
            if let Some((_, count)) =
                counts.iter_mut().find(|(it, _)| !is_quoted && it.byte() == letter)
            {
                *count += 1;
            }
        }
        // A comma may be a decimal one or stand in a name; the others are hardly anything else.
        counts.into_iter().find(|(_, count)| *count > 0).map_or(Self::Comma, |(it, _)| it)
    }

    const fn byte(self) -> u8 {
        match self {
            Self::Comma => b',',
            Self::Semicolon => b';',
            Self::Tab => b'\t',
            Self::Bar => b'|',
        }
    }

    /// Name of the separator in the plural.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Comma => "commas",
            Self::Semicolon => "semicolons",
            Self::Tab => "tabs",
            Self::Bar => "vertical bars",
        }
    }
}

/// A row that can't be used, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}; {remedy}")]
pub struct FlawedRow {
    /// Number of the flawed row's line in the file, from 1.
    pub line: u64,
    /// Text of the line; empty if the flaw is not in one line.
    pub row: String,
    /// What is wrong with the row, in words.
    pub what: String,
    /// What the user should do about the row, in words.
    pub remedy: String,
}

/// Reader of a file's rows, with one row in memory at a time. Cells are trimmed and may be quoted; blank lines are
/// skipped.
#[derive(Debug)]
pub struct Rows {
    text: Text,
    packing: Packing,
    separator: CellSeparator,
    parser: Box<Reader>,
    cells: Vec<u8>,
    ends: Vec<usize>,
    /// For the present row and the previous one: true if a cell began with a quotation mark and did not end with one.
    is_open: [bool; 2],
    /// True if the first row was read but not returned yet.
    is_first_pending: bool,
}

/// One row of a file.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    line: u64,
    separator: CellSeparator,
    text: &'a [u8],
    cells: &'a [u8],
    ends: &'a [usize],
    /// True if the row is part of a longer row, which has a line break in a cell.
    is_part: bool,
}

impl Rows {
    /// Opens a file, which may be packed, and detects the separator from its first row.
    ///
    /// # Errors
    ///
    /// The file can't be read or unpacked.
    pub fn new(source: Source) -> io::Result<Self> {
        let packing = source.packing();
        let mut rows = Self {
            text: Text::new(source.into_input()),
            packing,
            separator: CellSeparator::Comma,
            parser: Box::default(),
            cells: Vec::new(),
            ends: Vec::new(),
            is_open: [false; 2],
            is_first_pending: false,
        };
        let is_there = rows.read_line().map_err(|error| match error {
            RowsError::Read(error) => error,
            RowsError::Row(row) => io::Error::new(io::ErrorKind::InvalidData, row.to_string()),
        })?;
        if is_there {
            rows.separator = CellSeparator::from_row(&String::from_utf8_lossy(rows.text.line()));
            rows.parser = Box::new(ReaderBuilder::new().delimiter(rows.separator.byte()).build());
            rows.split_cells();
            rows.is_first_pending = true;
        }
        Ok(rows)
    }

    /// Packing of the file, detected by its first bytes.
    #[must_use]
    pub const fn packing(&self) -> Packing {
        self.packing
    }

    /// The separator of the cells of a row.
    #[must_use]
    pub const fn separator(&self) -> CellSeparator {
        self.separator
    }

    /// The first row, without consuming it; `None`: the file is empty, or the row was already
    /// consumed.
    #[must_use]
    pub fn first(&self) -> Option<Row<'_>> {
        self.is_first_pending.then(|| self.current_row())
    }

    /// Skips the first row, a heading, if it was not consumed.
    pub fn skip_first(&mut self) {
        self.is_first_pending = false;
    }

    /// The next row; `None` at the end.
    ///
    /// # Errors
    ///
    /// The file can't be read or unpacked, or a line is too long.
    pub fn next_row(&mut self) -> Result<Option<Row<'_>>, RowsError> {
        if std::mem::take(&mut self.is_first_pending) {
            return Ok(Some(self.current_row()));
        }
        if !self.read_line()? {
            return Ok(None);
        }
        self.split_cells();
        Ok(Some(self.current_row()))
    }

    fn current_row(&self) -> Row<'_> {
        let (cells, ends) = (&self.cells[..], &self.ends[..]);
        let (line, separator) = (self.text.number(), self.separator);
        let is_part = self.is_open.contains(&true);
        Row { line, separator, text: self.text.line(), cells, ends, is_part }
    }

    /// Reads the next line that is not blank; false at the end.
    fn read_line(&mut self) -> Result<bool, RowsError> {
        loop {
            match self.text.read_line().map_err(RowsError::Read)? {
                Line::End => return Ok(false),
                Line::TooLong => {
                    let row = FlawedRow {
                        line: self.text.number(),
                        row: String::new(),
                        what: format!("it is longer than {LONGEST_LINE} bytes"),
                        remedy: "give a file with one entry a line".to_owned(),
                    };
                    return Err(RowsError::Row(row));
                }
                Line::Read if self.text.line().iter().all(u8::is_ascii_whitespace) => {}
                Line::Read => return Ok(true),
            }
        }
    }

    /// Splits the line into cells.
    fn split_cells(&mut self) {
        let line = self.text.line();
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        self.is_open = [is_open(line, self.separator.byte()), self.is_open[0]];
        // No cell is longer than the line, and there are no more cells than bytes and one.
        self.cells.resize(line.len() + 1, 0);
        self.ends.resize(line.len() + 2, 0);
        self.parser.reset();
        let (mut read, mut written, mut ended) = (0, 0, 0);
        loop {
            let (result, in_, out, ends) = self.parser.read_record(
                &line[read..],
                &mut self.cells[written..],
                &mut self.ends[ended..],
            );
            (read, written, ended) = (read + in_, written + out, ended + ends);
            // An empty input tells the parser that the line is complete and the last one.
            if !matches!(result, ReadRecordResult::InputEmpty) {
                break;
            }
        }
        self.ends.truncate(ended);
        self.cells.truncate(written);
    }
}

/// True if the last cell of a line begins with a quotation mark that is not closed.
fn is_open(line: &[u8], separator: u8) -> bool {
    if !line.contains(&b'"') {
        return false;
    }
    let (mut is_quoted, mut is_first) = (false, true);
    for byte in line {
        // Two quotation marks stand for one: they end the quote and begin it again.
        match byte {
            b'"' if is_quoted => is_quoted = false,
            b'"' if is_first => is_quoted = true,
            _ => {}
        }
        is_first = !is_quoted && [separator, b'"'].contains(byte);
    }
    is_quoted
}

/// Errors of reading the next row.
#[derive(Debug, thiserror::Error)]
pub enum RowsError {
    /// The file can't be read or unpacked.
    #[error(transparent)]
    Read(io::Error),
    /// The row can't be used.
    #[error(transparent)]
    Row(FlawedRow),
}

impl<'a> Row<'a> {
    /// Number of the row's line, from 1.
    #[must_use]
    pub const fn line(&self) -> u64 {
        self.line
    }

    /// Number of cells.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if the row has no cells.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The row as it stands in the file, with its line break.
    #[must_use]
    pub const fn text(&self) -> &'a [u8] {
        self.text
    }

    /// Trimmed text of a cell; empty if the row has no such cell, or the cell is not valid UTF-8.
    #[must_use]
    pub fn cell(&self, at: usize) -> &'a str {
        let Some(&end) = self.ends.get(at) else { return "" };
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        std::str::from_utf8(&self.cells[start..end]).unwrap_or_default().trim()
    }

    /// All cells, in order.
    pub fn cells(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let row = *self;
        (0..row.len()).map(move |at| row.cell(at))
    }

    /// Text of a number in a cell, with a decimal point; where cells are separated by semicolons, a decimal comma is
    /// converted.
    #[must_use]
    pub fn number(&self, at: usize) -> std::borrow::Cow<'a, str> {
        let cell = self.cell(at);
        match self.separator {
            CellSeparator::Semicolon if cell.matches(',').count() == 1 => {
                cell.replace(',', ".").into()
            }
            _ => cell.into(),
        }
    }

    /// An error about this row. If a cell has a line break, the error reports that instead.
    pub fn flaw(&self, what: impl Into<String>, remedy: impl Into<String>) -> FlawedRow {
        let row = String::from_utf8_lossy(self.text).trim_end_matches(['\r', '\n']).to_owned();
        let (what, remedy) = match self.is_part {
            true => {
                let what = "a cell has a line break in it, or a quotation mark without its other";
                (what.to_owned(), "write one entry a line".to_owned())
            }
            false => (what.into(), remedy.into()),
        };
        FlawedRow { line: self.line, row, what, remedy }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn rows(text: &str) -> Rows {
        Rows::new(Source::new(Cursor::new(text.as_bytes().to_vec())).unwrap()).unwrap()
    }

    fn all(text: &str) -> Vec<(u64, Vec<String>)> {
        let (mut rows, mut all) = (rows(text), Vec::new());
        while let Some(row) = rows.next_row().unwrap() {
            all.push((row.line(), row.cells().map(str::to_owned).collect()));
        }
        all
    }

    #[test]
    fn the_first_row_tells_what_separates_cells() {
        for (text, separator) in [
            ("a,b\n", CellSeparator::Comma),
            ("a;b,c\n", CellSeparator::Semicolon),
            ("a\tb;c,d\n", CellSeparator::Tab),
            ("JobID|State, or so\n", CellSeparator::Bar),
            ("\"a;b\",c\n", CellSeparator::Comma),
            ("alone\n", CellSeparator::Comma),
        ] {
            assert_eq!(rows(text).separator(), separator, "{text}");
        }
    }

    #[test]
    fn cells_are_trimmed_and_may_be_quoted_and_empty_lines_are_no_rows() {
        let text = "\u{feff}a, b ,c\r\n\r\n\"x,\"\"y\",,\r\n  \n1\n,\n";
        let cells = |list: &[&str]| list.iter().map(|&c| c.to_owned()).collect::<Vec<_>>();
        let wanted = vec![
            (1, cells(&["a", "b", "c"])),
            (3, cells(&["x,\"y", "", ""])),
            (5, cells(&["1"])),
            (6, cells(&["", ""])),
        ];
        assert_eq!(all(text), wanted);
        assert_eq!(all(""), []);
        assert_eq!(all("\n \n"), []);
    }

    #[test]
    fn a_heading_can_be_looked_at_and_left_out() {
        let mut rows = rows("a;b\n0,5;x\n");
        assert_eq!(rows.first().unwrap().cell(1), "b");
        rows.skip_first();
        let row = rows.next_row().unwrap().unwrap();
        assert_eq!((row.number(0).as_ref(), row.cell(1), row.cell(7)), ("0.5", "x", ""));
        let flaw = row.flaw("it is wrong", "mend it");
        assert_eq!((flaw.line, flaw.row.as_str()), (2, "0,5;x"));
        assert_eq!(flaw.to_string(), "line 2: it is wrong; mend it");
        assert!(rows.next_row().unwrap().is_none());
    }

    #[test]
    fn a_quote_that_is_never_closed_ends_with_its_line() {
        assert_eq!(all("a,b\n\"x,1\ny,2\n").len(), 3);
    }

    #[test]
    fn a_cell_with_a_line_break_is_what_is_wrong_with_its_rows() {
        let flaws = |text: &str| {
            let (mut rows, mut all) = (rows(text), Vec::new());
            while let Some(row) = rows.next_row().unwrap() {
                all.push(row.flaw("x", "y").what.starts_with("a cell has a line break in it"));
            }
            all
        };
        assert_eq!(flaws("a,b\n1,\"x\ny\"\n2,z\n"), [false, true, true, false]);
        assert_eq!(flaws("\"a\",\"b\"\n\"1\"\"\",2\n5\",3\n"), [false; 3]);
    }

    #[test]
    fn a_line_without_end_is_an_error_and_no_memory() {
        let mut rows = rows(&format!("a,b\n{}\n1,2\n", "x".repeat(1 << 20)));
        rows.skip_first();
        let error = rows.next_row().unwrap_err().to_string();
        assert!(error.starts_with("line 2: it is longer than 65536 bytes"), "{error}");
        assert_eq!(rows.next_row().unwrap().unwrap().cell(0), "1");
    }
}
