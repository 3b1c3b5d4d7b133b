//! Tables of tasks: CSV with a heading, or JSON lines.

use std::collections::BTreeMap;
use std::path::Path;

use dormouse_documents::{InputError, Place};
use dormouse_input::{FileFlaw, FlawedRow, LONGEST_LINE, Line, Rows, Source, Text};
use serde_json::Value;

use crate::{command_line, files};

/// Greatest number of rows in a table.
const MOST_ROWS: usize = 1_000_000;

/// A row: its cells by column heading, and its place.
#[derive(Clone, Debug)]
pub(super) struct TaskRow {
    /// The row's cells that are not empty, by column heading.
    pub(super) cells: BTreeMap<String, String>,
    /// Place of the row in the table's file.
    pub(super) place: Place,
}

/// Reads the rows of a table.
///
/// # Errors
///
/// The file can't be read, has no heading, or a row of it can't be used.
pub(super) fn read(path: &Path) -> Result<Vec<TaskRow>, InputError> {
    files::read_file(path, |mut source| match source.is_json().map_err(FileFlaw::Read)? {
        true => of_json(source, path),
        false => of_cells(source, path),
    })
}

fn of_cells(source: Source, path: &Path) -> Result<Vec<TaskRow>, FileFlaw> {
    let mut rows = Rows::new(source).map_err(FileFlaw::Read)?;
    let Some(first) = rows.first() else { return Err(empty()) };
    let heading: Vec<String> = first.cells().map(str::to_owned).collect();
    if heading.iter().any(String::is_empty) {
        let remedy = "give each column a name in the first row, such as name,command,runtime";
        return Err(first.flaw("a column has no heading", remedy).into());
    }
    rows.skip_first();
    let mut all = Vec::new();
    while let Some(row) = rows.next_row()? {
        if row.len() != heading.len() {
            let what = format!("it has {} cells, and the heading {}", row.len(), heading.len());
            return Err(row
                .flaw(
                    what,
                    "write as many cells as the heading has; put quotes around a cell with commas",
                )
                .into());
        }
        let cells = heading.iter().cloned().zip(row.cells().map(str::to_owned));
        let line = usize::try_from(row.line()).unwrap_or(usize::MAX);
        let text = String::from_utf8_lossy(row.text());
        let place = Place::line(path, line, text.trim_end());
        all.push(TaskRow { cells: cells.filter(|(_, cell)| !cell.is_empty()).collect(), place });
        if all.len() > MOST_ROWS {
            return Err(too_many());
        }
    }
    if all.is_empty() { Err(empty()) } else { Ok(all) }
}

fn of_json(source: Source, path: &Path) -> Result<Vec<TaskRow>, FileFlaw> {
    let (mut text, mut all) = (Text::new(source.into_input()), Vec::new());
    loop {
        let is_too_long = match text.read_line().map_err(FileFlaw::Read)? {
            Line::End => break,
            Line::Read if text.line().iter().all(u8::is_ascii_whitespace) => continue,
            Line::Read => false,
            Line::TooLong => true,
        };
        let row = String::from_utf8_lossy(text.line()).trim_end().to_owned();
        let flaw = |what: String| {
            let remedy =
                "write an object a line, such as {\"name\": \"a\", \"command\": \"./solve a\"}";
            let (line, row, remedy) = (text.number(), row.clone(), remedy.to_owned());
            FileFlaw::Row(FlawedRow { line, row, what, remedy })
        };
        if is_too_long {
            return Err(flaw(format!("it is longer than {LONGEST_LINE} bytes")));
        }
        let object: BTreeMap<String, Value> = serde_json::from_str(&row)
            .map_err(|error| flaw(format!("it is not a task in JSON: {error}")))?;
        let cells = object.into_iter().map(|(key, value)| match cell(value) {
            Some(cell) => Ok((key, cell)),
            None => Err(flaw(format!("'{key}' is not a text, a number or a list of texts"))),
        });
        let cells = cells.collect::<Result<Vec<_>, _>>()?.into_iter();
        let place = Place::line(path, usize::try_from(text.number()).unwrap_or(usize::MAX), &row);
        all.push(TaskRow { cells: cells.filter(|(_, cell)| !cell.is_empty()).collect(), place });
        if all.len() > MOST_ROWS {
            return Err(too_many());
        }
    }
    if all.is_empty() { Err(empty()) } else { Ok(all) }
}

/// A JSON value as a table cell; `None` if a cell can't hold it.
fn cell(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Array(words) => {
            let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
            words.map(command_line)
        }
        Value::Null => Some(String::new()),
        Value::Object(_) => None,
    }
}

fn empty() -> FileFlaw {
    FileFlaw::whole("it has no tasks", "write a heading and a row a task, such as name,command")
}

fn too_many() -> FileFlaw {
    FileFlaw::whole(format!("it has more than {MOST_ROWS} rows"), "run fewer at a time")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;

    fn rows(text: &str) -> Result<Vec<TaskRow>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bag");
        std::fs::write(&path, text).unwrap();
        read(&path).map_err(|error| error.to_string())
    }

    #[test]
    fn a_row_is_what_stands_under_each_heading_in_either_format() {
        let csv = rows("name,command,alpha\na,\"./s 'x y'\",0.5\nb,./s,\n").unwrap();
        let json = "{\"name\": \"a\", \"command\": [\"./s\", \"x y\"], \"alpha\": 0.5}\n\
                    {\"name\": \"b\", \"command\": \"./s\", \"alpha\": null}\n";
        for rows in [csv, rows(json).unwrap()] {
            let cells = &rows[0].cells;
            assert_eq!((cells["name"].as_str(), cells["command"].as_str()), ("a", "./s 'x y'"));
            assert_eq!(cells["alpha"], "0.5");
            assert!(rows.len() == 2 && !rows[1].cells.contains_key("alpha"));
        }
    }

    #[test]
    fn a_row_that_can_t_be_used_has_its_line() {
        for (text, line, what) in [
            ("", "", "it has no tasks"),
            ("name,command\n", "", "it has no tasks"),
            ("name,,x\n", ":1:1", "a column has no heading"),
            ("name,command\na,b,c\n", ":2:1", "it has 3 cells, and the heading 2"),
            ("{\"name\": {}}\n", ":1:1", "'name' is not a text"),
            ("{\"name\": \"a\"}\n[1]\n", ":2:1", "it is not a task in JSON"),
        ] {
            let error = rows(text).unwrap_err();
            assert!(error.contains(what) && error.contains(line), "{text}: {error}");
        }
    }
}
