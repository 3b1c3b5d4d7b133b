//! Verdicts on the claims of a paper, by one rule ([`dormouse_estimate::RULE`]).

use std::cmp::Ordering;

use dormouse_estimate::{Estimate, Extreme, Said, Series, Verdict, extreme, jackknife};

use super::as_printed::{AsPrinted, PairedSamples, as_printed};
use super::break_even::break_even;
use super::claim::{CellCombination, ClaimMeasure, PaperClaim};
use super::former::FormerJudging;
use super::host_load::refusal;
use super::paper::{FigureTolerance, PaperEvaluation};
use super::results::CellResults;

/// Number of cells that are named if a claim does not hold.
const NAMED: usize = 4;

/// A claim with its verdict.
#[derive(Clone, Debug)]
pub struct JudgedClaim {
    /// The claim that was judged.
    pub claim: PaperClaim,
    /// Our estimate; for [`CellCombination::Each`], the number of cells that agree.
    pub ours: Estimate,
    /// The verdict on the claim.
    pub verdict: Verdict,
    /// How the verdict was found, in words.
    pub how: String,
    /// The printed figure beside the range of means of as many of our runs as the paper averaged; `None` if the paper does not tell
    /// its number of runs, or the claim has no figure.
    pub as_printed: Option<AsPrinted>,
    /// Results of other readings of the claim's words.
    pub readings: Vec<JudgedReading>,
    /// For a claim that is judged for each of several cells, or sets of cells: the name of each, and our estimate there.
    pub each: Vec<(String, Estimate)>,
    /// The verdict by the earlier rule for verdicts; `None` if the earlier rule makes no difference for the claim.
    pub former: Option<FormerJudging>,
    /// Samples behind our estimate, by seed; for a claim about every cell, one series for each cell.
    pub(super) series: Vec<Series>,
}

/// Another reading of a claim with its result.
#[derive(Clone, Debug)]
pub struct JudgedReading {
    /// The reading in words.
    pub name: String,
    /// Our estimate of the claim's figure under this reading of the claim's words.
    pub ours: Estimate,
    /// Verdict on the claim under this reading; it is not a verdict on the paper.
    pub verdict: Verdict,
}

/// Judges all claims of a paper for which these results have cells.
pub(super) fn judge_all(paper: &PaperEvaluation, results: &CellResults) -> Vec<JudgedClaim> {
    paper
        .claims()
        .into_iter()
        .filter_map(|claim| judge_all_readings(claim, paper, results))
        .collect()
}

/// Judges a claim with all of its readings.
fn judge_all_readings(
    claim: PaperClaim,
    paper: &PaperEvaluation,
    results: &CellResults,
) -> Option<JudgedClaim> {
    // A silent claim has no verdict to refuse.
    let refused = if claim.silent { None } else { refusal(&claim, paper, results) };
    let undecidable = claim.undecidable.clone().or(refused);
    let claim = PaperClaim { undecidable, ..claim };
    let read = claim.readings.iter().filter_map(|reading| {
        let JudgedClaim { ours, verdict, .. } = judge_claim(claim.under(reading), paper, results)?;
        Some(JudgedReading { name: reading.name.clone(), ours, verdict })
    });
    let readings = read.collect();
    let judged = judge_claim(claim, paper, results)?;
    let former = FormerJudging::new(&judged.claim, judged.verdict, paper, results);
    Some(JudgedClaim { readings, former, ..judged })
}

/// Judges a claim separately for the cells of each word in `groups`, and counts the words for which it holds.
fn judge_groups(
    claim: PaperClaim,
    paper: &PaperEvaluation,
    results: &CellResults,
) -> Option<JudgedClaim> {
    let of_group = |word: &String| judge_claim(claim.of_group(word), paper, results);
    let all = claim.groups.iter().map(of_group).collect::<Option<Vec<_>>>()?;
    let each: Vec<Estimate> = all.iter().map(|judged| judged.ours).collect();
    let series = all.into_iter().flat_map(|judged| judged.series).collect();
    let names = claim.groups.clone();
    Some(judge_each(claim, &names, (&each, series), paper))
}

/// Judges a claim; `None` if a cell of it is missing.
pub(super) fn judge_claim(
    claim: PaperClaim,
    paper: &PaperEvaluation,
    results: &CellResults,
) -> Option<JudgedClaim> {
    if !claim.groups.is_empty() {
        return judge_groups(claim, paper, results);
    }
    let of = paper.expand(&claim.of);
    let than: Vec<String> = claim.than.iter().flat_map(|pattern| paper.expand(pattern)).collect();
    let (mut all, mut beside) = (Vec::new(), "");
    if claim.measure != ClaimMeasure::BreakEven {
        for (n, case) in of.iter().enumerate() {
            let other = than.get(n * than.len() / of.len());
            all.push(measured_series(&claim, results, case, other)?);
        }
    }
    let (ours, series) = match claim.over {
        _ if claim.measure == ClaimMeasure::BreakEven => {
            let (ours, series) = break_even_of(&claim, &of, &than, results)?;
            if claim.costs.last().is_some_and(|most| ours.mean >= *most) {
                beside = "; lower at the highest cost that was tried";
            }
            (ours, series)
        }
        CellCombination::Each => {
            let of_cell = |(n, series): (usize, &Series)| {
                let than = than.get(n * than.len() / of.len());
                of_means(&claim, results, &[(&of[n], than)]).or_else(|| series.estimate())
            };
            let each: Option<Vec<_>> = all.iter().enumerate().map(of_cell).collect();
            return each.map(|each| judge_each(claim, &of, (&each, all), paper));
        }
        CellCombination::Pooled => {
            let pooled = Series::pooled(&all);
            (pooled.estimate()?, pooled)
        }
        CellCombination::Most => (extreme(&all, Extreme::Largest)?, cell_at(&all, f64::total_cmp)?),
        CellCombination::Least => {
            (extreme(&all, Extreme::Smallest)?, cell_at(&all, |a, b| b.total_cmp(a))?)
        }
        CellCombination::Mean => {
            let pairs: Vec<_> = of
                .iter()
                .enumerate()
                .map(|(n, of_n)| (of_n, than.get(n * than.len() / of.len())))
                .collect();
            let series = Series::mean_of(&all)?;
            let by_means = of_means(&claim, results, &pairs);
            (by_means.or_else(|| series.estimate())?, series)
        }
    };
    let (verdict, how) = verdict_shown(&claim, &ours, paper);
    let as_printed = as_few_runs(&claim, paper, results);
    Some(JudgedClaim {
        claim,
        ours,
        verdict,
        how: how + beside,
        as_printed,
        readings: Vec::new(),
        former: None,
        each: Vec::new(),
        series: vec![series],
    })
}

/// Samples of the cell whose mean comes last in the order `order`; `None` without cells.
fn cell_at(all: &[Series], order: impl Fn(&f64, &f64) -> Ordering) -> Option<Series> {
    let mean = |series: &Series| series.estimate().map_or(f64::NAN, |ours| ours.mean);
    all.iter().max_by(|a, b| order(&mean(a), &mean(b))).cloned()
}

/// The printed figure beside the range of means of as many of our runs as the paper averaged; `None` if the paper does not tell its
/// number of runs, or the claim has no figure.
fn as_few_runs(
    claim: &PaperClaim,
    paper: &PaperEvaluation,
    results: &CellResults,
) -> Option<AsPrinted> {
    let runs = claim.runs.or(paper.runs)?;
    let printed = *claim.figure.first()?;
    let of = paper.expand(&claim.of);
    let than: Vec<String> = claim.than.iter().flat_map(|pattern| paper.expand(pattern)).collect();
    let cells = of.iter().enumerate().map(|(n, case)| {
        let series = results.series(case, &claim.metric)?;
        if series.are_batches || series.whole.is_some() {
            return None;
        }
        match than.get(n * than.len() / of.len()) {
            None => Some(PairedSamples::alone(&series.each)),
            Some(than) => {
                Some(PairedSamples::new(&series.each, &results.series(than, &claim.metric)?.each))
            }
        }
    });
    let cells: Vec<PairedSamples> = cells.collect::<Option<_>>()?;
    let last_digit = paper.last_digit(&claim.metric).min(0.01);
    as_printed(&cells, (claim.measure, claim.over), (printed, last_digit), (runs, &claim.says))
}

/// The claim's measure of a cell, sample by sample; if the claim has resamples, the samples are spread by as much as
/// the resamples. `None` if a cell has no such figure, or no resample was made.
fn measured_series(
    claim: &PaperClaim,
    results: &CellResults,
    case: &str,
    other: Option<&String>,
) -> Option<Series> {
    let each = |of: &Series, than: &Series, measure: ClaimMeasure| {
        of.compared(than, |pair| measure.value(pair))
    };
    let compare: fn(&Series, &Series, ClaimMeasure) -> Option<Series> =
        if claim.ratios_by_seed { each } else { compared };
    let series = measured_once(claim, results, (case, other), compare)?;
    let Some([word, instead]) = &claim.resamples else { return Some(series) };
    let [word, instead] = [word, instead].map(|word| format!("/{word}/"));
    let named = |case: &str| case.replace(&word, &instead);
    let other = other.map(|other| named(other));
    let resamples = measured_once(claim, results, (&named(case), other.as_ref()), each);
    match resamples {
        Some(resamples) => Some(series.with_resamples(&resamples)),
        // A tried reading has no resamples: its cells have no other record. If the part with the
        // resamples was not asked for, the claim can't be judged.
        None => results.is_trial().then_some(series),
    }
}

/// The claim's measure of a cell, sample by sample, without resamples; `compare` compares two
/// cells.
fn measured_once(
    claim: &PaperClaim,
    results: &CellResults,
    (case, other): (&str, Option<&String>),
    compare: impl Fn(&Series, &Series, ClaimMeasure) -> Option<Series>,
) -> Option<Series> {
    let series = results.series(case, &claim.metric)?;
    match claim.measure {
        ClaimMeasure::Value => Some(series),
        ClaimMeasure::Worst => {
            let worst = series.each.iter().flatten().copied().reduce(f64::min)?;
            Some(Series { each: vec![Some(worst); series.each.len()], is_share: false, ..series })
        }
        ClaimMeasure::Slope => {
            let per = results.series(case, claim.per.as_ref()?)?;
            slope_series(&series, &per, &results.series(other?, &claim.metric)?)
        }
        measure => {
            let other = results.series(other?, &claim.metric)?;
            compare(&series, &other, measure)
        }
    }
}

/// The measure `measure` of the samples of one cell compared with another, pair by pair; a ratio over several runs is that of the
/// cells' means.
pub(super) fn compared(of: &Series, than: &Series, measure: ClaimMeasure) -> Option<Series> {
    if measure.is_ratio() {
        of.compared_by_means(than, |pair| measure.value(pair))
    } else {
        of.compared(than, |pair| measure.value(pair))
    }
}

/// Ratios of the means of cells over all seeds, combined as the claim says, with the interval of a paired bootstrap over the seeds.
/// `None` if the claim is not about a ratio, if the samples are not runs, or if the claim's interval covers resamples as well.
fn of_means(
    claim: &PaperClaim,
    results: &CellResults,
    pairs: &[(&String, Option<&String>)],
) -> Option<Estimate> {
    if !claim.measure.is_ratio() || claim.resamples.is_some() || claim.ratios_by_seed {
        return None;
    }
    let mut series = Vec::new();
    for (of, than) in pairs {
        series.push(results.series(of, &claim.metric)?);
        series.push(results.series((*than)?, &claim.metric)?);
    }
    ratio_of_means(&series, (claim.measure, claim.over))
}

/// Ratios of the means of cells over all seeds, as in [`of_means`]; `series` has pairs of a measured series and the series that it
/// is compared with.
pub(super) fn ratio_of_means(
    series: &[Series],
    (measure, over): (ClaimMeasure, CellCombination),
) -> Option<Estimate> {
    let count = series.first()?.each.len();
    let are_runs =
        |one: &Series| !one.are_batches && one.whole.is_none() && one.each.len() == count;
    if !measure.is_ratio() || !series.iter().all(are_runs) {
        return None;
    }
    let at = |seed: usize| series.iter().map(|one| one.each[seed]).collect::<Option<Vec<f64>>>();
    let samples: Vec<Vec<f64>> = (0..count).filter_map(at).collect();
    Estimate::of_means(&samples, |means| {
        let each: Vec<f64> =
            means.chunks_exact(2).map(|pair| measure.value([pair[0], pair[1]])).collect();
        over.combine(&each)
    })
}

/// Slope of `y` over `x` in per cent of the mean of `whole`, with the jackknife's samples. `None`
/// if all runs have the same `x`.
fn slope_series(y: &Series, x: &Series, whole: &Series) -> Option<Series> {
    let of = |series: &Series| series.each.iter().copied().collect::<Option<Vec<f64>>>();
    let (x, y, whole) = (of(x)?, of(y)?, of(whole)?);
    if x.iter().all(|one| *one == x[0]) {
        return None;
    }
    let products = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).collect::<Vec<_>>();
    let (xy, xx) = (products(&x, &y), products(&x, &x));
    let each = jackknife([&xy, &x, &y, &xx, &whole], |[xy, x, y, xx, whole]| {
        100.0 * (xy - x * y) / (xx - x * x) / whole
    });
    let is_known = each.iter().all(|slope| slope.is_finite());
    is_known.then(|| Series::of_runs(each.into_iter().map(Some).collect()))
}

/// Verdict that an estimate gives for a claim, and the reason.
fn verdict_shown(
    claim: &PaperClaim,
    ours: &Estimate,
    paper: &PaperEvaluation,
) -> (Verdict, String) {
    if let Some(reason) = &claim.undecidable {
        return (Verdict::Undecidable, reason.clone());
    }
    let figure = claim.figure.first().filter(|_| !claim.silent && ours.ci95.is_some());
    let (verdict, how) = ours.shows(said(claim), &paper.more);
    let off = figure.zip(claim.tolerance()).and_then(|(figure, tolerance)| match tolerance {
        FigureTolerance::Points(most) => Some(off_in_words(ours.mean - figure, "", most)),
        FigureTolerance::Relative(most) | FigureTolerance::AtMost(most) => {
            Some(off_in_words(100.0 * ours.relative_to(*figure)?, " %", (100.0 * most).round()))
        }
    });
    (verdict, off.map_or_else(|| how.clone(), |off| format!("{how}; {off}")))
}

/// How far our mean is from the printed figure, and how far it may be.
fn off_in_words(off: f64, unit: &str, most: f64) -> String {
    let side = if off < 0.0 { "below" } else { "above" };
    format!(
        "our mean is {:.2}{unit} {side} the printed figure, where {most}{unit} is allowed",
        off.abs()
    )
}

/// The range or the bounds that our value must be in for the claim to hold.
pub(super) fn said(claim: &PaperClaim) -> Said {
    match claim.figure.first() {
        _ if claim.silent => Said::Nothing,
        Some(figure) => {
            let (low, high) =
                claim.tolerance().unwrap_or(FigureTolerance::Points(0.0)).band(*figure);
            Said::Within { low, high }
        }
        None => Said::Order { above: claim.above, below: claim.below },
    }
}

fn judge_each(
    claim: PaperClaim,
    of: &[String],
    (each, series): (&[Estimate], Vec<Series>),
    paper: &PaperEvaluation,
) -> JudgedClaim {
    let verdicts: Vec<Verdict> =
        each.iter().map(|ours| verdict_shown(&claim, ours, paper).0).collect();
    let count = |wanted: Verdict| verdicts.iter().filter(|v| **v == wanted).count();
    let named = |wanted: Verdict, words: &str| {
        let cells = of.iter().zip(each).zip(&verdicts).filter(|(_, verdict)| **verdict == wanted);
        let mut named: Vec<String> =
            cells.map(|((case, ours), _)| figure_in_words(case, ours)).collect();
        let more = named.len().saturating_sub(NAMED);
        named.truncate(NAMED);
        if more > 0 {
            named.push(format!("{more} more"));
        }
        if named.is_empty() { String::new() } else { format!("; {words}: {}", named.join(", ")) }
    };
    let by_mean = |ours: &&Estimate| match said(&claim) {
        Said::Within { low, high } => (low..=high).contains(&ours.mean),
        _ => claim.above.is_none_or(|x| ours.mean > x) && claim.below.is_none_or(|x| ours.mean < x),
    };
    let as_said = each.iter().filter(by_mean).count();
    let how = match &claim.undecidable {
        Some(reason) => reason.clone(),
        None if claim.silent => format!("in {as_said} of {} by our mean", each.len()),
        None => format!(
            "in {as_said} of {all} by our mean, in {} of {all} by our whole interval{}{}",
            count(Verdict::Holds),
            named(Verdict::Fails, "not in"),
            named(Verdict::Open, "open"),
            all = each.len(),
        ),
    };
    let verdict = match () {
        () if claim.undecidable.is_some() => Verdict::Undecidable,
        () if claim.silent => Verdict::Silent,
        () if count(Verdict::Fails) > 0 => Verdict::Fails,
        () if count(Verdict::Open) > 0 => Verdict::Open,
        () => Verdict::Holds,
    };
    #[expect(clippy::cast_precision_loss, reason = "a count of cells")]
    let ours = Estimate::exact(as_said as f64, each.len());
    let each = of.iter().cloned().zip(each.iter().copied()).collect();
    JudgedClaim {
        claim,
        ours,
        verdict,
        how,
        as_printed: None,
        readings: Vec::new(),
        former: None,
        each,
        series,
    }
}

fn figure_in_words(case: &str, ours: &Estimate) -> String {
    let interval = ours.ci95.map(|(low, high)| format!(" [{low:.2}, {high:.2}]"));
    format!("{case} {:.2}{}", ours.mean, interval.unwrap_or_default())
}

/// Cost from which `of` is no longer lower than `than`. For each cost in turn, `of` has as many cells as `than` has.
fn break_even_of(
    claim: &PaperClaim,
    of: &[String],
    than: &[String],
    results: &CellResults,
) -> Option<(Estimate, Series)> {
    let gain = |n: usize, k: usize| {
        measured_series(claim, results, of.get(k * than.len() + n)?, than.get(n))
    };
    let of_load = |n: usize| (0..claim.costs.len()).map(|k| gain(n, k)).collect();
    let gains: Vec<Vec<Series>> = (0..than.len()).map(of_load).collect::<Option<_>>()?;
    break_even(&gains, &claim.costs, claim.over)
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::of_runs;
    use super::*;

    fn paper(claim: &str) -> PaperEvaluation {
        let data = format!(
            "name = \"p\"\ntitle = \"\"\nsource = \"\"\nabout = []\nsamples = \"\"\nmore = \"more seeds\"\n\
             part = []\n[[claim]]\nsays = \"\"\ncase = \"\"\nname = \"\"\nmetric = \"x\"\n{claim}"
        );
        toml::from_str(&data).expect("it is right")
    }

    /// Judges the claim in the TOML text `claim`, which is about the figure `x`, by these samples of each cell.
    fn judged(claim: &str, cells: &[(&str, &[f64])]) -> JudgedClaim {
        judge_all(&paper(claim), &of_runs("x", cells)).pop().expect("its cells are there")
    }

    #[test]
    fn a_single_run_shows_nothing() {
        let below = "measure = \"percent-below\"\nof = \"a\"\nthan = \"b\"\nover = \"mean\"\n";
        for (rule, a) in [
            ("above = 0", 2.0),
            ("above = 0", 5.0),
            ("figure = [50.0]\nrelative = 0.1", 2.0),
            ("figure = [50.0]\nrelative = 0.1", 4.0),
        ] {
            let one = judged(&format!("{below}{rule}"), &[("a", &[a]), ("b", &[4.0])]);
            assert_eq!((one.verdict, &*one.how), (Verdict::Open, "no interval: more seeds"));
        }
        let silent = format!("{below}above = 0\nsilent = true");
        let silent = judged(&silent, &[("a", &[2.0]), ("b", &[4.0])]);
        assert_eq!(silent.verdict, Verdict::Silent);
        // Two are paired: what they have in common widens no interval.
        let cells: [(&str, &[f64]); 2] = [("a", &[2.0, 4.0]), ("b", &[4.0, 8.0])];
        let paired = judged(&format!("{below}figure = [50.0]\nrelative = 0.1"), &cells);
        assert_eq!(paired.verdict, Verdict::Holds, "{}", paired.how);
    }

    /// A percentage over several seeds compares the means: `a` is 5 % above `b` by the means, but would be 50 % by the
    /// mean of the seeds' own ratios.
    #[test]
    fn percentages_compare_means_over_seeds() {
        let claim = "measure = \"percent-above\"\nof = \"{a,c}\"\nthan = \"{b,d}\"\nover = \"mean\"\nabove = 0";
        let (a, b) = ([2.0, 19.0].repeat(20), [1.0, 19.0].repeat(20));
        let ours = judged(claim, &[("a", &a), ("b", &b), ("c", &a), ("d", &b)]);
        assert!((ours.ours.mean - 5.0).abs() < 1e-9, "{:?}", ours.ours);
        assert_eq!(ours.verdict, Verdict::Holds, "{}", ours.how);
    }

    /// A claim about every run fails if a single one of 30 runs disagrees, and is open for one run.
    #[test]
    fn what_is_said_of_every_run_fails_by_one() {
        let claim = "measure = \"worst\"\nof = \"a\"\nover = \"each\"\nabove = 0.99";
        let (met, mut but_one) = ([1.0; 30], [1.0; 30]);
        but_one[7] = 0.0;
        assert_eq!(judged(claim, &[("a", &met)]).verdict, Verdict::Holds);
        assert_eq!(judged(claim, &[("a", &but_one)]).verdict, Verdict::Fails);
        assert_eq!(judged(claim, &[("a", &met[..1])]).verdict, Verdict::Open);
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
        assert_eq!((all.verdict, all.ours.n), (Verdict::Holds, 4));
        let open = cells(&[3.0, 4.9]);
        assert_eq!(open.verdict, Verdict::Open);
        assert!((open.ours.mean - 4.0).abs() < 1e-9, "by its mean it is");
        let how = "in 4 of 4 by our mean, in 3 of 4 by our whole interval; open: d";
        assert!(open.how.starts_with(how), "{}", open.how);
        let but_one = cells(&[4.8, 4.9]);
        assert_eq!(but_one.verdict, Verdict::Fails);
        assert!(but_one.how.contains("not in: d -0.85 ["), "{}", but_one.how);
    }

    /// Runs exactly on the line 100 + 3 x have a slope of 3 % of 100, with an interval of no width; runs beside the
    /// line have a wide interval around 3.
    #[test]
    fn a_slope_is_that_of_the_line_through_the_runs() {
        let x = [0.0, 1.0, 2.0, 5.0, 9.0];
        let of = |beside: [f64; 5]| {
            let y: Vec<_> =
                x.iter().zip(beside).map(|(x, beside)| Some(100.0 + 3.0 * x + beside)).collect();
            let runs = |each| Series::of_runs(each);
            let whole = runs(vec![Some(100.0); 5]);
            slope_series(&runs(y), &runs(x.map(Some).to_vec()), &whole)
        };
        let exact = of([0.0; 5]).and_then(|s| s.estimate()).expect("they differ");
        let (low, high) = exact.ci95.expect("five runs");
        assert!((exact.mean - 3.0).abs() < 1e-9 && high - low < 1e-9, "{exact:?}");
        let rough =
            of([3.0, -2.0, 1.0, -4.0, 2.0]).and_then(|s| s.estimate()).expect("they differ");
        let (low, high) = rough.ci95.expect("five runs");
        assert!(low < 3.0 && 3.0 < high && high - low > 0.5, "{rough:?}");
        let runs = Series::of_runs(vec![Some(0.1); 30]);
        assert_eq!(slope_series(&runs, &runs, &runs), None);
    }

    /// The samples of cell `a` are all 6; those of `b` have mean 5, but vary much, so that the larger of the means has
    /// a wide interval.
    #[test]
    fn the_most_of_several_cells_is_as_uncertain_as_the_cell_that_could_be_it() {
        let claim =
            "measure = \"value\"\nof = \"{a,b}\"\nover = \"most\"\nfigure = [5.0]\nrelative = 0.5";
        let ours = judged(claim, &[("a", &[6.0, 6.0, 6.0]), ("b", &[2.0, 9.0, 4.0])]);
        let (low, high) = ours.ours.ci95.expect("three runs");
        assert!((low - 6.0).abs() < 1e-9 && high > 12.0, "{:?}", ours.ours);
        assert_eq!(ours.verdict, Verdict::Open);
    }

    #[test]
    fn a_claim_that_nobody_can_judge_says_why() {
        let reason = "undecidable = \"the record is not to be had\"\n";
        for over in ["mean\"\nfigure = [1.0]\nrelative = 0.1", "each\"\nabove = 0"] {
            let claim = format!("{reason}measure = \"value\"\nof = \"a\"\nover = \"{over}");
            let ours = judged(&claim, &[("a", &[1.0, 1.01])]);
            assert_eq!(
                (ours.verdict, &*ours.how),
                (Verdict::Undecidable, "the record is not to be had")
            );
        }
    }

    /// Our figure is 40 % below over 40 runs, which contradicts the printed 50 %; a mean of three runs, as the paper
    /// has, can well be 50 % below.
    #[test]
    fn few_runs_could_print_what_ours_is_not() {
        let claim = "runs = 3\nmeasure = \"percent-below\"\nof = \"a\"\nthan = \"b\"\nover = \"mean\"\n\
                     figure = [50.0]\nrelative = 0.02";
        let a: Vec<f64> = (0..40).map(|n| 40.0 + f64::from(n)).collect();
        let ours = judged(claim, &[("a", &a), ("b", &[100.0; 40])]);
        let few = ours.as_printed.expect("it is a figure of means");
        assert_eq!((ours.verdict, few.runs, few.is_within), (Verdict::Fails, 3, true), "{few:?}");
        let never = judged(&claim.replace("[50.0]", "[80.0]"), &[("a", &a), ("b", &[100.0; 40])]);
        assert_eq!(never.as_printed.map(|few| few.is_within), Some(false));
        let order =
            judged("measure = \"value\"\nof = \"a\"\nover = \"mean\"\nabove = 0", &[("a", &a)]);
        assert_eq!(order.as_printed, None);
    }

    /// A claim holds for two groups of cells, since the means of both are above its bound. A reading of the claim about
    /// every cell fails, since one cell of the second group is below.
    #[test]
    fn a_claim_of_groups_is_about_the_mean_of_each_and_readings_stand_beside() {
        let claim = "measure = \"value\"\nof = \"{#}\"\nover = \"mean\"\ngroups = [\"a,b\", \"c,d\"]\nabove = 1.5\n\
                     readings = [{ name = \"every cell\", of = \"{a,b,c,d}\", over = \"each\" }]";
        let cells: [(&str, &[f64]); 4] =
            [("a", &[2.0, 2.01]), ("b", &[2.0, 2.01]), ("c", &[3.0, 3.01]), ("d", &[1.0, 1.01])];
        let of_groups = claim.replace("readings", "#");
        let ours = judged(&of_groups, &cells);
        assert_eq!((ours.verdict, ours.ours.n), (Verdict::Holds, 2), "{}", ours.how);
        let each = judged(
            &claim.replace("groups = [\"a,b\", \"c,d\"]\n", "").replace("{#}", "{a,b}"),
            &cells,
        );
        assert_eq!(each.verdict, Verdict::Holds);
        assert_eq!(each.readings.len(), 1);
        assert_eq!((each.readings[0].verdict, each.readings[0].ours.n), (Verdict::Fails, 4));
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
        assert!((at(4.0).ours.mean - 30.0).abs() < 1e-9);
        assert_eq!(at(4.0).verdict, Verdict::Open, "it has no interval");
        let never = at(2.5);
        assert!((never.ours.mean - 40.0).abs() < 1e-9);
        assert!(never.how.contains("highest cost"), "{}", never.how);
    }
}
