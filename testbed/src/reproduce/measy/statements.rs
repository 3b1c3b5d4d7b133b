//! What the paper says in words, each as a figure of ours beside its own.

use dormouse_policies::batch::Algorithm::{self, Easy, Keasy, Measy, Reasy};
use dormouse_workload::Estimate;

use super::batch_means::{BatchMeans, mean_by_batch};
use super::cell::{Cell, Outcome};
use super::evaluate::Results;
use super::setting::{Cost, Setting, Usage};
use super::table::short;
use super::workloads::Source;
use crate::experiment::Information;
use crate::reproduce::compared::DEVIATION;

/// Migration costs in seconds, the default first.
pub(super) const COSTS: [u32; 8] = [20, 120, 300, 480, 900, 1500, 2400, 3600];

/// A statement of the paper about a workload, or one like it about KTH-SP2, which it lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statement {
    /// "an up to 41.1% and an average of 23.1% improvement on the average response time and an up
    /// to 82.9% and an average of 69.3% improvement on the average slowdown in contrast to EASY".
    Improvement {
        /// FW and JW together, as the paper counts, or KTH-SP2.
        of: Workloads,
        /// Response or slowdown.
        metric: Metric,
        /// The best of all loads, or their mean.
        best: bool,
    },
    /// One scheduler's mean response is below another's, at how many of the loads.
    Below {
        /// The workload.
        source: Source,
        /// Under which setting.
        under: Under,
        /// The better.
        one: Algorithm,
        /// The worse.
        other: Algorithm,
    },
    /// The migration cost from which MEASY's response is no longer below KEASY's at some load
    /// ("if the migration cost is less than 900 seconds, better performance than KEASY can always
    /// be obtained"), or at any.
    BreakEven {
        /// The workload.
        source: Source,
        /// At any load, not at some.
        any: bool,
    },
    /// "The number of job migration in JWload is greater than in FWload when the system load is
    /// high, but JWload needs less migration than FWload when the system load is low": JW's over
    /// FW's at the highest or lowest load.
    Migrations {
        /// At the highest load.
        high: bool,
    },
}

/// Whose loads are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workloads {
    /// The paper's two.
    Paper,
    /// The log.
    Kth,
}

/// The quantity that a statement calls improved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Mean response time.
    Response,
    /// Mean bounded slowdown.
    Slowdown,
}

/// The settings that the paper compares schedulers under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Under {
    /// Section 3.4.
    Standard,
    /// Section 3.5.1.
    NoInformation,
    /// Section 3.5.2.
    FullUsage,
}

/// From where statements are judged: loads in percent, and what is changed besides.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Offered loads.
    pub loads: &'static [u32],
    /// Makes the setting to look at of the one that is given.
    pub change: fn(Setting) -> Setting,
}

/// Offered loads in percent, all of them.
pub const LOADS: [u32; 7] = [30, 40, 50, 60, 70, 80, 90];

impl View {
    /// The paper's standard setting at all loads.
    pub const STANDARD: Self = Self { loads: &LOADS, change: |setting| setting };
}

impl Statement {
    /// All of them; those about KTH-SP2 come last.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for of in [Workloads::Paper, Workloads::Kth] {
            for metric in [Metric::Response, Metric::Slowdown] {
                all.extend([false, true].map(|best| Self::Improvement { of, metric, best }));
            }
            let sources: &[Source] = match of {
                Workloads::Paper => &[Source::FwLike, Source::JwLike],
                Workloads::Kth => &[Source::Kth],
            };
            for &source in sources {
                let below = |under, one, other| Self::Below { source, under, one, other };
                all.extend(
                    [(Measy, Keasy), (Measy, Reasy), (Measy, Easy), (Keasy, Reasy)]
                        .map(|(one, other)| below(Under::Standard, one, other)),
                );
                // "For JWload, it is even worse than EASY."
                let (one, other) =
                    if source == Source::FwLike { (Reasy, Easy) } else { (Easy, Reasy) };
                all.push(below(Under::Standard, one, other));
                for under in [Under::NoInformation, Under::FullUsage] {
                    all.extend(
                        [(Keasy, Easy), (Measy, Easy), (Measy, Keasy)]
                            .map(|(one, other)| below(under, one, other)),
                    );
                }
                all.extend([false, true].map(|any| Self::BreakEven { source, any }));
            }
            if of == Workloads::Paper {
                all.extend([true, false].map(|high| Self::Migrations { high }));
            }
        }
        all
    }

    /// The statement in words.
    #[must_use]
    pub fn text(&self) -> String {
        match *self {
            Self::Improvement { of, metric, best } => {
                let best = if best { "at the best load" } else { "on average" };
                format!("{}: MEASY's {} below EASY's {best}, %", of.name(), metric.name())
            }
            Self::Below { source, under, one, other } => {
                let under = match under {
                    Under::Standard => "",
                    Under::NoInformation => ", no usage information",
                    Under::FullUsage => ", 100 % usage",
                };
                let name = |algorithm: Algorithm| algorithm.name().to_uppercase();
                let (one, other) = (name(one), name(other));
                let (name, of) = (source.name(), LOADS.len());
                format!("{name}{under}: of {of} loads, at which {one} is better than {other}")
            }
            Self::BreakEven { source, any } => {
                let at = if any { "some" } else { "every" };
                let name = source.name();
                format!("{name}: migration cost up to which MEASY beats KEASY at {at} load, s")
            }
            Self::Migrations { high } => {
                let at = if high { "highest" } else { "lowest" };
                format!("migrations a job at the {at} load, jw-like's over fw-like's")
            }
        }
    }

    /// Its name in `table.csv`: a case and a metric.
    #[must_use]
    pub fn name(&self) -> (String, String) {
        match *self {
            Self::Improvement { of, metric, best } => {
                let best = if best { "best" } else { "mean" };
                let case = format!("{}/measy over easy", of.name());
                (case, format!("{}_improvement_{best}_%", metric.name()))
            }
            Self::Below { source, under, one, other } => {
                let setting = under.setting().name();
                let case = format!("{}/{setting}/{one} below {other}", source.name());
                (case, "loads".to_owned())
            }
            Self::BreakEven { source, any } => {
                let metric = if any { "break_even_cost_most_s" } else { "break_even_cost_least_s" };
                (format!("{}/measy against keasy", source.name()), metric.to_owned())
            }
            Self::Migrations { high } => {
                let at = if high { "highest" } else { "lowest" };
                ("jw-like over fw-like".to_owned(), format!("migrations_ratio_{at}_load"))
            }
        }
    }

    /// A figure of it in words, from `view`.
    #[must_use]
    pub fn words(&self, figure: f64, view: &View) -> String {
        match self {
            // MEASY is ahead at the highest cost that was tried.
            Self::BreakEven { .. } if figure >= f64::from(COSTS[COSTS.len() - 1]) => {
                format!("≥ {}", short(figure))
            }
            Self::Below { .. } if view.loads.len() < LOADS.len() => {
                format!("{} of {}", short(figure), view.loads.len())
            }
            _ => short(figure),
        }
    }

    /// Whether more than the paper's figure says more of the same: by how much one is better.
    const fn is_size(&self) -> bool {
        matches!(self, Self::Improvement { .. } | Self::BreakEven { .. })
    }

    /// What became of it in words, given what [`Self::holds`] says of ours.
    #[must_use]
    pub fn verdict(&self, ours: &Estimate, holds: Option<bool>) -> &'static str {
        let paper = self.paper(&View::STANDARD).filter(|_| self.is_size());
        match (holds, paper) {
            (None, _) => "",
            (Some(true), _) => "holds",
            (Some(false), Some(paper)) if ours.covers(paper) => "within our interval",
            (Some(false), Some(paper)) if ours.mean > paper => "ours is larger",
            (Some(false), Some(_)) => "ours is smaller",
            (Some(false), None) => "does not hold",
        }
    }

    /// The paper's figure, where it gives one; for loads, all of them.
    #[must_use]
    pub fn paper(&self, view: &View) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "seven loads")]
        match *self {
            Self::Improvement { of: Workloads::Kth, .. }
            | Self::BreakEven { source: Source::Kth, .. }
            | Self::Below { source: Source::Kth, .. }
            | Self::Migrations { .. } => None,
            Self::Improvement { metric, best, .. } => Some(match (metric, best) {
                (Metric::Response, false) => 23.1,
                (Metric::Response, true) => 41.1,
                (Metric::Slowdown, false) => 69.3,
                (Metric::Slowdown, true) => 82.9,
            }),
            Self::Below { .. } => Some(view.loads.len() as f64),
            Self::BreakEven { source, any } => Some(match (source, any) {
                (Source::FwLike, false) => 900.0,
                (Source::FwLike, true) => 1500.0,
                (_, false) => 480.0,
                (_, true) => 900.0,
            }),
        }
    }

    /// Whether a figure of ours bears it out; `None` where the paper is silent on it.
    #[must_use]
    pub fn holds(&self, ours: f64, view: &View) -> Option<bool> {
        match (self, self.paper(view)) {
            (Self::Migrations { high }, _) => Some((ours > 1.0) == *high),
            (_, None) => None,
            (Self::Below { .. }, Some(all)) => Some(ours >= all),
            (_, Some(paper)) => Some((ours / paper - 1.0).abs() <= DEVIATION),
        }
    }

    /// How far `ours` is from what bears it out: 0 where it does.
    #[must_use]
    pub fn distance(&self, ours: f64, view: &View) -> Option<f64> {
        match (self, self.paper(view)) {
            (Self::Migrations { high }, _) => {
                let beyond = if *high { 1.0 - ours } else { ours - 1.0 };
                Some(beyond.max(0.0))
            }
            (_, Some(paper)) => Some((ours / paper - 1.0).abs()),
            (_, None) => None,
        }
    }

    /// The simulations that it speaks of.
    #[must_use]
    pub fn cells(&self, view: &View) -> Vec<Cell> {
        let each = |source: Source, setting: Setting, algorithms: &[Algorithm]| -> Vec<Cell> {
            let setting = (view.change)(setting);
            let at = |&load: &u32| {
                algorithms
                    .iter()
                    .map(move |&algorithm| Cell { source, setting, load, algorithm }.canonical())
            };
            view.loads.iter().flat_map(at).collect()
        };
        let standard = Setting::default();
        match *self {
            Self::Improvement { of, .. } => of
                .sources()
                .iter()
                .flat_map(|&source| each(source, standard, &[Easy, Measy]))
                .collect(),
            Self::Below { source, under, one, other } => {
                each(source, under.setting(), &[one, other])
            }
            Self::BreakEven { source, .. } => {
                let costs = COSTS.into_iter().flat_map(|cost| {
                    each(source, Setting { cost: Cost(cost), ..standard }, &[Measy])
                });
                costs.chain(each(source, standard, &[Keasy])).collect()
            }
            Self::Migrations { .. } => Workloads::Paper
                .sources()
                .iter()
                .flat_map(|&source| each(source, standard, &[Measy]))
                .collect(),
        }
    }

    /// Ours; `None` where a simulation that it speaks of was not made.
    #[must_use]
    pub fn ours(&self, results: &Results, view: &View) -> Option<Estimate> {
        match *self {
            Self::Improvement { of, metric, best } => improvement(results, view, of, metric, best),
            Self::Below { source, under, one, other } => {
                let mut count = 0.0;
                for &load in view.loads {
                    let cell = |algorithm| Cell {
                        source,
                        setting: (view.change)(under.setting()),
                        load,
                        algorithm,
                    };
                    let below = percent_below(results, cell(one), cell(other), Metric::Response)?;
                    count += if Estimate::of(&below)?.mean > 0.0 { 1.0 } else { 0.0 };
                }
                Some(Estimate::exact(count, view.loads.len()))
            }
            Self::BreakEven { source, any } => {
                let each: Option<Vec<f64>> =
                    view.loads.iter().map(|&load| crossing(results, view, source, load)).collect();
                let each = each?;
                let pick = if any { f64::max } else { f64::min };
                let cost = each.iter().copied().reduce(pick)?;
                Some(Estimate::exact(cost, each.len()))
            }
            Self::Migrations { high } => {
                let load = *if high { view.loads.last()? } else { view.loads.first()? };
                let migrations = |source| {
                    let setting = (view.change)(Setting::default());
                    let cell = Cell { source, setting, load, algorithm: Measy };
                    Some(outcome(results, cell)?.migrations.estimate()?.mean)
                };
                let ratio = migrations(Source::JwLike)? / migrations(Source::FwLike)?;
                Some(Estimate::exact(ratio, 1))
            }
        }
    }
}

impl Workloads {
    const fn name(self) -> &'static str {
        match self {
            Self::Paper => "fw-like and jw-like",
            Self::Kth => "kth-sp2",
        }
    }

    const fn sources(self) -> &'static [Source] {
        match self {
            Self::Paper => &[Source::FwLike, Source::JwLike],
            Self::Kth => &[Source::Kth],
        }
    }
}

impl Under {
    fn setting(self) -> Setting {
        let standard = Setting::default();
        match self {
            Self::Standard => standard,
            Self::NoInformation => Setting { information: Information::Absent, ..standard },
            Self::FullUsage => Setting { usage: Usage::Full, ..standard },
        }
    }
}

impl Metric {
    const fn name(self) -> &'static str {
        match self {
            Self::Response => "response",
            Self::Slowdown => "slowdown",
        }
    }

    pub(super) const fn of(self, outcome: &Outcome) -> &BatchMeans {
        match self {
            Self::Response => &outcome.response,
            Self::Slowdown => &outcome.slowdown,
        }
    }
}

fn outcome(results: &Results, cell: Cell) -> Option<&Outcome> {
    results.get(&cell.canonical())
}

/// Percent by which `cell` is below the cell that it is measured against, batch by batch.
fn percent_below(results: &Results, cell: Cell, than: Cell, of: Metric) -> Option<Vec<f64>> {
    let (ours, theirs) = (outcome(results, cell)?, outcome(results, than)?);
    of.of(ours).percent_below(of.of(theirs))
}

/// Mean or best improvement of MEASY over EASY, over all workloads and loads. All loads have the same
/// jobs, so that the batches are the samples and not the loads; those of two workloads are paired, which
/// changes nothing: they are independent.
fn improvement(
    results: &Results,
    view: &View,
    of: Workloads,
    metric: Metric,
    best: bool,
) -> Option<Estimate> {
    let mut each = Vec::new();
    for &source in of.sources() {
        for &load in view.loads {
            let setting = (view.change)(Setting::default());
            let cell = |algorithm| Cell { source, setting, load, algorithm };
            each.push(percent_below(results, cell(Measy), cell(Easy), metric)?);
        }
    }
    if !best {
        return mean_by_batch(&each);
    }
    let each: Option<Vec<Estimate>> = each.iter().map(|values| Estimate::of(values)).collect();
    each?.into_iter().max_by(|a, b| a.mean.total_cmp(&b.mean))
}

/// The cost at which MEASY is no longer ahead of KEASY, by straight lines between the costs; the
/// largest cost where it is ahead at all of them.
fn crossing(results: &Results, view: &View, source: Source, load: u32) -> Option<f64> {
    let cell = |cost, algorithm| {
        let setting = (view.change)(Setting { cost: Cost(cost), ..Setting::default() });
        Cell { source, setting, load, algorithm }
    };
    let response = |cell| Some(outcome(results, cell)?.response.estimate()?.mean);
    let bar = response(cell(COSTS[0], Keasy))?;
    let mut last: Option<(f64, f64)> = None;
    for cost in COSTS {
        let over = response(cell(cost, Measy))? - bar;
        let cost = f64::from(cost);
        if over >= 0.0 {
            return Some(last.map_or(cost, |(c, o)| c + (cost - c) * -o / (over - o)));
        }
        last = Some((cost, over));
    }
    last.map(|(cost, _)| cost)
}
