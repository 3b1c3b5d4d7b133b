//! What the life of the attempts wants done, done: with groups, processes and CRIU.

use std::sync::Arc;

use dormouse_proto::v1::{TaskPromoted, report};
use dormouse_vm::life::{Effect, Event, Slot};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::Owner;
use crate::agent::{
    report::{Key, micros, report, task, vm_destroyed},
    vm::{attempt::Attempt, message::Message},
};

/// Whether it may take its time, in which others need this thread.
const fn takes_time(effect: &Effect) -> bool {
    use Effect::{Freeze, KillAll, Remove, Thaw, Turn};
    matches!(effect, Freeze | Thaw | Turn { .. } | KillAll | Remove)
}

impl Owner {
    /// Has the attempts hear of an event, and does what is to be done then, as far as that is done
    /// at once; the rest is for [`Self::do_all`].
    pub(crate) fn happen(&mut self, event: Event) {
        let effects = self.lives.handle(self.made.elapsed(), event);
        self.effects.add(effects);
        self.do_at_once();
    }

    fn do_at_once(&mut self) {
        if !self.effects.begin() {
            return;
        }
        while let Some(effect) = self.effects.take_next() {
            if takes_time(&effect) {
                self.effects.put_back(effect);
                break;
            }
            self.carry_out(effect);
        }
        self.effects.end();
    }

    /// Does all that is to be done.
    pub(crate) async fn do_all(&mut self) {
        self.do_at_once();
        while let Some(effect) = self.effects.take_next() {
            match effect {
                Effect::Freeze => self.freeze().await,
                Effect::Thaw => self.thaw().await,
                Effect::Turn { key, slots } => self.turn(key, slots).await,
                Effect::KillAll => self.kill_all().await,
                Effect::Remove => self.remains.remove(&self.context).await,
                other => self.carry_out(other),
            }
            self.do_at_once();
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Launch { key, seats, moving } => self.launch(key, seats, moving),
            Effect::Revoke(key) => {
                if let Some(attempt) = self.seen(key) {
                    attempt.pass.revoke();
                }
            }
            Effect::Began(key) => self.began(key),
            Effect::Bury(key) => self.bury(key),
            Effect::Queue(key) => self.queue_for_criu(key),
            Effect::GiveBack(key) => {
                if let Some(attempt) = self.attempt(key) {
                    attempt.permit = None;
                }
            }
            Effect::Dump { key, kill } => self.dump(key, kill),
            Effect::Store(key) => self.store(key),
            Effect::Release(key) => self.release(key),
            Effect::NotKept { key, why } => self.not_kept(key, why),
            Effect::Continue(key) => self.go_on_after_dump(key),
            Effect::Settled { key, .. } => self.settled(key),
            Effect::Missed(key) => {
                let now = self.pass();
                self.miss_checkpoint(now, key);
            }
            Effect::Leave(key) => self.leave(key),
            Effect::StaysAWhile(_) => self.turn_meters(),
            Effect::GoneFrom { key, on } => self.gone_from(key, on),
            Effect::Redirect { key, on } => self.redirect(key, on),
            Effect::Anew { key, why } => self.begins_anew(key, why),
            Effect::NotTurned { vcpu } => {
                self.broken(&format!("the foreground of vCPU {vcpu} is taken"));
            }
            Effect::Kill(key) => self.kill(key),
            Effect::Vacate { key, seats } => {
                self.vacate(key, &seats);
                if let Some(cpu) = self.seen(key).map(Attempt::cpu) {
                    self.refresh(cpu);
                }
                self.turn_meters();
            }
            Effect::Reap(key) => self.reap(key),
            Effect::Judge(key) => self.judge(key),
            Effect::AwaitTime(key) => self.await_time(key),
            Effect::Hurry(key) => {
                if let Some(job) = self.attempt(key).and_then(|a| a.job_mut()) {
                    job.due = None;
                }
            }
            Effect::End { key, seats, end } => self.end(key, &seats, end),
            Effect::Report { key, end } => self.say_end(key, end),
            Effect::Unknown(key) => self.say_unknown(key),
            Effect::Shut => {
                self.gate.shut();
                // It is let go in a moment; frozen, it would not be.
                if !self.gate.is_held() {
                    self.happen(Event::LetGo);
                }
            }
            Effect::IsFrozen => self.say_frozen(),
            Effect::Forget(key) => self.attempts.retain(|attempt| attempt.key != key),
            // These take time.
            Effect::Freeze
            | Effect::Thaw
            | Effect::Turn { .. }
            | Effect::KillAll
            | Effect::Remove => self.effects.put_back(effect),
        }
    }

    /// Queues for CRIU. The task runs on until its turn.
    fn queue_for_criu(&self, key: Key) {
        let (criu, tell) = (Arc::clone(&self.context.criu), self.tell.clone());
        tokio::spawn(async move {
            // It is never closed.
            if let Ok(permit) = criu.acquire_owned().await {
                let _ = tell.cast(Message::DumpTurn(key, permit));
            }
        });
    }

    /// The turn at CRIU is this attempt's.
    pub(crate) fn take_turn(&mut self, key: Key, permit: OwnedSemaphorePermit) {
        if let Some(attempt) = self.attempt(key) {
            attempt.permit = Some(permit);
        }
        self.hang_up();
        self.happen(Event::Turn(key));
    }

    /// Swaps the priorities of the two slots on each of a job's vCPUs.
    async fn turn(&mut self, key: Key, slots: Vec<(u32, Slot)>) {
        for (vcpu, slot) in slots {
            if let Err(why) = Arc::clone(&self.machine).promote(vcpu, slot).await {
                self.broken(&why);
            }
        }
        self.turn_meters();
        let took = self.commanded.decided().elapsed();
        let (task, real_took_us) = (task(self.id, key), micros(took));
        self.context
            .report(report(report::Report::TaskPromoted(TaskPromoted { task, real_took_us })));
    }

    /// Kills all that runs, whatever is being done to it, and says so; what is left behind is
    /// cleared up after that.
    async fn kill_all(&mut self) {
        self.report_share();
        self.remains.kill().await;
        self.context.report(vm_destroyed(self.id));
    }

    /// The time at which the attempts have something to do by themselves.
    pub(crate) fn lives_wake_at(&self) -> Option<Instant> {
        self.lives.next_at().map(|at| self.made + at)
    }
}
