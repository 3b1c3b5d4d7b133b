//! Between the engine's words and the wire's.

use std::collections::BTreeSet;

use dormouse_cloud::Burstable;
use dormouse_engine::{Command, Ledger, Report, StartTask};
use dormouse_proto::v1;
use dormouse_units::{
    Attempt, Bytes, CheckpointSeq, Credits, Mode, Ppm, Seats, Span, TaskId, Tier, Time, VmId,
};

use crate::parallel::{self, Programs};

/// What each task is on a worker: its program, and the CPU time it is given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Loads {
    pub(crate) programs: Vec<Vec<String>>,
    pub(crate) cpu_us: Vec<u64>,
    /// Of a run with parallel jobs, what makes these.
    pub(crate) parallel: Option<Programs>,
    /// The VMs that parallel jobs run on.
    pub(crate) two_tier: BTreeSet<VmId>,
}

impl Loads {
    /// A command as the wire has it, decided on at `at` on the run's clock, if that is known.
    pub(crate) fn command(&mut self, command: Command, at: Option<Time>) -> v1::Command {
        use v1::command::Command as Wire;
        let vm_ref = |vm: VmId| v1::VmRef { vm: vm.get() };
        let at_us = at.map(Time::as_micros);
        let job = |vm: VmId, task: TaskId, attempt: Attempt| v1::JobRef {
            vm: vm.get(),
            job: task.get(),
            attempt: attempt.get(),
            at_us: at_us.unwrap_or_default(),
        };
        let wire = match command {
            Command::CreateVm { vm, vcpus, two_tier: true, .. } => {
                self.two_tier.insert(vm);
                let core_ppm = self.parallel.map_or(0, |programs| programs.core.get());
                Wire::CreateMachine(v1::CreateMachine { vm: vm.get(), processors: vcpus, core_ppm })
            }
            Command::CreateVm { vm, kind, vcpus, memory, burstable, .. } => {
                Wire::CreateVm(v1::CreateVm {
                    vm: vm.get(),
                    kind: kind.as_str().to_owned(),
                    vcpus,
                    memory_bytes: memory.get(),
                    burstable: burstable.map(burstable_to_wire),
                })
            }
            Command::FreezeVm { vm, .. } => Wire::FreezeVm(vm_ref(vm)),
            Command::ThawVm { vm, .. } => Wire::ThawVm(vm_ref(vm)),
            Command::DestroyVm { vm, .. } => Wire::DestroyVm(vm_ref(vm)),
            Command::StartTask(StartTask { task, attempt, seats, job: Some(of), .. }) => {
                let Seats { vm, tier, cpus } = seats;
                let args = self.parallel.map(|programs| programs.arguments(&of));
                Wire::StartJob(v1::StartJob {
                    job: Some(job(vm, task, attempt)),
                    program: Some(v1::Program { args: args.unwrap_or_default() }),
                    on: cpus.to_vec(),
                    tier: tier_to_wire(tier).into(),
                    plan: self.parallel.map(|programs| programs.plan(&of)),
                })
            }
            Command::StartTask(start) => Wire::StartTask(self.start(&start)),
            Command::StopTask { vm, task, attempt, .. } if self.two_tier.contains(&vm) => {
                Wire::KillJob(job(vm, task, attempt))
            }
            Command::StopTask { vm, task, attempt, keep, .. } => Wire::StopTask(v1::StopTask {
                vm: vm.get(),
                task: task.get(),
                attempt: attempt.get(),
                keep,
            }),
            Command::PromoteTask { vm, task, attempt, .. } => {
                Wire::PromoteJob(job(vm, task, attempt))
            }
            Command::MoveTask { vm, task, attempt, on, .. } => {
                let job = Some(job(vm, task, attempt));
                Wire::MoveJob(v1::MoveJob { job, on: on.to_vec() })
            }
            Command::SetMode { vm, task, attempt, mode, .. } => Wire::SetMode(v1::SetMode {
                vm: vm.get(),
                task: task.get(),
                attempt: attempt.get(),
                mode: mode_to_wire(mode).into(),
            }),
        };
        v1::Command { command: Some(wire), at_us, late_us: 0 }
    }

    fn start(&self, start: &StartTask) -> v1::StartTask {
        let index = start.task.get() as usize;
        let args = self.programs.get(index).cloned().unwrap_or_default();
        v1::StartTask {
            vm: start.seats.vm.get(),
            vcpu: start.seats.cpus.first().copied(),
            task: start.task.get(),
            attempt: start.attempt.get(),
            program: Some(v1::Program { args }),
            memory_bytes: start.memory.get(),
            runtime_us: start.runtime.as_micros(),
            cpu_us: self.cpu_us.get(index).copied().unwrap_or_default(),
            done_ppm: start.from.map_or(0, |(_, done)| done.get()),
            checkpoint: start.from.map_or(0, |(seq, _)| seq.get()),
            checkpoint_attempt: start.from.map_or(0, |_| start.from_attempt.get()),
            checkpoints_ppm: start.checkpoints.iter().map(|due| due.get()).collect(),
            checkpoint_cost_us: start.checkpoint_cost.as_micros(),
            mode: mode_to_wire(start.mode).into(),
            tier: tier_to_wire(start.seats.tier).into(),
        }
    }
}

const fn tier_to_wire(tier: Tier) -> v1::Tier {
    match tier {
        Tier::Foreground => v1::Tier::Foreground,
        Tier::Background => v1::Tier::Background,
    }
}

const fn mode_to_wire(mode: Mode) -> v1::Mode {
    match mode {
        Mode::Burst => v1::Mode::Burst,
        Mode::Baseline => v1::Mode::Baseline,
    }
}

fn burstable_to_wire(b: Burstable) -> v1::Burstable {
    v1::Burstable {
        baseline_ppm: b.baseline.get(),
        earned_per_hour_vcpu_us: b.earned_per_hour.as_vcpu_micros(),
        initial_vcpu_us: b.initial.as_vcpu_micros(),
        cap_vcpu_us: b.cap.as_vcpu_micros(),
    }
}

/// When what is reported happened, on the run's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// This long after the attempt's start was decided on.
    After(Span),
    /// Then.
    At(Time),
    /// Then, which may be yet to come: a job is kept a little ahead, so that its end can be heard
    /// of in time.
    Ahead(Time),
}

/// A report as it was heard.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Heard {
    /// The worker has measured the programs.
    Ready { repetition_us: Vec<u64> },
    /// Something the run must hear; before it, of an attempt that is over, its account; a
    /// finished task's own result; and when what it reports happened.
    Report { report: Report, ledger: Option<Report>, result: Option<String>, due: Option<Due> },
    /// What else the worker's host does.
    Load(v1::HostLoad),
    /// The worker does not know the command of this number.
    Unsupported { command: u64, what: String },
}

/// A report in the engine's words.
///
/// # Errors
///
/// What is wrong with it.
pub(crate) fn heard(report: v1::Report) -> Result<Heard, String> {
    use v1::report::Report as Wire;
    let wire = report.report.ok_or("it is empty, or of a kind that this version doesn't know")?;
    let (mut result, mut ledger, mut due) = (None, None, None);
    let report = match wire {
        Wire::Ready(ready) => return Ok(Heard::Ready { repetition_us: ready.repetition_us }),
        Wire::HostLoad(load) => return Ok(Heard::Load(load)),
        Wire::Unsupported(v1::Unsupported { command, what }) => {
            return Ok(Heard::Unsupported { command, what });
        }
        Wire::VmCreated(it) => Report::VmCreated { vm: VmId::new(it.vm) },
        Wire::VmFrozen(it) => Report::VmFrozen { vm: VmId::new(it.vm), real_took_us: it.took_us },
        Wire::VmThawed(it) => Report::VmThawed { vm: VmId::new(it.vm), real_took_us: it.took_us },
        Wire::VmDestroyed(it) => Report::VmDestroyed { vm: VmId::new(it.vm) },
        Wire::VmFailed(it) => Report::VmFailed { vm: VmId::new(it.vm), why: it.why },
        Wire::TaskStarted(it) => {
            let (vm, task, attempt) = of_task(it.task)?;
            let done = part(it.done_ppm)?;
            Report::TaskStarted { vm, task, attempt, done, real_took_us: it.took_us }
        }
        Wire::TaskFinished(it) => {
            let (vm, task, attempt) = of_task(it.task)?;
            ledger = it.ledger.map(|l| of_ledger((vm, task, attempt), l));
            due = (it.after_us > 0).then_some(Due::After(Span::from_micros(it.after_us)));
            result = Some(it.result).filter(|text| !text.is_empty());
            let (verified, real_cpu_us) = (it.verified, it.cpu_us);
            Report::TaskFinished { vm, task, attempt, verified, real_cpu_us }
        }
        Wire::TaskFailed(it) => {
            let (vm, task, attempt) = of_task(it.task)?;
            ledger = it.ledger.map(|l| of_ledger((vm, task, attempt), l));
            Report::TaskFailed { vm, task, attempt, why: it.why, real_cpu_us: it.cpu_us }
        }
        Wire::TaskStopped(it) => {
            let (vm, task, attempt) = of_task(it.task)?;
            let done = part(it.done_ppm)?;
            ledger = it.ledger.map(|l| of_ledger((vm, task, attempt), l));
            let kept = (it.checkpoint > 0).then_some((CheckpointSeq::new(it.checkpoint), done));
            Report::TaskStopped { vm, task, attempt, kept, real_cpu_us: it.cpu_us }
        }
        Wire::CheckpointTaken(it) => {
            let (vm, task, attempt) = of_task(it.task)?;
            if it.checkpoint == 0 {
                return Err("checkpoints are numbered from 1".to_owned());
            }
            Report::CheckpointTaken {
                vm,
                task,
                attempt,
                checkpoint: CheckpointSeq::new(it.checkpoint),
                done: part(it.done_ppm)?,
                bytes: Bytes::new(it.bytes),
                real_held_us: it.held_us,
                real_dump_us: it.dump_us,
                real_owed_us: it.owed_us,
                real_criu_us: it.criu_us,
            }
        }
        Wire::CheckpointFailed(it) => {
            let (vm, task, attempt) = of_task(it.task)?;
            Report::CheckpointFailed { vm, task, attempt, why: it.why }
        }
        Wire::Credits(it) => {
            due = it.at_us.map(|us| Due::At(Time::from_micros(us)));
            Report::Credits { vm: VmId::new(it.vm), balance: Credits::from_vcpu_micros(it.vcpu_us) }
        }
        Wire::VmShare(it) => Report::Share {
            vm: VmId::new(it.vm),
            real_promised_us: it.promised_us,
            real_received_us: it.received_us,
        },
        other @ (Wire::JobStarted(_)
        | Wire::JobPromoted(_)
        | Wire::JobMoved(_)
        | Wire::JobKilled(_)
        | Wire::JobFinished(_)
        | Wire::JobFailed(_)) => {
            let (report, account, at) =
                parallel::heard(other)?.ok_or("it is of a kind that nobody knows")?;
            (ledger, due) = (account, at.map(Due::Ahead));
            report
        }
    };
    Ok(Heard::Report { report, ledger, result, due })
}

fn of_ledger((vm, task, attempt): (VmId, TaskId, Attempt), of: v1::Ledger) -> Report {
    let ledger = Ledger {
        real_promised_us: of.promised_us,
        real_took_us: of.took_us,
        real_promised_work_us: of.promised_work_us,
        real_worked_us: of.worked_us,
        real_charged_us: of.charged_us,
        real_birth_us: of.birth_us,
        real_criu_us: of.criu_us,
        real_ahead_us: of.ahead_us,
        real_behind_us: of.behind_us,
        real_stood_us: of.stood_us,
        missed_checkpoints: of.missed_checkpoints,
        real_whole_work_us: of.whole_work_us,
        real_slice_us: of.slice_us,
    };
    Report::Ledger { vm, task, attempt, ledger: Box::new(ledger) }
}

fn of_task(of: Option<v1::TaskRef>) -> Result<(VmId, TaskId, Attempt), String> {
    let of = of.ok_or("it does not say of which task it is")?;
    Ok((VmId::new(of.vm), TaskId::new(of.task), Attempt::new(of.attempt)))
}

pub(crate) fn part(ppm: u32) -> Result<Ppm, String> {
    if ppm > Ppm::ONE.get() {
        return Err(format!("{ppm} parts per million of the work are more than all of it"));
    }
    Ok(Ppm::new(ppm))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_reports_are_refused_with_what_is_wrong() {
        use v1::report::Report as Wire;
        let no_task = Wire::TaskFinished(v1::TaskFinished::default());
        let task = Some(v1::TaskRef { vm: 1, task: 2, attempt: 3 });
        let too_much = Wire::TaskStarted(v1::TaskStarted { task, done_ppm: 1_000_001, took_us: 0 });
        let zeroth = Wire::CheckpointTaken(v1::CheckpointTaken { task, ..Default::default() });
        for (report, word) in [
            (None, "empty"),
            (Some(no_task), "which task"),
            (Some(too_much), "more than all"),
            (Some(zeroth), "from 1"),
        ] {
            let no = heard(v1::Report { report }).expect_err("damaged");
            assert!(no.contains(word), "{no}");
        }
    }

    #[test]
    fn a_stop_without_checkpoint_keeps_nothing() {
        let task = Some(v1::TaskRef { vm: 1, task: 2, attempt: 3 });
        let stopped =
            v1::TaskStopped { task, done_ppm: 500_000, checkpoint: 0, cpu_us: 7, ledger: None };
        let report = Some(v1::report::Report::TaskStopped(stopped));
        assert_eq!(
            heard(v1::Report { report }),
            Ok(Heard::Report {
                report: Report::TaskStopped {
                    vm: VmId::new(1),
                    task: TaskId::new(2),
                    attempt: Attempt::new(3),
                    kept: None,
                    real_cpu_us: 7
                },
                ledger: None,
                result: None,
                due: None
            })
        );
    }
}
