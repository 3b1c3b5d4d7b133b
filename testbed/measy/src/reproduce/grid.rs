//! All cells that the wanted figures need, run, and their results written.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};

use dormouse_batch::{Sharing, SimulationError};
use dormouse_workload::{EstimatesError, ModelError, SwfError};

use super::cell::{Cell, Outcome};
use super::figures::Figure;
use super::workloads::{Source, Workload};
use super::{claims, parallel, table};

/// Offered loads in percent.
pub(super) const LOADS: [u32; 7] = [30, 40, 50, 60, 70, 80, 90];

/// What to reproduce, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which figures.
    pub figures: Vec<Figure>,
    /// The log of KTH-SP2; its figures are left out without it.
    pub kth: Option<PathBuf>,
    /// Only this many jobs of each workload, for a quick look.
    pub most_jobs: Option<usize>,
    /// How two VMs share a processor.
    pub sharing: Sharing,
    /// For all chance.
    pub seed: u64,
    /// Threads; the results do not depend on it.
    pub threads: usize,
    /// Where `table.csv`, `report.md` and the plots go.
    pub out: PathBuf,
}

/// Outcomes by cell.
pub type Results = BTreeMap<Cell, Outcome>;

/// Why the evaluation can't be reproduced.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// The log.
    #[error(transparent)]
    Swf(#[from] SwfError),
    /// A model.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The estimates.
    #[error(transparent)]
    Estimates(#[from] EstimatesError),
    /// A figure that the paper does not have.
    #[error("measy/{name}: there is no such figure; there are {}", known.join(", "))]
    NoFigure {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<&'static str>,
    },
    /// The log is not there.
    #[error("the log of KTH-SP2 is not given: give it with --kth KTH-SP2-1996-2.1-cln.swf.gz")]
    NoKth,
    /// A simulation that can't be.
    #[error("{cell}: {source}")]
    Simulation {
        /// Which.
        cell: String,
        /// Why.
        #[source]
        source: SimulationError<Infallible>,
    },
    /// A result can't be written.
    #[error("can't write {}", path.display())]
    Write {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl ReproduceError {
    /// Exit status: 2 if the input is at fault, 1 otherwise.
    #[must_use]
    pub const fn exit_status(&self) -> u8 {
        match self {
            Self::Write { .. } => 1,
            _ => 2,
        }
    }
}

/// Runs all cells of the figures and writes their table, report and plots; gives the report.
/// `progress` is told how many of how many cells are done.
///
/// # Errors
///
/// See [`ReproduceError`].
pub fn reproduce(
    options: &Options,
    progress: impl Fn(usize, usize) + Sync,
) -> Result<String, ReproduceError> {
    let cells: BTreeSet<Cell> = options.figures.iter().flat_map(|f| f.cells()).collect();
    // KTH's part of a figure of all workloads may be missing; its own figures say so.
    let has_kth = options.kth.is_some();
    let cells: Vec<Cell> =
        cells.into_iter().filter(|c| has_kth || c.source != Source::Kth).collect();
    if cells.is_empty() {
        return Err(ReproduceError::NoKth);
    }
    let mut workloads = BTreeMap::new();
    for source in Source::ALL {
        if cells.iter().any(|cell| cell.source == source) {
            let (kth, most) = (options.kth.as_deref(), options.most_jobs);
            workloads.insert(source, Workload::make(source, kth, most, options.seed)?);
        }
    }
    let run = |cell: &Cell| {
        let simulated = cell.run(&workloads[&cell.source], options.sharing, options.seed);
        simulated.map_err(|source| ReproduceError::Simulation { cell: cell.name(), source })
    };
    // The longest first, so that the last cells to be done are short ones.
    let mut order = cells;
    order.sort_by_key(|cell| (std::cmp::Reverse((cell.load, cell.algorithm)), *cell));
    let outcomes = parallel::each(&order, options.threads, run, |n| progress(n, order.len()));
    let mut results = Results::new();
    for (cell, outcome) in order.iter().zip(outcomes) {
        results.insert(*cell, outcome?);
    }
    let claims = claims::all(&results);
    std::fs::create_dir_all(&options.out).map_err(write_error(&options.out))?;
    write(&options.out.join("table.csv"), &table::csv(&results, &claims))?;
    let mut report = table::report(&workloads, &results, &claims);
    if !has_kth {
        report.push_str("\nKTH-SP2 is left out: its log was not given (--kth).\n");
    }
    write(&options.out.join("report.md"), &report)?;
    for figure in &options.figures {
        let path = options.out.join(format!("{}.svg", figure.name()));
        write(&path, &figure.chart(&results).to_svg())?;
    }
    Ok(report)
}

fn write(path: &Path, text: &str) -> Result<(), ReproduceError> {
    std::fs::write(path, text).map_err(write_error(path))
}

fn write_error(path: &Path) -> impl Fn(io::Error) -> ReproduceError + '_ {
    |source| ReproduceError::Write { path: path.to_owned(), source }
}
