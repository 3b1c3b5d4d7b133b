//! State that the owners of all VMs of one session share.

use std::{sync::Arc, time::Duration};

use dormouse_proto::v1::{Report, StartTask};
use dormouse_units::{Span, Speedup, TaskId};
use tokio::sync::Semaphore;

use super::backend::MachineBackend;
use crate::{
    agent::{bounds, cores::HostCores, own},
    workspace::{self, TaskName},
};

/// State that the owners of all VMs of one session share: settings of the run and the host, and the host's machines.
#[derive(Debug)]
pub struct LifeContext {
    /// Name of the run.
    pub run: String,
    /// Cores that the worker offers, in thousandths.
    pub millicores: u32,
    /// Ratio of emulated to real time.
    pub speedup: Speedup,
    /// True if a task is stopped at a checkpoint for as long as modelled.
    pub hold_checkpoints: bool,
    /// True if this worker has a working CRIU.
    pub has_criu: bool,
    /// Permits for dumps and restores: one for each core, as CRIU uses a core fully.
    pub criu: Arc<Semaphore>,
    /// Cores of the host, to which vCPUs with two tasks are bound.
    pub cores: Arc<HostCores>,
    /// Time between two ticks of the kernel's clock, within which an exhausted quota is noticed.
    pub tick: Duration,
    /// The host under the VMs.
    pub machine: Arc<dyn MachineBackend>,
}

impl LifeContext {
    /// Sends a report to the coordinator by the session.
    pub(crate) fn send_report(&self, report: Report) {
        self.machine.report(bounds::shorten_report(report));
    }

    /// Returns whether this host can restore checkpoints of the command's task; checkpoints of memory need CRIU.
    pub(crate) fn keeps_checkpoints(&self, order: &StartTask) -> bool {
        self.has_criu || !own::is_saved_by_criu(order)
    }

    /// Makes the name of a task of this run.
    ///
    /// # Errors
    ///
    /// The run's name can't be that of a folder.
    pub(crate) fn task_name(&self, task: TaskId) -> workspace::Result<TaskName> {
        TaskName::new(self.run.clone(), task.get().to_string())
    }

    /// Returns the share of a host core, in ppm, that gives `cpu_us` of CPU time in `runtime_us` of emulated time.
    pub(crate) fn core_share(&self, cpu_us: u64, runtime_us: u64) -> u32 {
        let share =
            self.speedup.core_share(Duration::from_micros(cpu_us), Span::from_micros(runtime_us));
        share.get().max(1)
    }
}
