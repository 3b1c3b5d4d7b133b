//! The paper's figures: which cells they need and what they plot.

use std::collections::BTreeSet;

use dormouse_policies::batch::Algorithm;
use dormouse_workload::{Chart, Estimate, Line, Panel, PanelKind};

use super::batch_means::BatchMeans;
use super::cell::{Cell, Outcome};
use super::evaluate::{ReproduceError, Results};
use super::setting::{Cost, Draws, Estimates, Setting, Usage};
use super::statements::{COSTS, LOADS};
use super::workloads::Source;
use crate::experiment::Information;

/// A figure of the evaluation. The paper's are for FW and JW; each kind also exists for
/// KTH-SP2, which the paper does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Figures 6 (FW) and 7 (JW): the four schedulers over load.
    Schedulers(Source),
    /// Figure 8: migrations a job over load, all workloads.
    Migrations,
    /// Figures 9 and 10: without CPU usage information.
    NoUsage(Source),
    /// Figures 11 and 12: 100 % CPU usage.
    FullUsage(Source),
    /// Figures 13 and 14: migration cost.
    Cost(Source),
    /// Not in the paper: what its open choices change.
    Sensitivity(Source),
}

impl Figure {
    /// All of them.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let kinds: [fn(Source) -> Self; 4] =
            [Self::NoUsage, Self::FullUsage, Self::Cost, Self::Sensitivity];
        let others = kinds.into_iter().flat_map(|kind| Source::ALL.map(kind));
        let first = Source::ALL.map(Self::Schedulers);
        first.into_iter().chain([Self::Migrations]).chain(others).collect()
    }

    /// Its name: `figure-6` to `figure-14`, or what it shows of KTH-SP2.
    #[must_use]
    pub const fn name(self) -> &'static str {
        use Source::{FwLike, JwLike, Kth};
        match self {
            Self::Schedulers(FwLike) => "figure-6",
            Self::Schedulers(JwLike) => "figure-7",
            Self::Migrations => "figure-8",
            Self::NoUsage(FwLike) => "figure-9",
            Self::NoUsage(JwLike) => "figure-10",
            Self::FullUsage(FwLike) => "figure-11",
            Self::FullUsage(JwLike) => "figure-12",
            Self::Cost(FwLike) => "figure-13",
            Self::Cost(JwLike) => "figure-14",
            Self::Schedulers(Kth) => "kth-schedulers",
            Self::NoUsage(Kth) => "kth-no-usage",
            Self::FullUsage(Kth) => "kth-full-usage",
            Self::Cost(Kth) => "kth-cost",
            Self::Sensitivity(FwLike) => "fw-sensitivity",
            Self::Sensitivity(JwLike) => "jw-sensitivity",
            Self::Sensitivity(Kth) => "kth-sensitivity",
        }
    }

    /// The one of this name.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn named(name: &str) -> Result<Self, ReproduceError> {
        let all = Self::all();
        all.iter().copied().find(|figure| figure.name() == name).ok_or_else(|| {
            let known = all.into_iter().map(Self::name).collect();
            ReproduceError::NoFigure { name: name.to_owned(), known }
        })
    }

    fn title(self) -> String {
        match self {
            Self::Schedulers(source) => format!("{}: the four schedulers", source.name()),
            Self::Migrations => "migrations of MEASY".to_owned(),
            Self::NoUsage(source) => format!("{}: no CPU usage information", source.name()),
            Self::FullUsage(source) => format!("{}: 100 % CPU usage", source.name()),
            Self::Cost(source) => format!("{}: migration cost", source.name()),
            Self::Sensitivity(source) => format!("{}: what open choices change", source.name()),
        }
    }

    /// The lines of its panels: name, workload, setting, scheduler.
    fn lines(self) -> Vec<(String, Source, Setting, Algorithm)> {
        use Algorithm::{Easy, Keasy, Measy, Reasy};
        let standard = Setting::default();
        let line = |source, setting, algorithm: Algorithm| {
            (algorithm.name().to_uppercase(), source, setting, algorithm)
        };
        let compared = |source, setting| {
            vec![
                line(source, standard, Easy),
                line(source, setting, Keasy),
                line(source, setting, Measy),
            ]
        };
        match self {
            // In all figures a scheduler has the same place, and so the same colour.
            Self::Schedulers(source) => [Easy, Keasy, Measy, Reasy]
                .map(|algorithm| line(source, standard, algorithm))
                .into(),
            Self::Migrations => {
                Source::ALL.map(|source| (source.name().to_owned(), source, standard, Measy)).into()
            }
            Self::NoUsage(source) => {
                compared(source, Setting { information: Information::Absent, ..standard })
            }
            Self::FullUsage(source) => compared(source, Setting { usage: Usage::Full, ..standard }),
            Self::Sensitivity(source) => {
                let of = |setting: Setting, algorithms: &[Algorithm]| {
                    let line = |a: &Algorithm| {
                        let name = format!("{}, {}", a.name().to_uppercase(), setting.name());
                        (name, source, setting, *a)
                    };
                    algorithms.iter().map(line).collect::<Vec<_>>()
                };
                let exact = Setting { estimates: Estimates::Exact, ..standard };
                let each = Setting { draws: Draws::EachProcess, ..standard };
                let mut lines = of(standard, &[Easy]);
                lines.extend(of(exact, &[Easy, Keasy, Reasy, Measy]));
                lines.extend(of(each, &[Keasy, Reasy, Measy]));
                lines
            }
            Self::Cost(source) => {
                let mut lines = vec![line(source, standard, Keasy)];
                lines.extend(COSTS.map(|cost| {
                    let setting = Setting { cost: Cost(cost), ..standard };
                    (format!("MEASY {cost} s"), source, setting, Measy)
                }));
                lines
            }
        }
    }

    /// The cells it needs.
    #[must_use]
    pub fn cells(self) -> BTreeSet<Cell> {
        let lines = self.lines();
        let cells = lines.into_iter().flat_map(|(_, source, setting, algorithm)| {
            LOADS.map(|load| Cell { source, setting, load, algorithm }.canonical())
        });
        cells.collect()
    }

    /// The chart of this figure, made of our results.
    #[must_use]
    pub fn chart(self, results: &Results) -> Chart {
        type Metric = (&'static str, &'static str, fn(&Outcome) -> &BatchMeans);
        let metrics: &[Metric] = match self {
            Self::Migrations => &[("migrations", "migrations a job", |o| &o.migrations)],
            _ => &[
                ("response time", "s", |o| &o.response),
                ("bounded slowdown", "", |o| &o.slowdown),
            ],
        };
        let panels = metrics.iter().map(|&(title, y_label, metric)| Panel {
            title: title.to_owned(),
            x_label: "offered load".to_owned(),
            y_label: y_label.to_owned(),
            // Responses grow tenfold towards full load: the low loads would be one line.
            kind: match self {
                Self::Migrations => PanelKind::Linear,
                _ => PanelKind::Logarithmic,
            },
            lines: self
                .lines()
                .into_iter()
                .map(|(name, source, setting, algorithm)| {
                    let (mut points, mut bars) = (Vec::new(), Vec::new());
                    for load in LOADS {
                        let cell = Cell { source, setting, load, algorithm };
                        let outcome = results.get(&cell.canonical());
                        if let Some(Estimate { mean, ci95, .. }) =
                            outcome.and_then(|outcome| metric(outcome).estimate())
                        {
                            points.push((f64::from(load) / 100.0, mean));
                            bars.push(ci95.unwrap_or((mean, mean)));
                        }
                    }
                    Line { name, points, bars }
                })
                .collect(),
        });
        let title = format!("{} ({})", self.title(), self.name());
        Chart { title, panels: panels.collect() }
    }
}
