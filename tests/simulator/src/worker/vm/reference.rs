//! The model beside the VM, and the processes that follow it.

use std::time::Duration;

use dormouse_proto::v1::{CreditBalance, VmShare, report};
use dormouse_units::{Ppm, Span, Time};
use dormouse_vm::{
    WorkEvent,
    life::{Event, Key},
};
use tokio::time::Instant;

use super::{
    agenda::Work,
    attempt::{Attempt, Process},
    owner::Owner,
};
use crate::worker::uplink::Uplink;

/// Time after which it is looked at again at the soonest.
const SHORTEST: Duration = Duration::from_millis(1);

impl<U: Uplink> Owner<U> {
    /// Passes time up to now to the model; the time it is.
    pub(super) fn pass(&mut self) -> Time {
        // A frozen VM's clock stands, and what it will have stood is known at the thaw.
        if self.model.machine().is_frozen() {
            return self.model.now();
        }
        let throttled = self.model.machine().is_throttled();
        let now = self.clock.now().max(self.model.now());
        self.model.pass(now);
        if self.model.machine().is_throttled() != throttled {
            self.say_credits();
        }
        now
    }

    /// Passes time, and does what has come due by it.
    pub(super) fn let_happen(&mut self) {
        let now = self.pass();
        let mut told = Vec::new();
        self.model.step(now, &mut told);
        for event in told {
            match event {
                WorkEvent::Due { task, attempt, done } => {
                    self.checkpoint_is_due((task, attempt), done);
                }
                WorkEvent::Finished { task, attempt } => self.time_has_come((task, attempt)),
                WorkEvent::Checkpointed { .. } | WorkEvent::CreditsTurned(_) => {}
            }
        }
    }

    /// Instant at which the model, or a process that follows it, wants to be looked at.
    pub(super) fn model_wakes_at(&mut self) -> Option<Instant> {
        let next = self.model.next_at().map(|at| self.clock.instant_of(at));
        let ends = self.attempts.iter().filter_map(|attempt| {
            let done = end_of(attempt)?;
            let (task, number) = attempt.key;
            let left = self.model.time_to(task, number, done)?;
            Some(Instant::now() + self.host.speedup.real(left))
        });
        let at = ends.chain(next).min()?;
        Some(at.max(Instant::now() + SHORTEST))
    }

    /// Processes end that have done their work early, and those go on that have stood for long enough.
    pub(super) fn see_to_processes(&mut self) {
        let keys: Vec<Key> = self.attempts.iter().map(|attempt| attempt.key).collect();
        for key in keys {
            self.perhaps_go_on(key);
            let Some(attempt) = self.seen(key) else { continue };
            let done = self.model.progress(key.0, key.1).map(|progress| progress.done);
            if let (Some(end), Some(done)) = (end_of(attempt), done)
                && done >= end
            {
                self.exit(key);
            }
        }
    }

    /// By now the attempt should have finished.
    fn time_has_come(&mut self, key: Key) {
        let finished = self.model.progress(key.0, key.1).and_then(|progress| progress.finished);
        let (speedup, skipped) = (self.host.speedup, self.clock.skipped());
        let Some(attempt) = self.attempt(key) else { return };
        let promised = finished.map(|at| at.since(attempt.began));
        attempt.promised = promised.map(|span| speedup.real(span));
        attempt.after = promised.map(|span| span + skipped.saturating_sub(attempt.skipped));
        let ends_late = attempt.ends_late;
        self.agenda.add(ends_late, Work::Exit(key));
        self.happen(Event::TimeHasCome(key));
    }

    /// Part of its work that an attempt should have done by now. Time must have been passed.
    pub(super) fn done(&self, key: Key) -> Ppm {
        let done_of = |attempt: &Attempt| attempt.final_done;
        if let Some(done) = self.seen(key).and_then(done_of) {
            return done;
        }
        if self.seen(key).is_some_and(|attempt| attempt.job.is_some()) {
            return self.job_done(key);
        }
        let progress = self.model.progress(key.0, key.1);
        progress.map_or(Ppm::ZERO, |progress| progress.done.fraction_of(progress.runtime))
    }

    /// Takes an attempt out of the model; what it has done is final.
    pub(super) fn leave_model(&mut self, key: Key) {
        let now = self.pass();
        let done = self.done(key);
        self.model.stop(now, key.0, key.1);
        if let Some(attempt) = self.attempt(key) {
            attempt.final_done.get_or_insert(done);
        }
    }

    /// Says what credits there are as of the time that was passed.
    pub(super) fn say_credits(&self) {
        let of_tasks = self.model.machine().credits();
        let of_tasks = of_tasks.map(|balance| (balance, self.clock.of_run(self.model.now())));
        let of_jobs = self.pace.credits().map(|(balance, at)| (balance, Some(at)));
        if let Some((balance, at)) = of_tasks.or(of_jobs) {
            self.say(report::Report::Credits(CreditBalance {
                vm: self.id,
                emulated_us: balance.as_vcpu_micros(),
                emulated_at_us: at.map(Time::as_micros),
            }));
        }
    }

    /// CPU time of an attempt's work here, in microseconds.
    pub(super) fn worked_us(&self, attempt: &Attempt) -> u64 {
        let part = |done: Ppm| done.scale(attempt.order.real_cpu_us);
        part(self.done(attempt.key)).saturating_sub(part(attempt.from))
    }

    pub(super) fn report_share(&mut self) {
        if self.core_ppm.is_some() {
            return;
        }
        self.pass();
        let here: u64 = self.attempts.iter().map(|attempt| self.worked_us(attempt)).sum();
        let real_received_us = self.share_us + here;
        self.say(report::Report::VmShare(VmShare {
            vm: self.id,
            real_promised_us: real_received_us,
            real_received_us,
        }));
    }
}

/// Work that a process has done when it ends too early.
fn end_of(attempt: &Attempt) -> Option<Span> {
    if attempt.job.is_some() {
        return None;
    }
    let early = attempt.ends_early.filter(|_| attempt.process == Process::Alive)?;
    Some(Span::from_micros(attempt.order.emulated_runtime_us).saturating_sub(early))
}
