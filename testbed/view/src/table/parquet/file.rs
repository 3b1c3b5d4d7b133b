//! Encodes a table with the crate parquet.

use std::sync::Arc;

use parquet::basic::{ConvertedType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

use super::super::{CellValue, ColumnKind, TableCell, TableColumn, TypedTable};

/// Encodes a table that already has the columns of a file as Parquet.
pub(super) fn encode(table: &TypedTable) -> Result<Vec<u8>> {
    let fields = table.columns.iter().map(|column| {
        let (physical, converted) = match column.kind {
            ColumnKind::Text => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
            ColumnKind::Count => (Physical::INT64, ConvertedType::NONE),
            _ => (Physical::DOUBLE, ConvertedType::NONE),
        };
        let field = Type::primitive_type_builder(&column.name, physical);
        let field = field.with_converted_type(converted);
        Ok(Arc::new(field.with_repetition(Repetition::OPTIONAL).build()?))
    });
    let fields = fields.collect::<Result<Vec<_>>>()?;
    let schema = Type::group_type_builder("schema").with_fields(fields).build()?;
    let mut file = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::default())?;
    let mut group = file.next_row_group()?;
    for (n, column) in table.columns.iter().enumerate() {
        let Some(to) = group.next_column()? else { break };
        let cells = table.rows.iter().filter_map(|row| row.get(n));
        match column.kind {
            ColumnKind::Text => write::<ByteArrayType>(to, cells.map(|cell| text(cell, column)))?,
            ColumnKind::Count => write::<Int64Type>(to, cells.map(count))?,
            _ => write::<DoubleType>(to, cells.map(|cell| cell.value.as_number()))?,
        }
    }
    group.close()?;
    file.into_inner()
}

/// Writes a column's values to the file, and marks missing ones.
fn write<T: DataType>(
    mut to: SerializedColumnWriter<'_>,
    all: impl Iterator<Item = Option<T::T>>,
) -> Result<()> {
    let all: Vec<_> = all.collect();
    let levels: Vec<i16> = all.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = all.into_iter().flatten().collect();
    to.typed::<T>().write_batch(&values, Some(&levels), None)?;
    to.close()
}

fn text(cell: &TableCell, column: &TableColumn) -> Option<ByteArray> {
    (cell.value != CellValue::Missing).then(|| ByteArray::from(cell.exact(column).into_bytes()))
}

fn count(cell: &TableCell) -> Option<i64> {
    match cell.value {
        CellValue::Count(n) => i64::try_from(n).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader as _, SerializedFileReader};

    use super::*;

    #[test]
    fn what_is_written_is_read_back() -> Result<()> {
        let table = TypedTable::new([
            TableColumn::text("name"),
            TableColumn::count("task"),
            TableColumn::seconds("took").named("took_s"),
            TableColumn::mean("ours"),
        ])
        .with([
            TableCell::text("ä"),
            TableCell::count(7_u64),
            TableCell::number(1.5),
            TableCell::mean(2.0, None, 3),
        ])
        .with([TableCell::text("b")]);
        let file = SerializedFileReader::new(bytes::Bytes::from(encode(&table.in_files())?))?;
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
