//! Readers of other programs' files: files are unpacked according to their first bytes and read a line at a time;
//! columns are found by their names, times are parsed in common notations, and entries left out are counted by reason.
//!
//! Nothing here opens a file: the caller does, and names the file in an error. Each kind of file has one reader, in the
//! crate for its content (prices in `dormouse-cloud`, lifetimes in `dormouse-fit`, jobs and requests in
//! `dormouse-workload`); all readers are built on this crate.

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
