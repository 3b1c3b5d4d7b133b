//! Figure by figure, ours beside the paper's.

use std::collections::BTreeSet;

use dormouse_estimate::Estimate;

use super::paper::{Compared, Measure, Paper, Part, Tolerance};
use super::results::Results;

/// A figure of ours, and the paper's if it printed one.
#[derive(Clone, Debug)]
pub struct Row {
    /// The part that it is of.
    pub part: String,
    /// The cell, or what compares two.
    pub case: String,
    /// The figure's name.
    pub metric: String,
    /// The paper's, and how far ours may be from it.
    pub paper: Option<(f64, Tolerance)>,
    /// Our estimate of the figure.
    pub ours: Estimate,
}

impl Row {
    /// How far ours is from the paper's, relative to it.
    pub fn difference(&self) -> Option<f64> {
        self.paper.and_then(|(paper, _)| self.ours.relative_to(paper))
    }

    /// Whether it is further from the paper's than its tolerance; `None`: the paper has none.
    pub fn is_beyond(&self) -> Option<bool> {
        let (paper, tolerance) = self.paper?;
        Some(tolerance.is_beyond(self.ours.mean, paper))
    }
}

/// Every figure of these parts, in the order of their cells.
pub(super) fn rows(paper: &Paper, parts: &[&Part], results: &Results) -> Vec<Row> {
    let (mut rows, mut seen) = (Vec::new(), BTreeSet::new());
    for part in parts {
        for case in paper.cells_of(part) {
            for metric in paper.of_case(&part.metrics, &case) {
                let Some(ours) = results.ours(&case, metric) else { continue };
                if seen.insert((case.clone(), metric.clone())) {
                    rows.push(Row {
                        part: part.name.clone(),
                        case: case.clone(),
                        metric: metric.clone(),
                        paper: paper.printed(&case, metric),
                        ours,
                    });
                }
            }
            rows.extend(compared(paper, part, &case, results));
        }
    }
    rows
}

/// The comparisons that end with this cell.
fn compared(paper: &Paper, part: &Part, cell: &str, results: &Results) -> Vec<Row> {
    let row = |comparison: &Compared| {
        let [cases, of, than] = [&comparison.case, &comparison.of, &comparison.than]
            .map(|pattern| paper.expand(pattern));
        let n = than.iter().position(|than| than == cell)?;
        let printed = |case: &str| paper.printed(case, &comparison.from).map(|(value, _)| value);
        let series = |case: &str| results.series(case, &comparison.from);
        let below = |pair| Measure::PercentBelow.of(pair);
        let ours = series(&of[n])?.compared(&series(cell)?, below)?.estimate()?;
        let printed = below([printed(&of[n])?, printed(cell)?]);
        Some(Row {
            part: part.name.clone(),
            case: cases.get(n)?.clone(),
            metric: comparison.metric.clone(),
            paper: Some((printed, comparison.tolerance)),
            ours,
        })
    };
    paper.compared.iter().filter_map(row).collect()
}

/// How many of the figures that the paper printed are further from it than their tolerance, of how
/// many; only those of one name, or all.
pub fn beyond(rows: &[Row], metric: Option<&str>) -> (usize, usize) {
    let of: Vec<bool> = rows
        .iter()
        .filter(|row| metric.is_none_or(|name| row.metric == name))
        .filter_map(Row::is_beyond)
        .collect();
    (of.iter().filter(|beyond| **beyond).count(), of.len())
}
