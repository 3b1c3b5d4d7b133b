//! VMs without processes, on which a task finishes as soon as it is started. They measure how fast tasks are
//! dispatched.

use std::collections::BTreeSet;

use dormouse_proto::v1::{
    Report, StopTask, TaskFinished, TaskStarted, TaskStopped, VmRef, command::Command, report,
};

use super::report::{make_report, vm_destroyed, vm_failed, vm_took};

/// VMs of a run without processes, in which only the dispatch of commands is measured.
#[derive(Debug, Default)]
pub(crate) struct NoopMachines {
    vms: BTreeSet<u32>,
}

impl NoopMachines {
    /// Executes a command at once, and reports at once.
    pub(crate) fn execute_command(&mut self, command: Command, mut say: impl FnMut(Report)) {
        let zero = std::time::Duration::ZERO;
        match command {
            Command::CreateVm(create) if create.core_ppm.is_some() => {
                say(vm_failed(create.vm, "without processes there are no parallel jobs"));
            }
            Command::CreateVm(create) => {
                self.vms.insert(create.vm);
                say(make_report(report::Report::VmCreated(VmRef { vm: create.vm })));
            }
            Command::DestroyVm(at) => {
                self.vms.remove(&at.vm);
                say(vm_destroyed(at.vm));
            }
            Command::FreezeVm(at) => {
                say(make_report(report::Report::VmFrozen(vm_took(at.vm, zero))));
            }
            Command::ThawVm(at) => say(make_report(report::Report::VmThawed(vm_took(at.vm, zero)))),
            Command::StartTask(start) => {
                let task = start.task;
                let vm = task.unwrap_or_default().vm;
                if !self.vms.contains(&vm) {
                    return say(vm_failed(vm, "there is no such VM"));
                }
                let done_ppm = start.from.map_or(0, |kept| kept.done_ppm);
                let started = TaskStarted { task, done_ppm, real_took_us: 0, ..Default::default() };
                say(make_report(report::Report::TaskStarted(started)));
                let finished = TaskFinished { task, verified: true, ..TaskFinished::default() };
                say(make_report(report::Report::TaskFinished(finished)));
            }
            Command::StopTask(StopTask { task, .. }) => {
                let stopped = TaskStopped { task, ..TaskStopped::default() };
                say(make_report(report::Report::TaskStopped(stopped)));
            }
            // All have ended.
            Command::SetMode(_)
            | Command::SetSupply(_)
            | Command::Fault(_)
            | Command::Announce(_)
            | Command::SetNetwork(_)
            | Command::PromoteTask(_)
            | Command::MoveTask(_)
            | Command::CheckpointNow(_) => {}
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use dormouse_proto::v1::{CreateVm, StartTask, TaskRef};

    #[test]
    fn a_started_task_is_finished_at_once_on_a_vm_that_exists() {
        let mut noop = NoopMachines::default();
        let task = Some(TaskRef { vm: 1, task: 7, attempt: 2 });
        let start = StartTask { task, ..StartTask::default() };
        let mut said = Vec::new();
        noop.execute_command(Command::StartTask(start.clone()), |r| said.push(r.report.unwrap()));
        assert!(matches!(said.as_slice(), [report::Report::VmFailed(_)]), "{said:?}");
        said.clear();
        noop.execute_command(Command::CreateVm(CreateVm { vm: 1, ..CreateVm::default() }), |_| {});
        noop.execute_command(Command::StartTask(start), |r| said.push(r.report.unwrap()));
        let [report::Report::TaskStarted(_), report::Report::TaskFinished(end)] = said.as_slice()
        else {
            panic!("{said:?}")
        };
        assert!(end.verified && end.task == task);
    }
}
