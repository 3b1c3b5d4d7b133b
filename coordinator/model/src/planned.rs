//! VMs and tasks of a schedule made before a run.

use dormouse_cloud::Market;
use dormouse_units::{Mode, TaskId, Time, TypeName};
use serde::{Deserialize, Serialize};

/// A VM to launch at the beginning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PlannedVm {
    /// Instance type of the VM.
    #[serde(rename = "type")]
    pub kind: TypeName,
    /// Market in which the VM is bought.
    pub market: Market,
    /// Tasks for each vCPU, in order.
    pub vcpus: Vec<Vec<PlannedTask>>,
}

/// A task on a vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PlannedTask {
    /// The task's id.
    pub task: TaskId,
    /// Expected start, from the beginning of the run.
    pub start: Time,
    /// Expected end, from the beginning of the run.
    pub end: Time,
    /// Mode of the task on a burstable VM.
    #[serde(default)]
    pub mode: Mode,
}

impl PlannedVm {
    /// The VM's tasks in the order of their starts.
    #[must_use]
    pub fn in_order(&self) -> Vec<PlannedTask> {
        let mut tasks = Vec::with_capacity(self.vcpus.iter().map(Vec::len).sum());
        for (lane, of_lane) in self.vcpus.iter().enumerate() {
            tasks.extend(of_lane.iter().map(|&task| (lane, task)));
        }
        tasks.sort_by_key(|&(lane, task)| (task.start, lane));
        tasks.into_iter().map(|(_, task)| task).collect()
    }
}
