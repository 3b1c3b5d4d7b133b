//! A table of things that are alike, made column by column.

use super::{Cell, Column, Table};

/// A table that is being made: a row for each thing.
#[derive(Clone, Debug)]
pub struct TableOf<T> {
    things: Vec<T>,
    table: Table,
}

impl Table {
    /// A table with a row for each of these, and no column so far.
    pub fn of<T>(things: impl IntoIterator<Item = T>) -> TableOf<T> {
        let things: Vec<_> = things.into_iter().collect();
        let rows = vec![Vec::new(); things.len()];
        TableOf { things, table: Self { columns: Vec::new(), rows } }
    }
}

impl<T> TableOf<T> {
    /// The same with this column, and what it says of each.
    #[must_use]
    pub fn column<C: Into<Cell>>(mut self, column: Column, cell: impl Fn(&T) -> C) -> Self {
        self.table.columns.push(column);
        for (row, thing) in self.table.rows.iter_mut().zip(&self.things) {
            row.push(cell(thing).into());
        }
        self
    }
}

impl<T> From<TableOf<T>> for Table {
    fn from(made: TableOf<T>) -> Self {
        made.table
    }
}
