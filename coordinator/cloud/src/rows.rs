//! Records of one thing a row: prices, lifetimes.

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
    /// What is wrong with it.
    pub what: String,
    /// What would be right.
    pub remedy: &'static str,
}

/// A kind of record, in words.
pub(crate) struct Record {
    /// What a row is.
    pub(crate) row: &'static str,
    /// What to do about a row that is none.
    pub(crate) right: &'static str,
    /// What to do about too many.
    pub(crate) fewer: &'static str,
}

impl Record {
    /// What `read` makes of each row that is not empty; a first one that `is_heading` is left out.
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
