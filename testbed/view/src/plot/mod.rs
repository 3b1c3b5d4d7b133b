//! Deterministic SVG figures: charts over two axes or with rows over one, and Gantt charts. They
//! are light, and dark where the reader prefers it; labels never touch.

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

/// Number of colours; colour numbers beyond it begin again.
pub const COLOURS: usize = 8;
