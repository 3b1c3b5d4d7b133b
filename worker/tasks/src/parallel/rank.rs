//! One process of a parallel job.

use std::io;

use dormouse_vm::shares::{self, PPM, RankShares};

use super::TeamPlan;
use super::kernel::{BlockChain, RankMemory};
use super::region::{SharedRegion, TeamTotals};
use crate::clock::thread_cpu_time;
use crate::meter::{RunGoal, WorkAmount, WorkMeter};
use crate::progress::ProgressWriter;

/// Parameters of a parallel job's work, the same for all ranks.
pub(super) struct TeamWork<'a> {
    pub(super) plan: &'a TeamPlan,
    pub(super) amount: WorkAmount,
    /// The nonce with which each rank's hash of computed values begins.
    pub(super) nonce: u64,
    pub(super) page: Option<&'a ProgressWriter>,
}

/// Runs rank `rank` to its end, in a new child of process `parent`.
pub(super) fn live_as_rank(
    rank: usize,
    parent: u32,
    region: &SharedRegion,
    work: &TeamWork<'_>,
) -> ! {
    if die_with(parent).is_err() {
        exit_at_once(1);
    }
    let mut memory = RankMemory::new(work.plan.memory);
    region.wait_until_let_go();
    work.run(rank, region, &mut memory);
    region.found_wrong(memory.count_wrong());
    exit_at_once(0)
}

/// Asks the kernel to kill this process when its parent ends, for whatever reason.
fn die_with(parent: u32) -> io::Result<()> {
    #[expect(unsafe_code, reason = "the standard library has no prctl")]
    // SAFETY: this option takes a signal number and no pointer.
    let status = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    // The parent may have ended before the call.
    if std::os::unix::process::parent_id() != parent {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(())
}

/// Exits without the parent's clean-up code, since this process is a copy of it.
fn exit_at_once(status: libc::c_int) -> ! {
    #[expect(unsafe_code, reason = "std::process::exit would run what the parent registered")]
    // SAFETY: ends the process at once.
    unsafe {
        libc::_exit(status)
    }
}

impl TeamWork<'_> {
    fn run(&self, rank: usize, region: &SharedRegion, memory: &mut RankMemory) {
        // The amount due is decided here, so the meter is unlimited; the region shows what has been
        // done.
        let unlimited = RunGoal { due: u64::MAX, cpu_time: None };
        let mut meter = WorkMeter::start(Box::new(thread_cpu_time), unlimited, None);
        let mut shares = RankShares::new(&self.plan.usage);
        let mut share = 0;
        for phase in 0..self.plan.phases {
            share += u64::from(shares.next(rank));
            let mut chain =
                BlockChain::new(region.start_of_phase(rank, phase), self.nonce, (rank, phase));
            let before = meter.units();
            while !self.is_done(&meter, share) {
                chain = memory.do_memory_block(chain);
                meter.count_only(1);
                region.store_counts(rank, &meter);
                if let Some(page) = self.page {
                    page.write_work(rank, meter.spent());
                    region.publish_progress(page, |totals| self.fraction(totals));
                }
            }
            region.store_result(rank, phase, chain, meter.units() - before);
            region.meet_ranks(phase, self.page);
            self.wait_for_network(&meter);
        }
    }

    /// Returns whether a rank has done its work of `share` millionths of a phase, counted over all phases so far.
    fn is_done(&self, meter: &WorkMeter, share: u64) -> bool {
        match self.amount {
            WorkAmount::Repetitions(blocks) => meter.units() >= shares::count_blocks(share, blocks),
            WorkAmount::CpuTime(time) => {
                let phases = share as f64 / f64::from(PPM);
                meter.spent() >= time.mul_f64(phases / f64::from(self.plan.phases))
            }
        }
    }

    /// Returns the fraction (0 to 1) of the whole job's work that is done.
    fn fraction(&self, totals: &TeamTotals) -> f64 {
        let of_one = match self.amount {
            WorkAmount::Repetitions(blocks) => {
                totals.units as f64 / (blocks as f64 * f64::from(self.plan.phases))
            }
            WorkAmount::CpuTime(time) => totals.cpu.div_duration_f64(time),
        };
        of_one / self.plan.total_usage()
    }

    /// Waits for the simulated travel time of messages at the end of a phase.
    ///
    /// The wait uses no processor, so it passes even while another process has the processor. On slower processors the wait is
    /// longer, so that the usage is the same.
    fn wait_for_network(&self, meter: &WorkMeter) {
        let part = f64::from(shares::network_part(&self.plan.usage)) / f64::from(self.plan.speed);
        let phase = match self.amount {
            WorkAmount::Repetitions(blocks) => meter.mean().mul_f64(blocks as f64),
            WorkAmount::CpuTime(time) => time.div_f64(f64::from(self.plan.phases)),
        };
        if part > 0.0 {
            std::thread::sleep(phase.mul_f64(part));
        }
    }
}
