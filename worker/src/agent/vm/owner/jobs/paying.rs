//! Comparing jobs with their reference, and making up for their lag.

use std::time::Duration;

use dormouse_units::Tier;
use dormouse_vm::life::TierSlot;

use tokio::time::Instant;

use crate::{
    agent::{
        report::Key,
        test_fault,
        vm::{
            attempt::VmAttempt,
            job::{JobState, OwedTime, VcpuQuotas},
            owner::VmOwner,
        },
    },
    cgroup,
};

/// Interval at which the CPU times of jobs' processes are counted; CPU time that a process uses after its last count isn't counted.
const COUNT_EVERY: Duration = Duration::from_millis(250);

/// Interval at which every job is compared with the model of its VM.
const PAY_EVERY: Duration = Duration::from_millis(25);

impl VmOwner {
    /// Returns when the VM's jobs must be compared with the VM's model, continued or counted next; `None`: there are none.
    pub(crate) fn jobs_wake_at(&self) -> Option<Instant> {
        // Without jobs, too, it is told when there are credits again.
        let has_jobs =
            self.attempts.iter().any(|a| a.parallel_job().is_some()) || self.pace.is_throttled();
        let of_checkpoints =
            self.attempts.iter().filter_map(|a| a.parallel_job()?.goes_on_at).min();
        let always = self.pace.pay_at.min(self.pace.count_at);
        has_jobs.then(|| of_checkpoints.map_or(always, |at| at.min(always)))
    }

    /// Does what the VM's jobs need at `now`: compares them with the VM's model, checkpoints, reports and counts, each at its
    /// interval.
    pub(crate) fn see_to_jobs(&mut self, now: Instant) {
        if self.jobs_wake_at().is_none() {
            return;
        }
        self.jobs_go_on(now);
        if now >= self.pace.pay_at {
            self.pay_jobs(now);
            self.checkpoint_jobs_that_are_due();
            self.conclude_early(now);
            self.pace.pay_at = now + PAY_EVERY;
        }
        if now >= self.pace.count_at {
            self.turn_meters();
            self.look_for_hangs();
            self.pace.count_at = now + COUNT_EVERY;
        }
    }

    /// Advances the jobs' model and its credits to now: later counts are at the speed that the credits allow.
    pub(crate) fn pace_to(&mut self, now: Instant) {
        let attempts = &self.attempts;
        self.pace.advance_to(now, |key| attempts.iter().all(|a| a.key != key));
        let speed_ppm = self.pace.ideal.speed_ppm();
        if std::mem::replace(&mut self.pace.told_ppm, speed_ppm) != speed_ppm {
            self.turn_meters();
            self.say_credits();
        }
    }

    /// Counts the times of all processes of jobs up to now, and continues with their current seats and speed.
    pub(crate) fn turn_meters(&mut self) {
        if self.is_frozen() {
            return;
        }
        let lives = &self.lives;
        let speed_ppm = self.pace.ideal.speed_ppm();
        let machine = &self.machine;
        let works = |a: &&mut VmAttempt| lives.is_running(a.key) && a.standing.is_none();
        for attempt in self.attempts.iter_mut().filter(works) {
            let seats = lives.vm_slots().task_seats(attempt.key, &attempt.on);
            if let Some(job) = attempt.job_mut() {
                job.meter.change_situation(
                    |rank| machine.rank_time(rank),
                    &job.ranks,
                    &seats,
                    speed_ppm,
                );
            }
        }
    }

    /// Checks whether the VM's jobs make progress, and gives up those that hang.
    fn look_for_hangs(&mut self) {
        let jobs = self
            .attempts
            .iter()
            .filter(|a| self.lives.is_running(a.key) && a.parallel_job().is_some());
        for key in jobs.map(|a| a.key).collect::<Vec<_>>() {
            let progress = self.find_attempt(key).and_then(|attempt| attempt.process_progress());
            let seen = self.see_alive(key, progress.as_ref());
            if let Some(job) = self.attempt_mut(key).and_then(|a| a.job_mut()) {
                job.seen = Some((Instant::now(), job.ledger.due_ns()));
            }
            if let Err(hang) = seen {
                self.give_up(key, &hang);
            }
        }
    }

    /// Returns the share of a host core that a job should have got since its last comparison with the VM's model, in ppm: nothing
    /// while its processes wait, or a foreground is in their way. A job that should have finished should get a whole vCPU.
    pub(crate) fn job_share(&self, key: Key, job: &JobState, now: Instant) -> u32 {
        if self.pace.ideal.ended_at(key).is_some() {
            return self.pace.core_ppm(self.core_ppm.unwrap_or(0));
        }
        let Some((then, before)) = job.seen else { return 0 };
        let due = u128::from(job.ledger.due_ns().saturating_sub(before));
        let span = now.saturating_duration_since(then).as_nanos().max(1);
        u32::try_from(due * 1_000_000 / span).unwrap_or(u32::MAX)
    }

    /// Compares all jobs with the VM's model, and sets quotas that make up for differences.
    pub(crate) fn pay_jobs(&mut self, now: Instant) {
        let Some(core_ppm) = self.core_ppm else { return };
        self.pace_to(now);
        let speed_ppm = self.pace.core_ppm(core_ppm);
        let mut owed = vec![OwedTime::default(); self.lanes.len()];
        let lives = &self.lives;
        for attempt in self.attempts.iter_mut().filter(|a| lives.is_running(a.key)) {
            let (key, page) = (attempt.key, attempt.page.clone());
            let seats = lives.vm_slots().task_seats(key, &attempt.on);
            let Some(job) = attempt.job_mut() else { continue };
            let done = self.pace.ideal.work_done(key);
            // Some of its processes had ended when it was moved.
            if done.is_empty() || done.len() != job.ranks.len() {
                continue;
            }
            let Some(work) = page.and_then(|page| page.work(done.len())) else { continue };
            job.ledger.note_received(work);
            let behind = job.ledger.owed_time(&done, core_ppm);
            for (seat, ns) in seats.iter().zip(behind) {
                let ns = self.pace.early_payment(key, ns, speed_ppm);
                if let Some(owed) = owed.get_mut(seat.vcpu as usize) {
                    match seat.tier {
                        Tier::Foreground => owed.foreground = Some(ns),
                        Tier::Background => owed.background = Some(ns),
                    }
                }
            }
        }
        self.play_fault(&owed);
        for (vcpu, owed) in (0..).zip(owed) {
            // What tasks of one process are given is seen to there.
            if self.others_on(&[vcpu], true).is_ok() {
                let set = self.set_quotas(vcpu, VcpuQuotas::paying_quotas(owed, speed_ppm));
                self.note_set(set);
            }
        }
    }

    /// Lifts the quotas of jobs' processes if a test injects that fault: see [`test_fault`].
    fn play_fault(&self, owed: &[OwedTime]) {
        let busy = (0..).zip(owed).find(|(_, owed)| owed.foreground.is_some());
        if let Some((vcpu, span)) =
            busy.and_then(|(p, _)| Some((p, test_fault::lifts_quota_for()?)))
        {
            self.lift_for(span, (vcpu, self.lives.vm_slots().foreground_slot(vcpu)));
        }
    }

    fn set_quotas(&mut self, vcpu: u32, quotas: VcpuQuotas) -> cgroup::Result<()> {
        let slots = match self.lives.vm_slots().foreground_slot(vcpu) {
            TierSlot::A => [quotas.foreground, quotas.background],
            TierSlot::B => [quotas.background, quotas.foreground],
        };
        self.machine.set_quotas(vcpu, quotas.vcpu, slots)?;
        if let Some(lane) = self.lanes.get_mut(vcpu as usize) {
            lane.quota = Some(quotas.vcpu);
        }
        Ok(())
    }
}
