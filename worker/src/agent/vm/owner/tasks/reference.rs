//! The model beside the VM: what each task of one process should have done by now, when the task should end, and the
//! VM's credits.

use std::time::Duration;

use dormouse_proto::v1::{CreditBalance, report};
use dormouse_units::{Credits, Span, Time};
use dormouse_vm::{WorkEvent, life::VmEvent};

use tokio::time::Instant;

use crate::agent::{
    report::{Key, make_report},
    vm::{
        attempt::{AttemptNature, VmAttempt},
        owner::VmOwner,
        task::TaskPromise,
    },
};

/// Shortest pause before the VM's model is checked for events again.
const SHORTEST: Duration = Duration::from_millis(1);

impl VmOwner {
    /// Advances the model's time to now, and returns that time. Credits are spent for the CPU time that tasks are promised; a task
    /// really gets that time at most a slice earlier or later.
    pub(crate) fn pass_time(&mut self) -> Time {
        // A frozen VM's clock stands, and what it will have stood is known at the thaw.
        if self.is_frozen() {
            return self.model.now();
        }
        let throttled = self.model.machine().is_throttled();
        let now = self.clock.now().max(self.model.now());
        self.model.pass_until(now);
        if self.model.machine().is_throttled() != throttled {
            self.refresh_all();
            self.say_credits();
            self.look_again();
        }
        now
    }

    /// Advances the model's time to now, and handles the events of the model until now.
    pub(crate) fn let_happen(&mut self) {
        let now = self.pass_time();
        let mut told = Vec::new();
        self.model.step_until(now, &mut told);
        for event in told {
            match event {
                WorkEvent::Due { task, attempt, done } => {
                    self.checkpoint_is_due((task, attempt), done);
                }
                WorkEvent::Finished { task, attempt } => {
                    if !self.takes_longer((task, attempt)) {
                        self.time_has_come((task, attempt));
                    }
                }
                // Holds are told, and of the turn of the credits it was heard as time passed.
                WorkEvent::Checkpointed { .. } | WorkEvent::CreditsTurned(_) => {}
            }
        }
    }

    /// Returns when the model must be checked for events next; `None`: never, as things are.
    pub(crate) fn model_wakes_at(&mut self) -> Option<Instant> {
        let at = self.clock.instant_of(self.model.next_at()?);
        Some(at.max(Instant::now() + SHORTEST))
    }

    /// Returns the CPU time that a task should have worked by now, in nanoseconds: all of its work once it should have finished.
    /// The model's time must have been advanced to now.
    pub(crate) fn promised_time(&self, (task, number): Key, of: &TaskPromise) -> u64 {
        let whole = of.ledger.whole_work();
        if let Some(promised) = of.final_promise {
            return promised;
        }
        let Some(progress) = self.model.task_progress(task, number) else { return whole };
        let attempt = self.find_attempt((task, number));
        // One that takes longer than was said is promised CPU time at the same rate.
        let said = attempt.filter(|it| it.own.is_some()).map(|it| it.order.emulated_runtime_us);
        let runtime = said.unwrap_or(progress.runtime.as_micros());
        let done =
            u128::from(whole) * u128::from(progress.done.as_micros()) / u128::from(runtime.max(1));
        let unwanted = attempt.and_then(|it| it.own.as_ref()).map_or(0, |own| own.unwanted);
        u64::try_from(done).unwrap_or(whole).saturating_sub(unwanted)
    }

    /// Lets a user's own program run on if it hasn't ended by the time that its user gave; returns false if the task doesn't run a
    /// user's own program.
    fn takes_longer(&mut self, key: Key) -> bool {
        let now = self.pass_time();
        let Some(attempt) = self.find_attempt(key).filter(|attempt| attempt.own.is_some()) else {
            return false;
        };
        let as_long_again = Span::from_micros(attempt.order.emulated_runtime_us.max(1));
        self.model.extend(now, key.0, key.1, as_long_again);
        true
    }

    /// Returns the real time from now until an attempt is promised `promised` nanoseconds of CPU time; `None`: never, as things
    /// are.
    pub(crate) fn time_to_promise(&self, attempt: &VmAttempt, promised: u64) -> Option<Duration> {
        let runtime = u128::from(attempt.order.emulated_runtime_us);
        let whole = attempt.task_promise()?.ledger.whole_work();
        let promised = promised + attempt.own.as_ref().map_or(0, |own| own.unwanted);
        let done = u128::from(promised) * runtime / u128::from(whole.max(1));
        let done = Span::from_micros(u64::try_from(done).unwrap_or(u64::MAX));
        let (task, number) = attempt.key;
        Some(self.context.speedup.to_real(self.model.time_to(task, number, done)?))
    }

    /// Removes an attempt from the model, so that its promise is final.
    pub(crate) fn leave_model(&mut self, key: Key) {
        let now = self.pass_time();
        let promise = self.find_attempt(key).and_then(VmAttempt::task_promise);
        let Some(promised) = promise.map(|promise| self.promised_time(key, promise)) else {
            return;
        };
        self.model.stop_task(now, key.0, key.1);
        if let Some(promise) = self.attempt_mut(key).and_then(VmAttempt::promise_mut) {
            promise.final_promise = Some(promised);
        }
    }

    /// Handles an attempt that should have finished by now.
    fn time_has_come(&mut self, key: Key) {
        let finished = self.model.task_progress(key.0, key.1).and_then(|p| p.finished);
        let (speedup, skipped) = (self.context.speedup, self.clock.hibernated_time());
        let Some(attempt) = self.attempt_mut(key) else { return };
        let AttemptNature::Task(promise) = &mut attempt.nature else { return };
        let promised = finished.map(|at| at.since(promise.began));
        promise.promised = promised.map(|span| speedup.to_real(span));
        promise.after = promised.map(|span| span + skipped.saturating_sub(promise.skipped));
        self.apply_event(VmEvent::TimeHasCome(key));
    }

    /// Reports the VM's credits, as the rate of their use has changed.
    pub(crate) fn report_credits(&mut self) {
        self.pass_time();
        if self.pace.credits_now().is_some() {
            self.pace_now();
        }
        self.say_credits();
    }

    /// Reports the VM's credits at the model's time.
    pub(crate) fn say_credits(&self) {
        let of_tasks =
            |balance| (balance, self.clock.of_run(self.model.now()).map(Time::as_micros));
        let of_jobs = |(balance, at): (Credits, Time)| (balance, Some(at.as_micros()));
        let credits = self.model.machine().credits().map(of_tasks);
        if let Some((balance, emulated_at_us)) =
            credits.or_else(|| self.pace.credits_now().map(of_jobs))
        {
            self.context.send_report(make_report(report::Report::Credits(CreditBalance {
                vm: self.id,
                emulated_us: balance.as_vcpu_micros(),
                emulated_at_us,
            })));
        }
    }
}
