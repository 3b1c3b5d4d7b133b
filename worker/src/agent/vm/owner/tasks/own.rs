//! Metering and ending tasks that run a user's own program: only the program's processes are in the task's slot.

use std::{sync::Arc, time::Duration};

use dormouse_proto::v1::{TaskIdle, report};
use dormouse_tasks::limits::WHY_BYTES;
use dormouse_units::{Span, one_line};
use dormouse_vm::life::VmEvent;

use tokio::time::Instant;

use crate::{
    agent::{
        machine::OwnKeep,
        own::{self, KeptOutputs},
        report::{Key, explain_error, make_report, task_ref, whole_micros},
        vm::{message::OwnerMessage, owner::VmOwner},
    },
    process::ProcessEnd,
};

/// Time after which a restored program that does nothing is reported; it must pass both on the run's clock and in real time.
const IDLE: Span = Span::from_secs(300);
const IDLE_REAL: Duration = Duration::from_secs(10);

impl VmOwner {
    /// Records the CPU time of a user's own program.
    pub(crate) fn meter_own(&mut self, key: Key) {
        let Some(attempt) = self.find_attempt(key).filter(|it| it.own.is_some()) else { return };
        if attempt.own_end.is_some() {
            return;
        }
        let Some(promise) = attempt.task_promise().filter(|_| attempt.process.is_some()) else {
            return;
        };
        let (cpu, slot) = (attempt.first_cpu(), promise.slot);
        let charged = match self.machine.slot_cpu_ns(cpu, slot) {
            Ok(charged) => charged,
            Err(error) => {
                tracing::warn!(%error, "the CPU time of {} can't be read", attempt.name);
                return;
            }
        };
        let charges = promise.charges;
        let beside = charges.base + charges.birth + charges.criu;
        let worked = charged.saturating_sub(beside) + promise.came_with;
        let share = self.share_promised(attempt);
        let stands = attempt.standing.is_some();
        let threads = self.machine.slot_threads(cpu, slot);
        let memory = attempt.process.as_ref().and_then(|process| process.resident_bytes());
        let memory = memory.unwrap_or_default();
        if let Some(own) = self.attempt_mut(key).and_then(|attempt| attempt.own.as_mut()) {
            own.note_use(worked, (&threads, memory), share, stands);
        }
        self.watch_restored(key, worked);
    }

    /// Reports once that a restored program has done nothing for long; `worked` is the CPU time of its slot so far, in nanoseconds.
    fn watch_restored(&mut self, key: Key, worked: u64) {
        let long = self.context.speedup.to_real(IDLE).max(IDLE_REAL);
        let whose = task_ref(self.id, key);
        let (context, machine) = (Arc::clone(&self.context), Arc::clone(&self.machine));
        let Some(attempt) = self.attempt_mut(key) else { return };
        let restored = attempt.order.from.is_some() && own::is_saved_by_criu(&attempt.order);
        let stands = attempt.standing.is_some();
        let Some(process) = attempt.process.as_ref().filter(|_| restored && !stands) else {
            return;
        };
        let Some(own) = attempt.own.as_mut().filter(|own| own.idle.is_on()) else { return };
        let cpu_ns = worked.saturating_sub(process.cpu_ns());
        let deeds = own::ProgramActivity { cpu_ns, written: machine.written_bytes(&attempt.name) };
        if let Some(idle) = own.idle.note_activity(Instant::now(), deeds, long) {
            tracing::warn!(task = %attempt.name, ?idle, "a program has done nothing since its restore");
            let idle = TaskIdle { task: whose, real_for_us: whole_micros(idle) };
            context.send_report(make_report(report::Report::TaskIdle(idle)));
        }
    }

    /// Stops a task or lets it run on; the slot of a user's own program is frozen as a whole, so that the program doesn't notice.
    ///
    /// # Errors
    ///
    /// In words, what failed.
    pub(crate) fn set_standing(&self, key: Key, stands: bool) -> Result<(), String> {
        let Some(attempt) = self.find_attempt(key) else { return Ok(()) };
        let Some(process) = &attempt.process else { return Ok(()) };
        let slot =
            attempt.task_promise().filter(|_| attempt.own.is_some()).map(|promise| promise.slot);
        match (slot, stands) {
            (Some(slot), true) => {
                self.machine.hold(attempt.first_cpu(), slot).map_err(|e| explain_error(&e))
            }
            (Some(slot), false) => {
                self.machine.let_go(attempt.first_cpu(), slot).map_err(|e| explain_error(&e))
            }
            // One that its quota keeps from running stops when it would run next.
            (None, true) => process.ask_to_stop(),
            (None, false) => process.resume(),
        }
    }

    /// Handles the end of a user's own program: its answer is checked and its files are kept before its end is reported. Returns
    /// false if the task doesn't run a user's own program.
    pub(crate) fn own_has_ended(&mut self, key: Key, ended: ProcessEnd) -> bool {
        let now = self.pass_time();
        self.meter_own(key);
        let Some(attempt) = self.find_attempt(key).filter(|attempt| attempt.own.is_some()) else {
            return false;
        };
        let mut end = self.machine.own_end(&attempt.name, ended);
        let charged = attempt.task_promise().map(|promise| self.charged_ns(attempt, promise));
        let (began, skipped) =
            attempt.task_promise().map(|of| (of.began, of.skipped)).unwrap_or_default();
        let took = attempt.asked.elapsed().saturating_sub(attempt.frozen);
        let took = took.saturating_sub(attempt.waited_for_inputs);
        let promised = self.should_have_taken(key, took);
        // As every task it stands still for what it had too early: its vCPU is its own until then.
        let early = promised.unwrap_or_default().saturating_sub(took);
        let took = took + early;
        let stood = self.clock.hibernated_time().saturating_sub(skipped);
        let after = now.since(began) + stood + self.context.speedup.to_emulated(early);
        let (machine, tell) = (Arc::clone(&self.machine), self.tell.clone());
        let keep = OwnKeep {
            name: attempt.name.clone(),
            order: attempt.order.clone(),
            end: end.clone(),
            cpu: attempt.first_cpu(),
            slot: attempt.task_promise().map(|promise| promise.slot),
            pass: attempt.pass.clone(),
        };
        self.leave_model(key);
        let Some(attempt) = self.attempt_mut(key) else { return true };
        if let Some(promise) = attempt.promise_mut() {
            (promise.promised, promise.after) = (promised, Some(after));
        }
        if let Some(own) = &mut attempt.own {
            (own.took, own.charged) = (Some(took), charged);
            end.real_waited_us = whole_micros(own.waited);
            end.memory_bytes = own.memory;
        }
        attempt.own_end = Some(end);
        // A check has no more than the task had.
        attempt.exempt.clear();
        tokio::spawn(async move {
            let keeping = machine.keep_own(keep);
            let (kept, ()) = tokio::join!(keeping, tokio::time::sleep(early));
            // The owner is gone only when the VM is.
            let _ = tell.cast(OwnerMessage::OwnKept(key, kept));
        });
        true
    }

    /// Reports the end of a user's own program, whose files are kept as far as possible.
    pub(crate) fn hear_own_kept(&mut self, key: Key, kept: KeptOutputs) {
        let machine = Arc::clone(&self.machine);
        let Some(attempt) = self.attempt_mut(key) else { return };
        if let Some(end) = &mut attempt.own_end {
            let KeptOutputs { files, not_kept, directory_bytes, verify_status } = kept;
            (end.files, end.not_kept, end.directory_bytes) = (files, not_kept, directory_bytes);
            end.verify_status = verify_status;
            let why = machine.own_failure(&attempt.name, end);
            if let Some(why) = &why {
                let why = one_line(why, WHY_BYTES);
                tracing::warn!(%why, task = %attempt.name, "a program failed");
            }
            attempt.answer = Some((why.is_none(), None));
        }
        self.apply_event(VmEvent::Exited(key, Ok(())));
    }

    /// Ends the check of an ended program's answer by killing all processes in the program's slot. No more files of the program are
    /// sent.
    pub(crate) fn end_check(&self, key: Key) {
        let Some(attempt) = self.find_attempt(key) else { return };
        attempt.pass.revoke_launch();
        let Some(promise) = attempt.task_promise() else { return };
        self.machine.kill_slot(attempt.first_cpu(), promise.slot);
    }

    /// Returns the time that a program should have taken instead of `took`: less if it lacked CPU time that it was
    /// promised and wanted, and more if it got too much.
    pub(crate) fn should_have_taken(&self, key: Key, took: Duration) -> Option<Duration> {
        let attempt = self.find_attempt(key)?;
        let (own, promise) = (attempt.own.as_ref()?, attempt.task_promise()?);
        let promised = self.promised_time(key, promise);
        let share = u128::from(promise.share.max(1));
        let span = |ns: u64| {
            let real = u128::from(ns) * 1_000_000 / share;
            Duration::from_nanos(u64::try_from(real).unwrap_or(u64::MAX))
        };
        Some(match promised.checked_sub(own.worked) {
            Some(lacked) => took.saturating_sub(span(lacked)),
            None => took + span(own.worked - promised),
        })
    }
}
