//! Checks of workers' measurements and answers: each must be about the worker's own VMs, and possible.

use std::time::Duration;

use dormouse_model::{Event, LoadReport, ProgramEnd, Report};
use dormouse_tasks::answer::{self, Verdict};
use dormouse_tasks::own::OwnProgram;
use dormouse_units::{HostId, TaskId, VmId};
use dormouse_vm::ideal::phases_of;

use super::ConductorState;
use crate::conductor::roster::HostStanding;
use crate::limits::measured::{self, VmRoom};
use crate::log::journal::JournalMsg;
use crate::time::outage::to_micros;

impl ConductorState {
    /// Returns the host of a VM, if that isn't `host`.
    pub(super) fn other_host_of(&self, host: HostId, vm: VmId) -> Option<HostId> {
        self.outstanding.host_of(vm).filter(|other| *other != host)
    }

    /// Returns how long a host has been connected by this coordinator's clock; `None`: an earlier coordinator
    /// welcomed it.
    fn been_there(&self, host: HostId) -> Option<Duration> {
        Some(self.roster.get(host)?.welcomed?.elapsed())
    }

    /// Records the load that a host reports, if it is possible.
    pub(super) fn hear_load(&mut self, host: HostId, number: u64, load: LoadReport) {
        if self.facts.disbelieved.contains_key(&host) {
            return;
        }
        let is_joined =
            self.roster.get(host).is_some_and(|entry| entry.standing == HostStanding::Joined);
        if !self.begun || !is_joined {
            self.early_loads.insert(host, (number, load));
            return;
        }
        let before = self.facts.loads.get(&host);
        // One that is sent again, since a crash came before its acknowledgement, says less than is known.
        if before.is_some_and(|before| load.elapsed_us < before.elapsed_us) {
            return;
        }
        match measured::check_load(&load, before) {
            Ok(()) => self.feed_event(self.last, Event::HostLoad { host, number, load }),
            Err(why) => self.disbelieve_host(host, why),
        }
    }

    /// Records the loads that hosts reported before the run began.
    pub(super) fn hear_early_loads(&mut self) {
        for (host, (number, load)) in std::mem::take(&mut self.early_loads) {
            self.hear_load(host, number, load);
        }
    }

    /// Returns whether the measurements in a report are possible; if not, the report is dropped and its host is
    /// disbelieved.
    pub(super) fn is_believable(&mut self, host: HostId, report: &Report) -> bool {
        let vm = report.vm();
        let Some(room) = self.room_of(host, vm) else { return true };
        match measured::check_report(report, room) {
            Ok(()) => true,
            Err(why) => {
                self.disbelieve_host(host, format!("{vm}: {why}"));
                false
            }
        }
    }

    /// Returns the bounds of the CPU time that a VM can have used; `None`: they aren't known.
    fn room_of(&self, host: HostId, vm: VmId) -> Option<VmRoom> {
        let kind = &self.run.provider().find_vm(vm)?.kind;
        let kind = self.run.setup().catalogue.get(kind)?;
        Some(VmRoom { vcpus: kind.vcpus, there: self.been_there(host)? })
    }

    fn disbelieve_host(&mut self, host: HostId, why: String) {
        if self.facts.disbelieved.contains_key(&host) {
            return;
        }
        tracing::warn!(%host, why, "a worker's report is rejected");
        self.feed_event(self.last, Event::Disbelieved { host, why });
    }

    /// Checks the answer of a task that its worker reports as right.
    pub(super) fn check_answer(&self, report: &mut Report, end: Option<&ProgramEnd>) {
        let Report::TaskFinished { task, verified, reported, program_failed, result, .. } = report
        else {
            return;
        };
        *program_failed = !*verified && self.own_program(*task).is_some();
        if !*verified {
            *reported = false;
            return;
        }
        match self.verdict_on(*task, result.as_deref(), end) {
            Verdict::Right => *reported = false,
            Verdict::Unchecked(_) => *reported = true,
            Verdict::Wrong(why) => {
                tracing::warn!(%task, why, "an answer that its worker called correct is wrong");
                (*verified, *reported) = (false, false);
                *program_failed = self.own_program(*task).is_some();
            }
        }
    }

    /// Checks that a checkpoint that a worker reports as stored has arrived. If not, it counts as failed and its host
    /// is disbelieved: every worker that stored a checkpoint has a receipt.
    pub(super) fn check_checkpoint(&mut self, host: HostId, report: &mut Report) {
        let (vm, task, attempt, number, reported) = match *report {
            Report::CheckpointTaken { vm, task, attempt, checkpoint, bytes, .. } => {
                (vm, task, attempt, checkpoint, Some(bytes.get()))
            }
            Report::TaskStopped { vm, task, attempt, kept: Some((number, _)), .. } => {
                (vm, task, attempt, number, None)
            }
            _ => return,
        };
        let record = self.run.tasks().get(task);
        if record.is_none_or(|it| it.attempt != attempt || it.vm() != Some(vm)) {
            // It changes nothing: what came of that attempt may be forgotten.
            return;
        }
        let which = (number.get(), attempt.get());
        let compared = self.store.receipts().compare_length(task.get(), which, reported);
        let Err(why) = compared.and_then(|()| self.check_dump(report)) else { return };
        let why = format!("{number} of {task}, which it reports as stored: {why}");
        match report {
            Report::TaskStopped { kept, .. } => *kept = None,
            _ => *report = Report::CheckpointFailed { vm, task, attempt, why: why.clone() },
        }
        match self.roster.get(host).is_some_and(|entry| entry.welcomed.is_some()) {
            true => self.disbelieve_host(host, why),
            // A power cut may have taken what a coordinator before this one had.
            false => tracing::warn!(%host, why, "a checkpoint is rejected"),
        }
    }

    /// Checks that CRIU can have read that much memory in the time that a worker reports for the dump, during which its
    /// tasks don't compute.
    fn check_dump(&self, report: &Report) -> Result<(), String> {
        let Report::CheckpointTaken { task, bytes, real_dump_us, real_held_us, .. } = report else {
            return Ok(());
        };
        // The bytes of others are those of their directory, too, which CRIU has no part in.
        let is_by_criu = self.own_program(*task).is_none();
        measured::check_dump(bytes.get(), *real_dump_us, *real_held_us, is_by_criu)
    }

    /// Removes the end of a user's own program from the report on a task that doesn't run one.
    pub(super) fn strip_end_of_another(&self, ledger: &mut Report) {
        if let Report::Ledger { task, own, .. } = ledger
            && self.own_program(*task).is_none()
        {
            *own = None;
        }
    }

    fn own_program(&self, task: TaskId) -> Option<&OwnProgram> {
        let program = self.plan.programs.get(task.get() as usize)?;
        program.own().map(|own| &**own)
    }

    fn verdict_on(&self, task: TaskId, result: Option<&str>, end: Option<&ProgramEnd>) -> Verdict {
        if let Some(own) = self.own_program(task) {
            let unknown = Verdict::Unchecked("the end of its program is not known");
            return end.map_or(unknown, |end| {
                own.check(end.is_success(), end.verify_status, |path| end.find_output(path))
            });
        }
        // None at all is wrong where one could be checked: a worker must not choose that nobody does.
        let result = result.unwrap_or_default();
        let nonce = answer::nonce(self.plan.answer_seed, task);
        let job = self.run.tasks().get(task).and_then(|record| record.job.as_ref());
        match (job, self.plan.phase) {
            (Some(job), Some(phase)) => {
                let phases = phases_of(self.plan.speedup.to_real(job.runtime), phase);
                answer::check_job(job.processes, phases, (job.number, nonce), result)
            }
            _ => match self.plan.programs.get(task.get() as usize) {
                Some(program) => answer::check(program.kernel(), nonce, result),
                None => Verdict::Unchecked("its program is not known"),
            },
        }
    }

    /// Logs the coordinator's own CPU time and delays at the end of the run.
    pub(super) fn say_own_load(&mut self) {
        let (clock_late_us, journal_late_us) = self.vitals.punctuality().worst_us();
        let cpu_us = to_micros(self.plan.world.own_cpu());
        let machine = self.plan.world.machine_name();
        let load = Event::CoordinatorLoad { clock_late_us, journal_late_us, cpu_us, machine };
        self.feed_event(self.last, load);
        let _ = self.journal.cast(JournalMsg::Append(std::mem::take(&mut self.batch)));
    }
}
