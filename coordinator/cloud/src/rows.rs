//! Records with one item per row: prices, lifetimes.

/// Most rows of a record: they become a part of the run's log.
const MOST_ROWS: usize = 100_000;

/// A row of a record that can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}; {remedy}")]
pub struct RowError {
    /// The line's number, from 1.
    pub line: usize,
    /// The row's text; empty if the mistake is not in one row.
    pub row: String,
    /// The mistake, in words.
    pub what: String,
    /// The remedy, in words.
    pub remedy: &'static str,
}

/// A kind of record, in the words of its error messages.
pub(crate) struct Record {
    /// Description of what a row is.
    pub(crate) row: &'static str,
    /// Remedy for a row that can't be read.
    pub(crate) right: &'static str,
    /// Remedy for too many rows.
    pub(crate) fewer: &'static str,
}

impl Record {
    /// Values that `read` makes of the rows that are not empty; a first row that `is_heading` is
    /// left out.
    pub(crate) fn rows<T>(
        &self,
        text: &str,
        is_heading: impl Fn(&str) -> bool,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Vec<T>, RowError> {
        let mut all = Vec::new();
        for (line, whole) in (1..).zip(text.lines()) {
            let row = whole.trim();
            if row.is_empty() || (line == 1 && is_heading(row)) {
                continue;
            }
            let wrong = |what, remedy| RowError { line, row: whole.to_owned(), what, remedy };
            let one = read(row).ok_or_else(|| {
                let begins: String = row.chars().take(60).collect();
                wrong(format!("'{begins}' is no {}", self.row), self.right)
            })?;
            if all.len() == MOST_ROWS {
                return Err(wrong(format!("it has more than {MOST_ROWS} rows"), self.fewer));
            }
            all.push(one);
        }
        Ok(all)
    }
}
