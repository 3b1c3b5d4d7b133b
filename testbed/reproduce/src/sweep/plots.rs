//! Plots of a sweep: each figure against the swept number, or as bars if words are swept; then one
//! figure against another.

use dormouse_analysis::{RunSample, series as analysis_series};
use dormouse_estimate::Estimate;
use dormouse_units::Span;
use dormouse_view::plot::{
    AxisScale, ChartPanel, PanelChart, PlotAxis, PlotLimit, PointLook, PointSeries, SeriesPoint,
};

use super::grid::SEED;
use super::tables::estimate;
use super::{ParameterSweep, Samples};
use crate::measures::{ShownFigure, figure};
use crate::ranked::{RankedSetting, best_first};

/// Greatest number of cells that are drawn as bars.
const MOST_BARS: usize = 60;
/// From this ratio of the largest to the smallest number on, an axis is logarithmic.
const WIDE: f64 = 50.0;
/// Name of a mean in a legend.
const MEAN: &str = "mean with its 95 % interval";

/// A key whose values are numbers.
#[derive(Clone, Debug, PartialEq)]
struct NumberKey {
    /// Index of the key among the sweep's varied keys.
    n: usize,
    /// Value of the key in each cell; durations in seconds.
    values: Vec<f64>,
    /// Unit of the values: none, per cent, or seconds.
    unit: NumberUnit,
}

/// A panel of a sweep's plot.
pub(super) struct SweepPanel {
    /// Names of the figures that the panel shows, as in `table.csv`: one, or two against each other.
    pub(super) metrics: Vec<&'static str>,
    pub(super) panel: ChartPanel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NumberUnit {
    Plain,
    Percent,
    Seconds,
}

impl NumberUnit {
    /// The number of a value in this unit; `None` if it is not a number.
    fn read(self, value: &str) -> Option<f64> {
        match self {
            Self::Plain => value.parse().ok(),
            Self::Percent => value.strip_suffix('%')?.trim().parse().ok(),
            Self::Seconds => value.parse::<Span>().ok().map(Span::as_secs_f64),
        }
    }
}

impl ParameterSweep {
    /// The content of `plot.svg` and of the page's plots.
    pub fn plot(&self, samples: &Samples) -> PanelChart {
        let panels = self.panels(samples).into_iter().map(|it| it.panel).collect();
        PanelChart { title: String::new(), panels }
    }

    /// The panels of the plot, each with the figure that it shows.
    pub(super) fn panels(&self, samples: &Samples) -> Vec<SweepPanel> {
        let measures = Self::measures(samples).told;
        let of = |it: &ShownFigure, panel| SweepPanel { metrics: vec![it.metric.name], panel };
        let mut panels: Vec<_> = match self.number_key() {
            Some(key) => {
                let panel = |it| of(it, self.against_number(&key, it, samples));
                measures.iter().map(panel).collect()
            }
            None if self.keys.is_empty() || self.cells.len() > MOST_BARS => Vec::new(),
            None => measures.iter().map(|it| of(it, self.bars(it, samples))).collect(),
        };
        panels.push(self.scatter(samples));
        panels
    }

    /// The first key whose values are all numbers, at least two of them different. The key of seeds does not count.
    fn number_key(&self) -> Option<NumberKey> {
        let key = |(n, key): (usize, &String)| {
            let all = |unit: NumberUnit| -> Option<Vec<f64>> {
                let number = |values: &Vec<String>| unit.read(values[n].trim_matches('"'));
                self.values.iter().map(number).collect()
            };
            let units = [NumberUnit::Plain, NumberUnit::Percent, NumberUnit::Seconds];
            let (unit, values) = units.into_iter().find_map(|unit| Some((unit, all(unit)?)))?;
            let differ =
                values.iter().any(|x| *x != values[0]) && values.iter().all(|x| x.is_finite());
            (key != SEED && differ).then_some(NumberKey { n, values, unit })
        };
        self.keys.iter().enumerate().find_map(key)
    }

    /// Values, in words, of all keys of a cell except the key at index `but`; empty if there is no other key.
    fn other_values(&self, cell: usize, but: usize) -> String {
        let others = self.keys.iter().zip(&self.values[cell]).enumerate();
        let word = |(_, (key, value)): (usize, (&String, &String))| match key.rsplit('.').next() {
            Some("name") | None => value.clone(),
            Some(short) => format!("{short} {value}"),
        };
        others.filter(|(n, _)| *n != but).map(word).collect::<Vec<_>>().join(", ")
    }

    /// A figure against the swept number: each run, and a line through the means for each
    /// combination of the other keys' values.
    fn against_number(
        &self,
        key: &NumberKey,
        measure: &ShownFigure,
        samples: &Samples,
    ) -> ChartPanel {
        let unit = measure.unit();
        let (factor, symbol) = match key.unit {
            NumberUnit::Plain => (1.0, None),
            NumberUnit::Percent => (1.0, Some("%")),
            NumberUnit::Seconds => (unit.seconds(), Some(unit.symbol())),
        };
        let mut lines: Vec<(String, Vec<usize>)> = Vec::new();
        for cell in 0..self.cells.len() {
            let name = self.other_values(cell, key.n);
            match lines.iter_mut().find(|(known, _)| *known == name) {
                Some((_, cells)) => cells.push(cell),
                None => lines.push((name, vec![cell])),
            }
        }
        let (mut runs, mut means) = (Vec::new(), Vec::new());
        for (colour, (name, mut cells)) in lines.into_iter().enumerate() {
            cells.sort_by(|a, b| key.values[*a].total_cmp(&key.values[*b]));
            let at = |cell: usize| key.values[cell] / factor;
            let of = |cell: usize| samples.get(cell).map_or(&[][..], Vec::as_slice);
            let run = |cell: usize| {
                let figures = of(cell).iter().filter_map(|run| figure(run, measure.metric.name));
                figures.map(move |y| SeriesPoint::new(at(cell), measure.value(y)))
            };
            let points = cells.iter().flat_map(|cell| run(*cell)).collect();
            runs.push(PointSeries {
                name: "a run".to_owned(),
                colour,
                look: PointLook::Sample,
                points,
            });
            let mean = |cell: &usize| mean(of(*cell), measure, |y| SeriesPoint::new(at(*cell), y));
            let points = cells.iter().filter_map(mean).collect();
            let name = if name.is_empty() { MEAN.to_owned() } else { name };
            means.push(PointSeries { name, colour, look: PointLook::Line, points });
        }
        let label = self.keys.get(key.n).map_or("", String::as_str);
        let label = symbol.map_or(label.to_owned(), |symbol| format!("{label}, {symbol}"));
        ChartPanel {
            title: format!("{} over {}", measure.name(), self.keys[key.n]),
            x: PlotAxis::new(label, scale_for(&key.values)),
            y: PlotAxis::new(measure.heading(), AxisScale::Linear),
            series: runs.into_iter().chain(means).collect(),
            ..ChartPanel::default()
        }
    }

    /// A figure of each cell as a bar.
    fn bars(&self, measure: &ShownFigure, samples: &Samples) -> ChartPanel {
        let mut series = Vec::new();
        for (row, (samples, values)) in (0_u32..).zip(samples.iter().zip(&self.values)) {
            let (row, colour, name) = (f64::from(row), row as usize, values.join(", "));
            let bar = mean(samples, measure, |x| SeriesPoint {
                name: format!("{name}, mean"),
                ..SeriesPoint::new(x, row)
            });
            let points = bar.into_iter().collect();
            series.push(PointSeries {
                name: MEAN.to_owned(),
                colour,
                look: PointLook::Column,
                points,
            });
            let run = |x| SeriesPoint {
                name: name.clone(),
                ..SeriesPoint::new(measure.value(x), row + 0.3)
            };
            let figures = samples.iter().filter_map(|run| figure(run, measure.metric.name));
            let points = figures.map(run).collect();
            series.push(PointSeries {
                name: "a run".to_owned(),
                colour,
                look: PointLook::Sample,
                points,
            });
        }
        ChartPanel {
            title: measure.name().to_owned(),
            x: PlotAxis::new(measure.heading(), AxisScale::FromZero),
            rows: self.values.iter().map(|values| values.join(", ")).collect(),
            series,
            ..ChartPanel::default()
        }
    }

    /// Scatter plot of one figure against another, with each run, and with the mean of each setting and its interval.
    fn scatter(&self, samples: &Samples) -> SweepPanel {
        let first = self.cells.first().map(|cell| &cell.experiment);
        let [x, y] = match first.map(|of| (of.scheduler.is_some(), of.jobs.is_some())) {
            Some((false, true)) => ["mean_response_s", "mean_bounded_slowdown"],
            Some((false, false)) => ["host_utilisation", "failed_normal"],
            _ => ["makespan_s", "cost_usd"],
        };
        let measures = Self::measures(samples);
        let [x, y] = [x, y].map(|name| measures.named(name));
        let name = |values: &Vec<String>| {
            if values.is_empty() { "runs".to_owned() } else { values.join(", ") }
        };
        let (mut runs, mut means) = (Vec::new(), Vec::new());
        for (colour, (values, samples)) in self.values.iter().zip(samples).enumerate() {
            let at = |sample: &RunSample, of: &ShownFigure| {
                sample.figure(of.metric.name).map(|figure| of.value(figure))
            };
            let point = |sample: &RunSample| {
                let name = format!("a run of {}", name(values));
                Some(SeriesPoint { name, ..SeriesPoint::new(at(sample, &x)?, at(sample, &y)?) })
            };
            let of_look = |name: String, look, points| PointSeries { name, colour, look, points };
            let points = samples.iter().filter_map(point).collect();
            runs.push(of_look("a run".to_owned(), PointLook::Sample, points));
            let mean = estimate(samples, x.metric.name).and_then(|along| {
                let (at, name) = (x.value(along.mean), format!("mean of {}", name(values)));
                mean(samples, &y, |mean| SeriesPoint { name, ..SeriesPoint::new(at, mean) })
            });
            let called = format!("{}, mean", name(values));
            means.push(of_look(called, PointLook::Mean, mean.into_iter().collect()));
        }
        let over = match self.keys.is_empty() {
            true => String::new(),
            false => format!(", over {}", self.keys.join(" and ")),
        };
        let panel = ChartPanel {
            title: format!("{} against {}{over}", y.name(), x.name()),
            x: PlotAxis::new(x.heading(), AxisScale::Linear),
            y: PlotAxis::new(y.heading(), AxisScale::Linear),
            series: runs.into_iter().chain(means).collect(),
            ..ChartPanel::default()
        };
        SweepPanel { metrics: vec![x.metric.name, y.metric.name], panel }
    }
}

/// Greatest number of settings beside the best one whose differences are drawn.
const MOST_DIFFERENCES: usize = 24;

/// Differences from the setting that is best by a figure, seed by seed, in per cent of its mean; `None` if there is nothing to
/// compare, or if that mean is zero.
pub(super) fn differences(
    measure: &ShownFigure,
    settings: &[RankedSetting<'_>],
) -> Option<ChartPanel> {
    let ranked = best_first(measure, settings);
    let ((best, best_runs, best_mean), others) = ranked.split_first()?;
    if others.is_empty() || others.len() > MOST_DIFFERENCES || *best_mean == 0.0 {
        return None;
    }
    let each = |runs| analysis_series(runs, measure.metric.name).each;
    let best_each = each(best_runs);
    let (mut names, mut series) = (Vec::new(), Vec::new());
    for (row, (name, runs, _)) in (0_u32..).zip(others) {
        let own = each(runs);
        let both = best_each.iter().zip(&own).map(|(best, own)| (*best).zip(*own));
        let both: Vec<Option<(f64, f64)>> = both.collect();
        let (firsts, mine): (Vec<f64>, Vec<f64>) = both.iter().flatten().copied().unzip();
        let change = Estimate::of_change(&firsts, &mine)?;
        let first_mean = firsts.iter().sum::<f64>() / firsts.len() as f64;
        let row = f64::from(row);
        let colour = settings.iter().position(|(setting, _)| setting == name).unwrap_or(0);
        let point = |(seed, pair): (usize, &Option<(f64, f64)>)| {
            let (first, own) = (*pair)?;
            // Equal differences under several seeds stay apart.
            let below = 0.16 + [0.0, 0.08, 0.16, 0.04, 0.12][seed % 5];
            let at = (own - first) / first_mean * 100.0;
            let name = format!("{name}, seed {}", seed + 1);
            Some(SeriesPoint { name, ..SeriesPoint::new(at, row + below) })
        };
        let points = both.iter().enumerate().filter_map(point).collect();
        series.push(PointSeries {
            name: "a seed".to_owned(),
            colour,
            look: PointLook::Sample,
            points,
        });
        let mean = SeriesPoint {
            interval: change.ci95.map(|(low, high)| (low * 100.0, high * 100.0)),
            name: format!("{name}, mean"),
            ..SeriesPoint::new(change.mean * 100.0, row - 0.16)
        };
        series.push(PointSeries {
            name: MEAN.to_owned(),
            colour,
            look: PointLook::Mean,
            points: vec![mean],
        });
        names.push((*name).to_owned());
    }
    Some(ChartPanel {
        title: format!("{}: difference from {best}", measure.name()),
        x: PlotAxis::new(format!("difference from {best}, %"), AxisScale::Linear),
        rows: names,
        series,
        limits: vec![PlotLimit { name: (*best).to_owned(), at: 0.0 }],
        ..ChartPanel::default()
    })
}

/// Mean of a figure over runs as a point with its interval; `at` makes the point of a value.
fn mean(
    samples: &[RunSample],
    measure: &ShownFigure,
    at: impl FnOnce(f64) -> SeriesPoint,
) -> Option<SeriesPoint> {
    let of = estimate(samples, measure.metric.name)?;
    let value = |x: f64| measure.value(x);
    let interval = of.ci95.map(|(low, high)| (value(low), value(high)));
    Some(SeriesPoint { interval, ..at(value(of.mean)) })
}

/// Linear or logarithmic scale of an axis that suits these values.
fn scale_for(values: &[f64]) -> AxisScale {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if least > 0.0 && most >= least * WIDE { AxisScale::Logarithmic } else { AxisScale::Linear }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::super::SharedInputs;
    use super::*;

    fn sweep(set: &[&str]) -> ParameterSweep {
        let set: Vec<_> = set.iter().map(|&s| s.to_owned()).collect();
        ParameterSweep::new("j60", &set, None, &SharedInputs::default()).unwrap()
    }

    /// Two runs of each cell: their makespans are 100 s and 110 s times the number of the cell.
    fn samples(of: &ParameterSweep) -> Samples {
        let sample = |makespan: f64| RunSample {
            figures: [("makespan_s", makespan), ("cost_usd", 1.0)]
                .map(|(name, figure)| (name.to_owned(), figure))
                .into(),
            batches: [].into(),
            steps: 0,
            decisions: String::new(),
        };
        let cell = |n: u32| [100.0, 110.0].map(|s| sample(s * f64::from(n))).into();
        (1..).take(of.cells.len()).map(cell).collect()
    }

    fn of_look(panel: &ChartPanel, look: PointLook) -> Vec<(&str, Vec<(f64, f64)>)> {
        let series = panel.series.iter().filter(|series| series.look == look);
        let points = |series: &PointSeries| series.points.iter().map(|p| (p.x, p.y)).collect();
        series.map(|series| (series.name.as_str(), points(series))).collect()
    }

    #[test]
    fn a_number_is_an_axis_and_the_other_key_the_lines() {
        let set = ["scheduler.name=burst-hads,hads", "checkpoint.fixed=20s,5s"];
        let of = sweep(&set);
        let panels = of.plot(&samples(&of)).panels;
        let titles: Vec<_> = panels.iter().map(|panel| panel.title.as_str()).collect();
        let over = "cost against makespan, over scheduler.name and checkpoint.fixed";
        assert_eq!(titles, ["makespan over checkpoint.fixed", "cost over checkpoint.fixed", over]);
        assert_eq!(panels[0].x.label, "checkpoint.fixed, s");
        assert_eq!(panels[0].y.label, "makespan, s");
        // In order of the number, whatever the order of the list.
        let lines = [
            ("burst-hads", vec![(5.0, 210.0), (20.0, 105.0)]),
            ("hads", vec![(5.0, 420.0), (20.0, 315.0)]),
        ];
        assert_eq!(of_look(&panels[0], PointLook::Line), lines);
        assert!(
            panels[0]
                .series
                .iter()
                .all(|s| s.look == PointLook::Sample || s.points[0].interval.is_some())
        );
        assert_eq!(of_look(&panels[0], PointLook::Sample)[0].1.len(), 4, "each run is a point");
    }

    /// The first setting costs $1 and $2, the second a tenth of the mean more under each seed.
    #[test]
    fn differences_from_the_best_are_taken_seed_by_seed() {
        let run = |cost: f64| RunSample {
            figures: [("cost_usd".to_owned(), cost)].into(),
            batches: [].into(),
            steps: 0,
            decisions: String::new(),
        };
        let samples: Samples = vec![vec![run(1.15), run(2.15)], vec![run(1.0), run(2.0)]];
        let measure = ParameterSweep::measures(&samples).named("cost_usd");
        let settings: Vec<RankedSetting<'_>> =
            ["dear", "cheap"].into_iter().zip(samples.iter().map(Vec::as_slice)).collect();
        let panel = differences(&measure, &settings).unwrap();
        assert_eq!(
            (panel.title.as_str(), &panel.rows),
            ("cost: difference from cheap", &vec!["dear".to_owned()])
        );
        let points = of_look(&panel, PointLook::Sample).remove(0).1;
        assert!(points.iter().all(|(x, _)| (x - 10.0).abs() < 1e-9), "{points:?}");
        assert!(differences(&measure, &settings[..1]).is_none());
    }

    #[test]
    fn words_are_bars() {
        let of = sweep(&["scheduler.name=burst-hads,hads"]);
        let panels = of.plot(&samples(&of)).panels;
        assert_eq!(panels[0].rows, ["burst-hads", "hads"]);
        let bars: Vec<_> =
            of_look(&panels[0], PointLook::Column).into_iter().flat_map(|s| s.1).collect();
        assert_eq!(bars, [(105.0, 0.0), (210.0, 1.0)]);
        // Seeds are names of runs, however they look.
        let of = sweep(&["seed=7,3"]);
        assert_eq!(of.plot(&samples(&of)).panels[0].rows, ["7", "3"]);
        assert!(sweep(&["scheduler.alpha=0.5"]).plot(&vec![Vec::new()]).panels.len() == 1);
    }

    #[test]
    fn numbers_that_grow_tenfold_lie_by_their_logarithms() {
        assert_eq!(scale_for(&[1.0, 10.0, 100.0]), AxisScale::Logarithmic);
        assert_eq!(scale_for(&[0.0, 10.0, 100.0]), AxisScale::Linear);
        assert_eq!(scale_for(&[0.1, 0.9]), AxisScale::Linear);
        assert_eq!(NumberUnit::Percent.read("12.5%"), Some(12.5));
        assert_eq!(NumberUnit::Seconds.read("1h30m"), Some(5_400.0));
        assert_eq!(NumberUnit::Plain.read("hads"), None);
    }
}
