//! Jobs that go elsewhere: dumped with all their processes, and restored on other vCPUs of their VM.

use std::{sync::Arc, time::Duration};

use dormouse_proto::v1::MoveTask;
use dormouse_vm::ideal::Change;
use dormouse_vm::life::{Event, Left};
use tokio::time::Instant;

use crate::{
    agent::{
        machine::JobLeave,
        report::{Key, key},
        vm::{
            CommandStamp,
            job::{Leaving, Move},
            message::Message,
            owner::Owner,
        },
    },
    store::Progress,
};

impl Owner {
    pub(crate) fn obey_move(&mut self, to: MoveTask, asked: &CommandStamp) {
        let (key, on) = (key(to.task), to.vcpus);
        let Some(attempt) = self.seen(key) else { return };
        if attempt.job().is_none() {
            return self.broken("only parallel jobs can be moved");
        }
        if attempt.on.len() != on.len() || !self.lives.slots().are_valid(&on) {
            let why = self.no_place(&on);
            return self.broken(&why);
        }
        if let Err(why) = self.others_on(&on, true) {
            return self.broken(&why);
        }
        let at = self.pace.decided(asked);
        self.pace.change(at, Change::Stand(key));
        if let Some(job) = self.attempt(key).and_then(|a| a.job_mut()) {
            job.left_at = at;
            job.asked_to_leave = Some(asked.decided());
        }
        self.happen(Event::Move { key, on });
    }

    /// A job that has not begun anywhere is to begin there.
    pub(crate) fn redirect(&mut self, key: Key, on: Vec<u32>) {
        let Some(attempt) = self.attempt(key) else { return };
        attempt.on.clone_from(&on);
        if let Some(at) = attempt.job().map(|job| job.left_at) {
            self.pace.change(at, Change::GoOn { key, on, anew: false });
        }
    }

    /// Dumps a job, for it to leave its places.
    pub(crate) fn leave(&mut self, key: Key) {
        let (machine, tell) = (Arc::clone(&self.machine), self.tell.clone());
        let pass = self.gate.pass();
        let seats = self.seats_of(key);
        let Some(attempt) = self.attempt(key) else { return };
        let Some(process) = attempt.process.clone() else { return };
        attempt.liveness.pause();
        attempt.ends_hold(Instant::now());
        let (name, progress_ppm) = (attempt.name.clone(), attempt.done_ppm());
        let progress = Progress { attempt: key.1.get(), progress_ppm, cpu_ns: 0 };
        let Some(job) = attempt.job_mut() else { return };
        job.meter.stop(|rank| machine.rank_time(rank), &job.ranks);
        let ranks = job.ranks.clone();
        tokio::spawn(async move {
            let leave = JobLeave { name, seats, process, ranks, progress };
            let left = machine.leave_job(pass, leave).await;
            // The owner is gone only when the VM is.
            let _ = tell.cast(Message::Left(key, left));
        });
    }

    /// A job is gone from its old places, kept or not, or is not.
    pub(crate) fn hear_left(&mut self, key: Key, leaving: Leaving) {
        let left = match leaving {
            Leaving::Overtaken => Left::Overtaken,
            Leaving::Ended(ended) => match self.came_of(key, ended) {
                Some(came) => Left::Ended(self.judged(key, came)),
                None => return,
            },
            Leaving::Dumped { took, bytes } => {
                self.moves(key, took, bytes, None);
                Left::Gone { kept: true }
            }
            Leaving::Lost { why } => {
                self.moves(key, Duration::ZERO, 0, Some(why));
                Left::Gone { kept: false }
            }
        };
        self.happen(Event::Left(key, left));
    }

    /// Notes how a job left.
    fn moves(&mut self, key: Key, dump: Duration, bytes: u64, lost: Option<String>) {
        let Some(attempt) = self.attempt(key) else { return };
        if let Some(why) = &lost {
            tracing::warn!(why, job = %attempt.name, "it is moved without its progress");
        }
        let Some(job) = attempt.job_mut() else { return };
        job.ledger.lifted += dump;
        let asked = job.asked_to_leave.take().unwrap_or_else(Instant::now);
        job.moving = Some(Move { asked, dump, bytes, lost });
    }

    /// A job whose processes are gone is to go on there.
    pub(crate) fn gone_from(&mut self, key: Key, on: Vec<u32>) {
        let Some(attempt) = self.attempt(key) else { return };
        (attempt.process, attempt.page) = (None, None);
        attempt.on = on;
        if let Some(job) = attempt.job_mut() {
            job.ranks.clear();
        }
    }

    /// The checkpoint with which a job left is of no use.
    pub(crate) fn begins_anew(&mut self, key: Key, why: String) {
        let moving = self.attempt(key).and_then(|a| a.job_mut()).and_then(|j| j.moving.as_mut());
        if let Some(moving) = moving {
            moving.lost = Some(why);
        }
        // All of it: the reference begins anew, too.
        if let Some(attempt) = self.attempt(key) {
            (attempt.order.from, attempt.from_ppm) = (None, 0);
        }
    }
}
