//! What a sweep reports of the runs of either kind.

use super::{JobsSample, Sample};

/// What is reported of samples.
pub trait Reported: Sized + 'static {
    /// The metrics of `table.csv`, in this order.
    const METRICS: &'static [Metric<Self>];
    /// What `plot.svg` shows.
    const PLOT: Plot<Self>;
}

type Of<S> = fn(&S) -> Option<f64>;

/// A figure of a run.
#[derive(Clone, Copy, Debug)]
pub struct Metric<S> {
    /// Its name in `table.csv`, with the unit.
    pub name: &'static str,
    /// What it is of one run; `None`: it has none.
    pub of: Of<S>,
    /// The column that it has in the table for people.
    pub column: Option<Column>,
}

/// A column of the table for people.
#[derive(Clone, Copy, Debug)]
pub enum Column {
    /// The mean with half of its confidence interval.
    Mean {
        /// Above the column.
        heading: &'static str,
        /// Characters.
        width: usize,
        /// Behind the point.
        digits: usize,
    },
    /// How many of the runs have a 1.
    Count {
        /// Above the column.
        heading: &'static str,
    },
}

/// One figure against another.
#[derive(Clone, Copy, Debug)]
pub struct Plot<S> {
    /// Above it, before the key.
    pub title: &'static str,
    /// The horizontal axis: its name and the figure.
    pub x: (&'static str, Of<S>),
    /// The vertical one.
    pub y: (&'static str, Of<S>),
}

const fn mean(heading: &'static str, width: usize, digits: usize) -> Option<Column> {
    Some(Column::Mean { heading, width, digits })
}

fn makespan(sample: &Sample) -> Option<f64> {
    Some(sample.makespan?.as_secs_f64())
}

#[expect(clippy::unnecessary_wraps, reason = "an `Of`")]
fn cost(sample: &Sample) -> Option<f64> {
    Some(sample.cost.as_usd())
}

impl Reported for Sample {
    const METRICS: &'static [Metric<Self>] = &[
        Metric { name: "makespan_s", of: makespan, column: mean("makespan (95 % CI), s", 22, 0) },
        Metric { name: "cost_usd", of: cost, column: mean("cost (95 % CI), $", 26, 4) },
        Metric {
            name: "deadline_met",
            of: |s| Some(f64::from(u8::from(s.deadline_met))),
            column: Some(Column::Count { heading: "met" }),
        },
    ];
    const PLOT: Plot<Self> =
        Plot { title: "Cost against makespan", x: ("makespan, s", makespan), y: ("cost, $", cost) };
}

#[expect(clippy::cast_precision_loss, reason = "counts of promotions")]
const fn count(n: u64) -> Option<f64> {
    Some(n as f64)
}

impl Reported for JobsSample {
    const METRICS: &'static [Metric<Self>] = &[
        Metric {
            name: "mean_response_s",
            of: |s| Some(s.mean_response_s),
            column: mean("mean response (95 % CI), s", 26, 1),
        },
        Metric {
            name: "mean_bounded_slowdown",
            of: |s| Some(s.mean_bounded_slowdown),
            column: mean("bounded slowdown", 18, 3),
        },
        Metric {
            name: "utilisation",
            of: |s| Some(s.utilisation),
            column: mean("utilisation", 15, 3),
        },
        Metric {
            name: "makespan_s",
            of: |s| Some(s.makespan_s),
            column: mean("makespan, s", 19, 0),
        },
        Metric {
            name: "promotions",
            of: |s| count(s.swaps + s.kills + s.migrations),
            column: mean("promotions", 15, 1),
        },
        Metric { name: "swaps", of: |s| count(s.swaps), column: None },
        Metric { name: "kills", of: |s| count(s.kills), column: None },
        Metric { name: "migrations", of: |s| count(s.migrations), column: None },
    ];
    const PLOT: Plot<Self> = Plot {
        title: "Bounded slowdown against response",
        x: ("mean response, s", |s| Some(s.mean_response_s)),
        y: ("mean bounded slowdown", |s| Some(s.mean_bounded_slowdown)),
    };
}
