//! VMs without processes, on which a task is finished as soon as it is started: they
//! measure how fast tasks are handed out.

use std::collections::BTreeSet;

use dormouse_proto::v1::{
    Report, TaskFinished, TaskStarted, TaskStopped, VmRef, command::Command, report,
};

use super::report::{report, task, took, vm_destroyed, vm_failed};

/// The VMs there are.
#[derive(Debug, Default)]
pub(crate) struct Noop {
    vms: BTreeSet<u32>,
}

impl Noop {
    /// Obeys at once and reports at once.
    pub(crate) fn obey(&mut self, command: Command, mut say: impl FnMut(Report)) {
        let zero = std::time::Duration::ZERO;
        match command {
            Command::CreateVm(create) => {
                self.vms.insert(create.vm);
                say(report(report::Report::VmCreated(VmRef { vm: create.vm })));
            }
            Command::DestroyVm(at) => {
                self.vms.remove(&at.vm);
                say(vm_destroyed(at.vm));
            }
            Command::FreezeVm(at) => say(report(report::Report::VmFrozen(took(at.vm, zero)))),
            Command::ThawVm(at) => say(report(report::Report::VmThawed(took(at.vm, zero)))),
            Command::StartTask(start) if !self.vms.contains(&start.vm) => {
                say(vm_failed(start.vm, "there is no such VM"));
            }
            Command::StartTask(start) => {
                let whose = task(start.vm, start.task, start.attempt);
                say(report(report::Report::TaskStarted(TaskStarted {
                    task: whose,
                    done_ppm: start.done_ppm,
                    took_us: 0,
                })));
                say(report(report::Report::TaskFinished(TaskFinished {
                    task: whose,
                    verified: true,
                    cpu_us: 0,
                    result: String::new(),
                    ledger: None,
                    after_us: 0,
                })));
            }
            Command::StopTask(stop) => say(report(report::Report::TaskStopped(TaskStopped {
                task: task(stop.vm, stop.task, stop.attempt),
                done_ppm: 0,
                checkpoint: 0,
                cpu_us: 0,
                ledger: None,
            }))),
            Command::CreateMachine(create) => {
                say(vm_failed(create.vm, "without processes there are no parallel jobs"));
            }
            // Of a machine that there is not.
            Command::SetMode(_)
            | Command::StartJob(_)
            | Command::PromoteJob(_)
            | Command::MoveJob(_)
            | Command::KillJob(_) => {}
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use dormouse_proto::v1::{CreateVm, StartTask};

    #[test]
    fn a_started_task_is_finished_at_once_on_a_vm_that_exists() {
        let mut noop = Noop::default();
        let start = StartTask { vm: 1, task: 7, attempt: 2, ..StartTask::default() };
        let mut said = Vec::new();
        noop.obey(Command::StartTask(start.clone()), |r| said.push(r.report.unwrap()));
        assert!(matches!(said.as_slice(), [report::Report::VmFailed(_)]), "{said:?}");
        said.clear();
        noop.obey(Command::CreateVm(CreateVm { vm: 1, ..CreateVm::default() }), |_| {});
        noop.obey(Command::StartTask(start), |r| said.push(r.report.unwrap()));
        let [report::Report::TaskStarted(_), report::Report::TaskFinished(end)] = said.as_slice()
        else {
            panic!("{said:?}")
        };
        assert!(end.verified && end.task == task(1, 7, 2));
    }
}
