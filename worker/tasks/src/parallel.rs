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

use self::kernel::{BlockChain, Memory};
use self::rank::Work;
use self::region::Region;
use crate::amount::Amount;
use crate::meter::Meter;
use crate::progress::{self, ProgressWriter};
use crate::result::Figure;
use crate::trail::TrailSegment;

/// As many ranks as a progress page has room for, in round numbers.
pub(crate) const MAX_PROCESSES: u32 = 256;
const _: () = assert!(MAX_PROCESSES as usize <= progress::MAX_RANKS);

/// A parallel job, all but how much work it is.
///
/// The amount of work is that of a process at 100 % usage. As CPU time it is the time that the
/// job takes on processors of its own; as repetitions it is the blocks of work per phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Phases, each of which ends at the barrier; at least 1.
    pub(crate) phases: u32,
    /// CPU usage of each rank on processors of its own, parts per million; at least one rank,
    /// none of them 0.
    pub(crate) usage: Vec<u32>,
    /// Speed of those processors as a part of a core's, parts per million; not 0.
    pub(crate) speed: u32,
    /// Bytes of memory that each rank works on; may be 0.
    pub(crate) memory: u64,
    /// From which the ranks' start values come.
    pub(crate) seed: u64,
}

impl Plan {
    pub(crate) fn ranks(&self) -> usize {
        self.usage.len()
    }

    /// The sum of the ranks' usages, 1 for 100 %.
    pub(crate) fn total_usage(&self) -> f64 {
        self.usage.iter().map(|u| f64::from(*u)).sum::<f64>() / f64::from(PPM)
    }
}

/// Most numbers of blocks that a result holds, and most trails of them: with both it stays below 16 KiB.
const MOST_TOLD: usize = 400;

/// The phases of which a result says how many blocks of work each rank did: all or none.
pub(crate) fn told(ranks: usize, phases: u32) -> u32 {
    if ranks * phases as usize <= MOST_TOLD { phases } else { 0 }
}

/// The result of the ranks of a job with this plan and nonce, given the blocks of work of each, phase by
/// phase: the sum of their last results, by the closed form. `None`: the plan is another one.
pub(crate) fn expected_sum(plan: &Plan, nonce: u64, blocks: &[u64]) -> Option<u64> {
    let is_all = blocks.len() == plan.ranks() * plan.phases as usize;
    is_all.then(|| states_after(plan, nonce, blocks).into_iter().fold(0, u64::wrapping_add))
}

/// The results of the ranks after the phases that these are the blocks of, by the closed form.
fn states_after(plan: &Plan, nonce: u64, blocks: &[u64]) -> Vec<u64> {
    let ranks = plan.ranks();
    let mut states: Vec<u64> =
        (0..ranks).map(|rank| kernel::start(plan.seed ^ nonce, rank)).collect();
    for of_phase in blocks.chunks(ranks) {
        let of_rank = |(rank, blocks): (usize, &u64)| {
            let begun = kernel::join(states[rank], states[(rank + 1) % ranks]);
            kernel::result(begun, *blocks)
        };
        states = of_phase.iter().enumerate().map(of_rank).collect();
    }
    states
}

/// The work of one rank in one phase, as another process can do it again: the place counts the ranks of all phases, one phase
/// after the other. `None`: a job with these blocks of work has no such place.
pub(crate) fn segment(
    plan: &Plan,
    nonce: u64,
    blocks: &[u64],
    place: usize,
) -> Option<TrailSegment> {
    let (ranks, passes) = (plan.ranks(), *blocks.get(place)?);
    let (rank, phase) = (place % ranks, place / ranks);
    let states = states_after(plan, nonce, blocks.get(..phase * ranks)?);
    let begun = kernel::join(*states.get(rank)?, states[(rank + 1) % ranks]);
    let BlockChain { state, trail } =
        BlockChain::new(begun, nonce, (rank, u32::try_from(phase).ok()?));
    Some(TrailSegment { from: state, passes, trail })
}

/// Does the work of one rank in one phase again; the trail with which it ends.
pub(crate) fn compute_segment(plan: &Plan, segment: TrailSegment, meter: &mut Meter) -> u64 {
    let mut memory = Memory::new(plan.memory);
    let mut chain = BlockChain { state: segment.from, trail: segment.trail };
    for _ in 0..segment.passes {
        chain = memory.block(chain);
        meter.tell(1);
    }
    chain.trail
}

/// Why there is no team, or no longer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TeamError {
    #[error("the processes of the job cannot share memory; free some")]
    Memory(#[source] io::Error),
    #[error("rank {rank} cannot be started; allow this user more processes or memory")]
    Fork { rank: usize, source: io::Error },
    #[error("the processes of the job cannot be waited for; run it where SIGCHLD is not ignored")]
    Wait(#[source] io::Error),
    #[error("rank {rank} {how} before its work was done; run the job again")]
    Lost { rank: usize, how: String },
}

/// The outcome of a team.
pub(crate) struct Finished {
    pub(crate) figures: Vec<Figure>,
    /// Phases that are over.
    pub(crate) phases: u64,
    /// The sum of all ranks' last results.
    pub(crate) sum: u64,
    /// Blocks of work of each rank, phase by phase; empty where they are too many to be told.
    pub(crate) blocks: Vec<u64>,
    /// The trail of each rank's work in each phase.
    pub(crate) trails: Vec<u64>,
    /// CPU time of each rank.
    pub(crate) cpu: Vec<Duration>,
    /// The meter of all that the team did.
    pub(crate) meter: Meter,
}

/// The processes of a job, held by their parent. Dropping it ends those that still run.
pub(crate) struct Team {
    region: Region,
    plan: Plan,
    amount: Amount,
    /// By rank; 0 once it has been waited for.
    pids: Vec<libc::pid_t>,
}

impl Team {
    /// Starts all ranks, which wait for [`run`](Self::run), and says on the page who they are.
    ///
    /// To be called in a process of one thread.
    pub(crate) fn fork(
        plan: &Plan,
        amount: Amount,
        nonce: u64,
        page: Option<&ProgressWriter>,
    ) -> Result<Self, TeamError> {
        let told = told(plan.ranks(), plan.phases);
        let region = Region::new(plan.ranks(), told).map_err(TeamError::Memory)?;
        for rank in 0..plan.ranks() {
            region.begin_at(rank, kernel::start(plan.seed ^ nonce, rank));
        }
        let mut team = Self { region, plan: plan.clone(), amount, pids: Vec::new() };
        let parent = std::process::id();
        for rank in 0..plan.ranks() {
            #[expect(unsafe_code, reason = "the standard library has no fork")]
            // SAFETY: this process has one thread, so the child may do anything.
            let pid = unsafe { libc::fork() };
            match pid {
                0 => rank::live(rank, parent, &team.region, &Work { plan, amount, nonce, page }),
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

    /// Lets the ranks work, and waits for their ends.
    pub(crate) fn run(mut self, page: Option<ProgressWriter>) -> Result<Finished, TeamError> {
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
        let totals = self.region.totals();
        let (blocks, trails) = self.region.blocks_and_trails();
        Ok(Finished {
            figures: self.figures(),
            phases: u64::from(self.region.checked().phases),
            sum: self.region.checked().sum,
            blocks,
            trails,
            cpu: (0..self.plan.ranks()).map(|rank| self.region.cpu(rank)).collect(),
            meter: Meter::with_counts(totals.cpu, totals.units, totals.beats, page),
        })
    }

    fn figures(&self) -> Vec<Figure> {
        let checked = self.region.checked();
        // The upper bits, as many as a figure holds exactly.
        let upper = |sum: u64| (sum >> 12) as f64;
        let phases = f64::from(self.plan.phases);
        let mut figures = vec![
            Figure::new("phases", f64::from(checked.phases), Some(phases), 0.0),
            Figure::new("wrong results and words", checked.wrong as f64, Some(0.0), 0.0),
            Figure::new("checksum", upper(checked.sum), Some(upper(checked.expected_sum)), 0.0),
        ];
        if let Amount::Repetitions(blocks) = self.amount {
            let planned: u64 =
                shares::blocks_of_ranks(&self.plan.usage, self.plan.phases, blocks).iter().sum();
            let done = self.region.totals().units as f64;
            figures.push(Figure::new("blocks of work", done, Some(planned as f64), 0.0));
        }
        figures
    }
}

impl Drop for Team {
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

/// The next child that ends, and its status.
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
