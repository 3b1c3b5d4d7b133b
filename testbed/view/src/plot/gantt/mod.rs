//! Gantt charts: lanes of rows over time.

mod draw;
mod layout;
mod value;

pub use value::{Bar, Fill, Gantt, Instant, Lane, Link, Mark, MarkKind, Measure, Place};
