//! A table as JSON.

use serde_json::{Map, Value as Json, json};

use super::{Cell, Table, Value};

impl Table {
    /// An object a row, by the columns' names; times in seconds, money in dollars.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let object = |row: &Vec<Cell>| {
            let cells = self.columns.iter().zip(row);
            Json::Object(
                cells.map(|(c, cell)| (c.name.clone(), value(cell))).collect::<Map<_, _>>(),
            )
        };
        self.rows.iter().map(object).collect()
    }
}

fn value(cell: &Cell) -> Json {
    match &cell.value {
        Value::Missing => Json::Null,
        Value::Text(text) => json!(text),
        Value::Count(n) => json!(n),
        Value::Number(x) => json!(x),
        Value::Seconds(span) => json!(span.as_secs_f64()),
        Value::Dollars(money) => json!(money.as_usd()),
        Value::Mean { mean, interval, n } => json!({ "mean": mean, "ci95": interval, "n": n }),
    }
}
