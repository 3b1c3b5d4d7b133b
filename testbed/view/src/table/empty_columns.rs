//! Columns that have nothing to show: left out where people read, with a sentence that names them.

use super::{CellValue, ColumnKind, TableCell, TypedTable};

impl TypedTable {
    /// The table without columns that are 0 or empty in every row, and the sentence that names those of figures; `None` if
    /// there are none. A table of one row, or of one column of figures, keeps all.
    pub(super) fn without_empty_columns(&self) -> (Self, Option<String>) {
        self.without_blank_columns().without_empty_figures()
    }

    /// The table without columns of words that have no word.
    fn without_blank_columns(&self) -> Self {
        let is_blank = |n: usize| match &self.columns[n].kind {
            ColumnKind::Text => self.rows.iter().all(|row| match &row[n].value {
                CellValue::Missing => true,
                CellValue::Text(text) => text.is_empty(),
                _ => false,
            }),
            _ => false,
        };
        if self.rows.is_empty() {
            return self.clone();
        }
        self.keep_columns(|n| !is_blank(n))
    }

    /// The table without columns of figures that are 0 or missing in every row, and the sentence that names them.
    fn without_empty_figures(&self) -> (Self, Option<String>) {
        let figures = self.columns.iter().filter(|column| column.kind != ColumnKind::Text).count();
        if self.rows.len() < 2 || figures < 2 {
            return (self.clone(), None);
        }
        let is_empty = |n: usize| {
            self.columns[n].kind != ColumnKind::Text
                && self.rows.iter().all(|row| row[n].value.is_nothing())
        };
        let empty: Vec<usize> = (0..self.columns.len()).filter(|n| is_empty(*n)).collect();
        if empty.is_empty() || empty.len() == figures {
            return (self.clone(), None);
        }
        let is_zero = |n: &usize| self.rows.iter().any(|row| row[*n].value != CellValue::Missing);
        let (zero, missing): (Vec<_>, Vec<_>) = empty.iter().copied().partition(is_zero);
        let named = |said: &str, of: &[usize]| {
            let names: Vec<_> = of.iter().map(|n| self.columns[*n].heading.as_str()).collect();
            (!names.is_empty()).then(|| format!("{said}: {}.", names.join(", ")))
        };
        let sentences = [
            named("Not shown, 0 in every row", &zero),
            named("Not shown, empty in every row", &missing),
        ];
        let said: Vec<_> = sentences.into_iter().flatten().collect();
        (self.keep_columns(|n| !empty.contains(&n)), Some(said.join(" ")))
    }

    /// The table with those columns alone for whose numbers `is_kept` is true.
    pub(super) fn keep_columns(&self, is_kept: impl Fn(usize) -> bool) -> Self {
        let kept = |n: &usize| is_kept(*n);
        let columns: Vec<usize> = (0..self.columns.len()).filter(kept).collect();
        let of_row = |row: &Vec<TableCell>| columns.iter().map(|n| row[*n].clone()).collect();
        Self {
            columns: columns.iter().map(|n| self.columns[*n].clone()).collect(),
            rows: self.rows.iter().map(of_row).collect(),
        }
    }
}

impl CellValue {
    /// Whether the value is missing or 0.
    fn is_nothing(&self) -> bool {
        match self {
            Self::Missing => true,
            Self::Text(_) => false,
            Self::Mean { mean, interval, .. } => {
                *mean == 0.0 && interval.is_none_or(|ends| ends == (0.0, 0.0))
            }
            other => other.as_number() == Some(0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::TableColumn;
    use super::*;

    #[test]
    fn a_column_of_zeros_is_a_sentence_and_a_single_figure_stays() {
        let columns = ["type", "VMs", "hibernated", "late"];
        let [kind, vms, hibernated, late] = columns;
        let columns = || {
            [TableColumn::text(kind), TableColumn::count(vms), TableColumn::count(hibernated)]
                .into_iter()
                .chain([TableColumn::seconds(late)])
        };
        let row = |kind: &str, vms: u64, hibernated: u64| {
            [TableCell::text(kind), TableCell::count(vms), TableCell::count(hibernated)]
        };
        let table = TypedTable::new(columns()).with(row("a", 0, 0)).with(row("b", 3, 0));
        let (shown, said) = table.without_empty_columns();
        assert_eq!(shown.columns.len(), 2);
        assert_eq!(shown.rows[1][1].value, CellValue::Count(3));
        assert_eq!(
            said.as_deref(),
            Some("Not shown, 0 in every row: hibernated. Not shown, empty in every row: late.")
        );
        let blank = TypedTable::new([TableColumn::text("role"), TableColumn::text("name")])
            .with([TableCell::text(""), TableCell::text("x")])
            .with([TableCell::missing(), TableCell::text("y")]);
        let (shown, said) = blank.without_empty_columns();
        assert_eq!((shown.columns.len(), said), (1, None), "a column without a word is left out");
        let moved = table.clone().with_column_at("VMs", 0);
        assert_eq!(moved.columns[0].heading, "VMs");
        assert_eq!(moved.rows[1][0].value, CellValue::Count(3));
        assert_eq!(table.clone().with_column_at("none", 0), table);
        let one = TypedTable::new(columns()).with(row("a", 1, 0));
        assert_eq!(one.without_empty_columns(), (one.clone(), None));
        let none = TypedTable::new(columns()).with(row("a", 0, 0)).with(row("b", 0, 0));
        assert_eq!(none.without_empty_columns().1, None, "all figures are 0: that is the news");
    }
}
