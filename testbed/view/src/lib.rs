//! Presentation of results: typed tables as terminal text, CSV, HTML and JSON; one page layout; and
//! deterministic SVG figures. Nothing here reads or writes files, or knows what a run is.

pub mod number;
pub mod page;
pub mod plot;
mod table;
mod time_unit;
mod trace;

pub use page::{
    AnswerItem, ClaimMark, ClaimRange, ClaimVerdict, FigureCard, HtmlPage, PageAnswer, PageBlock,
};
pub use table::{
    CellValue, ColumnKind, ParquetError, TableCell, TableColumn, TableOf, Terminal, TextTone,
    TypedTable,
};
pub use time_unit::TimeUnit;
