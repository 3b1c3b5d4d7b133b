//! Jobs that move: dumped with all their processes, and restored on other vCPUs of their VM.

use std::{sync::Arc, time::Duration};

use dormouse_proto::v1::MoveTask;
use dormouse_vm::ideal::MachineChange;
use dormouse_vm::life::{DepartureOutcome, VmEvent};
use tokio::time::Instant;

use crate::{
    agent::{
        machine::{AttemptDump, CountedWork, DumpMoments, turn_at_criu},
        report::{Key, attempt_key},
        vm::{
            CommandStamp,
            job::{JobDeparture, OngoingMove},
            message::OwnerMessage,
            owner::VmOwner,
        },
    },
    store::SavedProgress,
};

impl VmOwner {
    pub(crate) fn obey_move(&mut self, to: MoveTask, asked: &CommandStamp) {
        let (key, on) = (attempt_key(to.task), to.vcpus);
        let Some(attempt) = self.find_attempt(key) else { return };
        if attempt.parallel_job().is_none() {
            return self.vm_broken("only parallel jobs can be moved");
        }
        if attempt.on.len() != on.len() || !self.lives.vm_slots().are_valid(&on) {
            let why = self.no_place(&on);
            return self.vm_broken(&why);
        }
        if let Err(why) = self.others_on(&on, true) {
            return self.vm_broken(&why);
        }
        let at = self.pace.decided_time(asked);
        self.pace.apply_change(at, MachineChange::Stand(key));
        if let Some(job) = self.attempt_mut(key).and_then(|a| a.job_mut()) {
            job.left_at = at;
            job.asked_to_leave = Some(asked.decided_at());
        }
        self.apply_event(VmEvent::Move { key, on });
    }

    /// Assigns other vCPUs (`on`) to a job whose processes haven't begun.
    pub(crate) fn redirect_job(&mut self, key: Key, on: Vec<u32>) {
        let Some(attempt) = self.attempt_mut(key) else { return };
        attempt.on.clone_from(&on);
        if let Some(at) = attempt.parallel_job().map(|job| job.left_at) {
            self.pace.apply_change(at, MachineChange::GoOn { key, on, anew: false });
        }
    }

    /// Dumps a job so that it leaves its seats.
    pub(crate) fn dump_for_move(&mut self, key: Key) {
        let (machine, tell) = (Arc::clone(&self.machine), self.tell.clone());
        let pass = self.gate.make_pass();
        let Some(attempt) = self.attempt_mut(key).filter(|attempt| attempt.process.is_some())
        else {
            return;
        };
        attempt.liveness.pause_watch();
        attempt.ends_hold(Instant::now());
        let progress_ppm = attempt.done_ppm();
        let progress = SavedProgress { attempt: key.1.get(), progress_ppm, cpu_ns: 0 };
        let Some(job) = attempt.job_mut() else { return };
        job.meter.stop_count(|rank| machine.rank_time(rank), &job.ranks);
        let Some(dump) = self.make_dump(key, true) else { return };
        let moments = DumpMoments::new(&self.gate, CountedWork::Computed(progress));
        let criu = Arc::clone(&self.context.criu);
        tokio::spawn(async move {
            let left = match turn_at_criu(criu, &pass).await {
                Ok(permit) => {
                    let dump = AttemptDump { permit: Some(permit), ..dump };
                    machine.leave_seats(dump, moments).await
                }
                Err(why) => JobDeparture::Lost { why },
            };
            // The owner is gone only when the VM is.
            let _ = tell.cast(OwnerMessage::Left(key, left));
        });
    }

    /// Handles the result of a job's departure from its vCPUs.
    pub(crate) fn hear_left(&mut self, key: Key, leaving: JobDeparture) {
        let left = match leaving {
            JobDeparture::Overtaken => DepartureOutcome::Overtaken,
            JobDeparture::Ended(ended) => match self.came_of(key, ended) {
                Some(came) => DepartureOutcome::Ended(self.keep_answer(key, came)),
                None => return,
            },
            JobDeparture::Dumped { took, bytes } => {
                self.note_move(key, took, bytes, None);
                DepartureOutcome::Gone { kept: true }
            }
            JobDeparture::Lost { why } => {
                self.note_move(key, Duration::ZERO, 0, Some(why));
                DepartureOutcome::Gone { kept: false }
            }
        };
        self.apply_event(VmEvent::Left(key, left));
    }

    /// Records a job's move: the time that its dump took, its checkpoint's size in bytes, and why the checkpoint was lost (`None`:
    /// it wasn't).
    fn note_move(&mut self, key: Key, dump: Duration, bytes: u64, lost: Option<String>) {
        let Some(attempt) = self.attempt_mut(key) else { return };
        if let Some(why) = &lost {
            tracing::warn!(why, job = %attempt.name, "it is moved without its progress");
        }
        let Some(job) = attempt.job_mut() else { return };
        job.ledger.lifted += dump;
        let asked = job.asked_to_leave.take().unwrap_or_else(Instant::now);
        job.moving = Some(OngoingMove { asked, dump, bytes, lost });
    }

    /// Launches a job that has left its seats on its new vCPUs.
    pub(crate) fn gone_from(&mut self, key: Key, on: Vec<u32>) {
        let Some(attempt) = self.attempt_mut(key) else { return };
        (attempt.process, attempt.page) = (None, None);
        attempt.on = on;
        if let Some(job) = attempt.job_mut() {
            job.ranks.clear();
        }
    }

    /// Handles a moved job whose checkpoint is of no use, so that it starts from scratch.
    pub(crate) fn begins_anew(&mut self, key: Key, why: String) {
        let moving =
            self.attempt_mut(key).and_then(|a| a.job_mut()).and_then(|j| j.moving.as_mut());
        if let Some(moving) = moving {
            moving.lost = Some(why);
        }
        // All of it: the reference begins anew, too.
        if let Some(attempt) = self.attempt_mut(key) {
            (attempt.order.from, attempt.from_ppm) = (None, 0);
        }
    }
}
