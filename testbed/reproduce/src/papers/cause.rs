//! The likely cause of a claim that does not hold: the factor that brings ours nearest to what is said.

use dormouse_estimate::{Said, Verdict};

use super::claim::Over;
use super::claims::{Judged, said};
use super::paper::Paper;
use super::readings::Reading;

/// The part of the distance to what is said that has to go for a factor to be named as a cause.
const ENOUGH: f64 = 0.1;

/// The cause of a claim that does not hold, as far as changing one factor at a time shows it.
#[derive(Clone, Debug, PartialEq)]
pub enum Cause {
    /// One factor brings ours nearer to what is said than every other.
    Factor {
        /// Name of the factor.
        name: String,
        /// Change that the factor makes, in words.
        about: String,
        /// Our figure without it, of the same runs.
        before: f64,
        /// Our figure with it.
        after: f64,
        /// Verdict on the claim with it.
        verdict: Verdict,
    },
    /// Factors were tried and none brings ours nearer.
    Unexplained(Vec<String>),
    /// Our mean is as is said without any factor, and its interval is too wide to show it.
    TooWide,
    /// No factor was tried on this claim.
    NotTried,
}

impl Cause {
    /// The cause of a claim, among trials of one factor each, the first without any. `None` where the claim
    /// needs no cause: it holds, nobody can judge it, or the paper is silent.
    pub(super) fn find(paper: &Paper, judged: &Judged, trials: &[Reading]) -> Option<Self> {
        if !matches!(judged.verdict, Verdict::Fails | Verdict::Open) {
            return None;
        }
        let same = |reading: &Reading| {
            let same = |other: &&Judged| other.claim.says == judged.claim.says;
            reading.claims.iter().find(same).cloned()
        };
        let Some((without, tried)) = trials.split_first() else { return Some(Self::NotTried) };
        let Some(before) = same(without) else { return Some(Self::NotTried) };
        // A counterfactual shows what something costs, and explains nothing.
        let explains = |reading: &&Reading| !reading.factors.iter().any(|of| of.counterfactual);
        let concerns =
            |reading: &&Reading| reading.factors.iter().any(|of| paper.concerns(of, &judged.claim));
        let tried: Vec<(&Reading, Judged)> = tried
            .iter()
            .filter(explains)
            .filter(concerns)
            .filter_map(|reading| Some((reading, same(reading)?)))
            .collect();
        if distance(&before) <= 0.0 && !tried.is_empty() {
            return Some(Self::TooWide);
        }
        let enough = (1.0 - ENOUGH) * distance(&before);
        let nearest = tried
            .iter()
            .filter(|(_, after)| distance(after) < enough)
            .min_by(|(_, a), (_, b)| distance(a).total_cmp(&distance(b)));
        Some(match nearest {
            _ if tried.is_empty() => Self::NotTried,
            Some((reading, after)) => Self::Factor {
                name: reading.name(),
                about: reading.about(),
                before: before.ours.mean,
                after: after.ours.mean,
                // Trials draw no record anew: their intervals are too narrow for a verdict on such a claim.
                verdict: match judged.claim.resamples {
                    Some(_) => Verdict::Open,
                    None => after.verdict,
                },
            },
            None => Self::Unexplained(tried.iter().map(|(reading, _)| reading.name()).collect()),
        })
    }

    /// The cause in sentences, for a page.
    pub(super) fn sentences(&self, beside: &str) -> String {
        let text = match self {
            Self::Factor { name, about, before, after, verdict } => {
                let and = if *verdict == Verdict::Holds { ", and the claim holds" } else { "" };
                format!(
                    "Of all factors one brings it nearest, {name} ({about}): {before:.2} becomes {after:.2}{and}."
                )
            }
            Self::Unexplained(tried) => format!(
                "{} tried and brought it no nearer: it is unexplained.",
                if tried.len() == 1 {
                    "One factor was".to_owned()
                } else {
                    format!("{} factors were", tried.len())
                }
            ),
            Self::TooWide => {
                "Our mean is as is said; its interval is too wide to show it.".to_owned()
            }
            Self::NotTried if beside.is_empty() => "No factor was tried.".to_owned(),
            Self::NotTried => String::new(),
        };
        [&text, beside].into_iter().filter(|one| !one.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// The cause in words, with what was looked into beside the factors.
    pub(super) fn words(&self, beside: &str) -> String {
        let words = match self {
            Self::Factor { name, before, after, verdict, .. } => {
                let and = if *verdict == Verdict::Holds { ", and then it holds" } else { "" };
                format!("{name}: {before:.2} becomes {after:.2}{and}")
            }
            Self::Unexplained(tried) => {
                format!("unexplained: {} tried and no nearer ({})", tried.len(), tried.join(", "))
            }
            Self::TooWide => "our mean is as is said, its interval too wide to show it".to_owned(),
            Self::NotTried if beside.is_empty() => "no factor was tried".to_owned(),
            Self::NotTried => return beside.to_owned(),
        };
        if beside.is_empty() { words } else { format!("{words}; {beside}") }
    }
}

/// Distance of ours from what is said, in the claim's unit: of our mean from a figure, whatever its
/// tolerance, so that of two within it the nearer one is nearer; of the end of our interval that is not
/// beyond it from a bound. For a claim about every cell it is the number of cells where our mean is not
/// as it says.
fn distance(judged: &Judged) -> f64 {
    let ours = judged.ours.mean;
    if judged.claim.over == Over::Each {
        #[expect(clippy::cast_precision_loss, reason = "a count of cells")]
        let all = judged.ours.n as f64;
        return all - ours;
    }
    match said(&judged.claim) {
        Said::Nothing => 0.0,
        Said::Within { low, high } if low.is_finite() => (ours - f64::midpoint(low, high)).abs(),
        Said::Within { high, .. } => (ours - high).max(0.0),
        Said::Order { above, below } => {
            let short =
                |bound: Option<f64>, by: f64| bound.map_or(0.0, |x| ((x - ours) * by).max(0.0));
            // An open claim is on the claimed side already: further in is nearer to holding.
            let straddles = judged.ours.ci95.map_or(0.0, |(low, high)| {
                let out = above.map_or(0.0, |x| (x - low).max(0.0));
                out.max(below.map_or(0.0, |x| (high - x).max(0.0)))
            });
            short(above, 1.0).max(short(below, -1.0)).max(straddles)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::claim::Claim;
    use super::super::explained::Explained;
    use super::super::factor::Factor;
    use super::*;
    use dormouse_estimate::Estimate;

    fn judged(verdict: Verdict, mean: f64) -> Judged {
        let claim = "says = \"s\"\ncase = \"\"\nname = \"\"\nmetric = \"x\"\nmeasure = \"value\"\nof = \"a\"\n\
                     over = \"mean\"\nfigure = [10.0]\nrelative = 0.1";
        let claim: Claim = toml::from_str(claim).expect("it is right");
        let ours = Estimate { ci95: Some((mean - 0.1, mean + 0.1)), ..Estimate::exact(mean, 30) };
        Judged { claim, ours, verdict, how: String::new(), as_printed: None }
    }

    fn reading(name: Option<&str>, verdict: Verdict, mean: f64) -> Reading {
        let factor = |name: &str| -> Factor {
            let changes = if name == "elsewhere" { "y" } else { "x" };
            let metrics = format!("metrics = {{ {changes} = \"z\" }}");
            toml::from_str(&format!("name = \"{name}\"\nabout = \"other {name}\"\n{metrics}"))
                .expect("it is right")
        };
        Reading {
            factors: name.map(factor).into_iter().collect(),
            rows: Vec::new(),
            claims: vec![judged(verdict, mean)],
            within: (0, 0),
            explained: Explained::default(),
            is_whole: true,
        }
    }

    #[test]
    fn the_factor_that_brings_ours_nearest_is_the_cause() {
        let (paper, _) = super::super::named("opie").expect("it is there");
        let fails = judged(Verdict::Fails, 15.0);
        let trials = [
            reading(None, Verdict::Fails, 15.2),
            reading(Some("slow-boot"), Verdict::Fails, 12.0),
            reading(Some("events"), Verdict::Holds, 10.3),
            reading(Some("away"), Verdict::Fails, 25.0),
            // A factor of other figures says nothing of this claim, whatever its runs came to.
            reading(Some("elsewhere"), Verdict::Holds, 10.0),
        ];
        let cause = Cause::find(&paper, &fails, &trials).expect("it fails");
        assert_eq!(cause.words(""), "events: 15.20 becomes 10.30, and then it holds");
        let page = "Of all factors one brings it nearest, events (other events): 15.20 becomes 10.30, and the claim \
                    holds. The record is short.";
        assert_eq!(cause.sentences("The record is short."), page);
        let two = [trials[0].clone(), trials[3].clone(), trials[4].clone()];
        let none = Cause::find(&paper, &fails, &two).expect("it fails");
        assert_eq!(none.words(""), "unexplained: 1 tried and no nearer (away)");
        assert_eq!(Cause::find(&paper, &fails, &[]), Some(Cause::NotTried));
        assert_eq!(Cause::NotTried.words("the record is short"), "the record is short");
        assert_eq!(Cause::find(&paper, &judged(Verdict::Holds, 10.0), &trials), None);
    }
}
