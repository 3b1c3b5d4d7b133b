//! What a table is in files: a column of means is four columns there.

use std::borrow::Cow;

use super::{Cell, Column, Kind, Table, Value};

impl Table {
    /// The same without columns of means.
    pub(super) fn in_files(&self) -> Cow<'_, Self> {
        if self.columns.iter().all(|column| column.kind != Kind::Mean) {
            return Cow::Borrowed(self);
        }
        let cells = |row: &Vec<Cell>| {
            self.columns.iter().zip(row).flat_map(|(column, cell)| cell.in_files(column)).collect()
        };
        Cow::Owned(Self {
            columns: self.columns.iter().flat_map(Column::in_files).collect(),
            rows: self.rows.iter().map(cells).collect(),
        })
    }
}

impl Column {
    fn in_files(&self) -> Vec<Self> {
        if self.kind != Kind::Mean {
            return vec![self.clone()];
        }
        let part =
            |end| Self { kind: Kind::Number, name: format!("{}{end}", self.name), ..self.clone() };
        vec![part("_mean"), part("_ci95_low"), part("_ci95_high"), Self::count("n")]
    }
}

impl Cell {
    fn in_files(&self, column: &Column) -> Vec<Self> {
        match (column.kind, &self.value) {
            (Kind::Mean, Value::Mean { mean, interval, n }) => {
                let (low, high) = interval.unzip();
                let number = |x| Self::from(Value::Number(x));
                vec![
                    number(*mean),
                    Self::maybe(low, number),
                    Self::maybe(high, number),
                    Self::count(*n),
                ]
            }
            (Kind::Mean, _) => {
                vec![self.clone(), Self::missing(), Self::missing(), Self::missing()]
            }
            _ => vec![self.clone()],
        }
    }
}
