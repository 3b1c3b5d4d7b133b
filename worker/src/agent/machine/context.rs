//! What the owners of all VMs of one life share.

use std::{sync::Arc, time::Duration};

use dormouse_proto::v1::{Report, StartTask};
use dormouse_units::{Span, Speedup, TaskId};
use tokio::sync::Semaphore;

use super::backend::MachineBackend;
use crate::{
    agent::{bounds, cores::HostCores, own},
    workspace::{self, TaskName},
};

/// What the owners of all VMs of one life share: the run's settings, the host's, and its machines.
#[derive(Debug)]
pub struct LifeContext {
    /// Name of the run.
    pub run: String,
    /// The cores that the worker offers, in thousandths.
    pub millicores: u32,
    /// How much faster than real time the run's clock goes.
    pub speedup: Speedup,
    /// A checkpoint stands still for as long as modelled.
    pub hold_checkpoints: bool,
    /// Whether this worker has a CRIU that works.
    pub has_criu: bool,
    /// As many dumps and restores at once as there are cores: CRIU computes all the time.
    pub criu: Arc<Semaphore>,
    /// The host's cores, to which vCPUs with two tasks are bound.
    pub cores: Arc<HostCores>,
    /// The time between two ticks of the kernel's clock: a quota that is used up is noticed by then.
    pub tick: Duration,
    /// The host under the VMs.
    pub machine: Arc<dyn MachineBackend>,
}

impl LifeContext {
    /// Hands a report to the session.
    pub(crate) fn send_report(&self, report: Report) {
        self.machine.report(bounds::shorten_report(report));
    }

    /// Whether checkpoints of the task of an order can be had here: those of memory need CRIU.
    pub(crate) fn keeps_checkpoints(&self, order: &StartTask) -> bool {
        self.has_criu || !own::is_saved_by_criu(order)
    }

    /// Names a task of this run.
    ///
    /// # Errors
    /// The run has no name for a folder.
    pub(crate) fn task_name(&self, task: TaskId) -> workspace::Result<TaskName> {
        TaskName::new(self.run.clone(), task.get().to_string())
    }

    /// The share of a host core, in ppm, at which `cpu_us` of CPU time are had in `runtime_us` of emulated time.
    pub(crate) fn core_share(&self, cpu_us: u64, runtime_us: u64) -> u32 {
        let share =
            self.speedup.core_share(Duration::from_micros(cpu_us), Span::from_micros(runtime_us));
        share.get().max(1)
    }
}
