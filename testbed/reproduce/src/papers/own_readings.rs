//! Factors of cells that are not experiments: the same cells with another word in their names, each
//! factor alone.

use dormouse_analysis::RunSample;

use super::factor::ReadingFactor;
use super::own::CellComputation;
use super::paper::{PaperEvaluation, PaperPart};
use super::pattern::matches;
use super::readings::PaperReading;
use super::results::CellResults;
use crate::sweep::{Samples, SweepError};

/// Cells, each with the name that it has under a factor.
type Named<'a> = Vec<(&'a CellComputation, String)>;

/// Readings of cells with one factor at a time, for each factor that changes a word in the name of a cell, after the reading
/// without any factor. Empty if no factor changes such a word. Only the cells in `about` are made, by `run`; the cells that were
/// made are returned too.
///
/// # Errors
///
/// The errors of `run`.
pub(super) fn each_alone(
    (paper, parts): (&PaperEvaluation, &[&PaperPart]),
    (own, about): (&[CellComputation], &[String]),
    mut run: impl FnMut(&[CellComputation]) -> Result<Samples, SweepError>,
) -> Result<(Vec<PaperReading>, Vec<CellComputation>), SweepError> {
    let is_about = |made: &&CellComputation| {
        let begins = format!("{}/", made.case);
        about.iter().any(|cell| cell.starts_with(&begins))
    };
    let all: Vec<&CellComputation> = own.iter().filter(is_about).collect();
    let plain = all.iter().map(|made| (*made, made.case.clone())).collect();
    let mut wanted: Vec<(Vec<ReadingFactor>, Named<'_>)> = vec![(Vec::new(), plain)];
    for factor in &paper.factors {
        // Cells that a factor does not change have the same figures, which are made once.
        let named = |made: &&CellComputation| {
            case_with(paper, factor, &made.case).unwrap_or_else(|| made.case.clone())
        };
        let cells: Vec<_> = all.iter().map(|made| (*made, named(made))).collect();
        if cells.iter().any(|(made, case)| made.case != *case) {
            wanted.push((vec![factor.clone()], cells));
        }
    }
    if wanted.len() == 1 {
        return Ok((Vec::new(), Vec::new()));
    }
    let tried =
        wanted.iter().flat_map(|(_, cells)| cells.iter().map(|(made, case)| made.named(case)));
    let tried: Vec<CellComputation> = tried.collect();
    let mut samples = tried.iter().zip(run(&tried)?);
    let mut readings = Vec::new();
    for (factors, cells) in wanted {
        let of_cell = |((cell, _), (other, samples)): (
            (&CellComputation, String),
            (&CellComputation, Vec<RunSample>),
        )| {
            let by_cell = other.by_cell(&samples).into_iter();
            let named =
                |(case, samples): (String, _)| (case.replacen(&other.case, &cell.case, 1), samples);
            by_cell.map(named).collect::<Vec<_>>()
        };
        let results = cells.into_iter().zip(samples.by_ref()).flat_map(of_cell);
        readings.push(PaperReading::new(
            paper,
            parts,
            factors,
            &CellResults::new(results).of_trial(),
        ));
    }
    Ok((readings, tried))
}

/// Name of the cells of `case` under a factor; `None` if the factor changes no word of that name.
fn case_with(paper: &PaperEvaluation, factor: &ReadingFactor, case: &str) -> Option<String> {
    let mut words: Vec<&str> = case.split('/').collect();
    let before = words.clone();
    for (pattern, [word, instead]) in &factor.words {
        if matches(pattern, case, &paper.lists) {
            words.iter_mut().filter(|it| **it == word).for_each(|it| *it = instead);
        }
    }
    (words != before).then(|| words.join("/"))
}

#[cfg(test)]
mod tests {
    use super::super::named;
    use super::super::own::{FigureSource, RecordedInputs};
    use super::*;

    #[test]
    fn a_factor_has_the_figures_of_another_word() {
        let (paper, part) = named("acc/figure-7").expect("it is there");
        let parts = paper.parts(part.as_deref());
        let cells = paper.cells_of(parts[0]);
        let own: Vec<CellComputation> =
            FigureSource::Prices.all(&cells, &RecordedInputs::default()).collect();
        let run = |all: &[CellComputation]| {
            let cost = |case: &str| if case.contains("/tc-15/") { 3.0 } else { 2.0 };
            let sample = |case: &str, n: f64| RunSample {
                figures: [
                    ("acc/cost_usd".to_owned(), cost(case) + n),
                    ("opt/cost_usd".to_owned(), 2.0),
                ]
                .into(),
                batches: [].into(),
                steps: 0,
                decisions: String::new(),
            };
            Ok(all
                .iter()
                .map(|made| vec![sample(&made.case, 0.0), sample(&made.case, 0.1)])
                .collect())
        };
        let about = paper.expand("eu-west-1.linux.m1.xlarge/standard/{eu-bids}/{acc,opt}");
        let (readings, tried) = each_alone((&paper, &parts), (&own, &about), run).expect("it runs");
        let of = |name: &str| {
            let reading = readings.iter().find(|reading| reading.name() == name).expect(name);
            let claim = reading.claims.iter().find(|of| of.claim.name == "acc_over_opt_cost_pct");
            claim.map(|of| of.ours.mean).expect("it is measured")
        };
        assert!((of("none") - 2.5).abs() < 1e-9 && (of("checkpoint-15m") - 52.5).abs() < 1e-9);
        let is_tried = |case: &str| tried.iter().any(|made| made.case == case);
        assert!(is_tried("eu-west-1.linux.m1.xlarge/tc-15/bid-0.320"));
        assert!(
            !is_tried("eu-west-1.linux.m1.xlarge/resampled/bid-0.320"),
            "no claim is about it alone"
        );
    }
}
