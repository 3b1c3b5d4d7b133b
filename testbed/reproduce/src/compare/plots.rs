//! Plots of a comparison: one point for each seed, of each scheduler and of its difference from the
//! first.

use dormouse_estimate::Estimate;
use dormouse_view::plot::{
    AxisScale, ChartPanel, PanelChart, PlotAxis, PlotLimit, PointLook, PointSeries, SeriesPoint,
};

use super::{FigurePair, SchedulerComparison};
use crate::measures::ShownFigure;
use crate::sweep::Samples;

/// Distance of a mean above the middle of its row, and of the points of single seeds below the middle, in heights of a
/// row.
const APART: f64 = 0.16;

/// A row of a panel: its samples in the order of seeds, and their mean.
struct PanelRow<'a> {
    pair: &'a FigurePair<'a>,
    each: Vec<Option<f64>>,
    mean: Estimate,
}

impl SchedulerComparison {
    /// One chart for each figure that is not the same in all runs, with a panel for the figure of each scheduler, and a
    /// panel for the differences from the first scheduler.
    pub fn plots(&self, samples: &Samples) -> Vec<PanelChart> {
        let measures = self.measures(samples).told;
        let pairs = self.pairs(samples, &measures);
        let chart = |measure: &ShownFigure| {
            let pairs = || pairs.iter().filter(|pair| pair.measure.name() == measure.name());
            let varies = pairs().flat_map(|pair| pair.each.iter().flatten());
            let (low, high) =
                varies.fold((f64::INFINITY, f64::NEG_INFINITY), |r, x| (r.0.min(*x), r.1.max(*x)));
            if low >= high {
                return None;
            }
            let panels = [
                Some(self.figure_panel(measure, pairs())),
                self.difference_panel(measure, pairs()),
            ];
            let panels = panels.into_iter().flatten().collect();
            Some(PanelChart { title: String::new(), panels })
        };
        measures.iter().filter_map(chart).collect()
    }

    /// The figure of each scheduler on each experiment.
    fn figure_panel<'a>(
        &self,
        measure: &ShownFigure,
        pairs: impl Iterator<Item = &'a FigurePair<'a>>,
    ) -> ChartPanel {
        let rows = pairs.map(|pair| PanelRow { pair, each: pair.each.clone(), mean: pair.figure });
        self.fill_panel(
            rows.collect(),
            |x| measure.value(x),
            ChartPanel {
                title: measure.name().to_owned(),
                x: PlotAxis::new(measure.heading(), AxisScale::Linear),
                ..ChartPanel::default()
            },
        )
    }

    /// Difference of each scheduler from the first, in per cent of the first one's mean, or in the
    /// figure's own unit if a mean is zero. `None` if nothing differs.
    fn difference_panel<'a>(
        &self,
        measure: &ShownFigure,
        pairs: impl Iterator<Item = &'a FigurePair<'a>>,
    ) -> Option<ChartPanel> {
        let pairs: Vec<_> = pairs.filter(|pair| pair.difference.is_some()).collect();
        let differ = pairs.iter().filter_map(|pair| pair.difference).any(|d| d.range != (0.0, 0.0));
        let in_percent = pairs.iter().all(|pair| pair.relative.is_some());
        let row = |pair: &'a FigurePair<'a>| {
            let (difference, relative) = (pair.difference?, pair.relative);
            let (mean, scale) = match relative.filter(|_| in_percent) {
                // The mean of the relative differences per seed is the relative difference of the
                // means.
                Some(relative) if difference.mean != 0.0 => {
                    (relative, relative.mean / difference.mean)
                }
                Some(relative) => (relative, 0.0),
                None => (difference, 1.0),
            };
            let each = pair.differences.iter().map(|d| d.map(|d| d * scale)).collect();
            Some(PanelRow { pair, each, mean })
        };
        let rows: Vec<_> = pairs.into_iter().filter_map(row).collect();
        let first = self.first();
        let (label, shown): (String, &dyn Fn(f64) -> f64) = match in_percent {
            true => (format!("difference from {first}, %"), &|part| part * 100.0),
            false => {
                let unit = measure.heading();
                (format!("difference from {first}: {unit}"), &|x| measure.value(x))
            }
        };
        differ.then(|| {
            self.fill_panel(
                rows,
                shown,
                ChartPanel {
                    title: format!("{}: difference from {first}", measure.name()),
                    x: PlotAxis::new(label, AxisScale::Linear),
                    limits: vec![PlotLimit { name: first.to_owned(), at: 0.0 }],
                    ..ChartPanel::default()
                },
            )
        })
    }

    /// Fills the panel `frame` with these rows, and returns it.
    fn fill_panel(
        &self,
        rows: Vec<PanelRow<'_>>,
        shown: impl Fn(f64) -> f64,
        frame: ChartPanel,
    ) -> ChartPanel {
        let (mut names, mut series) = (Vec::new(), Vec::new());
        for (n, PanelRow { pair, each, mean }) in (0_u32..).zip(rows) {
            let name = match self.on.len() {
                1 => pair.scheduler.to_owned(),
                _ => format!("{} {}", pair.on, pair.scheduler),
            };
            let row = f64::from(n);
            let colour = self.schedulers.iter().position(|name| name == pair.scheduler);
            let colour = colour.unwrap_or(0);
            let of = if pair.are_batches { "batch of jobs" } else { "seed" };
            let sample = |(seed, x): (usize, &Option<f64>)| {
                let name = format!("{name}, {of} {}", seed + 1);
                // Equal figures of several seeds stay apart.
                let below = APART + [0.0, 0.08, 0.16, 0.04, 0.12][seed % 5];
                Some(SeriesPoint { name, ..SeriesPoint::new(shown((*x)?), row + below) })
            };
            let points = each.iter().enumerate().filter_map(sample).collect();
            series.push(PointSeries {
                name: format!("a {of}"),
                colour,
                look: PointLook::Sample,
                points,
            });
            let mean = SeriesPoint {
                interval: mean.ci95.map(|(low, high)| (shown(low), shown(high))),
                name: format!("{name}, mean"),
                ..SeriesPoint::new(shown(mean.mean), row - APART)
            };
            let (called, look) = ("mean with its 95 % interval".to_owned(), PointLook::Mean);
            series.push(PointSeries { name: called, colour, look, points: vec![mean] });
            names.push(name);
        }
        ChartPanel { rows: names, series, ..frame }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use dormouse_analysis::RunSample;

    use super::*;
    use crate::sweep::{OwnProgram, SharedInputs};

    fn sample(makespan: f64, preemptions: f64) -> RunSample {
        let figures = [("makespan_s", makespan), ("preemptions", preemptions)];
        let figures = figures.map(|(name, figure)| (name.to_owned(), figure)).into();
        RunSample { figures, batches: [].into(), steps: 0, decisions: String::new() }
    }

    #[test]
    fn each_seed_is_a_point_of_each_scheduler_and_of_its_difference() {
        let [on, schedulers] = [&["j60"][..], &["burst-hads", "hads"]]
            .map(|list| list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        let of = SchedulerComparison::new(
            (&on, &OwnProgram::default()),
            &schedulers,
            &[],
            &SharedInputs::default(),
        )
        .unwrap();
        let samples = vec![
            vec![sample(100.0, 0.0), sample(200.0, 0.0)],
            vec![sample(130.0, 2.0), sample(230.0, 0.0)],
        ];
        let charts = of.plots(&samples);
        let [makespan, preemptions] = &charts[..] else { panic!("two figures vary") };
        let points = |panel: &ChartPanel, look| -> Vec<f64> {
            let of_look = panel.series.iter().filter(|series| series.look == look);
            of_look.flat_map(|series| series.points.iter().map(|point| point.x)).collect()
        };
        let [figures, differences] = &makespan.panels[..] else { panic!("two panels") };
        assert_eq!(figures.rows, ["burst-hads", "hads"]);
        assert_eq!(points(figures, PointLook::Sample), [100.0, 200.0, 130.0, 230.0]);
        assert_eq!(points(figures, PointLook::Mean), [150.0, 180.0]);
        // Each seed is 30 s later: a fifth of the first scheduler's mean.
        for percent in
            [points(differences, PointLook::Sample), points(differences, PointLook::Mean)].concat()
        {
            assert!((percent - 20.0).abs() < 1e-9, "{percent}");
        }
        assert_eq!(differences.rows, ["hads"]);
        // No VM was preempted under the first scheduler, of which there is no part.
        let [_, differences] = &preemptions.panels[..] else { panic!("two panels") };
        assert_eq!(points(differences, PointLook::Sample), [2.0, 0.0]);
        assert!(differences.x.label.ends_with(": VMs preempted"), "{}", differences.x.label);
        assert!(figures.to_svg().contains("hads, seed 2: 230"));
    }
}
