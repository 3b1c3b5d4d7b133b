//! Deterministic SVG figures: charts over two axes, rows of samples and bars over one, and Gantt
//! charts. Light, and dark where the reader prefers it; labels never touch.

mod axis;
mod chart;
mod gantt;
mod legend;
mod limits;
mod mark;
mod rows;
mod svg;
mod text;

pub use axis::{Axis, Scale};
pub use chart::{Chart, Panel, Point, Series};
pub use gantt::{Bar, Fill, Gantt, Instant, Lane, Link, Mark, MarkKind, Measure, Place};
pub use limits::Limit;
pub use mark::Look;
pub use rows::{Row, RowMark, Rows};

pub(crate) use svg::{STYLE, definitions};

/// How many colours there are; colour numbers beyond begin again.
pub const COLOURS: usize = 8;
