//! A table as Apache Parquet, for pandas, DuckDB and Polars.

use std::sync::Arc;

use parquet::basic::{ConvertedType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

use super::{Cell, Column, Kind, Table, Value};

/// A column of a file, missing cells included.
enum Values {
    Text(Vec<Option<ByteArray>>),
    Count(Vec<Option<i64>>),
    Number(Vec<Option<f64>>),
}

impl Table {
    /// Its Parquet file: the columns of its CSV, typed; times in seconds, money in dollars.
    ///
    /// # Errors
    ///
    /// Two columns have one name, or there are more than 2^31 rows.
    pub fn to_parquet(&self) -> Result<Vec<u8>> {
        let columns: Vec<_> =
            (0..).zip(&self.columns).flat_map(|(n, c)| self.values(n, c)).collect();
        let fields = columns.iter().map(|(name, values)| {
            let (physical, converted) = match values {
                Values::Text(_) => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
                Values::Count(_) => (Physical::INT64, ConvertedType::NONE),
                Values::Number(_) => (Physical::DOUBLE, ConvertedType::NONE),
            };
            let field = Type::primitive_type_builder(name, physical);
            let field = field.with_converted_type(converted);
            Ok(Arc::new(field.with_repetition(Repetition::OPTIONAL).build()?))
        });
        let fields = fields.collect::<Result<Vec<_>>>()?;
        let schema = Type::group_type_builder("schema").with_fields(fields).build()?;
        let mut file = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::default())?;
        let mut group = file.next_row_group()?;
        for (_, values) in &columns {
            let Some(to) = group.next_column()? else { break };
            match values {
                Values::Text(all) => write::<ByteArrayType>(to, all)?,
                Values::Count(all) => write::<Int64Type>(to, all)?,
                Values::Number(all) => write::<DoubleType>(to, all)?,
            }
        }
        group.close()?;
        file.into_inner()
    }

    /// A column under its name in files; one of means is four.
    fn values(&self, n: usize, column: &Column) -> Vec<(String, Values)> {
        let cells = || self.rows.iter().filter_map(|row| row.get(n));
        let numbers = |of: fn(&Cell) -> Option<f64>| Values::Number(cells().map(of).collect());
        let name = &column.name;
        match column.kind {
            Kind::Text => {
                let text = |cell: &Cell| match &cell.value {
                    Value::Missing => None,
                    _ => Some(ByteArray::from(cell.exact(column).into_bytes())),
                };
                vec![(name.clone(), Values::Text(cells().map(text).collect()))]
            }
            Kind::Count => vec![(name.clone(), Values::Count(cells().map(count).collect()))],
            Kind::Mean => vec![
                (format!("{name}_mean"), numbers(number)),
                (format!("{name}_ci95_low"), numbers(|cell| end(cell).map(|(low, _)| low))),
                (format!("{name}_ci95_high"), numbers(|cell| end(cell).map(|(_, high)| high))),
                ("n".to_owned(), Values::Count(cells().map(samples).collect())),
            ],
            _ => vec![(name.clone(), numbers(number))],
        }
    }
}

fn write<T: DataType>(mut to: SerializedColumnWriter<'_>, all: &[Option<T::T>]) -> Result<()> {
    let levels: Vec<i16> = all.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = all.iter().flatten().cloned().collect();
    to.typed::<T>().write_batch(&values, Some(&levels), None)?;
    to.close()
}

fn number(cell: &Cell) -> Option<f64> {
    match &cell.value {
        Value::Missing | Value::Text(_) => None,
        #[expect(clippy::cast_precision_loss, reason = "a column of numbers")]
        Value::Count(n) => Some(*n as f64),
        Value::Number(x) | Value::Mean { mean: x, .. } => Some(*x),
        Value::Seconds(span) => Some(span.as_secs_f64()),
        Value::Dollars(money) => Some(money.as_usd()),
    }
}

fn count(cell: &Cell) -> Option<i64> {
    match cell.value {
        Value::Count(n) => i64::try_from(n).ok(),
        _ => None,
    }
}

fn end(cell: &Cell) -> Option<(f64, f64)> {
    match cell.value {
        Value::Mean { interval, .. } => interval,
        _ => None,
    }
}

fn samples(cell: &Cell) -> Option<i64> {
    match cell.value {
        Value::Mean { n, .. } => i64::try_from(n).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader as _, SerializedFileReader};

    use super::*;

    #[test]
    fn what_is_written_is_read_back() -> Result<()> {
        let table = Table::new([
            Column::text("name"),
            Column::count("task"),
            Column::seconds("took").named("took_s"),
            Column::mean("ours"),
        ])
        .with([Cell::text("ä"), Cell::count(7_u64), Cell::number(1.5), Cell::mean(2.0, None, 3)])
        .with([Cell::text("b")]);
        let file = SerializedFileReader::new(bytes::Bytes::from(table.to_parquet()?))?;
        let rows = file.get_row_iter(None)?.collect::<Result<Vec<_>>>()?;
        let json: Vec<_> = rows.iter().map(|row| row.to_string()).collect();
        assert_eq!(rows.len(), 2);
        assert_eq!(
            json[0],
            "{name: \"ä\", task: 7, took_s: 1.5, ours_mean: 2.0, ours_ci95_low: null, \
             ours_ci95_high: null, n: 3}"
        );
        assert!(json[1].contains("task: null"), "{}", json[1]);
        Ok(())
    }
}
