//! Axes: data to pixels, and the places of ticks.

use maud::{Markup, html};

use super::svg::{line, text};
use super::text::width;
use crate::number::{fixed, grouped};
use crate::time_unit::TimeUnit;

/// Font size of tick labels, in pixels.
pub(super) const SIZE: f64 = 11.0;
/// Distance that a label may reach beyond an axis's right end, in pixels.
const BEYOND: f64 = 14.0;

/// The scale of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AxisScale {
    /// A linear scale over the range of the data.
    #[default]
    Linear,
    /// A linear scale that begins at 0.
    FromZero,
    /// A logarithmic scale; values that are not above 0 are left out.
    Logarithmic,
    /// Values are exponents of two; a label shows the power of two.
    PowersOfTwo,
    /// Seconds, with labels in this unit.
    Time(TimeUnit),
}

/// An axis of a panel: its label and its scale.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlotAxis {
    /// Quantity that the axis shows, with its unit: `makespan, s`.
    pub label: String,
    /// The scale on which values lie along the axis.
    pub scale: AxisScale,
}

impl PlotAxis {
    /// An axis with this label.
    #[must_use]
    pub fn new(label: impl Into<String>, scale: AxisScale) -> Self {
        Self { label: label.into(), scale }
    }
}

/// A scale with its range of data, and its range in the drawing in pixels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaidAxis {
    data: (f64, f64),
    pub(super) paper: (f64, f64),
    scale: AxisScale,
}

/// A tick: its value and its label.
pub(super) type Tick = (f64, String);

impl LaidAxis {
    /// A scale over the range of these values.
    pub(super) fn over(
        scale: AxisScale,
        values: impl Iterator<Item = f64>,
        paper: (f64, f64),
    ) -> Self {
        let shown = |v: &f64| v.is_finite() && (scale != AxisScale::Logarithmic || *v > 0.0);
        let (low, high) = values
            .filter(shown)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |r, v| (r.0.min(v), r.1.max(v)));
        let (low, high) = if low > high { (1.0, 10.0) } else { (low, high) };
        let data = match scale {
            AxisScale::Logarithmic if high > low => (low / 1.08, high * 1.08),
            // Half an order to both sides of a constant.
            AxisScale::Logarithmic => (low / 3.0, high * 3.0),
            AxisScale::PowersOfTwo => (low - 0.5, high + 0.5),
            AxisScale::FromZero => {
                let (low, high) = (low.min(0.0), high.max(0.0));
                // The step is one unit if all values are zero.
                let step = nice_step(if high > low { (high - low) / 5.0 } else { 1.0 });
                ((low / step).floor() * step, (high / step).ceil().max(1.0) * step)
            }
            AxisScale::Time(_) if high > low => (low, high),
            AxisScale::Linear | AxisScale::Time(_) => {
                // There is a unit to both sides if all values are zero.
                let room = ((high - low) * 0.06).max(high.abs() * 0.01);
                let room = if room > 0.0 { room } else { 1.0 };
                (low - room, high + room)
            }
        };
        Self { data, paper, scale }
    }

    /// A scale from exactly the first of `data` to the second, which is larger.
    pub(crate) fn exactly(scale: AxisScale, data: (f64, f64), paper: (f64, f64)) -> Self {
        Self { data, paper, scale }
    }

    /// The same scale, moved along the drawing by this many pixels.
    pub(super) fn moved(self, by: f64) -> Self {
        Self { paper: (self.paper.0 + by, self.paper.1 + by), ..self }
    }

    /// Position of a value in the drawing, in pixels; for a value outside the scale, the position of the nearest end.
    pub(crate) fn at(&self, x: f64) -> f64 {
        let (low, high) = self.data;
        let x = x.clamp(low, high);
        let share = if self.scale == AxisScale::Logarithmic {
            libm::log(x / low) / libm::log(high / low)
        } else {
            (x - low) / (high - low)
        };
        self.paper.0 + share * (self.paper.1 - self.paper.0)
    }

    /// Whether the scale can show a value: the value has to be finite and, on a logarithmic scale, above 0.
    pub(super) fn shows(&self, x: f64) -> bool {
        x.is_finite() && (self.scale != AxisScale::Logarithmic || x > 0.0)
    }

    /// Whether a value is in the scale's range.
    pub(super) fn contains(&self, x: f64) -> bool {
        (self.data.0..=self.data.1).contains(&x)
    }

    /// Draws a horizontal axis: a line of this class from `top` to `bottom` at each tick, and the
    /// ticks' labels at the height `labels`.
    pub(crate) fn draw(&self, class: &str, (top, bottom): (f64, f64), labels: f64) -> Markup {
        html! {
            @for (value, label) in self.ticks_across() {
                @let (x, most) = (self.at(value), self.paper.1 + BEYOND - width(&label, SIZE) / 2.0);
                (line((x, top), (x, bottom), class))
                (text((x.min(most), labels), "mid dim", &label))
            }
        }
    }

    /// Ticks whose labels do not touch along a horizontal axis.
    fn ticks_across(&self) -> Vec<Tick> {
        let fits = |ticks: &Vec<Tick>| {
            ticks.windows(2).all(|pair| {
                let [a, b] = pair else { return true };
                let apart = (self.at(b.0) - self.at(a.0)).abs();
                apart > f64::midpoint(width(&a.1, SIZE), width(&b.1, SIZE)) + 9.0
            })
        };
        let counts = (2..=12).rev().map(|count| self.ticks(f64::from(count)));
        counts.into_iter().find(fits).unwrap_or_default()
    }

    /// Ticks of a vertical axis.
    pub(super) fn ticks_up(&self) -> Vec<Tick> {
        let room = (self.paper.1 - self.paper.0).abs();
        self.ticks((room / 34.0).clamp(2.0, 7.0))
    }

    /// About `count` ticks of the scale.
    fn ticks(&self, count: f64) -> Vec<Tick> {
        let (low, high) = self.data;
        match self.scale {
            AxisScale::Logarithmic => {
                let per_decade = count / libm::log10(high / low).max(1e-9);
                let steps: &[f64] = match per_decade {
                    6.0.. => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0],
                    2.5.. => &[1.0, 2.0, 5.0],
                    _ => &[1.0],
                };
                let every = (1.0 / per_decade).ceil().max(1.0) as u32;
                let from = libm::floor(libm::log10(low));
                let all = (0..60_u32).filter(|n| n % every == 0).flat_map(|n| {
                    let power = libm::pow(10.0, from + f64::from(n));
                    steps.iter().map(move |step| step * power)
                });
                let inside = all.filter(|tick| (low..=high).contains(tick));
                inside.map(|tick| (tick, crate::number::short(tick))).collect()
            }
            AxisScale::PowersOfTwo => {
                let step = nice_step((high - low) / count).max(1.0);
                let ticks = even_ticks(low, high, step).into_iter().filter(|t| t.fract() == 0.0);
                ticks.map(|tick| (tick, crate::number::short(libm::exp2(tick)))).collect()
            }
            AxisScale::Time(unit) => {
                let step = time_step((high - low) / count, unit);
                even_ticks(low, high, step)
                    .into_iter()
                    .map(|t| (t, time_label(t, step, unit)))
                    .collect()
            }
            AxisScale::Linear | AxisScale::FromZero => {
                let step = nice_step((high - low) / count);
                let (scale, unit) = match low.abs().max(high.abs()) {
                    large if large >= 1e6 => (1e6, "M"),
                    large if large >= 1e5 => (1e3, "k"),
                    _ => (1.0, ""),
                };
                let digits = (-libm::floor(libm::log10(step / scale) + 1e-9)).clamp(0.0, 9.0);
                let label = |tick: f64| grouped(&fixed(tick / scale, digits as usize)) + unit;
                even_ticks(low, high, step).into_iter().map(|tick| (tick, label(tick))).collect()
            }
        }
    }
}

/// Multiples of `step` in a range.
fn even_ticks(low: f64, high: f64, step: f64) -> Vec<f64> {
    let first = (low / step - 1e-6).ceil();
    let ticks = (0..200_u8).map(|n| (first + f64::from(n)) * step);
    ticks.take_while(|tick| *tick <= high + step * 1e-6).collect()
}

/// The next of 1, 2, 5, 10, … that is at least `rough`.
fn nice_step(rough: f64) -> f64 {
    let power = libm::pow(10.0, libm::floor(libm::log10(rough.max(1e-300))));
    let factor = [1.0, 2.0, 5.0].into_iter().find(|f| f * power >= rough * 0.999_999);
    factor.unwrap_or(10.0) * power
}

/// The smallest time step in seconds, at least `rough`, that people count in and that has short
/// numbers in this unit.
fn time_step(rough: f64, unit: TimeUnit) -> f64 {
    const STEPS: [f64; 18] = [
        1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_200.0, 1_800.0, 3_600.0,
        7_200.0, 14_400.0, 21_600.0, 43_200.0, 86_400.0,
    ];
    let own = unit.seconds();
    let nice = nice_step(rough / own) * own;
    if rough < own {
        return nice;
    }
    let whole = STEPS.into_iter().filter(|step| *step >= own);
    whole.into_iter().find(|step| *step >= rough).unwrap_or(nice)
}

/// The label of a tick at `at` seconds, where ticks are `step` seconds apart.
fn time_label(at: f64, step: f64, unit: TimeUnit) -> String {
    let step = step / unit.seconds();
    let digits = (-libm::floor(libm::log10(step) + 1e-9)).clamp(0.0, 9.0);
    format!("{} {}", fixed(at / unit.seconds(), digits as usize), unit.symbol())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(ticks: &[Tick]) -> Vec<f64> {
        ticks.iter().map(|t| t.0).collect()
    }

    #[test]
    fn ticks_are_round_and_inside() {
        let axis = LaidAxis::over(AxisScale::FromZero, [3.0, 47.0].into_iter(), (200.0, 0.0));
        assert_eq!(values(&axis.ticks_up()), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]);
        let axis = LaidAxis::over(AxisScale::Logarithmic, [3.0, 470.0].into_iter(), (200.0, 0.0));
        assert_eq!(values(&axis.ticks_up()), [5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0]);
        assert!((axis.at(37.55) - 100.0).abs() < 0.2, "{}", axis.at(37.55));
    }

    #[test]
    fn labels_across_do_not_touch_and_name_their_unit() {
        for length in [3.0, 95.0, 2_700.0, 40_000.0, 3e6, 4e8] {
            let unit = TimeUnit::for_longest(length);
            let axis = LaidAxis::exactly(AxisScale::Time(unit), (0.0, length), (0.0, 320.0));
            let ticks = axis.ticks_across();
            assert!((2..=12).contains(&ticks.len()), "{length}: {ticks:?}");
            for pair in ticks.windows(2) {
                let apart = axis.at(pair[1].0) - axis.at(pair[0].0);
                assert!(apart > width(&pair[0].1, SIZE), "{length}: {ticks:?}");
                assert_ne!(pair[0].1, pair[1].1, "{length}");
            }
        }
        for (unit, length, second) in [
            (TimeUnit::Second, 2_700.0, "300 s"),
            (TimeUnit::Second, 3.0, "0.5 s"),
            (TimeUnit::Hour, 2_700.0, "0.1 h"),
            (TimeUnit::Hour, 604_800.0, "24 h"),
        ] {
            let axis = LaidAxis::exactly(AxisScale::Time(unit), (0.0, length), (0.0, 900.0));
            assert_eq!(axis.ticks_across()[1].1, second);
        }
    }

    #[test]
    fn nothing_but_zeros_has_an_axis() {
        for scale in [
            AxisScale::FromZero,
            AxisScale::Linear,
            AxisScale::Time(TimeUnit::Second),
            AxisScale::PowersOfTwo,
        ] {
            let axis = LaidAxis::over(scale, [0.0, 0.0].into_iter(), (200.0, 0.0));
            let mut labels: Vec<_> = axis.ticks_up().into_iter().map(|tick| tick.1).collect();
            let all = labels.len();
            labels.dedup();
            assert_eq!(labels.len(), all, "{scale:?}: {labels:?}");
            assert!(labels.iter().all(|label| label.len() < 7), "{scale:?}: {labels:?}");
        }
    }
}
