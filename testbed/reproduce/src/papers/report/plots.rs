//! Plots of a reproduction.

use dormouse_analysis::RunSample;
use dormouse_view::plot::{
    AxisScale, ChartPanel, PanelChart, PlotAxis, PlotLimit, PointLook, PointSeries, SeriesPoint,
};
use maud::Markup;

use super::super::finished::FinishedReproduction;
use super::super::own::FigureSource;
use super::super::paper::{PaperPart, PaperPlot};
use super::super::pattern::unique;

/// A figure of the paper: a panel for each metric, with a line for each of the part's lines, and the values that the
/// paper prints as rings of the line's colour.
pub(super) fn over_load(done: &FinishedReproduction, part: &PaperPart) -> PanelChart {
    let cases = done.paper.cells_of(part);
    // Numbers of hosts grow tenfold.
    let x = if part.own == Some(FigureSource::Latency) {
        AxisScale::Logarithmic
    } else {
        AxisScale::Linear
    };
    let x_of = |case: &String| -> Option<f64> {
        case.split('/').find_map(|word| word.strip_prefix(&*part.over.0)?.parse().ok())
    };
    let metrics = cases.iter().flat_map(|case| done.paper.of_case(&part.metrics, case));
    let panels = unique(metrics).into_iter().map(|metric| {
        let line = |(colour, (name, cells)): (usize, &(String, String))| {
            let point = |case: &String| {
                let ours = done.results.ours(case, metric)?;
                let interval = ours.ci95;
                Some(SeriesPoint {
                    interval,
                    name: case.clone(),
                    ..SeriesPoint::new(x_of(case)?, ours.mean)
                })
            };
            let cells = done.paper.expand(cells);
            let points = cells.iter().filter_map(point).collect();
            let ours = PointSeries { name: name.clone(), colour, look: PointLook::Line, points };
            let printed = |case: &String| {
                let (y, _) = done.paper.printed(case, metric)?;
                let name = format!("{case}, the paper's");
                Some(SeriesPoint { name, ..SeriesPoint::new(x_of(case)?, y) })
            };
            let points = cells.iter().filter_map(printed).collect();
            let name = "the paper's".to_owned();
            [ours, PointSeries { name, colour, look: PointLook::Ring, points }]
        };
        let (heading, _) = done.paper.words_of(metric);
        // Response times grow tenfold towards full load: on a linear axis low loads would be one
        // line.
        let is_from_zero = done.paper.from_zero.contains(metric);
        let scale = if is_from_zero { AxisScale::FromZero } else { AxisScale::Logarithmic };
        ChartPanel {
            title: heading.to_owned(),
            x: PlotAxis::new(&part.over.1, x),
            y: PlotAxis::new(heading, scale),
            series: part.lines.iter().enumerate().flat_map(line).collect(),
            ..ChartPanel::default()
        }
    });
    // Figures of other cells of the part have no line here.
    let panels = panels.filter(|panel| panel.series.iter().any(|line| !line.points.is_empty()));
    PanelChart { title: format!("{} ({})", part.title, part.name), panels: panels.collect() }
}

/// A plot of several cells: single runs, means, the paper's values, and live runs. `None` if no cell of the plot has samples.
pub(super) fn of_cells(done: &FinishedReproduction, plot: &PaperPlot) -> Option<Markup> {
    let cases = done.paper.expand(&plot.cells);
    let cases: Vec<String> =
        cases.into_iter().filter(|case| done.results.samples(case).is_some()).collect();
    let limits =
        plot.limit.iter().map(|(at, name)| PlotLimit { name: name.clone(), at: *at }).collect();
    match &plot.metrics[..] {
        _ if cases.is_empty() => None,
        [x, y] => scatter_plot(done, (&plot.title, &cases), (x, y), limits),
        [metric] => Some(strip_plot(done, &plot.title, &cases, metric, limits)),
        _ => None,
    }
}

/// Scheduler of a case: its last word.
fn scheduler_of(case: &str) -> &str {
    case.rsplit('/').next().unwrap_or(case)
}

/// Last word of a case's experiment, such as `sc2` of `j60-sc2/hads`; empty for `j60`.
fn variant_of(case: &str) -> String {
    let experiment = case.split('/').next().unwrap_or_default();
    experiment.rsplit_once('-').map_or(String::new(), |(_, variant)| variant.to_owned())
}

fn schedulers_of(cases: &[String]) -> Vec<&str> {
    unique(cases.iter().map(|case| scheduler_of(case)))
}

fn scatter_plot(
    done: &FinishedReproduction,
    (title, cases): (&str, &[String]),
    (x, y): (&str, &str),
    limits: Vec<PlotLimit>,
) -> Option<Markup> {
    let mut series = Vec::new();
    for (colour, scheduler) in schedulers_of(cases).into_iter().enumerate() {
        let of = || cases.iter().filter(|case| scheduler_of(case) == scheduler);
        let printed =
            |case: &String| Some((done.paper.printed(case, x)?.0, done.paper.printed(case, y)?.0));
        let mean = |case: &String| {
            let of = |metric| done.results.ours(case, metric);
            Some((of(x)?.mean, of(y)?))
        };
        let run = |case: &'_ String| {
            let run = |s: &RunSample| Some(SeriesPoint::new(s.figure(x)?, s.figure(y)?));
            let samples = done.results.samples(case).unwrap_or_default().iter();
            samples
                .filter_map(run)
                .map(|p| SeriesPoint { name: case.clone(), ..p })
                .collect::<Vec<_>>()
        };
        let ties = of().filter_map(|case| Some((mean(case)?, printed(case)?)));
        let ties = ties.flat_map(|((x, y), paper)| {
            [SeriesPoint::new(x, y.mean), SeriesPoint::new(paper.0, paper.1)]
        });
        let means = of().filter_map(|case| {
            let ((x, y), name) = (mean(case)?, format!("{case}, mean"));
            Some(SeriesPoint {
                interval: y.ci95,
                name,
                label: variant_of(case),
                ..SeriesPoint::new(x, y.mean)
            })
        });
        let papers = of().filter_map(|case| {
            let (x, y) = printed(case)?;
            Some(SeriesPoint { name: format!("{case}, the paper"), ..SeriesPoint::new(x, y) })
        });
        let live = done.live.iter().filter(|run| of().any(|case| *case == run.case()));
        let live = live.filter_map(|run| {
            let name = format!("{} seed {}, live", run.case(), run.seed);
            Some(SeriesPoint { name, ..SeriesPoint::new(run.makespan_s?, run.cost_usd?) })
        });
        let mut add = |name: &str, look, points: Vec<SeriesPoint>| {
            series.push(PointSeries { name: name.to_owned(), colour, look, points });
        };
        add("", PointLook::Tie, ties.collect());
        add("a run", PointLook::Sample, of().flat_map(run).collect());
        add(&format!("{scheduler}, mean"), PointLook::Mean, means.collect());
        add("the paper's", PointLook::Ring, papers.collect());
        add("live run", PointLook::Live, live.collect());
    }
    series.sort_by_key(|s| !matches!(s.look, PointLook::Sample | PointLook::Tie));
    let heading = |metric| done.paper.words_of(metric).0.to_owned();
    let panel = ChartPanel {
        title: title.to_owned(),
        x: PlotAxis::new(heading(x), AxisScale::Linear),
        y: PlotAxis::new(heading(y), AxisScale::Linear),
        series,
        limits,
        ..ChartPanel::default()
    };
    Some(panel.to_markup())
}

fn strip_plot(
    done: &FinishedReproduction,
    title: &str,
    cases: &[String],
    metric: &str,
    limits: Vec<PlotLimit>,
) -> Markup {
    let schedulers = schedulers_of(cases);
    let mut series = Vec::new();
    for (row, case) in (0_u32..).zip(cases) {
        let colour = schedulers.iter().position(|s| *s == scheduler_of(case)).unwrap_or(0);
        let mut add = |look, (name, of): (&str, &str), points: Vec<(f64, _)>| {
            let name_of = format!("{case}{of}");
            let points = points.into_iter().map(|(at, interval)| SeriesPoint {
                interval,
                name: name_of.clone(),
                ..SeriesPoint::new(at, row.into())
            });
            series.push(PointSeries {
                name: name.to_owned(),
                colour,
                look,
                points: points.collect(),
            });
        };
        let samples = done.results.samples(case).unwrap_or_default().iter();
        let samples = samples.filter_map(|sample| Some((sample.figure(metric)?, None)));
        add(PointLook::Sample, ("a run", ""), samples.collect());
        let mean = done.results.ours(case, metric).map(|ours| (ours.mean, ours.ci95));
        add(PointLook::Mean, ("mean", ", mean"), mean.into_iter().collect());
        let paper = done.paper.printed(case, metric).map(|(at, _)| (at, None));
        add(PointLook::Ring, ("the paper's", ", the paper's"), paper.into_iter().collect());
        let live = done.live.iter().filter(|run| run.case() == *case);
        let live = live.filter_map(|run| Some((run.makespan_s?, None)));
        if !done.live.is_empty() {
            add(PointLook::Live, ("live run", ", live run"), live.collect());
        }
    }
    ChartPanel {
        title: title.to_owned(),
        x: PlotAxis::new(done.paper.words_of(metric).0, AxisScale::Linear),
        rows: cases.to_vec(),
        series,
        limits,
        ..ChartPanel::default()
    }
    .to_markup()
}
