//! The plots of the report.

use dormouse_policies::BagSchedulerName;

use super::paper::SCHEDULERS;
use super::targets::{Target, costs, makespans};
use super::{LiveRun, Results};
use crate::sweep::{Dots, Frame, Mark, Sample, Strip, Tie, dots, strips};
use dormouse_workload::Estimate;

fn colour(scheduler: BagSchedulerName) -> usize {
    SCHEDULERS.iter().position(|&s| s == scheduler).unwrap_or(3)
}

fn mean(values: &[f64]) -> Option<f64> {
    Estimate::of(values).map(|e| e.mean)
}

const DUE: (f64, &str) = (2_700.0, "deadline");

/// Cost against makespan of one job: every run, the means, the paper's.
pub(crate) fn cost_against_makespan(results: &Results, job: &str, live: &[LiveRun]) -> String {
    let (mut series, mut ties) = (Vec::new(), Vec::new());
    for scheduler in SCHEDULERS {
        let of =
            || results.all.iter().filter(move |(t, _)| t.job == job && t.scheduler == scheduler);
        if of().next().is_none() {
            continue;
        }
        let colour = colour(scheduler);
        let dots = |name: &str, mark, all: Vec<((f64, f64), String)>| {
            let (points, labels) = all.into_iter().unzip();
            Dots { name: name.to_owned(), colour, mark, points, labels, joined: false }
        };
        let run = |(t, samples): &(Target, Vec<Sample>)| -> Vec<_> {
            samples.iter().filter_map(pair).map(|p| (p, t.case())).collect()
        };
        let mut means = Vec::new();
        let mut paper = Vec::new();
        for (target, samples) in of() {
            let printed = (target.makespan, target.cost);
            paper.push((printed, format!("{}, the paper", target.case())));
            let mean = mean(&makespans(samples)).zip(mean(&costs(samples)));
            if let Some(mean) = mean {
                means.push((mean, format!("{}, mean", target.case())));
                ties.push(Tie { colour, ends: (mean, printed) });
            }
        }
        series.push(dots("", Mark::Dot, of().flat_map(run).collect()));
        series.push(dots(scheduler.as_str(), Mark::Mean, means));
        series.push(dots("", Mark::Paper, paper));
        let of_live = live.iter().filter(|run| of().any(|(t, _)| t.case() == run.case()));
        let live = of_live.filter_map(|run| {
            let label = format!("{} seed {}, live", run.case(), run.seed);
            Some(((run.makespan_s?, run.cost_usd), label))
        });
        series.push(dots("", Mark::Live, live.collect()));
    }
    series.sort_by_key(|s| s.mark != Mark::Dot);
    let frame = Frame {
        title: format!("{job}: cost against makespan"),
        note: "dot: a run · disc: mean of a scenario · ring: the paper's · diamond: live"
            .to_owned(),
        x: "makespan, s".to_owned(),
        y: "cost, $".to_owned(),
        due: Some(DUE),
    };
    dots(&frame, &series, &ties)
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
    let frame = Frame {
        title: format!("{job}: makespans"),
        note: "bar: range of ours · dot: a run · disc: mean · ring: the paper's · diamond: live"
            .to_owned(),
        x: "makespan, s".to_owned(),
        y: String::new(),
        due: Some(DUE),
    };
    strips(&frame, &rows)
}
