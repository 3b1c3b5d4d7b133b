//! From the wanted figures to their results, what the paper says of them, and why ours differ.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::path::PathBuf;

use dormouse_engine::jobs::SimulationError;
use dormouse_vm::Sharing;
use dormouse_workload::{Estimate, SwfError};

use super::causes::{self, Cause};
use super::cell::{Cell, Outcome};
use super::figures::Figure;
use super::parallel;
use super::setting::Shape;
use super::statements::{Statement, View};
use super::workloads::{Source, Workload};
use crate::experiment::InputError;
use crate::jobs::JobsError;

/// What to reproduce, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The figures to reproduce.
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
    /// Whether to look for the cause where ours differs.
    pub causes: bool,
}

/// Outcomes by cell.
pub type Results = BTreeMap<Cell, Outcome>;

/// Why the evaluation can't be reproduced.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// The log.
    #[error(transparent)]
    Swf(#[from] SwfError),
    /// The jobs.
    #[error(transparent)]
    Jobs(#[from] JobsError),
    /// What the built-in experiment of a workload is told.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A figure that the paper does not have.
    #[error("measy/{name}: there is no such figure; there are {}", known.join(", "))]
    NoFigure {
        /// What was asked for.
        name: String,
        /// The names of the figures that there are.
        known: Vec<&'static str>,
    },
    /// The log is not there.
    #[error("the log of KTH-SP2 is not given: give it with --kth KTH-SP2-1996-2.1-cln.swf.gz")]
    NoKth,
    /// A simulation that can't be.
    #[error("{cell}: {source}")]
    Simulation {
        /// The cell that was simulated.
        cell: String,
        /// The simulation's error.
        #[source]
        source: SimulationError<Infallible>,
    },
}

/// A statement of the paper, and ours.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The paper's statement.
    pub statement: Statement,
    /// The paper's figure, if it gives one.
    pub paper: Option<f64>,
    /// Ours.
    pub ours: Estimate,
    /// Whether ours bears it out; `None` where the paper is silent on it.
    pub holds: Option<bool>,
}

/// Everything that came out.
#[derive(Debug)]
pub struct Evaluation {
    /// The figures that were wanted.
    pub figures: Vec<Figure>,
    /// The workloads in their standard shape.
    pub workloads: BTreeMap<Source, Workload>,
    /// Outcomes of the figures' simulations.
    pub results: Results,
    /// The command that makes each of them by itself, where there is one: [`Cell::command`].
    pub commands: BTreeMap<Cell, String>,
    /// What the paper says of them.
    pub claims: Vec<Claim>,
    /// Why what does not hold does not; empty if that was not asked for.
    pub causes: Vec<Cause>,
}

/// Runs all simulations of the figures, and those that look for causes. `progress` is told the
/// stage and how many of how many of its simulations are done.
///
/// # Errors
///
/// See [`ReproduceError`].
pub fn evaluate(
    options: &Options,
    progress: impl Fn(&str, usize, usize) + Sync,
) -> Result<Evaluation, ReproduceError> {
    // KTH's part of a figure of all workloads may be missing; its own figures say so.
    let has_kth = options.kth.is_some();
    let of_figures = options.figures.iter().flat_map(|figure| figure.cells());
    let cells: BTreeSet<Cell> =
        of_figures.filter(|cell| has_kth || cell.source != Source::Kth).collect();
    if cells.is_empty() {
        return Err(ReproduceError::NoKth);
    }
    let mut simulations = Simulations { options, workloads: BTreeMap::new() };
    let mut results = simulations.run(&cells, |n, of| progress("runs", n, of))?;
    let claims: Vec<Claim> = Statement::all()
        .into_iter()
        .filter_map(|statement| {
            let ours = statement.ours(&results, &View::STANDARD)?;
            let holds = statement.holds(ours.mean, &View::STANDARD);
            let paper = statement.paper(&View::STANDARD);
            Some(Claim { statement, paper, ours, holds })
        })
        .collect();
    let mut causes = Vec::new();
    if options.causes {
        let open = claims.iter().filter(|claim| claim.holds == Some(false));
        let open: Vec<_> = open.map(|claim| claim.statement).collect();
        let wanted: BTreeSet<Cell> =
            causes::cells(&open).into_iter().filter(|cell| !results.contains_key(cell)).collect();
        let more = simulations.run(&wanted, |n, of| progress("causes", n, of))?;
        let figures = results.clone();
        results.extend(more);
        causes = causes::causes(&open, &results);
        results = figures;
    }
    let standard =
        simulations.workloads.into_iter().filter(|((_, shape), _)| *shape == Shape::Standard);
    let workloads = standard.map(|((source, _), workload)| (source, workload)).collect();
    let figures = options.figures.clone();
    let command = |cell: &Cell| Some((*cell, cell.command(options)?));
    let commands = results.keys().filter_map(command).collect();
    Ok(Evaluation { figures, workloads, results, commands, claims, causes })
}

/// Where simulations are made: the workloads that they need.
struct Simulations<'a> {
    options: &'a Options,
    workloads: BTreeMap<(Source, Shape), Workload>,
}

impl Simulations<'_> {
    fn run(
        &mut self,
        cells: &BTreeSet<Cell>,
        progress: impl Fn(usize, usize) + Sync,
    ) -> Result<Results, ReproduceError> {
        let options = self.options;
        for cell in cells {
            let key = (cell.source, cell.setting.shape);
            if let Entry::Vacant(empty) = self.workloads.entry(key) {
                let (kth, most) = (options.kth.as_deref(), options.most_jobs);
                empty.insert(Workload::make(key, kth, most, options.seed)?);
            }
        }
        let workloads = &self.workloads;
        let run = |cell: &Cell| {
            let workload = &workloads[&(cell.source, cell.setting.shape)];
            let simulated = cell.run(workload, options.sharing, options.seed);
            simulated.map_err(|source| ReproduceError::Simulation { cell: cell.name(), source })
        };
        // The longest first, so that the last cells to be done are short ones.
        let mut order: Vec<Cell> = cells.iter().copied().collect();
        order.sort_by_key(|cell| (std::cmp::Reverse((cell.load, cell.algorithm)), *cell));
        let outcomes = parallel::each(&order, options.threads, run, |n| progress(n, order.len()));
        order.iter().zip(outcomes).map(|(cell, outcome)| Ok((*cell, outcome?))).collect()
    }
}
