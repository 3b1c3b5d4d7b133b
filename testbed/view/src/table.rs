//! A typed table; its renderers are in the submodules.

mod cell;
mod column;
mod csv;
mod empty_columns;
mod html;
mod json;
mod parquet;
mod terminal;
mod text;

pub use cell::{CellValue, TableCell, TextTone};
pub use column::{ColumnKind, TableColumn};
pub use parquet::ParquetError;
pub use terminal::Terminal;

/// Columns and rows; each row has a cell for every column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TypedTable {
    columns: Vec<TableColumn>,
    rows: Vec<Vec<TableCell>>,
}

/// A table under construction, with a row for each thing of type `T`.
#[derive(Clone, Debug)]
pub struct TableOf<T> {
    things: Vec<T>,
    table: TypedTable,
}

impl TypedTable {
    /// A table with a row for each of `things`, and no column so far.
    pub fn with_rows<T>(things: impl IntoIterator<Item = T>) -> TableOf<T> {
        let things: Vec<_> = things.into_iter().collect();
        let rows = vec![Vec::new(); things.len()];
        TableOf { things, table: Self { columns: Vec::new(), rows } }
    }

    /// An empty table with the given columns.
    #[must_use]
    pub fn new(columns: impl IntoIterator<Item = TableColumn>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a row. Cells that the row lacks at its end count as missing; cells beyond the last column are dropped.
    pub fn push(&mut self, row: impl IntoIterator<Item = TableCell>) {
        let mut row: Vec<_> = row.into_iter().take(self.columns.len()).collect();
        row.resize_with(self.columns.len(), TableCell::missing);
        self.rows.push(row);
    }

    /// This table with one more row.
    #[must_use]
    pub fn with(mut self, row: impl IntoIterator<Item = TableCell>) -> Self {
        self.push(row);
        self
    }

    /// This table with the column of a heading at another place; as it is if there is no such column.
    #[must_use]
    pub fn with_column_at(mut self, heading: &str, place: usize) -> Self {
        let found = self.columns.iter().position(|column| column.heading == heading);
        let Some(from) = found.filter(|_| place < self.columns.len()) else { return self };
        let column = self.columns.remove(from);
        self.columns.insert(place, column);
        for row in &mut self.rows {
            let cell = row.remove(from);
            row.insert(place, cell);
        }
        self
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the table has no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl<T> TableOf<T> {
    /// This table with one more column; `cell` makes its cells from the rows' things.
    #[must_use]
    pub fn column<C: Into<TableCell>>(
        mut self,
        column: TableColumn,
        cell: impl Fn(&T) -> C,
    ) -> Self {
        self.table.columns.push(column);
        for (row, thing) in self.table.rows.iter_mut().zip(&self.things) {
            row.push(cell(thing).into());
        }
        self
    }
}

impl<T> From<TableOf<T>> for TypedTable {
    fn from(made: TableOf<T>) -> Self {
        made.table
    }
}
