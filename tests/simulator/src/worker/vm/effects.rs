//! What the life of the attempts wants done, done: in memory.

use std::{sync::Arc, time::Duration};

use dormouse_proto::v1::{VmRef, VmTook, report};
use dormouse_vm::life::{Effect, Event, Key};
use tokio::time::sleep;

use super::{
    agenda::Work,
    attempt::Process,
    owner::{Message, Owner},
};
use crate::worker::uplink::Uplink;

/// How long what is being done takes to be given up.
const GIVE_UP: Duration = Duration::from_millis(1);
/// How long the processes of a VM take to be killed.
const KILL_ALL: Duration = Duration::from_millis(2);

/// Whether it may take its time.
const fn takes_time(effect: &Effect) -> bool {
    matches!(effect, Effect::Freeze | Effect::Thaw | Effect::KillAll)
}

impl<U: Uplink> Owner<U> {
    pub(super) fn do_at_once(&mut self) {
        // What one effect leads to is done before what was to follow it.
        if std::mem::replace(&mut self.is_doing, true) {
            return;
        }
        loop {
            for effect in self.fresh.drain(..).rev() {
                self.to_do.push_front(effect);
            }
            match self.to_do.pop_front() {
                Some(effect) if takes_time(&effect) => {
                    self.to_do.push_front(effect);
                    break;
                }
                Some(effect) => self.carry_out(effect),
                None => break,
            }
        }
        self.is_doing = false;
    }

    /// Does all that is to be done.
    pub(super) async fn do_all(&mut self) {
        self.do_at_once();
        while let Some(effect) = self.to_do.pop_front() {
            match effect {
                Effect::Freeze => self.freeze().await,
                Effect::Thaw => self.thaw().await,
                Effect::KillAll => self.kill_all().await,
                other => self.carry_out(other),
            }
            self.do_at_once();
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Launch { key, moving, .. } => self.launch(key, moving),
            Effect::Revoke(key) => self.revoke(key),
            Effect::Began(key) => self.began(key),
            // Whoever is to be buried is killed next.
            Effect::Bury(_) => {}
            Effect::Queue(key) => self.queue_for_criu(key, Message::DumpTurn),
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
            Effect::Missed(key) => self.miss_checkpoint(key),
            Effect::Kill(key) => self.kill(key),
            Effect::Reap(key) => self.reap(key),
            Effect::Judge(key) => self.judge(key),
            Effect::AwaitTime(key) => self.await_time(key),
            Effect::End { key, end, .. } => self.end(key, end),
            Effect::Report { key, end } => self.say_end(key, end),
            Effect::Unknown(key) => self.say_stopped(key, (0, None), None, None),
            Effect::Shut => {
                self.is_shut = true;
                if self.held == 0 {
                    self.happen(Event::LetGo);
                }
            }
            Effect::IsFrozen => {
                self.say(report::Report::VmFrozen(VmTook { vm: self.id, real_took_us: 0 }));
            }
            Effect::Forget(key) => {
                self.agenda.forget(key);
                self.attempts.retain(|attempt| attempt.key != key);
            }
            Effect::NotTurned { vcpu } => {
                self.broken(&format!("the foreground of vCPU {vcpu} is somebody else's"));
            }
            Effect::Leave(key) => self.queue_for_criu(key, Message::LeaveTurn),
            Effect::GoneFrom { key, on } => self.gone_from(key, on),
            Effect::Redirect { key, on } => self.redirect(key, on),
            Effect::Anew { key, why } => self.begins_anew(key, why),
            Effect::Turn { key, .. } => self.turned(key),
            Effect::Hurry(key) => {
                if let Some(job) = self.job(key) {
                    job.due = None;
                }
            }
            // There are no groups.
            Effect::StaysAWhile(_) | Effect::Vacate { .. } | Effect::Remove => {}
            // These take time.
            Effect::Freeze | Effect::Thaw | Effect::KillAll => self.to_do.push_front(effect),
        }
    }

    /// Asks for a place at CRIU.
    pub(super) fn queue_for_criu(
        &self,
        key: Key,
        turn: fn(Key, tokio::sync::OwnedSemaphorePermit) -> Message,
    ) {
        let (criu, tell) = (Arc::clone(&self.host.criu), self.tell.clone());
        self.host.shared.spawn(async move {
            // It is never closed, and the owner is gone only when the VM is.
            if let Ok(permit) = criu.acquire_owned().await {
                let _ = tell.send(turn(key, permit));
            }
        });
    }

    /// What was under way has come to its end.
    pub(super) fn come(&mut self, work: Work) {
        match work {
            Work::Birth(key, permit) => self.born(key, permit),
            Work::GivenUp(key) => self.given_up(key),
            Work::Seize(key, permit) => self.seize(key, permit),
            Work::Dump(key, permit) => {
                drop(permit);
                self.dumped(key);
            }
            Work::Leave(key, permit) => {
                drop(permit);
                self.leaves(key);
            }
            Work::Death(_) | Work::Exit(_) | Work::Hang(_) if self.lives.is_frozen() => {
                // Nobody does anything on a frozen VM.
            }
            Work::Death(key) => self.happen(Event::ProcessEnded(key)),
            Work::Exit(key) => self.exit(key),
            Work::Hang(key) => {
                self.happen(Event::Hangs(key, "its heart has not beaten for 5 s".to_owned()));
            }
        }
    }

    /// Kills all that runs, whatever is being done to it, and says so.
    async fn kill_all(&mut self) {
        self.report_share();
        sleep(KILL_ALL).await;
        self.gone.cancel();
        let keys: Vec<Key> = self.attempts.iter().map(|attempt| attempt.key).collect();
        for key in keys {
            self.agenda.forget(key);
            if let Some(attempt) = self.attempt(key) {
                attempt.process = Process::Killed;
            }
            self.host.shared.process_is_gone(key);
            if self.lives.is_busy(key) {
                self.agenda.add(GIVE_UP, Work::GivenUp(key));
            }
        }
        self.say(report::Report::VmDestroyed(VmRef { vm: self.id }));
    }
}
