//! Verdicts: what an estimate shows of a claim, by the one rule by which claims hold.

use crate::Estimate;

/// The rule, as reports say it: by it, no claim holds for having been looked at too little.
pub const RULE: &str = "A claim with a figure fails where our whole 95 % interval is further from the figure \
    than the claim's tolerance. Else it is open where our interval is wider than the tolerance to both sides; \
    where it is narrower, the claim holds if our mean is within the tolerance, and fails if not. A claim of \
    order, that something is more or less than a bound, holds where our whole interval is on the claimed side of \
    the bound in every cell that it is about, fails where all of it is on the other side, and is open where the \
    bound lies inside. Without an interval, such as that of a single seed, a claim is open. Where the paper says \
    nothing there is no verdict.";

/// Claim about a quantity, as a paper states it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Said {
    /// The quantity is said to be this figure.
    Figure {
        /// The figure that is claimed.
        figure: f64,
        /// Distance from the figure that is near enough, as a part of the figure.
        relative: f64,
    },
    /// The quantity is said to lie between these bounds, which are themselves excluded.
    Order {
        /// Value that the quantity is larger than.
        above: Option<f64>,
        /// Value that the quantity is smaller than.
        below: Option<f64>,
    },
    /// Nothing is said of the quantity.
    Nothing,
}

/// Outcome of the check of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Our estimate bears the claim out.
    Holds,
    /// Our estimate contradicts the claim.
    Fails,
    /// Our samples are too few to show either.
    Open,
    /// The paper is silent on the quantity: our estimate is for comparison.
    Silent,
}

impl Verdict {
    /// The verdict in a word; empty where the paper is silent.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "fails",
            Self::Open => "open",
            Self::Silent => "",
        }
    }
}

impl Estimate {
    /// Verdict on what is said, and its reason in words; `more` is what narrows the interval, such
    /// as `more seeds`.
    #[must_use]
    pub fn shows(&self, said: Said, more: &str) -> (Verdict, String) {
        let (figure, relative) = match said {
            Said::Nothing => return (Verdict::Silent, String::new()),
            Said::Order { above, below } => return self.shows_order(above, below, more),
            Said::Figure { figure, relative } => (figure, relative),
        };
        let Some((low, high)) = self.ci95 else { return self.without_interval(more) };
        let tolerance = relative * figure.abs();
        let (verdict, why) = match () {
            () if low > figure + tolerance || high < figure - tolerance => {
                (Verdict::Fails, "our whole interval is beyond the tolerance".to_owned())
            }
            () if high - low > 2.0 * tolerance => {
                (Verdict::Open, format!("our interval is wider than the tolerance: {more}"))
            }
            () if (self.mean - figure).abs() <= tolerance => {
                (Verdict::Holds, "within the tolerance".to_owned())
            }
            () => (Verdict::Fails, "beyond the tolerance".to_owned()),
        };
        let off = self.relative_to(figure).unwrap_or(f64::INFINITY) * 100.0;
        let most = relative * 100.0;
        (verdict, format!("{why}; ours is {off:+.1} % off, of {most:.0} % at most"))
    }

    fn shows_order(&self, above: Option<f64>, below: Option<f64>, more: &str) -> (Verdict, String) {
        let Some((low, high)) = self.ci95 else { return self.without_interval(more) };
        let above = above.unwrap_or(f64::NEG_INFINITY);
        let below = below.unwrap_or(f64::INFINITY);
        if low > above && high < below {
            (Verdict::Holds, "our interval is beyond the bound".to_owned())
        } else if high <= above || low >= below {
            (Verdict::Fails, "no part of our interval is beyond the bound".to_owned())
        } else {
            (Verdict::Open, format!("our interval straddles the bound: {more}"))
        }
    }

    fn without_interval(&self, more: &str) -> (Verdict, String) {
        let why = match self.n {
            _ if self.is_saturated => "a load is saturated: no interval".to_owned(),
            1 => format!("no interval: {more}"),
            _ => "no interval".to_owned(),
        };
        (Verdict::Open, why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Verdict for an interval from `low` to `high` around its middle.
    fn shown(said: Said, low: f64, high: f64) -> (Verdict, String) {
        let mean = f64::midpoint(low, high);
        let ours = Estimate { ci95: Some((low, high)), ..Estimate::exact(mean, 30) };
        ours.shows(said, "more seeds")
    }

    fn figure(figure: f64, relative: f64) -> Said {
        Said::Figure { figure, relative }
    }

    #[test]
    fn a_figure_takes_an_interval_no_wider_than_its_tolerance() {
        // An estimate from 6 to 10 is near enough.
        for (low, high, verdict) in [
            (7.5, 8.5, Verdict::Holds),
            // As wide as the tolerance, and as far off as it.
            (6.0, 10.0, Verdict::Holds),
            (8.0, 12.0, Verdict::Holds),
            (10.0, 10.0, Verdict::Holds),
            // Wider, though ours is the very figure.
            (5.999, 10.001, Verdict::Open),
            (-92.0, 108.0, Verdict::Open),
            // Wide, and only its end comes near.
            (10.0, 99.0, Verdict::Open),
            (9.0, 12.0, Verdict::Fails),
            // Wide, but nowhere near.
            (10.001, 99.0, Verdict::Fails),
            (-99.0, 5.9, Verdict::Fails),
        ] {
            let (got, how) = shown(figure(8.0, 0.25), low, high);
            assert_eq!(got, verdict, "{low} to {high}: {how}");
            assert_eq!(how.contains("wider than the tolerance: more seeds"), got == Verdict::Open);
        }
        // There is no part of zero: only zero itself is near.
        assert_eq!(shown(figure(0.0, 0.15), -0.1, 0.1).0, Verdict::Open);
        assert_eq!(shown(figure(0.0, 0.15), 0.0, 0.0).0, Verdict::Holds);
        // Fifteen points are no tolerance: 1.92 % is not 10 %.
        assert_eq!(shown(figure(1.92, 0.15), 9.9, 10.1).0, Verdict::Fails);
        assert_eq!(shown(figure(-8.0, 0.25), -10.0, -6.0).0, Verdict::Holds);
        assert_eq!(shown(figure(-8.0, 0.25), 6.0, 10.0).0, Verdict::Fails);
    }

    #[test]
    fn an_order_takes_an_interval_on_one_side_of_its_bound() {
        let above = Said::Order { above: Some(0.0), below: None };
        let below = Said::Order { above: None, below: Some(0.0) };
        for (low, high, verdict) in [
            (0.1, 9.0, Verdict::Holds),
            (-0.1, 9.0, Verdict::Open),
            (-9.0, 0.1, Verdict::Open),
            (0.0, 9.0, Verdict::Open),
            (-9.0, 0.0, Verdict::Fails),
            // The same in all runs is not above.
            (0.0, 0.0, Verdict::Fails),
        ] {
            assert_eq!(shown(above, low, high).0, verdict, "{low} to {high}");
            assert_eq!(shown(below, -high, -low).0, verdict, "{low} to {high}");
        }
        assert!(shown(above, -1.0, 1.0).1.ends_with("more seeds"));
    }

    #[test]
    fn without_an_interval_nothing_is_shown() {
        let saturated = Estimate { is_saturated: true, ..Estimate::exact(8.0, 20) };
        for said in [figure(8.0, 0.25), Said::Order { above: Some(0.0), below: None }] {
            let (verdict, how) = Estimate::exact(8.0, 1).shows(said, "more seeds");
            assert_eq!((verdict, &*how), (Verdict::Open, "no interval: more seeds"));
            let (verdict, how) = saturated.shows(said, "more seeds");
            assert!(verdict == Verdict::Open && how.contains("saturated"), "{how}");
        }
        assert_eq!(saturated.shows(Said::Nothing, "").0, Verdict::Silent);
    }
}
