//! `gantt.svg`.

mod chart;
mod layout;
mod style;
mod svg;

pub(crate) use chart::gantt;
pub(crate) use layout::{grid_label, grid_s};
pub(crate) use style::{COLOURS, HEAD};
pub(crate) use svg::{Rect, Svg, escaped};
