//! Gantt charts: lanes of rows over time.

mod animate;
mod draw;
mod layout;
#[cfg(test)]
mod tests;

use std::iter;
use std::ops::Range;

use dormouse_units::{Tier, Time};

pub use self::animate::PlayedWork;
use super::limits::PlotLimit;
use crate::time_unit::TimeUnit;

/// A Gantt chart: lanes over time with bars, marks and links.
#[derive(Clone, Debug, Default)]
pub struct GanttChart {
    /// Title of the chart.
    pub title: String,
    /// The most important figures in one line of text.
    pub lead: String,
    /// The first and the last time that are shown.
    pub window: (Time, Time),
    /// Unit of the times on the chart's axis and of its limits.
    pub unit: TimeUnit,
    /// Lanes from top to bottom.
    pub lanes: Vec<GanttLane>,
    /// Bars for work and states of machines, in the order in which they are drawn; later bars cover earlier ones.
    pub bars: Vec<GanttBar>,
    /// Marks for events at an instant.
    pub marks: Vec<GanttMark>,
    /// Links for work that continued in a different lane.
    pub links: Vec<GanttLink>,
    /// Times in seconds that matter to all lanes, such as the deadline; a time after the window appears in words only.
    pub limits: Vec<PlotLimit>,
    /// The names of the colours of work, in the order of their numbers; other fills and marks have names of their own.
    pub colours: Vec<String>,
}

/// The lane of a machine: rows of equal height, with a quantity over time below them.
#[derive(Clone, Debug, Default)]
pub struct GanttLane {
    /// Name of the machine.
    pub name: String,
    /// A second line below the name.
    pub about: String,
    /// Tooltip of the lane.
    pub title: String,
    /// Times at which the machine begins and ends to exist; `None`: they are not drawn.
    pub life: Option<(Time, Time)>,
    /// Number of rows, one for each processor.
    pub rows: u32,
    /// Whether each row has a background below its foreground.
    pub has_background: bool,
    /// Whether the lane's rows are numbered.
    pub is_numbered: bool,
    /// A quantity over time, drawn below the rows.
    pub measure: Option<LaneMeasure>,
}

/// A quantity of a machine over time, drawn below the rows of its lane.
#[derive(Clone, Debug, Default)]
pub struct LaneMeasure {
    /// Name of the quantity: a noun with its unit, such as `CPU credits`.
    pub name: String,
    /// The values at instants, in order; between two of them the line is straight.
    pub points: Vec<(Time, f64)>,
}

/// A bar: something that occupies rows of a lane for a time.
#[derive(Clone, Debug)]
pub struct GanttBar {
    /// Rows of the lane that the bar occupies.
    pub place: GanttPlace,
    /// The time at which the bar begins.
    pub from: Time,
    /// The time at which the bar ends.
    pub until: Time,
    /// The filling of the bar.
    pub fill: BarFill,
    /// Text written on the bar where there is room.
    pub label: String,
    /// Tooltip of the bar.
    pub title: String,
}

/// Rows of a lane that a bar, mark or link refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GanttPlace {
    /// The number of the lane, from 0.
    pub lane: usize,
    /// The rows of the lane: ascending ranges.
    pub rows: Vec<Range<u32>>,
    /// The foreground or the background of the rows.
    pub tier: Tier,
}

/// The filling of a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BarFill {
    /// The bar shows work, in the colour with this number.
    Work(usize),
    /// The bar shows a VM that boots.
    Boot,
    /// The bar shows a hibernated VM.
    Hibernated,
    /// The bar shows a fault that the experiment injects.
    Fault,
    /// The bar is drawn over work: it shows the time in which a burstable VM ran at its baseline.
    Baseline,
    /// The bar is drawn over work: it shows computing time that was lost.
    Lost,
}

/// A mark on the chart for an event at an instant.
#[derive(Clone, Debug)]
pub struct GanttMark {
    /// Rows that the event concerns; the mark is drawn in the middle of the first one.
    pub place: GanttPlace,
    /// Instant of the event, on the chart's axis of time.
    pub at: Time,
    /// Kind of the event, which has its own sign.
    pub kind: MarkKind,
    /// Tooltip of the mark.
    pub title: String,
}

/// Kind of an event at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MarkKind {
    /// A checkpoint of a task was stored.
    Checkpoint,
    /// A task was stolen by the lane's VM from the queue of another VM.
    Stolen,
    /// The tiers of a job were swapped.
    Swapped,
    /// A machine was preempted or lost.
    Gone,
}

/// Work that left one place and continued in another.
#[derive(Clone, Debug)]
pub struct GanttLink {
    /// Rows and instant at which the work was checkpointed, or stopped.
    pub from: (GanttPlace, Time),
    /// Rows and instant at which the work continued.
    pub to: (GanttPlace, Time),
    /// Tooltip of the link.
    pub title: String,
}

impl GanttPlace {
    /// Places a bar in these rows of a lane, in the foreground.
    #[must_use]
    pub fn rows(lane: usize, rows: Range<u32>) -> Self {
        Self { lane, rows: iter::once(rows).collect(), tier: Tier::Foreground }
    }
}

impl BarFill {
    /// Noun for the legend; empty for work, whose colours have names in the chart.
    const fn name(self) -> &'static str {
        match self {
            Self::Work(_) => "",
            Self::Boot => "boot",
            Self::Hibernated => "hibernation",
            Self::Fault => "fault",
            Self::Baseline => "baseline speed",
            Self::Lost => "lost work",
        }
    }

    /// Whether the fill is drawn over bars of work.
    pub(crate) const fn is_overlay(self) -> bool {
        matches!(self, Self::Baseline | Self::Lost)
    }
}

impl MarkKind {
    /// Noun for the kind of mark, for the legend.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Checkpoint => "checkpoint",
            Self::Stolen => "stolen by an idle VM",
            Self::Swapped => "swap of tiers",
            Self::Gone => "loss of the VM",
        }
    }
}
