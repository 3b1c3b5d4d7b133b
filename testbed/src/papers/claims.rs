//! The one rule by which a claim of a paper holds.
//!
//! A claim with a figure holds where the paper's figure lies in our 95 % interval, or ours lies within
//! the claim's relative tolerance of it. A claim of order holds where our interval is beyond its
//! bound on the claimed side; one about several cells, where that is so in each. Where there is no
//! interval to judge by, an order that ours has is open, and one that ours has not fails.

use super::paper::{Claim, Measure, Over, Paper};
use super::values::{Ours, Results, Values};
use dormouse_estimate::Estimate;

/// Cells that are named where a claim does not hold.
const NAMED: usize = 4;

/// A claim and what became of it.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The claim.
    pub claim: Claim,
    /// Ours; for [`Over::Each`], in how many cells it is as the claim says.
    pub ours: Ours,
    /// What became of it.
    pub verdict: Verdict,
    /// How that was judged, in words.
    pub how: String,
}

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Ours bears it out.
    Holds,
    /// Ours does not.
    Fails,
    /// Ours is as it says, without an interval to show it.
    Open,
    /// The paper is silent on it: ours is for comparison.
    Silent,
}

impl Verdict {
    /// In words.
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

/// Every claim of a paper that these results speak of.
pub(super) fn judge_all(paper: &Paper, results: &Results) -> Vec<Judged> {
    paper.claims().into_iter().filter_map(|claim| judge(claim, paper, results)).collect()
}

/// `None` where a cell that it speaks of is not there.
fn judge(claim: Claim, paper: &Paper, results: &Results) -> Option<Judged> {
    let of = paper.expand(&claim.of);
    let than: Vec<String> = claim.than.iter().flat_map(|pattern| paper.expand(pattern)).collect();
    if claim.measure == Measure::BreakEven {
        let ours = break_even(&claim, &of, &than, results)?;
        let (verdict, mut how) = judge_one(&claim, ours);
        if claim.costs.last().is_some_and(|most| ours.estimate.mean >= *most) {
            how += "; lower at the highest cost that was tried";
        }
        return Some(Judged { claim, ours, verdict, how });
    }
    let mut all = Vec::new();
    for (n, case) in of.iter().enumerate() {
        let mut values = results.values(case, &claim.metric)?;
        if claim.measure != Measure::Value {
            let other = than.get(n * than.len() / of.len())?;
            values = values.compared(&results.values(other, &claim.metric)?, claim.measure)?;
        }
        all.push(values);
    }
    if claim.over == Over::Each {
        let each: Option<Vec<Ours>> = all.iter().map(Values::ours).collect();
        return Some(judge_each(claim, &of, &each?));
    }
    let ours = match claim.over {
        Over::Pooled => Values::pooled(all).ours()?,
        Over::Most | Over::Least => {
            let each: Option<Vec<Ours>> = all.iter().map(Values::ours).collect();
            let sign = if claim.over == Over::Most { 1.0 } else { -1.0 };
            let size = |ours: &Ours| sign * ours.estimate.mean;
            each?.into_iter().max_by(|a, b| size(a).total_cmp(&size(b)))?
        }
        Over::Mean | Over::Each => Values::mean_of(&all)?.ours()?,
    };
    let (verdict, how) = judge_one(&claim, ours);
    Some(Judged { claim, ours, verdict, how })
}

fn judge_one(claim: &Claim, ours: Ours) -> (Verdict, String) {
    let why_none = if ours.saturated { "a load is saturated: no interval" } else { "no interval" };
    if let Some(&paper) = claim.figure.first() {
        let off = ours.estimate.relative_to(paper).unwrap_or(f64::INFINITY);
        let (part, within) = (claim.relative.unwrap_or(0.0) * 100.0, off * 100.0);
        let covered = match ours.estimate.ci95 {
            None => why_none,
            Some(_) if ours.estimate.covers(paper) => "the paper's lies in our interval",
            Some(_) => "the paper's lies outside our interval",
        };
        let near = off.abs() <= claim.relative.unwrap_or(0.0);
        let how = format!("{covered}; ours is {within:+.1} % off, of {part:.0} % at most");
        let holds = near || ours.estimate.covers(paper);
        return (if holds { Verdict::Holds } else { Verdict::Fails }, how);
    }
    if claim.silent {
        return (Verdict::Silent, String::new());
    }
    let verdict = order(claim, ours);
    let how = match (verdict, ours.estimate.ci95) {
        (_, None) => why_none.to_owned(),
        (Verdict::Holds, _) => "our interval is beyond the bound".to_owned(),
        _ => "our interval is not beyond the bound".to_owned(),
    };
    (verdict, how)
}

fn order(claim: &Claim, ours: Ours) -> Verdict {
    let Estimate { mean, ci95, .. } = ours.estimate;
    let beyond = |x: f64| {
        claim.above.is_none_or(|bound| x > bound) && claim.below.is_none_or(|bound| x < bound)
    };
    match ci95 {
        Some((low, high)) if beyond(low) && beyond(high) => Verdict::Holds,
        None if beyond(mean) => Verdict::Open,
        _ => Verdict::Fails,
    }
}

fn judge_each(claim: Claim, of: &[String], each: &[Ours]) -> Judged {
    let by_sign = |ours: &Ours| {
        let mean = ours.estimate.mean;
        claim.above.is_none_or(|bound| mean > bound) && claim.below.is_none_or(|b| mean < b)
    };
    let verdicts: Vec<Verdict> = each.iter().map(|ours| order(&claim, *ours)).collect();
    let count = |wanted: Verdict| verdicts.iter().filter(|v| **v == wanted).count();
    let named = |wanted: Verdict, words: &str| {
        let cells = of.iter().zip(each).zip(&verdicts).filter(|(_, verdict)| **verdict == wanted);
        let mut named: Vec<String> = cells.map(|((case, ours), _)| figure(case, ours)).collect();
        let more = named.len().saturating_sub(NAMED);
        named.truncate(NAMED);
        if more > 0 {
            named.push(format!("{more} more"));
        }
        if named.is_empty() { String::new() } else { format!("; {words}: {}", named.join(", ")) }
    };
    let how = format!(
        "in {} of {} by its interval{}{}",
        count(Verdict::Holds),
        each.len(),
        named(Verdict::Fails, "not in"),
        named(Verdict::Open, "without an interval")
    );
    let verdict = match () {
        () if claim.silent => Verdict::Silent,
        () if count(Verdict::Fails) > 0 => Verdict::Fails,
        () if count(Verdict::Open) > 0 => Verdict::Open,
        () => Verdict::Holds,
    };
    #[expect(clippy::cast_precision_loss, reason = "a count of cells")]
    let as_said = each.iter().filter(|ours| by_sign(ours)).count() as f64;
    let ours = Ours { estimate: Estimate::exact(as_said, each.len()), saturated: false };
    Judged { claim, ours, verdict, how }
}

fn figure(case: &str, ours: &Ours) -> String {
    let Estimate { mean, ci95, .. } = ours.estimate;
    let interval = ci95.map_or(String::new(), |(low, high)| format!(" [{low:.2}, {high:.2}]"));
    format!("{case} {mean:.2}{interval}")
}

/// The cost at which `of` is no longer lower than `than`, by straight lines between the costs; the
/// largest cost where it is lower at all of them. `of` has the cells of each cost after those of the
/// one before, as many as `than`. It has no interval.
fn break_even(claim: &Claim, of: &[String], than: &[String], results: &Results) -> Option<Ours> {
    let mean = |case: &str| Some(results.ours(case, &claim.metric)?.estimate.mean);
    let mut each = Vec::new();
    for (n, other) in than.iter().enumerate() {
        let (bar, mut last, mut found) = (mean(other)?, None::<(f64, f64)>, None);
        for (k, cost) in claim.costs.iter().enumerate() {
            let over = mean(of.get(k * than.len() + n)?)? - bar;
            if over >= 0.0 && found.is_none() {
                found = Some(last.map_or(*cost, |(c, o)| c + (cost - c) * -o / (over - o)));
            }
            last = Some((*cost, over));
        }
        each.push(found.or_else(|| last.map(|(cost, _)| cost))?);
    }
    let pick = if claim.over == Over::Most { f64::max } else { f64::min };
    let count = each.len();
    let cost = each.into_iter().reduce(pick)?;
    Some(Ours { estimate: Estimate::exact(cost, count), saturated: false })
}

#[cfg(test)]
mod tests {
    use super::super::values::tests::of_runs;
    use super::*;

    /// What becomes of a claim on the figure `x` of these cells.
    fn judged(claim: &str, cells: &[(&str, &[f64])]) -> Judged {
        let data = format!(
            "name = \"p\"\ntitle = \"\"\nsource = \"\"\nabout = []\nsamples = \"\"\npart = []\n\
             [[claim]]\nsays = \"\"\ncase = \"\"\nname = \"\"\nmetric = \"x\"\n{claim}"
        );
        let paper = Paper::read(&data).expect("it is right");
        judge_all(&paper, &of_runs("x", cells)).pop().expect("its cells are there")
    }

    const BELOW: &str = "measure = \"percent-below\"\nof = \"a\"\nthan = \"b\"\n";

    #[test]
    fn a_figure_holds_in_our_interval_or_within_its_tolerance() {
        let wide: [(&str, &[f64]); 2] = [("a", &[1.0, 3.0]), ("b", &[4.0, 4.0])];
        let narrow: [(&str, &[f64]); 2] = [("a", &[2.0, 2.01]), ("b", &[4.0, 4.0])];
        let claim = |figure: f64| {
            format!("{BELOW}over = \"mean\"\nfigure = [{figure:?}]\nrelative = 0.1\n")
        };
        for (cells, figure, verdict) in [
            (&wide, 50.0, Verdict::Holds),
            (&wide, 90.0, Verdict::Holds),
            (&narrow, 54.0, Verdict::Holds),
            (&narrow, 90.0, Verdict::Fails),
            (&narrow, -50.0, Verdict::Fails),
        ] {
            let got = judged(&claim(figure), cells);
            assert_eq!(got.verdict, verdict, "{figure}: {}", got.how);
        }
        // Fifteen points are no tolerance: 1.92 % is not 10 %.
        let cells: [(&str, &[f64]); 2] = [("a", &[3.6, 3.61]), ("b", &[4.0, 4.0])];
        assert_eq!(judged(&claim(1.92), &cells).verdict, Verdict::Fails);
    }

    #[test]
    fn an_order_takes_an_interval_beyond_its_bound() {
        let order = format!("{BELOW}over = \"mean\"\nabove = 0\n");
        for (a, verdict) in [
            (&[2.0, 2.1, 1.9][..], Verdict::Holds),
            (&[2.0, 7.0, 1.9], Verdict::Fails),
            (&[5.0, 5.1, 4.9], Verdict::Fails),
        ] {
            assert_eq!(judged(&order, &[("a", a), ("b", &[4.0; 3])]).verdict, verdict, "{a:?}");
        }
        // A single run shows nothing.
        let one = |a: f64| judged(&order, &[("a", &[a]), ("b", &[4.0])]).verdict;
        assert_eq!((one(2.0), one(5.0)), (Verdict::Open, Verdict::Fails));
        let silent = judged(&format!("{order}silent = true\n"), &[("a", &[2.0]), ("b", &[4.0])]);
        assert_eq!(silent.verdict, Verdict::Silent);
    }

    #[test]
    fn what_is_said_of_every_cell_fails_by_one() {
        let claim = "measure = \"less\"\nof = \"{a,b,c,d}\"\nthan = \"{e,f}\"\nover = \"each\"\nabove = 0\n";
        let low: &[f64] = &[1.0, 1.1];
        let cells = |d: &'static [f64]| {
            let high: &[f64] = &[4.0, 4.0];
            judged(claim, &[("a", low), ("b", low), ("c", low), ("d", d), ("e", high), ("f", high)])
        };
        let all = cells(&[1.0, 1.1]);
        assert_eq!((all.verdict, all.ours.estimate.n), (Verdict::Holds, 4));
        let but_one = cells(&[3.0, 4.9]);
        assert_eq!(but_one.verdict, Verdict::Fails);
        assert!((but_one.ours.estimate.mean - 4.0).abs() < 1e-9, "by its sign it is");
        assert!(but_one.how.starts_with("in 3 of 4") && but_one.how.contains("not in: d"));
    }

    #[test]
    fn a_break_even_is_between_two_costs_or_at_the_last() {
        let claim = "measure = \"break-even\"\nof = \"{a,b,c}\"\nthan = \"k\"\nover = \"least\"\n\
                     costs = [10.0, 20.0, 40.0]\nfigure = [30.0]\nrelative = 0.1\n";
        let at = |c: f64| {
            let cells: [(&str, &[f64]); 4] =
                [("a", &[1.0]), ("b", &[2.0]), ("c", &[c]), ("k", &[3.0])];
            judged(claim, &cells)
        };
        assert!((at(4.0).ours.estimate.mean - 30.0).abs() < 1e-9);
        assert_eq!(at(4.0).verdict, Verdict::Holds);
        let never = at(2.5);
        assert!((never.ours.estimate.mean - 40.0).abs() < 1e-9);
        assert!(never.how.contains("highest cost"), "{}", never.how);
    }
}
