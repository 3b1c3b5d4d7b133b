//! From the wanted figures to their results, what the paper says of them, and why ours differ.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use dormouse_vm::Sharing;
use dormouse_workload::{Estimate, SwfError};

use super::causes::{self, Cause};
use super::cell::{Cell, Outcome};
use super::figures::Figure;
use super::setting::Shape;
use super::simulated::Simulated;
use super::statements::{Statement, View};
use super::workloads::{Source, Workload};
use crate::experiment::InputError;
use crate::jobs::JobsError;
use crate::sweep::{Folder, Plans, Shard, SweepError, Work};

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
    /// The folder of its simulations, or one that can't be made.
    #[error(transparent)]
    Sweep(#[from] SweepError),
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

/// Runs all simulations of the figures, and those that look for causes, but for what `folder` knows;
/// `compute` says which of the figures': `None`: all have to be there, and of a part comes no
/// evaluation. `progress` is told the stage and how many of how many of its simulations are done.
///
/// # Errors
///
/// See [`ReproduceError`].
pub fn evaluate(
    options: &Options,
    folder: &mut Folder<Outcome>,
    compute: Option<Shard>,
    progress: &mut dyn FnMut(&str, usize, usize),
) -> Result<Option<Evaluation>, ReproduceError> {
    let cells = options.cells()?;
    let mut simulations = Simulations { options, folder, workloads: BTreeMap::new() };
    let mut results = simulations.run(&cells, compute, &mut |n, of| progress("runs", n, of))?;
    if compute.is_some_and(Shard::is_part) {
        return Ok(None);
    }
    let claims: Vec<Claim> = Statement::all()
        .into_iter()
        .filter_map(|statement| {
            let ours = statement.ours(&results, &View::STANDARD)?;
            let holds = statement.holds(ours.mean, &View::STANDARD);
            let paper = statement.paper(&View::STANDARD);
            Some(Claim { statement, paper, ours, holds })
        })
        .collect();
    let (mut causes, mut made) = (Vec::new(), cells);
    if options.causes {
        let open = claims.iter().filter(|claim| claim.holds == Some(false));
        let open: Vec<_> = open.map(|claim| claim.statement).collect();
        let wanted: BTreeSet<Cell> =
            causes::cells(&open).into_iter().filter(|cell| !results.contains_key(cell)).collect();
        // They are looked for where everything comes together, whatever the shards.
        let all = Some(Shard::ALL);
        let more = simulations.run(&wanted, all, &mut |n, of| progress("causes", n, of))?;
        let figures = results.clone();
        results.extend(more);
        causes = causes::causes(&open, &results);
        results = figures;
        made.extend(wanted);
    }
    simulations.settle(&made)?;
    let standard =
        simulations.workloads.into_iter().filter(|((_, shape), _)| *shape == Shape::Standard);
    let workloads = standard.map(|((source, _), workload)| (source, workload)).collect();
    let figures = options.figures.clone();
    let command = |cell: &Cell| Some((*cell, cell.command(options)?));
    let commands = results.keys().filter_map(command).collect();
    Ok(Some(Evaluation { figures, workloads, results, commands, claims, causes }))
}

impl Options {
    /// The simulations that its figures need.
    ///
    /// # Errors
    ///
    /// There are none without the log of KTH-SP2.
    pub fn cells(&self) -> Result<BTreeSet<Cell>, ReproduceError> {
        // KTH's part of a figure of all workloads may be missing; its own figures say so.
        let has_kth = self.kth.is_some();
        let of_figures = self.figures.iter().flat_map(|figure| figure.cells());
        let cells: BTreeSet<Cell> =
            of_figures.filter(|cell| has_kth || cell.source != Source::Kth).collect();
        if cells.is_empty() { Err(ReproduceError::NoKth) } else { Ok(cells) }
    }
}

/// Where simulations are made and kept: the workloads that they need.
struct Simulations<'a> {
    options: &'a Options,
    folder: &'a mut Folder<Outcome>,
    workloads: BTreeMap<(Source, Shape), Workload>,
}

impl Simulations<'_> {
    fn run(
        &mut self,
        cells: &BTreeSet<Cell>,
        compute: Option<Shard>,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Results, ReproduceError> {
        let options = self.options;
        for cell in cells {
            let key = (cell.source, cell.setting.shape);
            if let Entry::Vacant(empty) = self.workloads.entry(key) {
                let (kth, most) = (options.kth.as_deref(), options.most_jobs);
                empty.insert(Workload::make(key, kth, most, options.seed)?);
            }
        }
        // The longest first, so that the last cells to be done are short ones.
        let mut order: Vec<Cell> = cells.iter().copied().collect();
        order.sort_by_key(|cell| (std::cmp::Reverse((cell.load, cell.algorithm)), *cell));
        let simulated = simulated(&self.workloads, options, &order);
        // Each has a seed of its own.
        let (seeds, plans) = (1, &Plans::default());
        let work = Work { seeds, threads: options.threads, compute, plans };
        let outcomes = work.run(&simulated, self.folder, progress)?;
        let of = |(cell, mut outcomes): (Cell, Vec<Outcome>)| Some((cell, outcomes.pop()?));
        Ok(order.into_iter().zip(outcomes).filter_map(of).collect())
    }

    /// Keeps those, and no others that a folder may have had.
    fn settle(&mut self, cells: &BTreeSet<Cell>) -> Result<(), ReproduceError> {
        let cells: Vec<Cell> = cells.iter().copied().collect();
        let all = simulated(&self.workloads, self.options, &cells);
        Ok(self.folder.settle(all.iter().map(|simulated| (simulated, self.options.seed)))?)
    }
}

fn simulated<'a>(
    workloads: &'a BTreeMap<(Source, Shape), Workload>,
    options: &Options,
    cells: &[Cell],
) -> Vec<Simulated<'a>> {
    let of = |cell: &Cell| {
        let workload = &workloads[&(cell.source, cell.setting.shape)];
        Simulated::of(*cell, workload, options.sharing, options.seed)
    };
    cells.iter().map(of).collect()
}
