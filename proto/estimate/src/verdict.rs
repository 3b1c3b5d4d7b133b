//! Verdicts on claims: what an estimate shows, by one rule for all claims.

use crate::Estimate;

/// The rule by which a paper's claims are judged, in the words of reports. Under it a claim never holds because too few
/// samples were taken.
pub const RULE: &str = "A claim holds where our whole 95 % interval lies within its tolerance, or on the claimed \
    side of its bound; it fails where the whole interval lies outside, and is open where only a part of it does. A claim about \
    several cells holds where it holds in each of them, and fails where it fails in one. Without an interval, such as \
    that of a single seed, a claim is open. It is undecidable where what it takes to judge it is not to be had. Where \
    the paper says nothing there is no verdict.";

/// A paper's claim about a quantity, against which our estimate is judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Said {
    /// The quantity is between these values or equal to one of them: a figure with its tolerance.
    Within {
        /// Smallest value that agrees with the claim; minus infinity if there is no lower limit.
        low: f64,
        /// Largest value that agrees with the claim.
        high: f64,
    },
    /// The quantity is strictly between these bounds.
    Order {
        /// Lower bound, excluded; `None`: unbounded.
        above: Option<f64>,
        /// Upper bound, excluded; `None`: unbounded.
        below: Option<f64>,
    },
    /// The paper claims nothing.
    Nothing,
}

/// Verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Our estimate supports the claim.
    Holds,
    /// Our estimate contradicts the claim.
    Fails,
    /// Our samples are too few to support or contradict the claim.
    Open,
    /// The claim can't be judged, as the data for it is not available.
    Undecidable,
    /// The paper claims nothing; our estimate is for comparison only.
    Silent,
}

impl Verdict {
    /// The verdict in a word; empty if the paper claims nothing.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "fails",
            Self::Open => "open",
            Self::Undecidable => "undecidable",
            Self::Silent => "",
        }
    }
}

impl Estimate {
    /// Verdict on a claim with its reason in words; `more` names what would narrow the interval, such as `more seeds`.
    #[must_use]
    pub fn shows(&self, said: Said, more: &str) -> (Verdict, String) {
        match said {
            Said::Nothing => (Verdict::Silent, String::new()),
            Said::Order { above, below } => self.shows_order(above, below, more),
            Said::Within { low, high } => self.shows_within((low, high), more),
        }
    }

    fn shows_within(&self, (low, high): (f64, f64), more: &str) -> (Verdict, String) {
        let Some((least, most)) = self.ci95 else { return self.without_interval(more) };
        if low <= least && most <= high {
            (Verdict::Holds, "our whole interval is within the tolerance".to_owned())
        } else if least > high || most < low {
            (Verdict::Fails, "our whole interval is beyond the tolerance".to_owned())
        } else {
            (Verdict::Open, format!("a part of our interval is beyond the tolerance: {more}"))
        }
    }

    fn shows_order(&self, above: Option<f64>, below: Option<f64>, more: &str) -> (Verdict, String) {
        let Some((low, high)) = self.ci95 else { return self.without_interval(more) };
        let above = above.unwrap_or(f64::NEG_INFINITY);
        let below = below.unwrap_or(f64::INFINITY);
        if low > above && high < below {
            (Verdict::Holds, "our whole interval is beyond the bound".to_owned())
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
            _ if self.is_of_too_few() => format!("too few samples for an interval: {more}"),
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

    #[test]
    fn a_figure_takes_an_interval_within_its_tolerance() {
        // From 6 to 10 is near enough.
        let near = Said::Within { low: 6.0, high: 10.0 };
        for (low, high, verdict) in [
            (7.5, 8.5, Verdict::Holds),
            (6.0, 10.0, Verdict::Holds),
            (10.0, 10.0, Verdict::Holds),
            // The mean is near enough and an end is not.
            (8.0, 10.1, Verdict::Open),
            (5.9, 7.0, Verdict::Open),
            (-92.0, 108.0, Verdict::Open),
            // Only the end is near enough.
            (10.0, 99.0, Verdict::Open),
            (10.001, 99.0, Verdict::Fails),
            (-99.0, 5.9, Verdict::Fails),
        ] {
            let (got, how) = shown(near, low, high);
            assert_eq!(got, verdict, "{low} to {high}: {how}");
            assert_eq!(how.contains("more seeds"), got == Verdict::Open, "{how}");
        }
        // Any that is low enough: what is said is no more than a bound.
        let short = Said::Within { low: f64::NEG_INFINITY, high: 10.0 };
        assert_eq!(shown(short, -99.0, 9.0).0, Verdict::Holds);
        assert_eq!(shown(short, 9.0, 11.0).0, Verdict::Open);
        assert_eq!(shown(short, 11.0, 12.0).0, Verdict::Fails);
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
        for said in
            [Said::Within { low: 6.0, high: 10.0 }, Said::Order { above: Some(0.0), below: None }]
        {
            let (verdict, how) = Estimate::exact(8.0, 1).shows(said, "more seeds");
            assert_eq!((verdict, &*how), (Verdict::Open, "no interval: more seeds"));
            let (verdict, how) = saturated.shows(said, "more seeds");
            assert!(verdict == Verdict::Open && how.contains("saturated"), "{how}");
        }
        assert_eq!(saturated.shows(Said::Nothing, "").0, Verdict::Silent);
    }
}
