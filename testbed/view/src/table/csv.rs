//! A table as CSV (RFC 4180, line feeds). In files a column of means is four columns.

use std::borrow::Cow;

use super::{CellValue, ColumnKind, TableCell, TableColumn, TypedTable};

impl TypedTable {
    /// The table as CSV: a line of names, then a line for each row.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let table = self.in_files();
        let mut writer = csv::Writer::from_writer(Vec::new());
        // Writing to memory can't fail.
        let _ = writer.write_record(table.columns.iter().map(|column| &column.name));
        for row in &table.rows {
            let cells = table.columns.iter().zip(row);
            let _ = writer.write_record(cells.map(|(column, cell)| cell.exact(column)));
        }
        let bytes = writer.into_inner().unwrap_or_default();
        String::from_utf8(bytes).unwrap_or_default()
    }

    /// Reads a table from the text of a CSV file with these columns, none of which has means; a cell whose text its column can't
    /// hold is missing.
    #[must_use]
    pub fn from_csv(columns: Vec<TableColumn>, text: &str) -> Self {
        let mut table = Self::new(columns);
        let rows =
            csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes()).into_records();
        for row in rows.flatten() {
            let cells: Vec<_> =
                table.columns.iter().zip(&row).map(|(c, text)| parse_cell(c, text)).collect();
            table.push(cells);
        }
        table
    }

    /// This table with four columns in place of each column of means.
    pub(super) fn in_files(&self) -> Cow<'_, Self> {
        if self.columns.iter().all(|column| column.kind != ColumnKind::Mean) {
            return Cow::Borrowed(self);
        }
        let cells = |row: &Vec<TableCell>| {
            self.columns.iter().zip(row).flat_map(|(column, cell)| cell.in_files(column)).collect()
        };
        Cow::Owned(Self {
            columns: self.columns.iter().flat_map(TableColumn::in_files).collect(),
            rows: self.rows.iter().map(cells).collect(),
        })
    }
}

impl TableColumn {
    fn in_files(&self) -> Vec<Self> {
        if self.kind != ColumnKind::Mean {
            return vec![self.clone()];
        }
        let part = |end| Self {
            kind: ColumnKind::Number,
            name: format!("{}{end}", self.name),
            ..self.clone()
        };
        vec![part("_mean"), part("_ci95_low"), part("_ci95_high"), Self::count("n")]
    }
}

impl TableCell {
    fn in_files(&self, column: &TableColumn) -> Vec<Self> {
        match (column.kind, &self.value) {
            (ColumnKind::Mean, CellValue::Mean { mean, interval, n }) => {
                let (low, high) = interval.unzip();
                let number = |x| Self::from(CellValue::Number(x));
                vec![
                    number(*mean),
                    Self::maybe(low, number),
                    Self::maybe(high, number),
                    Self::count(*n),
                ]
            }
            (ColumnKind::Mean, _) => {
                vec![self.clone(), Self::missing(), Self::missing(), Self::missing()]
            }
            _ => vec![self.clone()],
        }
    }
}

fn parse_cell(column: &TableColumn, text: &str) -> TableCell {
    match column.kind {
        _ if text.is_empty() => TableCell::missing(),
        ColumnKind::Text => TableCell::text(text),
        ColumnKind::Count => TableCell::maybe(text.parse::<u64>().ok(), TableCell::count),
        _ => TableCell::maybe(text.parse().ok(), TableCell::number),
    }
}

#[cfg(test)]
mod tests {
    use dormouse_units::{Money, Span};

    use super::*;

    #[test]
    fn files_are_exact_and_quoted_where_they_have_to_be() {
        let table = TypedTable::new([
            TableColumn::text("case"),
            TableColumn::seconds("took").named("took_s"),
            TableColumn::dollars("cost").named("cost_usd"),
            TableColumn::mean("ours").file_digits(6),
        ])
        .with([
            TableCell::text("a, \"b\""),
            TableCell::from(Span::from_micros(1_500_001)),
            TableCell::from(Money::from_nanos(83_798_250)),
            TableCell::mean(1.5, Some((1.0, 2.0)), 30),
        ])
        .with([TableCell::text("c")]);
        assert_eq!(
            table.to_csv(),
            "case,took_s,cost_usd,ours_mean,ours_ci95_low,ours_ci95_high,n\n\
             \"a, \"\"b\"\"\",1.500001,0.08379825,1.500000,1.000000,2.000000,30\nc,,,,,,\n"
        );
    }
}
