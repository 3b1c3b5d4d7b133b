//! A table as Apache Parquet, for pandas, DuckDB and Polars, if this program was built with it.

#[cfg(feature = "parquet")]
mod file;

use super::TypedTable;

/// Error of writing a table as Parquet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParquetError {
    /// Parquet can't be written, because this program was built without it.
    NotBuiltIn,
    /// The table can't be written as Parquet, for this reason.
    Unfit(String),
}

impl TypedTable {
    /// Whether this program can write Parquet: it was built with the feature `parquet`.
    pub const WRITES_PARQUET: bool = cfg!(feature = "parquet");

    /// The table as a Parquet file: the columns of its CSV, typed; times in seconds, money in
    /// dollars.
    ///
    /// # Errors
    ///
    /// Two columns have one name, there are more than 2^31 rows, or Parquet is not built in.
    pub fn to_parquet(&self) -> Result<Vec<u8>, ParquetError> {
        #[cfg(feature = "parquet")]
        {
            file::encode(&self.in_files()).map_err(|error| ParquetError::Unfit(error.to_string()))
        }
        #[cfg(not(feature = "parquet"))]
        {
            Err(ParquetError::NotBuiltIn)
        }
    }
}

impl std::error::Error for ParquetError {}

impl std::fmt::Display for ParquetError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotBuiltIn => f.write_str(
                "Parquet is not built into this dormouse; build it with --features parquet, or take \
                 the CSV files, which have the same",
            ),
            Self::Unfit(why) => f.write_str(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{TableCell, TableColumn};

    use super::*;

    #[test]
    fn a_table_is_written_where_that_is_built_in_and_refused_elsewhere() {
        let written =
            TypedTable::new([TableColumn::count("n")]).with([TableCell::count(7_u64)]).to_parquet();
        assert_eq!(written.is_ok(), TypedTable::WRITES_PARQUET);
        match written {
            Ok(bytes) => assert!(bytes.starts_with(b"PAR1")),
            Err(error) => assert_eq!(error, ParquetError::NotBuiltIn),
        }
    }

    #[test]
    fn whoever_lacks_it_reads_in_one_line_how_to_get_it() {
        let said = ParquetError::NotBuiltIn.to_string();
        assert!(said.contains("--features parquet") && !said.contains('\n'), "{said}");
    }
}
