//! A process of a simulated VM, and the page on which its program reports its progress.

use std::{io, sync::Arc, time::Duration};

use dormouse_tasks::progress::{Progress, State};
use dormouse_worker::{
    agent::in_process::{ProgressPage, TaskProcess},
    process::{self, ProcessEnd},
};

use super::processes::VmKernel;

/// A process of a simulated VM, and its progress page.
#[derive(Debug)]
pub(in crate::worker) struct SimulatedProcess {
    pub(in crate::worker) kernel: Arc<VmKernel>,
    pub(in crate::worker) pid: i32,
}

impl TaskProcess for SimulatedProcess {
    fn pid(&self) -> i32 {
        self.pid
    }

    fn kill(&self) -> process::Result<()> {
        self.kernel.kill(self.pid);
        Ok(())
    }

    fn try_wait(&self) -> process::Result<Option<ProcessEnd>> {
        Ok(self.kernel.ended(self.pid))
    }

    fn is_alive(&self) -> bool {
        self.kernel.ended(self.pid).is_none()
    }

    fn wait(&self, _: Duration) -> process::Result<Option<ProcessEnd>> {
        self.try_wait()
    }

    fn watch(&self, ended: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        self.kernel.watch(self.pid, ended);
        Ok(())
    }

    fn ask_to_stop(&self) -> Result<(), String> {
        self.kernel.set_standing(self.pid, true);
        Ok(())
    }

    fn resume(&self) -> Result<(), String> {
        self.kernel.set_standing(self.pid, false);
        Ok(())
    }
}

impl ProgressPage for SimulatedProcess {
    fn progress(&self) -> Option<Progress> {
        self.kernel.look(|vcpus| {
            let program = vcpus.programs.get(&self.pid)?;
            let (worked, is_through) = (program.worked().0, program.is_through());
            Some(Progress {
                state: if is_through { State::Done } else { State::Running },
                ppm: if is_through { Progress::COMPLETE } else { program.done_ppm().into() },
                cpu: Duration::from_nanos(worked),
                units: worked,
                heartbeat: 1 + worked,
            })
        })
    }

    fn work(&self, processes: usize) -> Option<Vec<Duration>> {
        self.kernel.look(|vcpus| {
            let ranks = &vcpus.programs.get(&self.pid)?.ranks;
            let work = || ranks.iter().map(|rank| Duration::from_nanos(rank.worked_ns)).collect();
            (ranks.len() == processes).then(work)
        })
    }
}
