//! Places of the rows, lanes and labels of a Gantt chart.

use dormouse_units::Tier;

use super::super::text::width;
use super::{GanttChart, GanttLane, GanttPlace};

pub(super) const WIDTH: f64 = 1_240.0;
pub(super) const RIGHT: f64 = 18.0;
/// Width of a chart for a phone, in pixels, and height of the line with a lane's name above its rows.
const NARROW: f64 = 400.0;
const NAME_ABOVE: f64 = 15.0;

/// Width of a chart for a sheet of paper, in pixels: about that of a sheet, so that its letters are as high there as here.
const SHEET: f64 = 760.0;

/// Shape of a chart: that of pages and files, with the names of lanes at their left; that of a phone's screen, with the names
/// above their rows; or that of a sheet of paper, with the names at their left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GanttShape {
    Wide,
    Narrow,
    Sheet,
}

impl GanttShape {
    /// Width of the chart, in pixels.
    pub(super) const fn width(self) -> f64 {
        match self {
            Self::Wide => WIDTH,
            Self::Narrow => NARROW,
            Self::Sheet => SHEET,
        }
    }

    /// Size of the letters on bars, in pixels: those of a chart that is not made smaller by its page are larger.
    pub(super) const fn label_size(self) -> f64 {
        match self {
            Self::Wide => 9.0,
            Self::Narrow | Self::Sheet => 10.5,
        }
    }
}
/// Height of all rows together in pixels, unless the height of a row would leave the range `ROW`.
const HEIGHT: f64 = 900.0;
const ROW: (f64, f64) = (2.5, 15.0);
/// Greatest height of a row with a background, whose bars have labels, too.
const TALLEST_IN_TIERS: f64 = 24.0;
/// How much lower a row may be at most in a chart for a sheet of paper, which has other parts of the page, too.
const SHEET_LOWER: f64 = 3.0;
/// Heights of the foreground's and of the background's part of a row, in heights of a row.
const TIERS: (f64, f64) = (0.56, 0.38);
/// Height of the quantity over time that is drawn below a lane's rows, in heights of a row; from `LABELLED` pixels on it has
/// labels.
const MEASURE: f64 = 1.5;
pub(super) const LABELLED: f64 = 15.0;
/// Height of a line for a lane's name (`NAME`), and of both lines of its text (`TWO_LINES`), in pixels.
const NAME: f64 = 11.5;
const TWO_LINES: f64 = 24.0;

/// Tops and heights of lanes and rows, in pixels.
#[derive(Clone, Debug)]
pub(super) struct GanttLayout {
    /// Left end of the axis of time, in pixels.
    pub(super) left: f64,
    /// Top and height of each lane in pixels, including the quantity over time that may be drawn below its rows.
    lanes: Vec<(f64, f64)>,
    /// Height of a row, in pixels.
    pub(super) row: f64,
    pub(super) bottom: f64,
    pub(super) shape: GanttShape,
}

impl GanttLayout {
    pub(super) fn new(gantt: &GanttChart, top: f64, shape: GanttShape) -> Self {
        let all: f64 = gantt.lanes.iter().map(units).sum();
        let has_background = gantt.lanes.iter().any(|lane| lane.has_background);
        let tallest = if has_background { TALLEST_IN_TIERS } else { ROW.1 };
        let tallest = if shape == GanttShape::Sheet { tallest - SHEET_LOWER } else { tallest };
        let row = (HEIGHT / all.max(1.0)).clamp(ROW.0, tallest);
        // The gap between lanes gives a lane's two lines room where lanes are few.
        let gap = (row * 0.4).min(6.0);
        let is_wide = shape != GanttShape::Narrow;
        let (above, least) = match is_wide {
            true if row >= ROW.1 - SHEET_LOWER => (0.0, TWO_LINES),
            true => (0.0, 0.0),
            false => (NAME_ABOVE, 0.0),
        };
        let mut y = top;
        let mut lanes = Vec::new();
        for lane in &gantt.lanes {
            let height = (units(lane) * row).max(least);
            lanes.push((y + above, height));
            y += above + height + gap;
        }
        let text = |lane: &GanttLane| {
            let numbers = if lane.is_numbered { 30.0 } else { 0.0 };
            width(&lane.name, 11.0).max(width(&lane.about, 9.5)) + numbers
        };
        let scale = if gantt.lanes.iter().any(|l| l.measure.is_some()) { 26.0 } else { 0.0 };
        let left = gantt.lanes.iter().map(text).fold(40.0, f64::max) + scale;
        let is_numbered = gantt.lanes.iter().any(|lane| lane.is_numbered);
        let left = match is_wide {
            true => (14.0 + left + 10.0).min(300.0),
            false => {
                if is_numbered {
                    32.0
                } else {
                    14.0
                }
            }
        };
        Self { left, lanes, row, bottom: y, shape }
    }

    /// Top and height of a lane, in pixels.
    pub(super) fn lane(&self, n: usize) -> (f64, f64) {
        self.lanes.get(n).copied().unwrap_or((self.bottom, 0.0))
    }

    /// Tops and heights, in pixels, of a place's blocks of rows.
    pub(super) fn blocks<'a>(
        &'a self,
        lane: &'a GanttLane,
        place: &'a GanttPlace,
    ) -> impl Iterator<Item = (f64, f64)> + 'a {
        let (top, _) = self.lane(place.lane);
        let row = self.row;
        place.rows.iter().flat_map(move |rows| {
            // In two tiers each row has its own part; in one, neighbours are one block.
            let each = if lane.has_background { 1 } else { (rows.end - rows.start).max(1) };
            (rows.start..rows.end).step_by(each as usize).map(move |first| {
                let y = top + f64::from(first) * row;
                let h = f64::from(each) * row;
                match lane.has_background {
                    false => (y, h - (row * 0.1).min(1.0)),
                    true => tier_part(place.tier, y, h),
                }
            })
        })
    }

    /// Vertical position, in pixels, of the middle of the first row of a place.
    pub(super) fn middle(&self, lane: &GanttLane, place: &GanttPlace) -> f64 {
        self.blocks(lane, place).next().map_or(self.bottom, |(y, h)| y + h / 2.0)
    }

    /// Top and bottom, in pixels, of the quantity over time that is drawn below a lane's rows.
    pub(super) fn measure(&self, n: usize, lane: &GanttLane) -> (f64, f64) {
        let top = self.lane(n).0 + f64::from(lane.rows) * self.row;
        (top + 2.0_f64.min(self.row * 0.15), top + MEASURE * self.row)
    }

    /// Number of lines of text that a lane has room for; where lanes are lower than a line of text, most lanes have
    /// room for none.
    pub(super) fn lines(&self, n: usize) -> usize {
        let (_, height) = self.lane(n);
        if height >= TWO_LINES - 0.5 {
            return 2;
        }
        let pitch = height + (self.row * 0.4).min(6.0);
        let every = (NAME / pitch.max(0.1)).ceil().max(1.0) as usize;
        usize::from(n.is_multiple_of(every))
    }
}

/// Top and height of a tier's part of a row with a background.
pub(super) fn tier_part(tier: Tier, top: f64, row: f64) -> (f64, f64) {
    match tier {
        Tier::Foreground => (top, row * TIERS.0),
        Tier::Background => (top + row * TIERS.0, row * TIERS.1),
    }
}

/// The height of a lane in rows.
fn units(lane: &GanttLane) -> f64 {
    f64::from(lane.rows) + if lane.measure.is_some() { MEASURE } else { 0.0 }
}
