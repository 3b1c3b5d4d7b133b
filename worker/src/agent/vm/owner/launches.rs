//! Launching attempts, and handling the results.

use std::{sync::Arc, time::Duration};

use dormouse_proto::v1::{Seats, TaskCompared, TaskStarted, Tier as WireTier, report};
use dormouse_units::{Ppm, Tier};
use dormouse_vm::life::{AttemptSeat, BirthOutcome, LaunchFailure, VmEvent};
use ractor::ActorRef;

use tokio::time::Instant;

use super::VmOwner;
use crate::agent::{
    machine::{AttemptBirth, AttemptOrder, LaunchPlan, TaskProcess},
    report::{Key, make_report, task_ref, whole_micros},
    threads::await_outcome,
    vm::{attempt::AttemptNature, job, message::OwnerMessage, resources::VmResources},
};

impl VmOwner {
    /// Begins to launch an attempt in `seats`; `moving`: it is a job that is moved there.
    pub(crate) fn begin_launch(&mut self, key: Key, seats: Vec<AttemptSeat>, moving: bool) {
        let (machine, tell) = (Arc::clone(&self.machine), self.tell.clone());
        let remains = Arc::clone(&self.remains);
        let lane = self.vcpu_count();
        let killed_before = self.machine.kills_for_memory();
        let of_vm = self.own_env();
        let Some(attempt) = self.attempt_mut(key) else { return };
        attempt.killed_before = killed_before;
        let (pass, name) = (attempt.pass.clone(), attempt.name.clone());
        let (cpu, mut start) = (attempt.first_cpu(), attempt.order.clone());
        if let Some(own) = &mut start.own {
            // What its user says of its environment counts more than what its VM does.
            for (name, value) in of_vm {
                own.env.entry(name).or_insert(value);
            }
        }
        match &mut attempt.nature {
            AttemptNature::Task(promise) => {
                if let Some(seat) = seats.first() {
                    promise.slot = seat.slot;
                }
            }
            AttemptNature::Job(job) => job.ledger.enter_slots(job::charged_ns(&*machine, &seats)),
        }
        let plan = LaunchPlan::for_attempt(&start, moving, self.context.keeps_checkpoints(&start));
        let criu = Arc::clone(&self.context.criu);
        let launching = machine.launch_attempt(AttemptOrder {
            key,
            name,
            start,
            plan,
            seats,
            moving,
            lane,
            killed_before,
            criu,
            pass,
        });
        tokio::spawn(async move {
            let born = await_outcome(launching).await;
            launch_ended(&remains, &tell, key, born);
        });
        // Its quota is in force before its first instruction.
        self.refresh_quota(cpu);
        self.turn_meters();
    }

    /// Handles the result of an attempt's launch.
    pub(crate) fn hear_launched(&mut self, key: Key, result: Result<AttemptBirth, LaunchFailure>) {
        let came = match result {
            Ok(born) => {
                let over = born.ended.and_then(|ended| self.came_of(key, ended));
                let came = match over {
                    Some(came) => BirthOutcome::Over(self.keep_answer(key, came)),
                    None => BirthOutcome::Alive,
                };
                if let Some(attempt) = self.attempt_mut(key) {
                    attempt.born = Some(born);
                }
                Ok(came)
            }
            Err(error) => Err(error),
        };
        self.apply_event(VmEvent::Launched(key, came));
    }

    /// Watches a process whose launch was given up, so that it is killed.
    pub(crate) fn bury_launch(&mut self, key: Key) {
        let Some(attempt) = self.attempt_mut(key) else { return };
        let Some(born) = attempt.born.take() else { return };
        let process = born.process;
        attempt.process = Some(Arc::clone(&process));
        self.watch_process(key, &process);
    }

    /// Records that an attempt has begun, and reports it.
    pub(crate) fn attempt_began(&mut self, key: Key) {
        let Some(attempt) = self.attempt_mut(key) else { return };
        let Some(birth) = attempt.born.take() else { return };
        match attempt.parallel_job() {
            Some(_) => self.job_lives(key, birth),
            None => self.task_lives(key, birth),
        }
    }

    fn task_lives(&mut self, key: Key, birth: AttemptBirth) {
        let id = self.id;
        if let Some(at) = birth.inputs_at {
            self.inputs_are_here(key, at);
        }
        let Some(attempt) = self.attempt_mut(key) else { return };
        let inputs = attempt.waited_for_inputs;
        let born = birth.born_ns.saturating_sub(birth.base_ns);
        let restored = attempt.order.from.is_some();
        let done = Ppm::new(birth.done_ppm);
        if let Some(promise) = attempt.promise_mut() {
            promise.charges.base = birth.base_ns;
            match restored {
                false => promise.charges.birth = born,
                true => promise.charges.criu = born,
            }
            // The image may hold more than counts: that is stood still for.
            promise.came_with = promise.ledger.come_with(done.max(birth.came_with));
        }
        // An older checkpoint than the one that was wanted: there is more to do.
        let older = std::mem::replace(&mut attempt.from_ppm, birth.done_ppm) != birth.done_ppm;
        attempt.page = birth.page;
        let took = birth.at.saturating_duration_since(attempt.asked);
        let process = birth.process;
        attempt.process = Some(Arc::clone(&process));
        let cpu = attempt.first_cpu();
        self.context.send_report(make_report(report::Report::TaskStarted(TaskStarted {
            task: task_ref(id, key),
            done_ppm: birth.done_ppm,
            real_took_us: whole_micros(took),
            seats: Some(self.told_seats(key)),
            real_inputs_us: whole_micros(inputs),
        })));
        if let Some(changes) = birth.changes {
            let compared = TaskCompared { task: task_ref(id, key), changes };
            self.context.send_report(make_report(report::Report::TaskCompared(compared)));
        }
        if birth.ended.is_some() {
            return;
        }
        if older {
            self.pass_time();
            self.model.set_done(key.0, key.1, done);
        }
        self.refresh_quota(cpu);
        self.watch_process(key, &process);
        self.report_credits();
        self.pace_task(key);
    }

    /// Records that the inputs of an attempt's program have been in its directory since `at`. The attempt is promised
    /// time from then on.
    fn inputs_are_here(&mut self, key: Key, at: Instant) {
        let now = self.pass_time();
        let Some(attempt) = self.attempt_mut(key) else { return };
        let waited = at.saturating_duration_since(attempt.asked);
        attempt.waited_for_inputs = waited.saturating_sub(attempt.frozen);
        // Its birth is owed to it, as to every task, where the VM did not freeze meanwhile.
        let late = if attempt.frozen.is_zero() { at.elapsed() } else { Duration::ZERO };
        let late = self.context.speedup.to_emulated(late);
        self.model.release_task(now, key.0, key.1);
        self.model.head_start(key.0, key.1, late);
    }

    /// Returns the seats of an attempt, by rank, in the wire format.
    pub(crate) fn told_seats(&self, key: Key) -> Seats {
        let vcpus = self.find_attempt(key).map(|attempt| attempt.on.clone()).unwrap_or_default();
        let tier = match self.seats_of(key).first().map(|seat| seat.tier) {
            Some(Tier::Background) => WireTier::Background,
            Some(Tier::Foreground) | None => WireTier::Foreground,
        };
        Seats { tier: tier.into(), vcpus }
    }

    /// Sends the owner a message once a process has ended.
    pub(crate) fn watch_process(&mut self, key: Key, process: &Arc<dyn TaskProcess>) {
        let tell = self.tell.clone();
        let watched = process.watch(Box::new(move || {
            // The owner is gone only when the VM is.
            let _ = tell.cast(OwnerMessage::Ended(key));
        }));
        if let Err(error) = watched {
            // Out of descriptors: nobody would notice its end.
            self.fail_vm(&error);
        }
    }
}

/// Sends the VM's owner the result of a launch, if the owner still exists.
fn launch_ended(
    remains: &VmResources,
    tell: &ActorRef<OwnerMessage>,
    key: Key,
    result: Result<AttemptBirth, LaunchFailure>,
) {
    if let Ok(born) = &result {
        remains.process_born(key, &born.process);
    }
    let _ = tell.cast(OwnerMessage::Launched(key, result));
}
