//! Selection of the figures of many runs that a page shows: figures of events are left out if the
//! event happened in no run.

use dormouse_analysis::{METRICS, RunFigure, RunSample};
use dormouse_estimate::FEWEST;
use dormouse_view::TimeUnit;

/// A figure of many runs that a page shows; if the figure is a time, with the unit that the page has for all times.
#[derive(Clone, Copy, Debug)]
pub struct ShownFigure {
    /// The figure, in its own unit.
    pub metric: &'static RunFigure,
    unit: TimeUnit,
}

/// Selected figures of many runs.
#[derive(Clone, Debug)]
pub struct ShownFigures {
    /// Figures shown to people, in the order in which they are reported.
    pub told: Vec<ShownFigure>,
    /// Figures left out because the events that they measure happened in no run.
    uneventful: Vec<&'static RunFigure>,
    /// Whether some figure has no interval because it has too few runs for an interval above zero.
    has_too_few: bool,
    unit: TimeUnit,
}

impl ShownFigure {
    /// Length in seconds of the figure's own unit; `None` if it is not a time.
    fn own_seconds(metric: &RunFigure) -> Option<f64> {
        // Work in vCPU hours is no time: two vCPUs do an hour of it in half an hour.
        match metric.heading.rsplit_once(", ")?.1 {
            "s" => Some(1.0),
            "h" => Some(3_600.0),
            _ => None,
        }
    }

    /// Unit of times on the figure's page.
    #[must_use]
    pub const fn unit(&self) -> TimeUnit {
        self.unit
    }

    /// Converts a value of the figure to the unit that is shown.
    #[must_use]
    pub fn value(&self, x: f64) -> f64 {
        Self::own_seconds(self.metric).map_or(x, |own| x * own / self.unit.seconds())
    }

    /// Number of decimals with which the figure is shown to people.
    #[must_use]
    pub fn digits(&self) -> usize {
        let digits = self.metric.digits;
        match Self::own_seconds(self.metric) {
            Some(1.0) => self.unit.digits(digits),
            Some(_) if self.unit == TimeUnit::Second => 0,
            _ => digits,
        }
    }

    /// Name of the figure, without its unit.
    #[must_use]
    pub fn name(&self) -> &'static str {
        name(self.metric)
    }

    /// Name of the figure with its unit.
    #[must_use]
    pub fn heading(&self) -> String {
        match Self::own_seconds(self.metric) {
            Some(_) => format!("{}, {}", self.name(), self.unit.symbol()),
            None if self.metric.name == "deadline_met" => {
                format!("{}, share of runs", self.metric.heading)
            }
            None => self.metric.heading.to_owned(),
        }
    }
}

impl ShownFigures {
    /// Selects figures of the runs in `samples`, given cell by cell: those of events that happened in some run, those that every
    /// table has, and those named in `always`.
    #[must_use]
    pub fn of_runs(samples: &[Vec<RunSample>], always: &[&str]) -> Self {
        let all = || samples.iter().flatten();
        let figures = |metric: &RunFigure| {
            let name = metric.name;
            all().filter_map(move |sample| figure(sample, name))
        };
        let happened = |metric: &RunFigure| match metric.uneventful {
            None => metric.in_table,
            Some(usual) => figures(metric).any(|figure| figure != usual),
        };
        let there = || METRICS.iter().filter(|metric| figures(metric).next().is_some());
        let is_told = |metric: &&RunFigure| happened(metric) || always.contains(&metric.name);
        let told: Vec<_> = there().filter(is_told).collect();
        let times = told.iter().filter_map(|metric| {
            let own = ShownFigure::own_seconds(metric)?;
            Some(figures(metric).fold(0.0, f64::max) * own)
        });
        let unit = TimeUnit::for_longest(times.fold(0.0, f64::max));
        let uneventful = there().filter(|metric| metric.uneventful.is_some() && !is_told(metric));
        let uneventful = uneventful.collect();
        let few = |metric: &&RunFigure, cell: &[RunSample]| {
            let of = dormouse_analysis::series(cell, metric.name).estimate();
            of.is_some_and(|of| of.is_of_too_few())
        };
        let has_too_few = told.iter().any(|metric| samples.iter().any(|cell| few(metric, cell)));
        let told = told.into_iter().map(|metric| ShownFigure { metric, unit }).collect();
        Self { told, uneventful, has_too_few, unit }
    }

    /// The figure with this name, shown or not, which should be one of [`METRICS`]; for an unknown
    /// name the first of them.
    pub(crate) fn named(&self, name: &str) -> ShownFigure {
        ShownFigure { metric: RunFigure::named(name).unwrap_or(&METRICS[0]), unit: self.unit }
    }

    /// The figures written to files: the ones shown to people, and the ones that tables always have.
    #[must_use]
    pub fn in_files(&self) -> Vec<ShownFigure> {
        let told = |metric: &RunFigure| self.told.iter().any(|it| it.metric.name == metric.name);
        let all = METRICS.iter().filter(|metric| metric.in_table || told(metric));
        all.map(|metric| ShownFigure { metric, unit: TimeUnit::Second }).collect()
    }

    /// A sentence on the intervals of shares of runs; `None` if no figure is a share of runs.
    #[must_use]
    pub fn interval_note(&self) -> Option<&'static str> {
        let has_share = self.told.iter().any(|measure| measure.metric.is_share);
        has_share.then_some(
            "The interval of a share of runs is Wilson's, which stays between 0 and 1; that of a mean is Student's, or of \
             resamples where that would go below zero.",
        )
    }

    /// Sentences on what is left out: figures that are zero in all runs, and intervals of too few runs; `None` if
    /// nothing is left out.
    #[must_use]
    pub fn left_out(&self) -> Option<String> {
        let (met, none): (Vec<_>, Vec<_>) =
            self.uneventful.iter().partition(|metric| metric.name == "deadline_met");
        let none: Vec<_> = none.into_iter().map(|metric| name(metric)).collect();
        let none = (!none.is_empty()).then(|| format!("Not shown, always 0: {}.", none.join(", ")));
        let met = (!met.is_empty()).then(|| "Every run met its deadline.".to_owned());
        let few = self.has_too_few.then(|| {
            format!(
                "A mean without an interval is of too few seeds for one; take {FEWEST} or more."
            )
        });
        let all: Vec<_> = none.into_iter().chain(met).chain(few).collect();
        (!all.is_empty()).then(|| all.join(" "))
    }
}

/// A figure of a run, or its mean over the run's batches; `None` if the run has no such figure.
pub(crate) fn figure(sample: &RunSample, metric: &str) -> Option<f64> {
    dormouse_analysis::series(std::slice::from_ref(sample), metric).estimate().map(|of| of.mean)
}

/// Name of a figure without its unit.
fn name(metric: &RunFigure) -> &'static str {
    match metric.heading.rsplit_once(", ") {
        Some((name, "s" | "h" | "$" | "vCPU h" | "share")) => name,
        _ => metric.heading,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(runs: &[&[(&str, f64)]]) -> Vec<Vec<RunSample>> {
        let sample = |run: &&[(&str, f64)]| RunSample {
            figures: run.iter().map(|(name, figure)| ((*name).to_owned(), *figure)).collect(),
            batches: [].into(),
            steps: 0,
            decisions: String::new(),
        };
        vec![runs.iter().map(sample).collect()]
    }

    fn headings(of: &ShownFigures) -> Vec<String> {
        of.told.iter().map(ShownFigure::heading).collect()
    }

    #[test]
    fn what_happened_in_no_run_is_said_in_a_line() {
        let quiet = [("makespan_s", 900.0), ("deadline_met", 1.0), ("preemptions", 0.0)];
        let lost = [("makespan_s", 950.0), ("deadline_met", 1.0), ("work_lost_s", 7.0)];
        let of = ShownFigures::of_runs(&samples(&[&quiet, &lost]), &[]);
        assert_eq!(headings(&of), ["makespan, s", "work lost, s"]);
        let said = of.left_out().expect("something is left out");
        assert_eq!(said, "Not shown, always 0: VMs preempted. Every run met its deadline.");
        let late = [("makespan_s", 3_000.0), ("deadline_met", 0.0), ("preemptions", 2.0)];
        let of = ShownFigures::of_runs(&samples(&[&quiet, &late]), &[]);
        assert_eq!(headings(&of), ["makespan, s", "deadline met, share of runs", "VMs preempted"]);
        let said = of.left_out().expect("two makespans as far apart have no interval");
        assert_eq!(said, "A mean without an interval is of too few seeds for one; take 5 or more.");
        let of = ShownFigures::of_runs(&samples(&[&quiet]), &["preemptions"]);
        assert_eq!(headings(&of), ["makespan, s", "VMs preempted"]);
    }

    /// Two makespans of 1,542 s and 1,820 s have a Student's interval that begins below zero, so that none is shown.
    #[test]
    fn a_mean_of_too_few_runs_has_no_interval_below_zero_and_that_is_said() {
        let runs = |all: &[f64]| {
            let runs: Vec<_> = all.iter().map(|x| [("makespan_s", *x)]).collect();
            let runs: Vec<&[(&str, f64)]> = runs.iter().map(|run| &run[..]).collect();
            samples(&runs)
        };
        let few = ShownFigures::of_runs(&runs(&[1_542.0, 1_820.0]), &[]).left_out().expect("said");
        assert_eq!(few, "A mean without an interval is of too few seeds for one; take 5 or more.");
        assert_eq!(ShownFigures::of_runs(&runs(&[838.0, 846.0]), &[]).left_out(), None);
        assert_eq!(ShownFigures::of_runs(&runs(&[838.0]), &[]).left_out(), None);
    }

    #[test]
    fn all_times_have_one_unit() {
        let short = [("makespan_s", 900.0), ("spare_h", 0.5)];
        let of = ShownFigures::of_runs(&samples(&[&short]), &[]);
        assert_eq!(headings(&of), ["makespan, s", "VMs idle, s"]);
        assert!((of.told[1].value(0.5) - 1_800.0).abs() < 1e-9);
        let long = [("makespan_s", 90_000.0), ("spare_h", 0.5), ("work_lost_vcpu_h", 3.0)];
        let of = ShownFigures::of_runs(&samples(&[&short, &long]), &[]);
        assert_eq!(headings(&of), ["makespan, h", "VMs idle, h", "work lost, vCPU h"]);
        assert!((of.told[0].value(90_000.0) - 25.0).abs() < 1e-9);
        assert_eq!((of.told[0].digits(), of.told[1].digits()), (2, 2));
    }
}
