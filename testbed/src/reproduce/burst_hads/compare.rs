//! Ours beside the paper's, figure by figure.

use dormouse_policies::BagSchedulerName::{BurstHads, Hads};

use super::targets::{Results, Target, costs, makespans};
use crate::reproduce::compared::DEVIATION;
use crate::sweep::Sample;
use dormouse_workload::Estimate;

/// One figure.
#[derive(Clone, Debug)]
pub struct Row {
    /// The cell, or the experiment for what compares two cells.
    pub case: String,
    /// The quantity's name.
    pub metric: &'static str,
    /// The paper's.
    pub paper: f64,
    /// Ours.
    pub ours: Estimate,
}

impl Row {
    /// How far ours is from the paper's, relative to it.
    #[must_use]
    pub fn difference(&self) -> Option<f64> {
        self.ours.relative_to(self.paper)
    }

    /// Whether it is a cost or makespan that deviates: it needs a cause.
    #[must_use]
    pub fn deviates(&self) -> bool {
        matches!(self.metric, COST | MAKESPAN)
            && self.difference().is_some_and(|d| d.abs() > DEVIATION)
    }
}

pub(crate) const COST: &str = "cost_usd";
pub(crate) const MAKESPAN: &str = "makespan_s";

/// Every figure of the tables, in their order.
pub(crate) fn rows(results: &Results) -> Vec<Row> {
    let mut rows = Vec::new();
    for (target, samples) in &results.all {
        rows.extend(of_cell(target, samples));
        // Differences follow the two cells they are of.
        if target.scheduler == Hads {
            let burst = results.of(target.job, target.scenario, BurstHads);
            let paper = results.all.iter().map(|(t, _)| t).find(|t| {
                (t.job, t.scenario, t.scheduler) == (target.job, target.scenario, BurstHads)
            });
            if let (Some(burst), Some(paper)) = (burst, paper) {
                rows.extend(differences(target, paper, samples, burst));
            }
        }
    }
    rows
}

fn of_cell(target: &Target, samples: &[Sample]) -> Vec<Row> {
    let case = target.case();
    let mut figures =
        vec![(COST, target.cost, costs(samples)), (MAKESPAN, target.makespan, makespans(samples))];
    if let Some([hibernations, resumes, on_demand]) = target.events {
        let all = |f: fn(&Sample) -> u32| samples.iter().map(|s| f64::from(f(s))).collect();
        figures.push(("hibernations", hibernations, all(|s| s.hibernations)));
        figures.push(("resumes", resumes, all(|s| s.resumes)));
        figures.push(("on_demand_vms", on_demand, all(|s| s.on_demand_later)));
    }
    figures
        .into_iter()
        .filter_map(|(metric, paper, ours)| {
            Some(Row { case: case.clone(), metric, paper, ours: Estimate::of(&ours)? })
        })
        .collect()
}

/// The "Diff (%)" columns: positive where Burst-HADS is lower.
fn differences(hads: &Target, burst: &Target, theirs: &[Sample], ours: &[Sample]) -> Vec<Row> {
    [
        ("cost_below_hads_pct", burst.cost, hads.cost, costs(ours), costs(theirs)),
        (
            "makespan_below_hads_pct",
            burst.makespan,
            hads.makespan,
            makespans(ours),
            makespans(theirs),
        ),
    ]
    .into_iter()
    .filter_map(|(metric, burst, other, ours, theirs)| {
        let paper = 100.0 * (1.0 - burst / other);
        Some(Row { case: hads.experiment(), metric, paper, ours: below(&ours, &theirs)? })
    })
    .collect()
}

/// By how many per cent `ours` are below `theirs`, seed by seed.
pub(crate) fn below(ours: &[f64], theirs: &[f64]) -> Option<Estimate> {
    let each: Vec<_> =
        ours.iter().zip(theirs).map(|(ours, theirs)| 100.0 * (1.0 - ours / theirs)).collect();
    Estimate::of(&each)
}
