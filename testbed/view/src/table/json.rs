//! A table as JSON.

use serde_json::{Value as Json, json};

use super::{Cell, Table, Value};

impl Table {
    /// One object per row, by the columns' names; times in seconds, money in dollars.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let object = |row: &Vec<Cell>| {
            let cells = self.columns.iter().zip(row);
            Json::Object(cells.map(|(c, cell)| (c.name.clone(), value(cell))).collect())
        };
        self.rows.iter().map(object).collect()
    }
}

fn value(cell: &Cell) -> Json {
    match &cell.value {
        Value::Missing => Json::Null,
        Value::Text(text) => json!(text),
        Value::Count(n) => json!(n),
        Value::Mean { mean, interval, n } => json!({ "mean": mean, "ci95": interval, "n": n }),
        number => json!(number.as_number()),
    }
}
