//! Parts of a paper that are not of experiments: what else their figures are of.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use dormouse_fit::Record;
use dormouse_tell::Sample;
use serde::{Deserialize, Serialize};

use super::pattern::unique;
use super::{bathtub, opie};
use crate::experiment::files;
use crate::sweep::{Sampled, Shared, SweepError, digest_of, digest_of_file};

/// What the figures of a part are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Own {
    /// The host tables of the OPIE paper: which VMs are selected.
    HostTables,
    /// How long the provider's scheduler takes on this machine.
    Latency,
    /// The bathtub paper: lifetimes that were recorded, and what laws of them come to.
    Lifetimes,
}

/// Recorded lifetimes, and the digest of their file.
#[derive(Clone, Debug)]
pub(super) struct Recorded {
    pub(super) lives: Arc<Record>,
    pub(super) digest: Option<String>,
}

impl Recorded {
    /// Of a file with a row a VM.
    pub(super) fn read(path: &Path) -> Result<Self, SweepError> {
        let lives = files::record(path, |text| Record::read(text, false))?;
        Ok(Self { lives: Arc::new(lives), digest: digest_of_file(path) })
    }
}

/// What is made at once for several cells: those that begin with its case.
#[derive(Debug)]
pub(super) struct Made {
    own: Own,
    pub(super) case: String,
    digest: String,
    recorded: Option<Recorded>,
    /// What no chance has a part in, made once for all seeds.
    exact: OnceLock<Option<BTreeMap<String, f64>>>,
}

impl Own {
    /// What has to be made for these cells.
    pub(super) fn all(
        self,
        cells: &[String],
        recorded: Option<&Recorded>,
    ) -> impl Iterator<Item = Made> {
        let cases = cells.iter().filter_map(|cell| Some(cell.rsplit_once('/')?.0.to_owned()));
        unique(cases).into_iter().map(move |case| {
            let digest = digest_of(&(self, &case, recorded.map(|r| &r.digest)));
            Made { own: self, case, digest, recorded: recorded.cloned(), exact: OnceLock::new() }
        })
    }
}

impl Made {
    /// The samples of each cell: the figure `opie/mean_us` is `mean_us` of that which ends with `opie`.
    pub(super) fn by_cell(&self, samples: &[Sample]) -> Vec<(String, Vec<Sample>)> {
        let figures = samples.iter().flat_map(|sample| sample.figures.keys());
        let words = unique(figures.filter_map(|name| Some(name.split_once('/')?.0.to_owned())));
        let of_word = |word: String| {
            let of = |(name, figure): (&String, &f64)| {
                let (cell, name) = name.split_once('/')?;
                (cell == word).then(|| (name.to_owned(), *figure))
            };
            let of = |sample: &Sample| {
                let figures = sample.figures.iter().filter_map(of).collect();
                Sample { figures, ..sample.clone() }
            };
            (format!("{}/{word}", self.case), samples.iter().map(of).collect())
        };
        words.into_iter().map(of_word).collect()
    }

    fn of_lifetimes(&self, seed: u64) -> Option<BTreeMap<String, f64>> {
        let record = self.recorded.as_ref().map(|recorded| &*recorded.lives);
        let exact = self.exact.get_or_init(|| bathtub::exact(&self.case, record));
        let mut figures = exact.clone()?;
        figures.extend(bathtub::drawn(&self.case, record, seed)?);
        Some(figures)
    }
}

impl Sampled for Made {
    fn case(&self) -> &str {
        &self.case
    }

    fn digest(&self) -> &str {
        &self.digest
    }

    fn run(&self, seed: u64, _: &Shared) -> Result<Sample, SweepError> {
        let figures = match self.own {
            Own::HostTables => opie::selections(&self.case, seed),
            Own::Latency => opie::latencies(&self.case, seed),
            Own::Lifetimes => self.of_lifetimes(seed),
        };
        let unknown =
            || SweepError::BadInput(format!("{}: the data file has no such case", self.case));
        let figures = figures.ok_or_else(unknown)?;
        Ok(Sample { figures, batches: BTreeMap::new(), steps: 0, decisions: String::new() })
    }
}
