//! Deterministic SVG figures: charts over two axes or with rows over one, and Gantt charts. They
//! are light, and dark where the reader prefers it; labels never touch.

mod axis;
mod chart;
mod gantt;
mod legend;
mod limits;
mod mark;
#[cfg(test)]
mod palette;
mod svg;
mod text;

pub use axis::{AxisScale, PlotAxis};
pub use chart::{ChartPanel, PanelChart, PointSeries, SeriesPoint};
pub use gantt::{
    BarFill, GanttBar, GanttChart, GanttLane, GanttLink, GanttMark, GanttPlace, LaneMeasure,
    MarkKind, PlayedWork,
};
pub use limits::PlotLimit;
pub use mark::PointLook;

pub(crate) use axis::LaidAxis;
pub(crate) use svg::{STYLE, definitions};

/// Number of colours; larger colour numbers begin again with the first colour.
pub const COLOURS: usize = 8;
