//! Line charts and histograms as SVG.

mod axis;
mod chart;
mod draw;

pub use chart::{Chart, Kind, Line, Panel};
