//! From data to pixels, and where the ticks are.

use super::chart::Kind;

/// An axis: the data's range, and where it begins and ends on paper.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    data: (f64, f64),
    paper: (f64, f64),
    is_log: bool,
}

impl Axis {
    pub(super) fn new(data: (f64, f64), paper: (f64, f64), is_log: bool) -> Self {
        Self { data, paper, is_log }
    }

    /// The vertical axis of a panel of this kind, of values from `low` to `high`.
    pub(super) fn values(kind: Kind, (low, high): (f64, f64), paper: (f64, f64)) -> Self {
        if kind == Kind::Logarithmic {
            let low = low.max(high * 1e-9).max(f64::MIN_POSITIVE);
            // Half an order to both sides of a constant.
            let (low, high) = if high > low { (low, high) } else { (low / 3.0, high * 3.0) };
            return Self::new((low / 1.08, high * 1.08), paper, true);
        }
        let step = nice_step(high.max(1e-12) / 5.0);
        Self::new((low.min(0.0), (high / step).ceil().max(1.0) * step), paper, false)
    }

    /// Where a value is; at the nearest end, if outside.
    pub(super) fn at(&self, x: f64) -> f64 {
        let (low, high) = self.data;
        let x = x.clamp(low, high);
        let share = if self.is_log {
            libm::log(x / low) / libm::log(high / low)
        } else {
            (x - low) / (high - low)
        };
        self.paper.0 + share * (self.paper.1 - self.paper.0)
    }

    /// Values for ticks, about `count` of them.
    pub(super) fn ticks(&self, count: f64) -> Vec<f64> {
        let (low, high) = self.data;
        if !self.is_log {
            let step = nice_step((high - low) / count);
            let first = (low / step).ceil();
            let ticks = (0..100_u8).map(|n| (first + f64::from(n)) * step);
            return ticks.take_while(|tick| *tick <= high + step * 1e-6).collect();
        }
        let decades = libm::log10(high / low);
        let steps: &[f64] = if decades < 3.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let from = libm::floor(libm::log10(low));
        let all = (0..40_u8).flat_map(|n| {
            let power = libm::pow(10.0, from + f64::from(n));
            steps.iter().map(move |step| step * power)
        });
        all.filter(|tick| (low..=high).contains(tick)).collect()
    }
}

/// The next of 1, 2, 5, 10, … that is at least `rough`.
fn nice_step(rough: f64) -> f64 {
    let power = libm::pow(10.0, libm::floor(libm::log10(rough)));
    let factor = [1.0, 2.0, 5.0].into_iter().find(|f| f * power >= rough * 0.999_999);
    factor.unwrap_or(10.0) * power
}

/// A tick's label: short, thousands as k, millions as M.
pub(super) fn label(x: f64) -> String {
    let (x, unit) = match x.abs() {
        large if large >= 1e6 => (x / 1e6, "M"),
        large if large >= 1e4 => (x / 1e3, "k"),
        _ => (x, ""),
    };
    let digits = match (unit, x.abs()) {
        ("", _) => 6,
        (_, 100.0..) => 0,
        _ => 1,
    };
    let text = format!("{x:.digits$}");
    let text =
        if digits > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { text.as_str() };
    format!("{}{unit}", if text == "-0" { "0" } else { text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let axis = Axis::values(Kind::Linear, (3.0, 47.0), (100.0, 0.0));
        assert_eq!(axis.ticks(5.0), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]);
        let axis = Axis::values(Kind::Logarithmic, (3.0, 470.0), (100.0, 0.0));
        assert_eq!(axis.ticks(5.0), [5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0]);
        assert!((axis.at(37.55) - 50.0).abs() < 0.1, "{}", axis.at(37.55));
        assert_eq!(Axis::new((0.3, 0.9), (0.0, 1.0), false).ticks(6.0).len(), 7);
    }

    #[test]
    fn labels_are_short() {
        for (x, text) in [
            (0.0, "0"),
            (0.25, "0.25"),
            (9000.0, "9000"),
            (20_000.0, "20k"),
            (2.5e6, "2.5M"),
            (262_144.0, "262k"),
        ] {
            assert_eq!(label(x), text);
        }
    }
}
