//! Attempts that end by themselves, and what is left of any attempt that has ended.

use std::time::Duration;

use dormouse_proto::v1::{TaskFailed, TaskFinished, report, task_finished::Due};
use dormouse_units::Tier;
use dormouse_vm::ideal::MachineChange;
use dormouse_vm::life::{AttemptOutcome, AttemptSeat, VmEvent};

use tokio::time::Instant;

use super::VmOwner;
use crate::{
    agent::{
        host::limit,
        launch::is_silent,
        life::refuse_start,
        report::{Key, explain_error, make_report, task_ref},
        test_fault,
        verdict::judge_answer,
        vm::{
            account::AttemptAccount,
            attempt::{AttemptNature, VmAttempt},
            clock::CommandStamp,
            job,
        },
    },
    process::ProcessEnd,
};

impl VmOwner {
    /// Checks whether a killed process is gone, and reaps it; why it died is already known.
    pub(crate) fn reap_process(&mut self, key: Key) {
        let process = self.find_attempt(key).and_then(|attempt| attempt.process.as_ref());
        if process.is_some_and(|process| !matches!(process.try_wait(), Ok(None))) {
            self.apply_event(VmEvent::Gone(key));
        }
    }

    /// Checks whether a process has ended, and if so, how.
    pub(crate) fn judge_end(&mut self, key: Key) {
        let Some(attempt) = self.find_attempt(key) else { return };
        if attempt.own_end.is_some() {
            // It has been reaped. It is over once what it left is kept, which may have been heard of during a dump.
            if attempt.answer.is_some() {
                self.apply_event(VmEvent::Exited(key, Ok(())));
            }
            return;
        }
        let Some(process) = attempt.process.clone() else { return };
        let came = match process.try_wait() {
            Ok(Some(ended)) if self.own_has_ended(key, ended) => None,
            Ok(Some(ended)) => self.came_of(key, ended),
            Ok(None) => None,
            Err(error) => Some(Err(explain_error(&error))),
        };
        if let Some(came) = came {
            let result = self.keep_answer(key, came);
            self.apply_event(VmEvent::Exited(key, result));
        }
    }

    /// Keeps the answer of an attempt until its end is reported; returns the error if the attempt gave no answer.
    pub(crate) fn keep_answer(
        &mut self,
        key: Key,
        came: Result<(bool, Option<String>), String>,
    ) -> Result<(), String> {
        let answer = came?;
        if let Some(attempt) = self.attempt_mut(key) {
            attempt.answer = Some(answer);
        }
        Ok(())
    }

    /// Returns whether an attempt's answer is right, with its result if its program gives one; or why there is no answer; `None`:
    /// the attempt isn't on the VM.
    pub(crate) fn came_of(
        &self,
        key: Key,
        ended: ProcessEnd,
    ) -> Option<Result<(bool, Option<String>), String>> {
        let attempt = self.find_attempt(key)?;
        if is_silent(&attempt.order) && ended == ProcessEnd::Exited(0) {
            return Some(Ok((true, None)));
        }
        let work = self.work_of(attempt);
        let (machine, killed_before) = (&*self.machine, attempt.killed_before);
        let verdict = judge_answer(machine, &attempt.name, ended, killed_before, work);
        Some(verdict.map(|(verified, result)| (verified, Some(test_fault::forges_trail(result)))))
    }

    /// Handles an attempt whose work is done, perhaps earlier than its VM's model says.
    ///
    /// Such an attempt got a slice or two more CPU time than it was promised by now, and keeps its vCPUs for as long as it was
    /// promised.
    pub(crate) fn await_time(&mut self, key: Key) {
        self.pass_time();
        let Some(attempt) = self.attempt_mut(key) else { return };
        attempt.exempt.clear();
        let is_early = match attempt.nature {
            AttemptNature::Task(_) => {
                self.model.task_progress(key.0, key.1).is_some_and(|p| p.finished.is_none())
            }
            AttemptNature::Job(_) => self.is_job_early(key),
        };
        if !is_early {
            self.apply_event(VmEvent::TimeHasCome(key));
        }
    }

    /// Removes an ended attempt, and reports how it ended.
    pub(crate) fn end_attempt(&mut self, key: Key, seats: &[AttemptSeat], end: AttemptOutcome) {
        if end == AttemptOutcome::Refused {
            self.leave_model(key);
            if let Some(attempt) = self.remove(key) {
                let after = Duration::as_millis(&limit::KILL);
                let why =
                    format!("its slot is still occupied by a task that was killed {after} ms ago");
                self.context.send_report(refuse_start(&attempt.order, why));
            }
            return;
        }
        let Some((of, attempt)) = self.take_out(key, seats, &end) else { return };
        match end {
            AttemptOutcome::Finished => self.say_finished(attempt, of),
            AttemptOutcome::Failed { why, image } => {
                self.forget_job(&attempt);
                self.say_failed(key, (why, image), attempt.done_ppm(), of);
            }
            AttemptOutcome::Stopped(kept) => {
                self.say_stopped(key, Self::kept_of(&attempt, kept), of);
            }
            AttemptOutcome::Refused | AttemptOutcome::Silent => {}
        }
        self.report_credits();
        self.turn_meters();
    }

    /// Reports the end of an attempt some of whose processes or files still exist.
    pub(crate) fn say_end(&mut self, key: Key, end: AttemptOutcome) {
        self.leave_model(key);
        let Some(attempt) = self.find_attempt(key) else { return };
        let of = self.account_of(attempt, false);
        match end {
            AttemptOutcome::Failed { why, image } => {
                self.say_failed(key, (why, image), attempt.done_ppm(), of);
            }
            AttemptOutcome::Stopped(kept) => {
                self.say_stopped(key, Self::kept_of(attempt, kept), of);
            }
            AttemptOutcome::Finished | AttemptOutcome::Refused | AttemptOutcome::Silent => {}
        }
    }

    fn say_finished(&self, attempt: VmAttempt, of: AttemptAccount) {
        let due = match &attempt.nature {
            AttemptNature::Task(promise) => {
                promise.after.map(|it| Due::EmulatedAfterUs(it.as_micros()))
            }
            AttemptNature::Job(job) => job.due.map(|due| Due::EmulatedAtUs(due.at_us)),
        };
        let (verified, result) = attempt.answer.unwrap_or_default();
        let own = attempt.own_end;
        self.context.send_report(make_report(report::Report::TaskFinished(TaskFinished {
            task: task_ref(self.id, attempt.key),
            verified,
            real_cpu_us: of.cpu_us,
            result,
            ledger: of.ledger,
            job: of.job,
            due,
            own,
        })));
    }

    fn say_failed(
        &self,
        key: Key,
        (why, could_not_restore): (String, bool),
        done_ppm: u32,
        of: AttemptAccount,
    ) {
        self.context.send_report(make_report(report::Report::TaskFailed(TaskFailed {
            task: task_ref(self.id, key),
            why,
            real_cpu_us: of.cpu_us,
            ledger: of.ledger,
            could_not_restore,
            job: of.job,
            done_ppm,
            own: None,
        })));
    }

    /// Removes a failed job from the model of the VM, from which the promises to neighbouring jobs are computed.
    pub(crate) fn forget_job(&mut self, attempt: &VmAttempt) {
        if attempt.parallel_job().is_some() {
            let at = self.pace.decided_time(&CommandStamp::stamp_now());
            self.pace.apply_change(at, MachineChange::Kill(attempt.key));
        }
    }

    /// Returns the account of an ending attempt: what it was promised and what it received. The caller must have
    /// advanced the VM's models to now.
    pub(crate) fn account_of(&self, attempt: &VmAttempt, finished: bool) -> AttemptAccount {
        match &attempt.nature {
            AttemptNature::Task(promise) => {
                let ledger = self.ledger_of(attempt, promise, finished);
                AttemptAccount { cpu_us: ledger.real_charged_us, ledger: Some(ledger), job: None }
            }
            AttemptNature::Job(job) => {
                let account = self.job_account(job);
                let cpu_us = account.uses.iter().map(|of| of.real_cpu_us).sum();
                AttemptAccount { cpu_us, ledger: None, job: Some(account) }
            }
        }
    }

    /// Removes an attempt whose process is gone, and its directory; returns the attempt's account and the attempt.
    fn take_out(
        &mut self,
        key: Key,
        seats: &[AttemptSeat],
        end: &AttemptOutcome,
    ) -> Option<(AttemptAccount, VmAttempt)> {
        self.leave_model(key);
        self.vacate_slots(key, seats);
        let attempt = self.find_attempt(key)?;
        let account = self.account_of(attempt, *end == AttemptOutcome::Finished);
        let share = self.share_of(attempt);
        self.share.promised += share.promised;
        self.share.received += share.received;
        let attempt = self.remove(key)?;
        self.refresh_quota(attempt.first_cpu());
        if attempt.parallel_job().is_some() {
            self.turn_meters();
            // Who comes next owes nothing.
            self.pay_jobs(Instant::now());
        }
        let keeps =
            attempt.is_killed || matches!(end, AttemptOutcome::Stopped(_) | AttemptOutcome::Silent);
        self.context.machine.release(&attempt.name, key, keeps && attempt.parallel_job().is_none());
        Some((account, attempt))
    }

    /// Frees the slots of an attempt whose processes are gone, and resets them.
    pub(crate) fn vacate_slots(&mut self, key: Key, seats: &[AttemptSeat]) {
        let charged = job::charged_ns(&*self.machine, seats);
        if let Some(attempt) = self.attempt_mut(key) {
            attempt.exempt.clear();
            if let Some(job) = attempt.job_mut().filter(|_| !seats.is_empty()) {
                job.ledger.leave_slots(charged);
            }
        }
        for seat in seats.iter().filter(|seat| seat.tier == Tier::Background) {
            let demoted = self.machine.demote(seat.vcpu, seat.slot);
            self.note_set(demoted);
        }
        for seat in seats {
            let let_go = self.machine.let_go(seat.vcpu, seat.slot);
            self.note_set(let_go);
        }
    }

    /// Removes an attempt from the VM's list; returns it.
    pub(crate) fn remove(&mut self, key: Key) -> Option<VmAttempt> {
        let place = self.attempts.iter().position(|a| a.key == key)?;
        let mut attempt = self.attempts.remove(place);
        attempt.exempt.clear();
        self.remains.forget_attempt(key);
        Some(attempt)
    }
}
