//! Files that others made: unpacked by what they begin with, read a line at a time, rows whose
//! columns have names, moments as people write them, and a count of what was left out and why.
//!
//! Nothing here opens a file: the caller does, and says of which file an error is. Each kind of file
//! has one reader, in the crate of what it holds (prices in `dormouse-cloud`, lifetimes in
//! `dormouse-fit`, jobs and requests in `dormouse-workload`); all of them are built on this.

mod columns;
mod flaw;
mod json_items;
mod left_out;
mod moment;
mod rows;
mod text;
mod unpack;

pub use columns::{Chosen, ColumnPlaces, NoColumn, WantedColumn};
pub use flaw::FileFlaw;
pub use json_items::{ItemsAt, JsonItem, JsonItems};
pub use left_out::{LeftOut, ReasonCount};
pub use moment::{Moment, written};
pub use rows::{CellSeparator, FlawedRow, Row, Rows, RowsError};
pub use text::{LONGEST_LINE, Line, Text};
pub use unpack::{Packing, Source};
