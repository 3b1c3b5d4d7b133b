//! The plots of the report.

use dormouse_policies::BagSchedulerName;

use super::paper::SCHEDULERS;
use super::targets::{Target, costs, makespans};
use super::{LiveRun, Results};
use crate::sweep::{Dots, Estimate, Frame, Mark, Sample, Strip, dots, strips};

fn colour(scheduler: BagSchedulerName) -> usize {
    SCHEDULERS.iter().position(|&s| s == scheduler).unwrap_or(3)
}

fn mean(values: &[f64]) -> Option<f64> {
    Estimate::of(values).map(|e| e.mean)
}

/// Cost against makespan of one job: every run, the means, the paper's.
pub(crate) fn cost_against_makespan(results: &Results, job: &str, live: &[LiveRun]) -> String {
    let mut series = Vec::new();
    for scheduler in SCHEDULERS {
        let of =
            || results.all.iter().filter(move |(t, _)| t.job == job && t.scheduler == scheduler);
        if of().next().is_none() {
            continue;
        }
        let runs = of().flat_map(|(_, s)| s).filter_map(pair).collect();
        let means = of().filter_map(|(_, s)| Some((mean(&makespans(s))?, mean(&costs(s))?)));
        let paper = of().map(|(t, _)| (t.makespan, t.cost)).collect();
        let dots = |name: &str, mark, points| Dots {
            name: name.to_owned(),
            colour: colour(scheduler),
            mark,
            points,
            joined: false,
        };
        series.push(dots("", Mark::Dot, runs));
        series.push(dots(scheduler.as_str(), Mark::Mean, means.collect()));
        series.push(dots("paper", Mark::Paper, paper));
        let live: Vec<_> = live
            .iter()
            .filter(|run| of().any(|(t, _)| t.case() == run.case()))
            .filter_map(|run| Some((run.makespan_s?, run.cost_usd)))
            .collect();
        if !live.is_empty() {
            series.push(dots("live", Mark::Live, live));
        }
    }
    series.sort_by_key(|s| s.mark != Mark::Dot);
    let frame = Frame {
        title: format!("{job}: cost against makespan"),
        x: "makespan, s".to_owned(),
        y: "cost, $".to_owned(),
    };
    dots(&frame, &series)
}

fn pair(sample: &Sample) -> Option<(f64, f64)> {
    Some((sample.makespan?.as_secs_f64(), sample.cost.as_usd()))
}

/// The makespans of one job, a row per cell.
pub(crate) fn makespan_strips(results: &Results, job: &str, live: &[LiveRun]) -> String {
    let row = |(target, samples): &(Target, Vec<Sample>)| {
        let case = target.case();
        Strip {
            colour: colour(target.scheduler),
            samples: makespans(samples),
            paper: Some(target.makespan),
            live: live.iter().filter(|r| r.case() == case).filter_map(|r| r.makespan_s).collect(),
            name: case,
        }
    };
    let rows: Vec<_> = results.all.iter().filter(|(t, _)| t.job == job).map(row).collect();
    let frame =
        Frame { title: format!("{job}: makespans"), x: "makespan, s".to_owned(), y: String::new() };
    strips(&frame, Some((2_700.0, "deadline")), &rows)
}
