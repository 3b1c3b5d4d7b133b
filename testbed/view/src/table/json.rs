//! A table as JSON.

use serde_json::{Value as Json, json};

use super::{CellValue, TableCell, TypedTable};

impl TypedTable {
    /// One object per row, by the columns' names; times in seconds, money in dollars.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let object = |row: &Vec<TableCell>| {
            let cells = self.columns.iter().zip(row);
            Json::Object(cells.map(|(c, cell)| (c.name.clone(), value(cell))).collect())
        };
        self.rows.iter().map(object).collect()
    }
}

fn value(cell: &TableCell) -> Json {
    match &cell.value {
        CellValue::Missing => Json::Null,
        CellValue::Text(text) => json!(text),
        CellValue::Count(n) => json!(n),
        CellValue::Mean { mean, interval, n } => json!({ "mean": mean, "ci95": interval, "n": n }),
        number => json!(number.as_number()),
    }
}
