//! Time to the right, for every Gantt chart.

use dormouse_units::Time;

use super::svg::Svg;

/// Where a time is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeAxis {
    /// The first and the last time that are drawn; the last is later.
    pub(crate) window: (Time, Time),
    /// Where they are, in pixels from the left.
    pub(crate) left: f64,
    pub(crate) right: f64,
}

impl TimeAxis {
    /// Pixels from the left; times beyond an end are drawn at it.
    pub(crate) fn x(&self, at: Time) -> f64 {
        let (from, until) = self.window;
        let at = at.clamp(from, until);
        let share = at.since(from).as_secs_f64() / until.since(from).as_secs_f64();
        self.left + share * (self.right - self.left)
    }

    /// Lines at round times from `top` to `bottom`, with their labels below.
    pub(crate) fn grid(&self, svg: &mut Svg, top: f64, bottom: f64) {
        let (from, until) = self.window;
        let whole = |at: Time| at.as_micros() / 1_000_000;
        let step = grid_s(whole(until) - whole(from));
        let mut at = whole(from).div_ceil(step) * step;
        while at <= whole(until) {
            let x = self.x(Time::from_secs(at));
            svg.line((x, top), (x, bottom), "grid", "");
            svg.text(x, bottom + 16.0, "mid sub", &grid_label(at, step));
            at += step;
        }
    }
}

/// Seconds between the grid lines of so many seconds: about twelve lines; steps that people
/// count in.
fn grid_s(length_s: u64) -> u64 {
    let steps =
        [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 14_400, 43_200];
    let wanted = length_s / 12;
    steps.into_iter().find(|&s| s >= wanted).unwrap_or_else(|| (wanted / 86_400 + 1) * 86_400)
}

/// The label of a grid line, at so many seconds, where lines are `step_s` apart.
fn grid_label(at_s: u64, step_s: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a label")]
    let hours = at_s as f64 / 3_600.0;
    match step_s {
        0..60 => format!("{at_s} s"),
        60..3_600 => format!("{} min", at_s / 60),
        3_600..43_200 => format!("{hours:.1} h"),
        _ => format!("{:.1} d", hours / 24.0),
    }
}
