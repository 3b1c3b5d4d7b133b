//! `gantt.svg`.

mod chart;
mod layout;
mod style;
mod svg;

pub(crate) use chart::gantt;
pub(crate) use svg::{Rect, Svg, escaped};
