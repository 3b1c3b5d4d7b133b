//! A process of a simulated VM, and the page on which its program reports its progress.

use std::{io, sync::Arc, time::Duration};

use dormouse_tasks::progress::{Clock, Progress, State};
use dormouse_worker::{
    agent::in_process::{ProgressPage, TaskProcess},
    process::{self, ProcessEnd},
};

use super::vm::SimulatedVm;
use crate::worker::uplink::Uplink;

/// A process of a simulated VM, and its progress page.
#[derive(Debug)]
pub(super) struct SimulatedProcess<U: Uplink> {
    pub(super) vm: Arc<SimulatedVm<U>>,
    pub(super) pid: i32,
}

impl<U: Uplink> TaskProcess for SimulatedProcess<U> {
    fn pid(&self) -> i32 {
        self.pid
    }

    fn kill(&self) -> process::Result<()> {
        self.vm.kill(self.pid);
        Ok(())
    }

    fn try_wait(&self) -> process::Result<Option<ProcessEnd>> {
        Ok(self.vm.ended(self.pid))
    }

    fn wait(&self, _: Duration) -> process::Result<Option<ProcessEnd>> {
        self.try_wait()
    }

    fn watch(&self, ended: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        self.vm.watch(self.pid, ended);
        Ok(())
    }

    fn ask_to_stop(&self) -> Result<(), String> {
        self.vm.set_standing(self.pid, true);
        Ok(())
    }

    fn resume(&self) -> Result<(), String> {
        self.vm.set_standing(self.pid, false);
        Ok(())
    }

    fn resident_bytes(&self) -> Option<u64> {
        None
    }

    fn cpu_ns(&self) -> u64 {
        0
    }
}

impl<U: Uplink> ProgressPage for SimulatedProcess<U> {
    fn progress(&self) -> Option<Progress> {
        self.vm.look(|vcpus| {
            let program = vcpus.programs.get(&self.pid)?;
            let (worked, whole) = program.worked();
            let is_through = program.is_through();
            let done =
                u128::from(worked) * u128::from(Progress::COMPLETE) / u128::from(whole.max(1));
            let ppm = u64::try_from(done).unwrap_or(u64::MAX).min(Progress::COMPLETE - 1);
            Some(Progress {
                state: if is_through { State::Done } else { State::Running },
                ppm: if is_through { Progress::COMPLETE } else { ppm },
                cpu: Duration::from_nanos(worked),
                units: worked,
                heartbeat: 1 + worked,
            })
        })
    }

    fn clock(&self) -> Option<Clock> {
        None
    }

    fn work(&self, processes: usize) -> Option<Vec<Duration>> {
        self.vm.look(|vcpus| {
            let ranks = &vcpus.programs.get(&self.pid)?.ranks;
            let work = || ranks.iter().map(|rank| Duration::from_nanos(rank.worked_ns)).collect();
            (ranks.len() == processes).then(work)
        })
    }
}
