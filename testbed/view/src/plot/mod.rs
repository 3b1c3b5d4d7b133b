//! Deterministic SVG figures: charts over two axes or with rows over one, and Gantt charts. Light, and dark where the reader prefers it; labels never touch.

mod axis;
mod chart;
mod gantt;
mod legend;
mod limits;
mod mark;
mod svg;
mod text;

pub use axis::{Axis, Scale};
pub use chart::{Chart, Panel, Point, Series};
pub use gantt::{Bar, Fill, Gantt, Lane, Link, Mark, MarkKind, Measure, Place};
pub use limits::Limit;
pub use mark::Look;

pub(crate) use svg::{STYLE, definitions};

/// How many colours there are; colour numbers beyond begin again.
pub const COLOURS: usize = 8;
