//! Parts of a paper whose figures do not come from experiments.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use dormouse_analysis::RunSample;
use dormouse_fit::{LifeQuery, read_lifetimes};
use serde::{Deserialize, Serialize};

use super::acc::{self, PriceFiles};
use super::bathtub::{self, LifetimeEvidence};
use super::opie;
use super::pattern::unique;
use crate::sweep::{SampleSource, SharedInputs, SweepError, digest_of, digest_of_file};
use dormouse_experiment::read_file;

/// Source of the figures of a part that our experiments do not compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureSource {
    /// The figures come from the host tables of the OPIE paper: the VMs selected for termination.
    HostTables,
    /// The figures are latencies of the provider's scheduler, measured on this machine.
    Latency,
    /// The figures come from recorded lifetimes and laws fitted to them (bathtub paper).
    Lifetimes,
    /// The figures come from jobs simulated over recorded prices (ACC paper).
    Prices,
}

/// Recorded data that the user gives, with their digest.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordedInputs {
    lives: Arc<LifetimeEvidence>,
    prices: Option<Arc<PriceFiles>>,
    prices_by: acc::RecordSettings,
    digest: Option<String>,
}

impl RecordedInputs {
    /// Reads a file of lifetimes with one row for each VM, or a folder of prices with the settings
    /// `set`.
    pub(super) fn read(
        lives: Option<&Path>,
        prices: Option<&Path>,
        set: &[String],
    ) -> Result<Self, SweepError> {
        let mut all = Self { prices_by: acc::RecordSettings::read(set)?, ..Self::default() };
        if let Some(path) = lives {
            let query = LifeQuery::default();
            let record = read_file(path, |source| read_lifetimes(source, &query))?;
            all.lives = Arc::new(LifetimeEvidence::new(Some(record)));
            all.digest = digest_of_file(path);
        }
        if let Some(folder) = prices {
            let prices = PriceFiles::read(folder, &all.prices_by)?;
            all.digest = Some(prices.digest().to_owned());
            all.prices = Some(Arc::new(prices));
        }
        if !set.is_empty() {
            all.digest = Some(digest_of(&(&all.digest, set)));
        }
        Ok(all)
    }
}

/// A computation that makes several cells at once: all cells whose names begin with the computation's case.
#[derive(Debug)]
pub(super) struct CellComputation {
    pub(super) own: FigureSource,
    pub(super) case: String,
    digest: String,
    recorded: RecordedInputs,
    /// Figures that do not depend on a seed, computed once for all seeds.
    exact: OnceLock<Option<BTreeMap<String, f64>>>,
    /// Results of spot jobs simulated over recorded prices, computed once for all resamples of the price record.
    jobs: acc::CaseJobs,
    /// Greatest number of seeds; `None` if there is no limit.
    most_seeds: Option<u64>,
}

impl FigureSource {
    /// Whether the figures are measured on this machine, so that no other run may run at the same time.
    pub(super) const fn is_measured(self) -> bool {
        matches!(self, Self::Latency)
    }

    /// Computations from which the figures of these cells come.
    pub(super) fn all(
        self,
        cells: &[String],
        recorded: &RecordedInputs,
    ) -> impl Iterator<Item = CellComputation> {
        let cases = cells.iter().filter_map(|cell| Some(cell.rsplit_once('/')?.0.to_owned()));
        unique(cases).into_iter().map(move |case| CellComputation::new(self, case, recorded))
    }
}

impl CellComputation {
    fn new(own: FigureSource, case: String, recorded: &RecordedInputs) -> Self {
        let digest = digest_of(&(own, &case, &recorded.digest));
        let (recorded, exact) = (recorded.clone(), OnceLock::new());
        Self {
            own,
            case,
            digest,
            recorded,
            exact,
            jobs: acc::CaseJobs::default(),
            most_seeds: None,
        }
    }

    /// Limits the number of seeds of the computation; `None` sets no limit.
    pub(super) fn at_most(self, most_seeds: Option<u64>) -> Self {
        Self { most_seeds, ..self }
    }

    /// A copy of the computation for other cells, from the same data.
    pub(super) fn named(&self, case: &str) -> Self {
        Self::new(self.own, case.to_owned(), &self.recorded)
    }

    /// Samples of each cell: the figure `opie/mean_us` is `mean_us` of the cell that ends with
    /// `opie`.
    pub(super) fn by_cell(&self, samples: &[RunSample]) -> Vec<(String, Vec<RunSample>)> {
        let figures = samples.iter().flat_map(|sample| sample.figures.keys());
        let words = unique(figures.filter_map(|name| Some(name.split_once('/')?.0.to_owned())));
        let of_word = |word: String| {
            let of = |(name, figure): (&String, &f64)| {
                let (cell, name) = name.split_once('/')?;
                (cell == word).then(|| (name.to_owned(), *figure))
            };
            let of = |sample: &RunSample| {
                let figures = sample.figures.iter().filter_map(of).collect();
                RunSample { figures, ..sample.clone() }
            };
            (format!("{}/{word}", self.case), samples.iter().map(of).collect())
        };
        words.into_iter().map(of_word).collect()
    }

    /// Oddities of the given price records, by file.
    pub(super) fn price_notes(&self) -> impl Iterator<Item = (String, Vec<String>)> {
        self.recorded.prices.iter().flat_map(|prices| prices.notes())
    }

    /// Checks that the data of the computation are given.
    ///
    /// # Errors
    ///
    /// Data are missing; the error names them.
    pub(super) fn check(&self) -> Result<(), SweepError> {
        match (self.own, &self.recorded.prices) {
            (FigureSource::Prices, Some(prices)) => acc::check(&self.case, prices),
            _ => Ok(()),
        }
    }

    fn of_lifetimes(&self, seed: u64) -> Option<BTreeMap<String, f64>> {
        let record = &self.recorded.lives;
        let exact = self.exact.get_or_init(|| bathtub::exact(&self.case, record));
        let mut figures = exact.clone()?;
        figures.extend(bathtub::drawn(&self.case, record, seed)?);
        Some(figures)
    }
}

impl SampleSource for CellComputation {
    fn case(&self) -> &str {
        &self.case
    }

    fn digest(&self) -> &str {
        &self.digest
    }

    fn seeds(&self, wanted: &RangeInclusive<u64>) -> RangeInclusive<u64> {
        let last = |most: u64| wanted.start().saturating_add(most.saturating_sub(1));
        let last = self.most_seeds.map_or(*wanted.end(), |most| last(most).min(*wanted.end()));
        *wanted.start()..=last
    }

    fn run(&self, seed: u64, _: &SharedInputs) -> Result<RunSample, SweepError> {
        let figures = match self.own {
            FigureSource::HostTables => opie::selections(&self.case, seed),
            FigureSource::Latency => opie::latencies(&self.case, seed),
            FigureSource::Lifetimes => self.of_lifetimes(seed),
            FigureSource::Prices => {
                let RecordedInputs { prices, prices_by, .. } = &self.recorded;
                let records = prices.as_deref();
                let given = acc::CaseInputs { records, settings: prices_by, memory: &self.jobs };
                acc::simulated(&self.case, given, seed)?
            }
        };
        let unknown = || {
            SweepError::BadInput(format!(
                "{}: the paper's data file has no case of this name",
                self.case
            ))
        };
        let figures = figures.ok_or_else(unknown)?;
        Ok(RunSample { figures, batches: BTreeMap::new(), steps: 0, decisions: String::new() })
    }
}
