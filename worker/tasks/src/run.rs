//! One task, from its goal to its result.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::amount::Amount;
use crate::class::Class;
use crate::clock::thread_cpu_time;
use crate::digest;
use crate::ed;
use crate::meter::{Goal, Meter};
use crate::nas::Kernel;
use crate::nas::cg::Cg;
use crate::nas::ep::Ep;
use crate::nas::ft::Ft;
use crate::nas::input::KernelInput;
use crate::nas::is::Is;
use crate::nas::mg::Mg;
use crate::nas::sp::Sp;
use crate::parallel::{self, Finished, Plan, Team, TeamError};
use crate::progress::{ProgressError, ProgressWriter, State};
use crate::result::{Figure, ResultError, TaskResult};
use crate::signals;
use crate::trail::{TrailRecorder, TrailSegment, WorkTrail};
use crate::vector::Vector;

/// A NAS kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the kernels have no other names")]
pub enum NasKernel {
    Ep,
    Is,
    Cg,
    Mg,
    Ft,
    Sp,
}

/// A program and its input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Nas { kernel: NasKernel, class: Class },
    Ed { class: Class, id: u32 },
    Vector { bytes: usize },
    Parallel(Plan),
    Noop,
}

/// The work of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) program: Program,
    pub(crate) amount: Amount,
    /// The part of its work that is done; `None`: all of it.
    pub(crate) segment: Option<TrailSegment>,
    /// The number with which the digest of its answer begins.
    pub(crate) nonce: u64,
    pub(crate) progress: Option<PathBuf>,
    pub(crate) result: Option<PathBuf>,
}

/// Errors around the computation.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    #[error(transparent)]
    Progress(#[from] ProgressError),
    #[error(transparent)]
    Result(#[from] ResultError),
    #[error("SIGTERM cannot be handled; run on a system that allows signal handlers")]
    Signal(#[source] io::Error),
    #[error(transparent)]
    Team(#[from] TeamError),
}

/// The outcome of a computation.
struct Outcome {
    figures: Vec<Figure>,
    repetitions: u64,
    /// Hash of all that was computed.
    digest: u64,
    /// CPU time of each rank, where there are ranks.
    ranks: Vec<Duration>,
    /// Blocks of work of each rank, phase by phase.
    blocks: Vec<u64>,
    /// The trails of these.
    trails: Vec<u64>,
    /// The trail of the work of one process, where it leaves one.
    trail: Option<WorkTrail>,
    /// The number with which it ended.
    trail_end: Option<u64>,
}

impl Outcome {
    fn of_one_process(figures: Vec<Figure>, repetitions: u64, digest: u64) -> Self {
        let (ranks, blocks, trails) = (Vec::new(), Vec::new(), Vec::new());
        let (trail, trail_end) = (None, None);
        Self { figures, repetitions, digest, ranks, blocks, trails, trail, trail_end }
    }

    fn with_trail(self, (trail, end): (WorkTrail, u64)) -> Self {
        Self { trail: Some(trail), trail_end: Some(end), ..self }
    }
}

impl Job {
    /// Does the job, leaves its result in its file, and returns it.
    pub(crate) fn run(&self) -> Result<TaskResult, RunError> {
        signals::exit_on_sigterm().map_err(RunError::Signal)?;
        let page = self.progress.as_deref().map(ProgressWriter::create).transpose()?;
        // Ranks are there, and can be moved, before the work may begin.
        let team = match (&self.program, self.segment) {
            (Program::Parallel(plan), None) => {
                Some(Team::fork(plan, self.amount, self.nonce, page.as_ref())?)
            }
            _ => None,
        };
        if let Some(page) = &page {
            page.wait_while_held();
        }
        let (outcome, mut meter) = match team {
            Some(team) => run_team(team, page)?,
            None => self.compute(page),
        };
        let verified = verdict(&outcome.figures);
        let result = self.report(outcome, verified, &meter);
        if let Some(path) = &self.result {
            result.write(path)?;
        }
        // After the result: who sees the end in the page finds the file.
        meter.finish(if verified == Some(false) { State::Failed } else { State::Done });
        Ok(result)
    }

    /// Computes in this process.
    fn compute(&self, page: Option<ProgressWriter>) -> (Outcome, Meter) {
        match &self.program {
            &Program::Nas { kernel, class } => {
                let mut kernel: Box<dyn Kernel> = match kernel {
                    NasKernel::Ep => Box::new(Ep::new(class)),
                    NasKernel::Is => Box::new(Is::new(class)),
                    NasKernel::Cg => Box::new(Cg::new(class)),
                    NasKernel::Mg => Box::new(Mg::new(class)),
                    NasKernel::Ft => Box::new(Ft::new(class)),
                    NasKernel::Sp => Box::new(Sp::new(class)),
                };
                self.repeat(&mut *kernel, page)
            }
            &Program::Ed { class, id } => self.repeat(&mut ed::task(class, id), page),
            &Program::Vector { bytes } => self.pass_over(bytes, page),
            Program::Parallel(plan) => self.compute_ranks_part(plan, page),
            Program::Noop => (
                Outcome::of_one_process(Vec::new(), 1, self.nonce),
                self.start(Goal { due: 0, cpu_time: None }, page),
            ),
        }
    }

    /// Computes what one rank did in one phase; the ranks of a whole job compute themselves.
    fn compute_ranks_part(&self, plan: &Plan, page: Option<ProgressWriter>) -> (Outcome, Meter) {
        let blocks = self.segment.map_or(0, |segment| segment.passes);
        let mut meter = self.start(Goal { due: blocks, cpu_time: None }, page);
        let trail_end = self.segment.map(|it| parallel::compute_segment(plan, it, &mut meter));
        let outcome = Outcome::of_one_process(Vec::new(), blocks, self.nonce);
        (Outcome { trail_end, ..outcome }, meter)
    }

    fn start(&self, goal: Goal, page: Option<ProgressWriter>) -> Meter {
        Meter::start(Box::new(thread_cpu_time), goal, page)
    }

    /// Repeats a kernel until it has done enough or something is wrong. Only what is computed on the published input can
    /// be wrong; the trail takes in all.
    fn repeat(&self, kernel: &mut dyn Kernel, page: Option<ProgressWriter>) -> (Outcome, Meter) {
        let goal = match (self.amount, self.segment) {
            (_, Some(TrailSegment { passes: n, .. })) | (Amount::Repetitions(n), None) => {
                Goal { due: kernel.units().saturating_mul(n), cpu_time: None }
            }
            (Amount::CpuTime(time), None) => Goal { due: kernel.units(), cpu_time: Some(time) },
        };
        let (first, number) =
            self.segment.map_or((0, self.nonce), |segment| (segment.from, segment.trail));
        let mut trail = TrailRecorder::new(number);
        let mut meter = self.start(goal, page);
        let mut outcome = Outcome::of_one_process(Vec::new(), 0, self.nonce);
        loop {
            let index = first.saturating_add(outcome.repetitions);
            let input = KernelInput::of_repetition(index, trail.number());
            let Ok(figures) = kernel.run(input, &mut meter) else { break };
            outcome.repetitions += 1;
            trail.take_in(digest::fold(0, &figures));
            kernel.traces().iter().for_each(|number| trail.take_in(*number));
            trail.pass_is_over();
            if input == KernelInput::Published {
                outcome.digest = digest::fold(outcome.digest, &figures);
                outcome.figures = figures;
            }
            if meter.is_enough() || verdict(&outcome.figures) == Some(false) {
                break;
            }
        }
        outcome.digest = digest::counted(outcome.digest, outcome.repetitions);
        (outcome.with_trail(trail.end()), meter)
    }

    /// Passes over memory until that is enough; then checks all of it.
    fn pass_over(&self, bytes: usize, page: Option<ProgressWriter>) -> (Outcome, Meter) {
        let vector = Vector::new(bytes, self.nonce);
        let mut vector = match self.segment {
            Some(segment) => vector.at(segment),
            None => vector,
        };
        // Besides the passes there is one round to set up and one to check.
        let (rounds, cpu_time, passes) = match (self.amount, self.segment) {
            // However long it takes.
            (_, Some(TrailSegment { passes: n, .. })) | (Amount::Repetitions(n), None) => {
                (n.saturating_add(2), None, n)
            }
            (Amount::CpuTime(time), None) => (2, Some(time), u64::MAX),
        };
        let due = vector.units().saturating_mul(rounds);
        let mut meter = self.start(Goal { due, cpu_time }, page);
        vector.run(passes, &mut meter);
        let (figures, sum) = vector.check(&mut meter);
        let outcome = Outcome::of_one_process(figures, vector.passes(), sum);
        (outcome.with_trail(vector.trail()), meter)
    }

    fn report(&self, outcome: Outcome, verified: Option<bool>, meter: &Meter) -> TaskResult {
        let (class, id, memory_bytes) = match &self.program {
            Program::Nas { class, .. } => (Some(*class), None, None),
            Program::Ed { class, id } => (Some(*class), Some(*id), None),
            Program::Vector { bytes } => (None, None, Some(*bytes as u64)),
            Program::Parallel(plan) => (None, None, Some(plan.memory).filter(|bytes| *bytes > 0)),
            Program::Noop => (None, None, None),
        };
        let wanted = |time: Duration| match &self.program {
            Program::Parallel(plan) => time.as_secs_f64() * plan.total_usage(),
            _ => time.as_secs_f64(),
        };
        TaskResult {
            kind: self.program.name().to_owned(),
            class: class.map(|class| class.letter().to_owned()),
            id,
            memory_bytes,
            verified,
            figures: outcome.figures,
            repetitions: outcome.repetitions,
            cpu_seconds: meter.spent().as_secs_f64(),
            cpu_seconds_wanted: match self.amount {
                Amount::CpuTime(time) => Some(wanted(time)),
                Amount::Repetitions(_) => None,
            },
            rank_cpu_seconds: outcome.ranks.iter().map(Duration::as_secs_f64).collect(),
            units: meter.units(),
            digest: Some(digest::text(outcome.digest)),
            trail: outcome.trail,
            trail_end: outcome.trail_end,
            blocks: outcome.blocks,
            trails: outcome.trails,
        }
    }
}

impl Program {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Nas { kernel, .. } => kernel.name(),
            Self::Ed { .. } => "ed",
            Self::Vector { .. } => "vector",
            Self::Parallel(_) => "parallel",
            Self::Noop => "noop",
        }
    }
}

impl NasKernel {
    pub(crate) const ALL: [Self; 6] = [Self::Ep, Self::Is, Self::Cg, Self::Mg, Self::Ft, Self::Sp];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ep => "ep",
            Self::Is => "is",
            Self::Cg => "cg",
            Self::Mg => "mg",
            Self::Ft => "ft",
            Self::Sp => "sp",
        }
    }
}

fn run_team(team: Team, page: Option<ProgressWriter>) -> Result<(Outcome, Meter), TeamError> {
    let Finished { figures, phases, sum, blocks, trails, cpu, meter } = team.run(page)?;
    let outcome = Outcome::of_one_process(figures, phases, sum);
    Ok((Outcome { ranks: cpu, blocks, trails, ..outcome }, meter))
}

/// Whether all figures that have a reference verify; `None` when there are figures and none
/// of them has.
fn verdict(figures: &[Figure]) -> Option<bool> {
    let verdicts: Vec<bool> = figures.iter().filter_map(Figure::verified).collect();
    if verdicts.is_empty() && !figures.is_empty() {
        return None;
    }
    Some(verdicts.into_iter().all(|verified| verified))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_needs_a_reference_and_every_figure() {
        let right = Figure::new("a", 1.0, Some(1.0), 0.0);
        let wrong = Figure::new("b", 1.0, Some(2.0), 0.0);
        let alone = Figure::new("c", 1.0, None, 0.0);
        assert_eq!(verdict(&[]), Some(true), "nothing to compute, nothing wrong");
        assert_eq!(verdict(std::slice::from_ref(&alone)), None);
        assert_eq!(verdict(&[right.clone(), alone.clone()]), Some(true));
        assert_eq!(verdict(&[right, wrong, alone]), Some(false));
    }
}
