//! `gantt.svg`.

mod axis;
mod chart;
mod layout;
mod style;
mod svg;

pub(crate) use axis::TimeAxis;
pub(crate) use chart::gantt;
pub(crate) use style::{COLOURS, HEAD};
pub(crate) use svg::{Rect, Svg, escaped};
