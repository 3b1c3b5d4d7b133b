//! One typed table; its renderers are beside it.

mod build;
mod cell;
mod column;
mod csv;
mod files;
mod html;
mod json;
mod parquet;
mod text;

pub use build::TableOf;
pub use cell::{Cell, Tone, Value};
pub use column::{Column, Kind};

/// Columns and rows; each row has a cell for every column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// An empty table with these columns.
    #[must_use]
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a row. Cells that lack at its end are missing, those beyond the last column dropped.
    pub fn push(&mut self, row: impl IntoIterator<Item = Cell>) {
        let mut row: Vec<_> = row.into_iter().take(self.columns.len()).collect();
        row.resize_with(self.columns.len(), Cell::missing);
        self.rows.push(row);
    }

    /// The same with this row.
    #[must_use]
    pub fn with(mut self, row: impl IntoIterator<Item = Cell>) -> Self {
        self.push(row);
        self
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl Extend<Vec<Cell>> for Table {
    fn extend<T: IntoIterator<Item = Vec<Cell>>>(&mut self, rows: T) {
        rows.into_iter().for_each(|row| self.push(row));
    }
}
