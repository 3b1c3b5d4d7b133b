//! Jobs that end, are killed, or go elsewhere.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use dormouse_proto::v1::{
    JobAccount, TaskFailed, TaskFinished, TaskStopped, report, task_finished,
};
use tokio::{sync::mpsc::UnboundedSender, task::spawn_blocking};

use super::{
    job::{Job, Key, Later, Move, Phase, Tier},
    machine::{Message, Owner, charged_ns},
    pace::Due,
    ranks::Rank,
    seats::Seat,
    stop,
};
use crate::{
    agent::{
        host::{Host, limit},
        report::{explain, report, task},
        verdict::verdict,
    },
    cgroup,
    criu::AfterDump,
    process::{Ended, Task},
    store::Progress,
    workspace::TaskName,
};

/// How a job left its places. All its processes are gone.
#[derive(Debug)]
pub(crate) enum Left {
    /// It is to go on from this checkpoint.
    Dumped { took: Duration, bytes: u64 },
    /// Nothing of it is left, for this reason.
    Lost { why: String },
    /// It came to its own end first.
    Ended(Ended),
}

impl Owner {
    /// The kernel says that the job's parent has ended, and so has all of its namespace.
    pub(crate) fn ended(&mut self, key: Key) {
        let Some(job) = self.job(key) else { return };
        // Whoever dumps it reaps it, too.
        if !matches!(job.phase, Phase::Running | Phase::Dying) {
            return;
        }
        let Some(process) = job.process.clone() else { return };
        let ended = match process.try_wait() {
            Ok(Some(ended)) => ended,
            Ok(None) => return,
            Err(error) => return self.fail_job(key, explain(&error)),
        };
        let is_dying = job.phase == Phase::Dying;
        let due = self.pace.due(key, Instant::now());
        if let Some(Due { late_us, is_near: false, .. }) = due
            && !is_dying
            && let Some(job) = self.job(key)
        {
            job.meter.stop(&job.ranks);
            job.phase = Phase::Early { ended, late_us };
        } else {
            self.conclude(key, ended, due);
        }
    }

    /// Reports the jobs that have ended and by now should.
    pub(crate) fn conclude_early(&mut self, now: Instant) {
        let early = |job: &Job| match job.phase {
            Phase::Early { ended, late_us } => Some((job.key, ended, late_us)),
            _ => None,
        };
        let early: Vec<_> = self.jobs.iter().filter_map(early).collect();
        for (key, ended, late_us) in early {
            let due = self.pace.due(key, now);
            if due.is_none_or(|due| due.is_near) {
                self.conclude(key, ended, due.map(|due| Due { late_us, ..due }));
            }
        }
    }

    /// Reports what came of a job whose parent has ended like this.
    fn conclude(&mut self, key: Key, ended: Ended, due: Option<Due>) {
        let Some(job) = self.take_out(key) else { return };
        if job.phase == Phase::Dying {
            self.say_stopped(&job);
        } else {
            match verdict(&self.host, &job.name, ended, &self.groups) {
                Ok((verified, result)) => {
                    let (real_cpu_us, account) = self.account(&job, due.map_or(0, |d| d.late_us));
                    self.host.report(report(report::Report::TaskFinished(TaskFinished {
                        task: task(self.id, key),
                        verified,
                        real_cpu_us,
                        result: Some(result),
                        ledger: None,
                        job: Some(account),
                        due: due.map(|due| task_finished::Due::EmulatedAtUs(due.at_us)),
                    })));
                }
                Err(why) => self.say_failed(key, why),
            }
        }
        self.release(&job);
        self.launch_ready();
    }

    pub(crate) fn kill(&mut self, key: Key) {
        let Some(job) = self.job(key) else { return };
        match job.phase {
            Phase::Waiting | Phase::Early { .. } => {
                if let Some(job) = self.take_out(key) {
                    self.say_stopped(&job);
                    self.release(&job);
                    self.launch_ready();
                }
            }
            Phase::Launching | Phase::Leaving => job.later = Some(Later::Kill),
            Phase::Dying => {}
            Phase::Running => {
                job.phase = Phase::Dying;
                job.meter.stop(&job.ranks);
                if let Some(Err(error)) = job.process.as_ref().map(|process| process.kill()) {
                    tracing::error!(why = explain(&error), "a job survives");
                }
                let seats = self.seats_of(key);
                self.lift(&seats, true);
            }
        }
    }

    /// Dumps a job, for it to go on in the foreground of `on`.
    pub(crate) fn move_to(&mut self, key: Key, on: Vec<u32>, asked: Instant) {
        let (host, groups, tell) =
            (Arc::clone(&self.host), Arc::clone(&self.groups), self.tell.clone());
        let seats = self.seats_of(key);
        let Some(job) = self.job(key) else { return };
        match job.phase {
            Phase::Waiting => {
                (job.on, job.tier) = (on, Tier::Foreground);
                self.launch_ready();
            }
            Phase::Launching => job.later = Some(Later::Move { on, asked }),
            Phase::Leaving | Phase::Dying => {}
            // There is nothing left to be moved.
            Phase::Early { ended, .. } => self.conclude(key, ended, None),
            Phase::Running => {
                let Some(process) = job.process.clone() else { return };
                job.phase = Phase::Leaving;
                job.meter.stop(&job.ranks);
                job.moving = Some(Move { asked, dump: Duration::ZERO, bytes: 0, lost: None });
                let (name, ppm) = (job.name.clone(), job.done_ppm());
                let progress = Progress { attempt: key.1.get(), progress_ppm: ppm, cpu_ns: 0 };
                job.on = on;
                let (criu, ranks) = (Arc::clone(&host.criu), job.ranks.clone());
                let pass = self.gate.pass();
                tokio::spawn(async move {
                    let permit = match pass.unless_revoked(criu.acquire_owned()).await {
                        Ok(Ok(permit)) => permit,
                        Ok(Err(error)) => return lose(&tell, key, &error),
                        Err(error) => return lose(&tell, key, &error),
                    };
                    let dumping = spawn_blocking(move || {
                        let left =
                            dump(&host, (&groups, &seats), &name, (&process, &ranks), progress);
                        drop(permit);
                        left
                    });
                    let left = dumping.await.unwrap_or_else(|e| Left::Lost { why: explain(&e) });
                    let _ = tell.send(Message::Left(key, left));
                });
            }
        }
    }

    /// The job is gone from its old places, kept or not.
    pub(crate) fn left(&mut self, key: Key, left: Left) {
        for seat in self.seats_of(key).iter().filter(|seat| seat.tier == Tier::Background) {
            let demoted = self.groups.demote(seat.processor, seat.slot);
            self.note(demoted);
        }
        if let Left::Ended(ended) = left {
            return self.conclude(key, ended, None);
        }
        let charged = charged_ns(&self.groups, &self.seats_of(key));
        self.seats.leave(key);
        let Some(job) = self.job(key) else { return };
        job.ledger.leave(charged);
        (job.phase, job.tier) = (Phase::Waiting, Tier::Foreground);
        (job.process, job.page) = (None, None);
        job.ranks.clear();
        let (lost, later) = (job.name.clone(), job.later.take());
        if let Some(moving) = &mut job.moving {
            match left {
                Left::Dumped { took, bytes } => {
                    (moving.dump, moving.bytes) = (took, bytes);
                    job.ledger.lifted += took;
                }
                Left::Lost { why } => {
                    tracing::warn!(why, job = %lost, "it is moved without its progress");
                    moving.lost = Some(why);
                }
                Left::Ended(_) => {}
            }
        }
        if matches!(later, Some(Later::Kill)) {
            return self.kill(key);
        }
        self.launch_ready();
    }

    /// Its processes could not be made, or are gone without a word.
    pub(crate) fn fail_job(&mut self, key: Key, why: String) {
        let Some(job) = self.take_out(key) else { return };
        self.say_failed(key, why);
        self.release(&job);
        self.launch_ready();
    }

    pub(crate) fn say_failed(&self, key: Key, why: String) {
        let (task, real_cpu_us, ledger) = (task(self.id, key), 0, None);
        let failed = TaskFailed { task, why, real_cpu_us, ledger };
        self.host.report(report(report::Report::TaskFailed(failed)));
    }

    fn say_stopped(&self, job: &Job) {
        let (real_cpu_us, account) = self.account(job, 0);
        self.host.report(report(report::Report::TaskStopped(TaskStopped {
            task: task(self.id, job.key),
            done_ppm: job.done_ppm(),
            checkpoint: None,
            real_cpu_us,
            ledger: None,
            job: Some(account),
        })));
    }

    /// The CPU time of a job's processes, and its account.
    fn account(&self, job: &Job, real_late_us: i64) -> (u64, JobAccount) {
        let uses = job.meter.uses(self.quota(), self.tick);
        let cpu_us = uses.iter().map(|of| of.real_cpu_us).sum();
        (cpu_us, JobAccount { uses, ledger: Some(job.ledger.told()), real_late_us })
    }

    /// Takes a job whose processes are gone out of the books.
    fn take_out(&mut self, key: Key) -> Option<Job> {
        let seats = self.seats_of(key);
        let place = self.jobs.iter().position(|job| job.key == key)?;
        let mut job = self.jobs.remove(place);
        job.ledger.leave(charged_ns(&self.groups, &seats));
        if job.phase == Phase::Dying {
            self.lift(&seats, false);
        }
        self.seats.leave(key);
        self.turn_meters();
        Some(job)
    }

    /// Removes what a job that is gone had on the disk.
    fn release(&self, job: &Job) {
        self.host.release(&job.name, job.key, false);
    }

    /// Lets what dies in these seats get on, or ends that: throttled, it dies late. Killed, it runs
    /// nothing of its own any more, and its neighbours keep their quota.
    fn lift(&mut self, seats: &[Seat], on: bool) {
        for Seat { processor, slot, tier, .. } in seats {
            let set = match on {
                true => self.groups.lift_quota_on(*processor, *slot),
                false => self.groups.put_back_quota(*processor, *slot),
            };
            self.note(set);
            if *tier == Tier::Background {
                let set = match on {
                    true => self.groups.hurry(*processor, *slot),
                    false => self.groups.demote(*processor, *slot),
                };
                self.note(set);
            }
        }
    }
}

/// Says that nothing can be kept of a job.
fn lose(tell: &UnboundedSender<Message>, key: Key, error: &dyn std::error::Error) {
    let _ = tell.send(Message::Left(key, Left::Lost { why: explain(error) }));
}

/// Stops the processes, dumps the tree and sees it gone; else kills it.
fn dump(
    host: &Host,
    (groups, seats): (&cgroup::Vm, &[Seat]),
    name: &TaskName,
    (process, ranks): (&Task, &[Rank]),
    progress: Progress,
) -> Left {
    // In the background, CRIU's code inside the ranks would wait for the foreground.
    for seat in seats {
        if let Err(error) = groups.hurry(seat.processor, seat.slot) {
            tracing::warn!(why = explain(&error), job = %name, "its dump may be slow");
        }
    }
    let stopped = stop::stop(ranks, limit::KILL);
    let on: Vec<_> = seats.iter().map(|seat| (seat.processor, seat.slot)).collect();
    let taken = match (&host.checkpointer, stopped) {
        (_, Err(error)) => Err(explain(&error)),
        (Some(checkpointer), Ok(())) => checkpointer
            .take_tree(name, process.pid(), (groups, &on), AfterDump::Kill, limit::DUMP, || {
                progress
            })
            .map_err(|e| explain(&e)),
        (None, Ok(())) => Err("this worker has no CRIU that works".to_owned()),
    };
    let gone = process.kill().and_then(|()| process.wait(limit::KILL));
    match (gone, taken) {
        (Ok(Some(ended @ Ended::Exited(_))), _) => Left::Ended(ended),
        (Ok(Some(Ended::Killed(_))), Ok(taken)) => {
            let bytes = taken.checkpoint.manifest().bytes();
            Left::Dumped { took: taken.took, bytes }
        }
        (Ok(Some(Ended::Killed(_))), Err(why)) => Left::Lost { why },
        (Ok(None), _) => {
            let why = format!("it is still there {} ms after its death", limit::KILL.as_millis());
            Left::Lost { why }
        }
        (Err(error), _) => Left::Lost { why: explain(&error) },
    }
}
