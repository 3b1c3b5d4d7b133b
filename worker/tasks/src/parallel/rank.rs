//! One process of a parallel job.

use std::io;

use dormouse_vm::shares::{self, PPM, Shares};

use super::Plan;
use super::kernel::{BlockChain, Memory};
use super::region::{Region, Totals};
use crate::amount::Amount;
use crate::clock::thread_cpu_time;
use crate::meter::{Goal, Meter};
use crate::progress::ProgressWriter;

/// The work of a job, as all ranks know it.
pub(super) struct Work<'a> {
    pub(super) plan: &'a Plan,
    pub(super) amount: Amount,
    /// The number with which its trails begin.
    pub(super) nonce: u64,
    pub(super) page: Option<&'a ProgressWriter>,
}

/// The whole life of rank `rank`, a fresh child of process `parent`.
pub(super) fn live(rank: usize, parent: u32, region: &Region, work: &Work<'_>) -> ! {
    if die_with(parent).is_err() {
        end(1);
    }
    let mut memory = Memory::new(work.plan.memory);
    region.wait_until_let_go();
    work.run(rank, region, &mut memory);
    region.found_wrong(memory.wrong());
    end(0)
}

/// Has the kernel kill this process at the end of its parent, however that comes.
fn die_with(parent: u32) -> io::Result<()> {
    #[expect(unsafe_code, reason = "the standard library has no prctl")]
    // SAFETY: this option takes a signal number and no pointer.
    let status = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    // It may have ended before.
    if std::os::unix::process::parent_id() != parent {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(())
}

/// Ends this process without the clean-up of its parent, of which it is a copy.
fn end(status: libc::c_int) -> ! {
    #[expect(unsafe_code, reason = "std::process::exit would run what the parent registered")]
    // SAFETY: ends the process at once.
    unsafe {
        libc::_exit(status)
    }
}

impl Work<'_> {
    fn run(&self, rank: usize, region: &Region, memory: &mut Memory) {
        // How much is due is known here; the region shows what has been done.
        let unlimited = Goal { due: u64::MAX, cpu_time: None };
        let mut meter = Meter::start(Box::new(thread_cpu_time), unlimited, None);
        let mut shares = Shares::new(&self.plan.usage);
        let mut share = 0;
        for phase in 0..self.plan.phases {
            share += u64::from(shares.next(rank));
            let mut chain = BlockChain::new(region.joined(rank, phase), self.nonce, (rank, phase));
            let before = meter.units();
            while !self.is_done(&meter, share) {
                chain = memory.block(chain);
                meter.tell(1);
                region.count(rank, &meter);
                if let Some(page) = self.page {
                    page.write_work(rank, meter.spent());
                    region.publish(page, |totals| self.fraction(totals));
                }
            }
            region.leave(rank, phase, chain, meter.units() - before);
            region.meet(phase, self.page);
            self.wait_for_network(&meter);
        }
    }

    /// Whether a rank has done its `share` millionths of phases.
    fn is_done(&self, meter: &Meter, share: u64) -> bool {
        match self.amount {
            Amount::Repetitions(blocks) => meter.units() >= shares::blocks(share, blocks),
            Amount::CpuTime(time) => {
                let phases = share as f64 / f64::from(PPM);
                meter.spent() >= time.mul_f64(phases / f64::from(self.plan.phases))
            }
        }
    }

    /// The part of the whole job that has been done.
    fn fraction(&self, totals: &Totals) -> f64 {
        let of_one = match self.amount {
            Amount::Repetitions(blocks) => {
                totals.units as f64 / (blocks as f64 * f64::from(self.plan.phases))
            }
            Amount::CpuTime(time) => totals.cpu.div_duration_f64(time),
        };
        of_one / self.plan.total_usage()
    }

    /// Waits for as long as messages travel at the end of a phase.
    ///
    /// No processor does anything for that, so it takes its time also where somebody else has
    /// the processor. It is longer on slower processors: their usage is the same.
    fn wait_for_network(&self, meter: &Meter) {
        let part = f64::from(shares::network(&self.plan.usage)) / f64::from(self.plan.speed);
        let phase = match self.amount {
            Amount::Repetitions(blocks) => meter.mean().mul_f64(blocks as f64),
            Amount::CpuTime(time) => time.div_f64(f64::from(self.plan.phases)),
        };
        if part > 0.0 {
            std::thread::sleep(phase.mul_f64(part));
        }
    }
}
