//! Table of rows, to be printed.

use crate::measured::{KEYS, Row};

/// Returns the line with the columns' names.
pub(crate) fn head() -> String {
    KEYS.iter().map(|(_, head, width, _)| format!("{head:>width$}")).collect::<Vec<_>>().join("  ")
}

/// One row of the table, as it is printed below the line of its columns' names.
pub(crate) fn line(row: &Row) -> String {
    let cell = |&(key, _, width, decimals): &(&str, &str, usize, usize)| {
        format!("{:>width$.decimals$}", row.value(key))
    };
    KEYS.iter().map(cell).collect::<Vec<_>>().join("  ")
}
