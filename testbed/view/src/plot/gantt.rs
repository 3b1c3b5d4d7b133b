//! Gantt charts: lanes of rows over time.

mod draw;
mod layout;

use std::iter;
use std::ops::Range;

use dormouse_units::{Tier, Time};

use super::limits::Limit;

/// Lanes over time, what ran on them, and what moved between them.
#[derive(Clone, Debug, Default)]
pub struct Gantt {
    /// Title of the chart.
    pub title: String,
    /// The figures that matter, in a line.
    pub lead: String,
    /// The first and the last time that are shown.
    pub window: (Time, Time),
    /// Top to bottom.
    pub lanes: Vec<Lane>,
    /// What ran, in the order in which it is drawn.
    pub bars: Vec<Bar>,
    /// What happened at an instant.
    pub marks: Vec<Mark>,
    /// What went on elsewhere.
    pub links: Vec<Link>,
    /// Times in seconds that matter to all lanes; one after the window is told of in words.
    pub limits: Vec<Limit>,
    /// The names of colours, in their order; those of other fills and of marks are their own.
    pub colours: Vec<String>,
}

/// A machine: some rows of equal height, and a measure below them.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    /// Name of the machine.
    pub name: String,
    /// A second line for people.
    pub about: String,
    /// All that is to be said of it, where it is pointed at.
    pub title: String,
    /// From when to when it is there.
    pub life: Option<(Time, Time)>,
    /// Number of rows, one for each processor.
    pub rows: u32,
    /// Whether each row has a background below its foreground.
    pub has_background: bool,
    /// Whether its rows are numbered.
    pub is_numbered: bool,
    /// A quantity over time, below its rows.
    pub measure: Option<Measure>,
}

/// A quantity over time.
#[derive(Clone, Debug, Default)]
pub struct Measure {
    /// A noun with its unit: `CPU credits`.
    pub name: String,
    /// The values at times, in order; between two the line goes straight from one to the other.
    pub points: Vec<(Time, f64)>,
}

/// Something that takes rows of a lane for a time.
#[derive(Clone, Debug)]
pub struct Bar {
    /// Where it is.
    pub place: Place,
    /// When the bar begins.
    pub from: Time,
    /// When the bar ends.
    pub until: Time,
    /// How it is filled.
    pub fill: Fill,
    /// Written on it where there is room.
    pub label: String,
    /// All that is to be said of it, where it is pointed at.
    pub title: String,
}

/// Rows of a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The number of the lane.
    pub lane: usize,
    /// The rows of the lane that are taken: ranges in order.
    pub rows: Vec<Range<u32>>,
    /// The foreground or the background of them.
    pub tier: Tier,
}

/// How a bar is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fill {
    /// Work, of a colour's number.
    Work(usize),
    /// A VM that boots.
    Boot,
    /// A VM that is hibernated.
    Hibernated,
    /// Over work: at the baseline of a burstable VM.
    Baseline,
    /// Over work: computed for nothing.
    Lost,
}

/// Something at an instant.
#[derive(Clone, Debug)]
pub struct Mark {
    /// Where it is: in the middle of the first of its rows.
    pub place: Place,
    /// The instant, by the axis of the chart.
    pub at: Time,
    /// What happens there, which has its own sign.
    pub kind: MarkKind,
    /// All that is to be said of it.
    pub title: String,
}

/// What happens at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MarkKind {
    /// A checkpoint was kept.
    Checkpoint,
    /// A task was stolen.
    Stolen,
    /// The tiers of a job were swapped.
    Swapped,
    /// A machine was taken away.
    Gone,
}

/// Work that left one place and went on in another.
#[derive(Clone, Debug)]
pub struct Link {
    /// Where and when it was kept, or left.
    pub from: (Place, Time),
    /// Where and when it went on.
    pub to: (Place, Time),
    /// All that is to be said of it.
    pub title: String,
}

impl Place {
    /// These rows of a lane, in the foreground.
    #[must_use]
    pub fn rows(lane: usize, rows: Range<u32>) -> Self {
        Self { lane, rows: iter::once(rows).collect(), tier: Tier::Foreground }
    }
}

impl Fill {
    /// A noun for the legend; that of a colour is its owner's.
    const fn name(self) -> &'static str {
        match self {
            Self::Work(_) => "",
            Self::Boot => "boot",
            Self::Hibernated => "hibernation",
            Self::Baseline => "baseline speed",
            Self::Lost => "lost work",
        }
    }

    /// Whether it lies over work.
    pub(crate) const fn is_overlay(self) -> bool {
        matches!(self, Self::Baseline | Self::Lost)
    }
}

impl MarkKind {
    /// A noun for the kind of mark.
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
