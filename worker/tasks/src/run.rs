//! Runs one task from its arguments to its result.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::class::ProblemClass;
use crate::clock::thread_cpu_time;
use crate::digest;
use crate::ed;
use crate::meter::{RunGoal, WorkAmount, WorkMeter};
use crate::nas::RepeatedKernel;
use crate::nas::cg::CgKernel;
use crate::nas::ep::EpKernel;
use crate::nas::ft::FtKernel;
use crate::nas::input::KernelInput;
use crate::nas::is::IsKernel;
use crate::nas::mg::MgKernel;
use crate::nas::sp::SpSolver;
use crate::parallel::{self, FinishedTeam, RankTeam, TeamError, TeamPlan};
use crate::progress::{ProgressError, ProgressWriter, State};
use crate::result::{Figure, ResultError, TaskResult};
use crate::signals;
use crate::trail::{TrailRecorder, TrailSegment, WorkTrail};
use crate::vector::VectorTask;

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

/// A program of `dormouse-task` with its input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TaskComputation {
    Nas { kernel: NasKernel, class: ProblemClass },
    Ed { class: ProblemClass, id: u32 },
    Vector { bytes: usize },
    Parallel(TeamPlan),
    Noop,
}

/// The work of one task process, and how it is reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProcessWork {
    pub(crate) program: TaskComputation,
    pub(crate) amount: WorkAmount,
    /// Segment of the task's work to compute; `None`: all of the work.
    pub(crate) segment: Option<TrailSegment>,
    /// Number (nonce) of the task, with which the digest of its answer begins.
    pub(crate) nonce: u64,
    pub(crate) progress: Option<PathBuf>,
    pub(crate) result: Option<PathBuf>,
}

/// Errors of running a computation, apart from wrong results.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ComputationError {
    #[error(transparent)]
    Progress(#[from] ProgressError),
    #[error(transparent)]
    Result(#[from] ResultError),
    #[error("SIGTERM can't be handled; run on a system that allows signal handlers")]
    Signal(#[source] io::Error),
    #[error(transparent)]
    Team(#[from] TeamError),
}

/// Outcome of a task's computation, from which its result is made.
struct ComputationOutcome {
    figures: Vec<Figure>,
    repetitions: u64,
    /// Digest (hash) of all values that the task computed.
    digest: u64,
    /// CPU time of each rank; empty for a program without ranks.
    ranks: Vec<Duration>,
    /// Number of blocks of work of each rank of a parallel job, phase by phase.
    blocks: Vec<u64>,
    /// Hash of all values that each rank computed in each phase, in the order of `blocks`.
    trails: Vec<u64>,
    /// Hashes of all values computed so far, at points of the work of a program of one process; `None` if the program records none.
    trail: Option<WorkTrail>,
    /// Hash of all computed values at the end of the work; `None` without a `trail`.
    trail_end: Option<u64>,
}

impl ComputationOutcome {
    fn of_one_process(figures: Vec<Figure>, repetitions: u64, digest: u64) -> Self {
        let (ranks, blocks, trails) = (Vec::new(), Vec::new(), Vec::new());
        let (trail, trail_end) = (None, None);
        Self { figures, repetitions, digest, ranks, blocks, trails, trail, trail_end }
    }

    fn with_trail(self, (trail, end): (WorkTrail, u64)) -> Self {
        Self { trail: Some(trail), trail_end: Some(end), ..self }
    }
}

impl ProcessWork {
    /// Computes, writes the result file, and returns the result.
    pub(crate) fn run(&self) -> Result<TaskResult, ComputationError> {
        signals::exit_on_sigterm().map_err(ComputationError::Signal)?;
        let page = self.progress.as_deref().map(ProgressWriter::create).transpose()?;
        // Ranks are there, and can be moved, before the work may begin.
        let team = match (&self.program, self.segment) {
            (TaskComputation::Parallel(plan), None) => {
                Some(RankTeam::fork_ranks(plan, self.amount, self.nonce, page.as_ref())?)
            }
            _ => None,
        };
        if let Some(page) = &page {
            page.wait_while_held();
        }
        let (outcome, mut meter) = match team {
            Some(team) => run_team(team, page)?,
            None => self.compute_here(page),
        };
        let verified = verdict_of(&outcome.figures);
        let result = self.make_result(outcome, verified, &meter);
        if let Some(path) = &self.result {
            result.write(path)?;
        }
        // After the result: who sees the end in the page finds the file.
        meter.publish_end(if verified == Some(false) { State::Failed } else { State::Done });
        Ok(result)
    }

    /// Runs the computation in this process.
    fn compute_here(&self, page: Option<ProgressWriter>) -> (ComputationOutcome, WorkMeter) {
        match &self.program {
            &TaskComputation::Nas { kernel, class } => {
                let mut kernel: Box<dyn RepeatedKernel> = match kernel {
                    NasKernel::Ep => Box::new(EpKernel::new(class)),
                    NasKernel::Is => Box::new(IsKernel::new(class)),
                    NasKernel::Cg => Box::new(CgKernel::new(class)),
                    NasKernel::Mg => Box::new(MgKernel::new(class)),
                    NasKernel::Ft => Box::new(FtKernel::new(class)),
                    NasKernel::Sp => Box::new(SpSolver::new(class)),
                };
                self.repeat_kernel(&mut *kernel, page)
            }
            &TaskComputation::Ed { class, id } => {
                self.repeat_kernel(&mut ed::solver_of_task(class, id), page)
            }
            &TaskComputation::Vector { bytes } => self.pass_over(bytes, page),
            TaskComputation::Parallel(plan) => self.compute_ranks_part(plan, page),
            TaskComputation::Noop => (
                ComputationOutcome::of_one_process(Vec::new(), 1, self.nonce),
                self.start(RunGoal { due: 0, cpu_time: None }, page),
            ),
        }
    }

    /// Repeats the work of one rank of a parallel job in one phase, in this process.
    fn compute_ranks_part(
        &self,
        plan: &TeamPlan,
        page: Option<ProgressWriter>,
    ) -> (ComputationOutcome, WorkMeter) {
        let blocks = self.segment.map_or(0, |segment| segment.passes);
        let mut meter = self.start(RunGoal { due: blocks, cpu_time: None }, page);
        let trail_end = self.segment.map(|it| parallel::compute_segment(plan, it, &mut meter));
        let outcome = ComputationOutcome::of_one_process(Vec::new(), blocks, self.nonce);
        (ComputationOutcome { trail_end, ..outcome }, meter)
    }

    fn start(&self, goal: RunGoal, page: Option<ProgressWriter>) -> WorkMeter {
        WorkMeter::start(Box::new(thread_cpu_time), goal, page)
    }

    /// Repeats a kernel until the goal is reached or a figure is wrong. Only figures of the published input can be checked; the
    /// trail includes the figures of all inputs.
    fn repeat_kernel(
        &self,
        kernel: &mut dyn RepeatedKernel,
        page: Option<ProgressWriter>,
    ) -> (ComputationOutcome, WorkMeter) {
        let goal = match (self.amount, self.segment) {
            (_, Some(TrailSegment { passes: n, .. })) | (WorkAmount::Repetitions(n), None) => {
                RunGoal { due: kernel.units().saturating_mul(n), cpu_time: None }
            }
            (WorkAmount::CpuTime(time), None) => {
                RunGoal { due: kernel.units(), cpu_time: Some(time) }
            }
        };
        let (first, number) =
            self.segment.map_or((0, self.nonce), |segment| (segment.from, segment.trail));
        let mut trail = TrailRecorder::new(number);
        let mut meter = self.start(goal, page);
        let mut outcome = ComputationOutcome::of_one_process(Vec::new(), 0, self.nonce);
        loop {
            let index = first.saturating_add(outcome.repetitions);
            let input = KernelInput::of_repetition(index, trail.trail_number());
            let Ok(figures) = kernel.run(input, &mut meter) else { break };
            outcome.repetitions += 1;
            trail.take_in(digest::fold_figures(0, &figures));
            kernel.traces().iter().for_each(|number| trail.take_in(*number));
            trail.pass_is_over();
            if input == KernelInput::Published {
                outcome.digest = digest::fold_figures(outcome.digest, &figures);
                outcome.figures = figures;
            }
            if meter.is_enough() || verdict_of(&outcome.figures) == Some(false) {
                break;
            }
        }
        outcome.digest = digest::fold_count(outcome.digest, outcome.repetitions);
        (outcome.with_trail(trail.finish_trail()), meter)
    }

    /// Makes passes of the program `vector` over its memory until the goal is reached, and then checks all of the memory.
    fn pass_over(
        &self,
        bytes: usize,
        page: Option<ProgressWriter>,
    ) -> (ComputationOutcome, WorkMeter) {
        let vector = VectorTask::new(bytes, self.nonce);
        let mut vector = match self.segment {
            Some(segment) => vector.at_segment(segment),
            None => vector,
        };
        // Besides the passes there is one round to set up and one to check.
        let (rounds, cpu_time, passes) = match (self.amount, self.segment) {
            // However long it takes.
            (_, Some(TrailSegment { passes: n, .. })) | (WorkAmount::Repetitions(n), None) => {
                (n.saturating_add(2), None, n)
            }
            (WorkAmount::CpuTime(time), None) => (2, Some(time), u64::MAX),
        };
        let due = vector.units_per_pass().saturating_mul(rounds);
        let mut meter = self.start(RunGoal { due, cpu_time }, page);
        vector.run(passes, &mut meter);
        let (figures, sum) = vector.check_memory(&mut meter);
        let outcome = ComputationOutcome::of_one_process(figures, vector.complete_passes(), sum);
        (outcome.with_trail(vector.finish_trail()), meter)
    }

    fn make_result(
        &self,
        outcome: ComputationOutcome,
        verified: Option<bool>,
        meter: &WorkMeter,
    ) -> TaskResult {
        let (class, id, memory_bytes) = match &self.program {
            TaskComputation::Nas { class, .. } => (Some(*class), None, None),
            TaskComputation::Ed { class, id } => (Some(*class), Some(*id), None),
            TaskComputation::Vector { bytes } => (None, None, Some(*bytes as u64)),
            TaskComputation::Parallel(plan) => {
                (None, None, Some(plan.memory).filter(|bytes| *bytes > 0))
            }
            TaskComputation::Noop => (None, None, None),
        };
        let wanted = |time: Duration| match &self.program {
            TaskComputation::Parallel(plan) => time.as_secs_f64() * plan.total_usage(),
            _ => time.as_secs_f64(),
        };
        TaskResult {
            kind: self.program.name().to_owned(),
            class: class.map(|class| class.class_letter().to_owned()),
            id,
            memory_bytes,
            verified,
            figures: outcome.figures,
            repetitions: outcome.repetitions,
            cpu_seconds: meter.spent().as_secs_f64(),
            cpu_seconds_wanted: match self.amount {
                WorkAmount::CpuTime(time) => Some(wanted(time)),
                WorkAmount::Repetitions(_) => None,
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

impl TaskComputation {
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

fn run_team(
    team: RankTeam,
    page: Option<ProgressWriter>,
) -> Result<(ComputationOutcome, WorkMeter), TeamError> {
    let FinishedTeam { figures, phases, sum, blocks, trails, cpu, meter } = team.run(page)?;
    let outcome = ComputationOutcome::of_one_process(figures, phases, sum);
    Ok((ComputationOutcome { ranks: cpu, blocks, trails, ..outcome }, meter))
}

/// Returns whether all figures with an expected value are right; `None` if there are figures but no expected values.
fn verdict_of(figures: &[Figure]) -> Option<bool> {
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
        assert_eq!(verdict_of(&[]), Some(true), "nothing to compute, nothing wrong");
        assert_eq!(verdict_of(std::slice::from_ref(&alone)), None);
        assert_eq!(verdict_of(&[right.clone(), alone.clone()]), Some(true));
        assert_eq!(verdict_of(&[right, wrong, alone]), Some(false));
    }
}
