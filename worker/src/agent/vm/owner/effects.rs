//! Carrying out the effects that the table of attempts decides on, with groups, processes and CRIU.

use std::sync::Arc;

use dormouse_proto::v1::{TaskPromoted, report};
use dormouse_vm::life::{TierSlot, VmEffect, VmEvent};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::VmOwner;
use crate::agent::{
    report::{Key, make_report, task_ref, vm_destroyed, whole_micros},
    vm::{attempt::VmAttempt, message::OwnerMessage},
};

/// Returns whether an effect may take long, so that it must not block this thread.
const fn takes_time(effect: &VmEffect) -> bool {
    use VmEffect::{Freeze, KillAll, PromoteSlots, Remove, Thaw};
    matches!(effect, Freeze | Thaw | PromoteSlots { .. } | KillAll | Remove)
}

impl VmOwner {
    /// Applies an event to the attempts, and carries out its immediate effects; effects that may take long are left to
    /// [`Self::do_all`].
    pub(crate) fn apply_event(&mut self, event: VmEvent) {
        let effects = self.lives.handle_event(self.made.elapsed(), event);
        self.effects.add_effects(effects);
        self.do_at_once();
    }

    fn do_at_once(&mut self) {
        if !self.effects.begin_effects() {
            return;
        }
        while let Some(effect) = self.effects.take_next() {
            if takes_time(&effect) {
                self.effects.put_back(effect);
                break;
            }
            self.carry_out(effect);
        }
        self.effects.end_effects();
    }

    /// Carries out all effects in the queue, in order.
    pub(crate) async fn do_all(&mut self) {
        self.do_at_once();
        while let Some(effect) = self.effects.take_next() {
            match effect {
                VmEffect::Freeze => self.freeze_vm().await,
                VmEffect::Thaw => self.thaw_vm().await,
                VmEffect::PromoteSlots { key, slots } => self.swap_tiers(key, slots).await,
                VmEffect::KillAll => self.kill_all().await,
                VmEffect::Remove => self.remains.remove(&self.context).await,
                other => self.carry_out(other),
            }
            self.do_at_once();
        }
    }

    fn carry_out(&mut self, effect: VmEffect) {
        match effect {
            VmEffect::Launch { key, seats, moving } => self.begin_launch(key, seats, moving),
            VmEffect::Revoke(key) => {
                if let Some(attempt) = self.find_attempt(key) {
                    attempt.pass.revoke_launch();
                }
            }
            VmEffect::Began(key) => self.attempt_began(key),
            VmEffect::WatchUnwanted(key) => self.bury_launch(key),
            VmEffect::Queue(key) => self.queue_for_criu(key),
            VmEffect::GiveBack(key) => {
                if let Some(attempt) = self.attempt_mut(key) {
                    attempt.permit = None;
                }
            }
            VmEffect::Dump { key, kill } => self.begin_dump(key, kill),
            VmEffect::Store(key) => self.store_checkpoint(key),
            VmEffect::Release(key) => self.release_dump_turn(key),
            VmEffect::NotKept { key, why } => self.not_kept(key, why),
            VmEffect::Continue(key) => self.go_on_after_dump(key),
            VmEffect::Settled { key, .. } => self.report_checkpoint(key),
            VmEffect::Missed(key) => {
                let now = self.pass_time();
                self.miss_checkpoint(now, key);
            }
            VmEffect::Leave(key) => self.dump_for_move(key),
            VmEffect::MoveDelayed(_) => self.turn_meters(),
            VmEffect::LeftPlaces { key, on } => self.gone_from(key, on),
            VmEffect::Redirect { key, on } => self.redirect_job(key, on),
            VmEffect::BeginAnew { key, why } => self.begins_anew(key, why),
            VmEffect::PromotionRefused { vcpu } => {
                self.vm_broken(&format!("the foreground of vCPU {vcpu} is taken"));
            }
            VmEffect::Kill(key) => self.kill_process(key),
            VmEffect::Vacate { key, seats } => {
                self.vacate_slots(key, &seats);
                if let Some(cpu) = self.find_attempt(key).map(VmAttempt::first_cpu) {
                    self.refresh_quota(cpu);
                }
                self.turn_meters();
            }
            VmEffect::Reap(key) => self.reap_process(key),
            VmEffect::Judge(key) => self.judge_end(key),
            VmEffect::AwaitTime(key) => self.await_time(key),
            VmEffect::StopAwaiting(key) => {
                if let Some(job) = self.attempt_mut(key).and_then(|a| a.job_mut()) {
                    job.due = None;
                }
            }
            VmEffect::End { key, seats, end } => self.end_attempt(key, &seats, end),
            VmEffect::Report { key, end } => self.say_end(key, end),
            VmEffect::Unknown(key) => self.say_unknown(key),
            VmEffect::Shut => {
                self.gate.shut_gate();
                // It is let go in a moment; frozen, it would not be.
                if !self.gate.is_held() {
                    self.apply_event(VmEvent::CriuIdle);
                }
            }
            VmEffect::IsFrozen => self.say_frozen(),
            VmEffect::Forget(key) => self.attempts.retain(|attempt| attempt.key != key),
            // These take time.
            VmEffect::Freeze
            | VmEffect::Thaw
            | VmEffect::PromoteSlots { .. }
            | VmEffect::KillAll
            | VmEffect::Remove => self.effects.put_back(effect),
        }
    }

    /// Queues an attempt for a permit to use CRIU. The attempt runs until it gets the permit.
    fn queue_for_criu(&self, key: Key) {
        let (criu, tell) = (Arc::clone(&self.context.criu), self.tell.clone());
        tokio::spawn(async move {
            // It is never closed.
            if let Ok(permit) = criu.acquire_owned().await {
                let _ = tell.cast(OwnerMessage::DumpTurn(key, permit));
            }
        });
    }

    /// Gives a waiting attempt its permit to use CRIU.
    pub(crate) fn take_turn(&mut self, key: Key, permit: OwnedSemaphorePermit) {
        if let Some(attempt) = self.attempt_mut(key) {
            attempt.permit = Some(permit);
        }
        self.hang_up();
        self.apply_event(VmEvent::Turn(key));
    }

    /// Swaps the priorities of the two slots on each of a job's vCPUs.
    async fn swap_tiers(&mut self, key: Key, slots: Vec<(u32, TierSlot)>) {
        for (vcpu, slot) in slots {
            if let Err(why) = Arc::clone(&self.machine).promote(vcpu, slot).await {
                self.vm_broken(&why);
            }
        }
        self.turn_meters();
        let took = self.commanded.decided_at().elapsed();
        let (task, real_took_us) = (task_ref(self.id, key), whole_micros(took));
        self.context.send_report(make_report(report::Report::TaskPromoted(TaskPromoted {
            task,
            real_took_us,
        })));
    }

    /// Kills all processes of the VM, in whatever state they are, and reports that; control groups and directories are removed
    /// afterwards.
    async fn kill_all(&mut self) {
        self.report_share();
        self.remains.kill_all().await;
        self.context.send_report(vm_destroyed(self.id));
    }

    /// Returns the next deadline of the VM's attempts; `None`: there is none.
    pub(crate) fn lives_wake_at(&self) -> Option<Instant> {
        self.lives.next_at().map(|at| self.made + at)
    }
}
