//! `parallel`: a job of several processes that compute in phases and meet at a barrier after
//! each, so that its processes are idle for a part of their time, as those of real parallel
//! jobs are.
//!
//! The parent forks one process per rank and then only waits. The ranks share one anonymous
//! [`region`] with a futex barrier, and hold no pipe or socket, so that CRIU can dump and
//! restore the tree at any moment. How the wanted CPU usages come about is the business of
//! [`dormouse_vm::shares`]; the work is that of [`kernel`]: exact, and every result of every rank and phase
//! is checked against its closed form, which takes in a neighbour's result of the phase before.

mod kernel;
mod rank;
mod region;

use std::io;
use std::time::Duration;

use dormouse_vm::shares::{self, PPM};

use self::kernel::{BlockChain, RankMemory};
use self::rank::TeamWork;
use self::region::SharedRegion;
use crate::meter::{WorkAmount, WorkMeter};
use crate::progress::{self, ProgressWriter};
use crate::result::Figure;
use crate::trail::TrailSegment;

/// Greatest number of processes of a job, limited by the size of the progress page.
pub(crate) const MAX_PROCESSES: u32 = 256;
const _: () = assert!(MAX_PROCESSES as usize <= progress::MAX_RANKS);

/// Plan of a parallel job, without its amount of work.
///
/// The amount of work refers to a process at 100 % usage. An amount of CPU time is the time that the job takes on processors of its
/// own; an amount of repetitions is the number of blocks of work per phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TeamPlan {
    /// Number of phases, each of which ends at a barrier; at least 1.
    pub(crate) phases: u32,
    /// CPU usage of each rank on a processor of its own, in parts per million; at least one rank,
    /// none of them 0.
    pub(crate) usage: Vec<u32>,
    /// Speed of the job's processors relative to a core's, in parts per million; not 0.
    pub(crate) speed: u32,
    /// Bytes of memory that each rank works on; may be 0.
    pub(crate) memory: u64,
    /// Seed of the ranks' start values.
    pub(crate) seed: u64,
}

impl TeamPlan {
    pub(crate) fn ranks(&self) -> usize {
        self.usage.len()
    }

    /// Returns the sum of the ranks' usages, where 1 is 100 %.
    pub(crate) fn total_usage(&self) -> f64 {
        self.usage.iter().map(|u| f64::from(*u)).sum::<f64>() / f64::from(PPM)
    }
}

/// Greatest number of block counts, and of hashes of computed values, in a parallel job's result, so that the result stays below 16
/// KiB.
const MOST_TOLD: usize = 400;

/// Returns the number of phases whose block counts are in the result: all phases, or 0 if the counts are too many.
pub(crate) fn told_phases(ranks: usize, phases: u32) -> u32 {
    if ranks * phases as usize <= MOST_TOLD { phases } else { 0 }
}

/// Returns the sum of the ranks' last results by the closed form, from a job's plan, its nonce and the block counts of its ranks,
/// phase by phase. `None`: the counts don't fit the plan.
pub(crate) fn expected_sum(plan: &TeamPlan, nonce: u64, blocks: &[u64]) -> Option<u64> {
    let is_all = blocks.len() == plan.ranks() * plan.phases as usize;
    is_all.then(|| states_after(plan, nonce, blocks).into_iter().fold(0, u64::wrapping_add))
}

/// Returns the ranks' results by the closed form, after the phases whose block counts are `blocks`.
fn states_after(plan: &TeamPlan, nonce: u64, blocks: &[u64]) -> Vec<u64> {
    let ranks = plan.ranks();
    let mut states: Vec<u64> =
        (0..ranks).map(|rank| kernel::start_value(plan.seed ^ nonce, rank)).collect();
    for of_phase in blocks.chunks(ranks) {
        let of_rank = |(rank, blocks): (usize, &u64)| {
            let begun = kernel::join_results(states[rank], states[(rank + 1) % ranks]);
            kernel::chain_result(begun, *blocks)
        };
        states = of_phase.iter().enumerate().map(of_rank).collect();
    }
    states
}

/// Returns the work of one rank in one phase as a segment that another process can repeat. `place` is an index into `blocks`, which
/// has the ranks' block counts phase by phase; `None`: the index is too large.
pub(crate) fn rank_segment(
    plan: &TeamPlan,
    nonce: u64,
    blocks: &[u64],
    place: usize,
) -> Option<TrailSegment> {
    let (ranks, passes) = (plan.ranks(), *blocks.get(place)?);
    let (rank, phase) = (place % ranks, place / ranks);
    let states = states_after(plan, nonce, blocks.get(..phase * ranks)?);
    let begun = kernel::join_results(*states.get(rank)?, states[(rank + 1) % ranks]);
    let BlockChain { state, trail } =
        BlockChain::new(begun, nonce, (rank, u32::try_from(phase).ok()?));
    Some(TrailSegment { from: state, passes, trail })
}

/// Repeats the work of one rank in one phase; returns the hash of the computed values at its end.
pub(crate) fn compute_segment(
    plan: &TeamPlan,
    segment: TrailSegment,
    meter: &mut WorkMeter,
) -> u64 {
    let mut memory = RankMemory::new(plan.memory);
    let mut chain = BlockChain { state: segment.from, trail: segment.trail };
    for _ in 0..segment.passes {
        chain = memory.do_memory_block(chain);
        meter.count_only(1);
    }
    chain.trail
}

/// Errors of starting or running the processes of a parallel job.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TeamError {
    #[error("the processes of the job can't share memory; free some")]
    Memory(#[source] io::Error),
    #[error("rank {rank} can't be started; allow this user more processes or memory")]
    Fork { rank: usize, source: io::Error },
    #[error("the processes of the job can't be waited for; run it where SIGCHLD is not ignored")]
    Wait(#[source] io::Error),
    #[error("rank {rank} {how} before its work was done; run the job again")]
    Lost { rank: usize, how: String },
}

/// Results of a parallel job whose processes have all ended.
pub(crate) struct FinishedTeam {
    pub(crate) figures: Vec<Figure>,
    /// Number of completed phases.
    pub(crate) phases: u64,
    /// Sum of all ranks' last results, each the last value of the rank's chain of numbers.
    pub(crate) sum: u64,
    /// Blocks of work of each rank, phase by phase; empty if they are too many to report.
    pub(crate) blocks: Vec<u64>,
    /// Hash of all values that each rank computed in each phase.
    pub(crate) trails: Vec<u64>,
    /// CPU time of each rank.
    pub(crate) cpu: Vec<Duration>,
    /// Meter with the work of all processes of the job.
    pub(crate) meter: WorkMeter,
}

/// The processes of a job, held by their parent. Dropping the team kills the processes that still run.
pub(crate) struct RankTeam {
    region: SharedRegion,
    plan: TeamPlan,
    amount: WorkAmount,
    /// Process ids by rank; 0 once a process has been waited for.
    pids: Vec<libc::pid_t>,
}

impl RankTeam {
    /// Forks all ranks, which then wait for [`run`](Self::run), and writes their process ids to the
    /// page.
    ///
    /// The calling process must have only one thread.
    pub(crate) fn fork_ranks(
        plan: &TeamPlan,
        amount: WorkAmount,
        nonce: u64,
        page: Option<&ProgressWriter>,
    ) -> Result<Self, TeamError> {
        let told = told_phases(plan.ranks(), plan.phases);
        let region = SharedRegion::new(plan.ranks(), told).map_err(TeamError::Memory)?;
        for rank in 0..plan.ranks() {
            region.begin_at(rank, kernel::start_value(plan.seed ^ nonce, rank));
        }
        let mut team = Self { region, plan: plan.clone(), amount, pids: Vec::new() };
        let parent = std::process::id();
        for rank in 0..plan.ranks() {
            #[expect(unsafe_code, reason = "the standard library has no fork")]
            // SAFETY: this process has one thread, so the child may do anything.
            let pid = unsafe { libc::fork() };
            match pid {
                0 => rank::live_as_rank(
                    rank,
                    parent,
                    &team.region,
                    &TeamWork { plan, amount, nonce, page },
                ),
                -1 => return Err(TeamError::Fork { rank, source: io::Error::last_os_error() }),
                pid => {
                    team.region.set_pid(rank, pid);
                    team.pids.push(pid);
                }
            }
        }
        if let Some(page) = page {
            page.write_ranks(&team.region.pids());
        }
        Ok(team)
    }

    /// Lets the ranks work, and waits until they end.
    pub(crate) fn run(mut self, page: Option<ProgressWriter>) -> Result<FinishedTeam, TeamError> {
        self.region.let_go();
        while self.pids.iter().any(|pid| *pid != 0) {
            let (pid, status) = wait_for_any().map_err(TeamError::Wait)?;
            // The first process of a PID namespace is also handed the orphans of others.
            let Some(rank) = self.pids.iter().position(|known| *known == pid) else { continue };
            self.pids[rank] = 0;
            if !(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0) {
                return Err(TeamError::Lost { rank, how: how_it_ended(status) });
            }
        }
        let totals = self.region.sum_totals();
        let (blocks, trails) = self.region.blocks_and_trails();
        Ok(FinishedTeam {
            figures: self.figures(),
            phases: u64::from(self.region.check_outcome().phases),
            sum: self.region.check_outcome().sum,
            blocks,
            trails,
            cpu: (0..self.plan.ranks()).map(|rank| self.region.cpu_time_of(rank)).collect(),
            meter: WorkMeter::with_counts(totals.cpu, totals.units, totals.beats, page),
        })
    }

    fn figures(&self) -> Vec<Figure> {
        let checked = self.region.check_outcome();
        // The upper bits, as many as a figure holds exactly.
        let upper = |sum: u64| (sum >> 12) as f64;
        let phases = f64::from(self.plan.phases);
        let mut figures = vec![
            Figure::new("phases", f64::from(checked.phases), Some(phases), 0.0),
            Figure::new("wrong results and words", checked.wrong as f64, Some(0.0), 0.0),
            Figure::new("checksum", upper(checked.sum), Some(upper(checked.expected_sum)), 0.0),
        ];
        if let WorkAmount::Repetitions(blocks) = self.amount {
            let planned: u64 =
                shares::blocks_of_ranks(&self.plan.usage, self.plan.phases, blocks).iter().sum();
            let done = self.region.sum_totals().units as f64;
            figures.push(Figure::new("blocks of work", done, Some(planned as f64), 0.0));
        }
        figures
    }
}

impl Drop for RankTeam {
    fn drop(&mut self) {
        for pid in self.pids.iter().filter(|pid| **pid != 0) {
            #[expect(unsafe_code, reason = "the standard library kills only its own children")]
            // SAFETY: signals to children that have not been waited for, so the PIDs are theirs.
            unsafe {
                libc::kill(*pid, libc::SIGKILL);
            }
        }
    }
}

/// Waits for the next child to end; returns its process id and status.
fn wait_for_any() -> io::Result<(libc::pid_t, libc::c_int)> {
    let mut status = 0;
    loop {
        #[expect(unsafe_code, reason = "the standard library waits only for its own children")]
        // SAFETY: `status` is a valid place for the status.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, 0) };
        if pid >= 0 {
            return Ok((pid, status));
        }
        let error = io::Error::last_os_error();
        // As after a restore.
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn how_it_ended(status: libc::c_int) -> String {
    if libc::WIFSIGNALED(status) {
        format!("was killed by signal {}", libc::WTERMSIG(status))
    } else {
        format!("ended with status {}", libc::WEXITSTATUS(status))
    }
}
