//! Jobs that go elsewhere: dumped with all their processes, and restored on other vCPUs of their VM.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use dormouse_proto::v1::MoveTask;
use dormouse_tasks::ideal::Change;
use dormouse_units::Tier;
use tokio::task::spawn_blocking;

use super::{ranks::Rank, signals};
use crate::{
    agent::{
        host::{Host, limit},
        launch::turn_at_criu,
        report::{Key, explain, key},
        vm::{
            Asked,
            attempt::Phase,
            owner::{Message, Owner},
            slots::Seat,
        },
    },
    cgroup,
    criu::AfterDump,
    process::{Ended, Task},
    store::Progress,
    workspace::TaskName,
};

/// A move under way.
#[derive(Clone, Debug)]
pub(crate) struct Move {
    pub(crate) asked: Instant,
    pub(crate) dump: Duration,
    pub(crate) bytes: u64,
    /// Why it could not be kept.
    pub(crate) lost: Option<String>,
}

/// How a job left its places. All its processes are gone, unless it did not leave.
#[derive(Debug)]
pub(crate) enum Left {
    /// It is to go on from this checkpoint.
    Dumped { took: Duration, bytes: u64 },
    /// Nothing of it is left, for this reason.
    Lost { why: String },
    /// It came to its own end first.
    Ended(Ended),
    /// Its VM freezes: nothing was done to it.
    Overtaken,
}

impl Owner {
    pub(crate) fn obey_move(&mut self, to: MoveTask, asked: &Asked) {
        let (key, on) = (key(to.task), to.vcpus);
        let Some(attempt) = self.seen(key) else { return };
        if attempt.job().is_none() {
            return self.broken("only parallel jobs can be moved");
        }
        if attempt.on.len() != on.len() || !self.slots.are_valid(&on) {
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
        }
        self.move_to(key, on, asked.decided());
    }

    /// Dumps a job, for it to go on in the foreground of `on`.
    pub(crate) fn move_to(&mut self, key: Key, on: Vec<u32>, asked: Instant) {
        let (host, groups) = (Arc::clone(&self.host), Arc::clone(&self.groups));
        let (gate, tell) = (Arc::clone(&self.gate), self.tell.clone());
        let is_frozen = self.is_frozen();
        let seats = self.seats_of(key);
        let Some(attempt) = self.attempt(key) else { return };
        match &mut attempt.phase {
            Phase::Waiting { .. } => {
                (attempt.on, attempt.tier) = (on.clone(), Tier::Foreground);
                if let Some(at) = attempt.job().map(|job| job.left_at) {
                    // It has not begun anywhere else.
                    self.pace.change(at, Change::GoOn { key, on, anew: false });
                }
                self.launch_ready();
            }
            Phase::Launching => attempt.set_later(on, asked),
            Phase::Running if is_frozen => attempt.set_later(on, asked),
            Phase::Dumping | Phase::Dying | Phase::Gone => {}
            // There is nothing left to be moved.
            Phase::Early { verified, result } => {
                let (verified, result) = (*verified, result.take());
                if let Some(job) = attempt.job_mut() {
                    job.due = None;
                }
                self.say_finished(key, verified, result);
            }
            Phase::Running => {
                let Some(process) = attempt.process.clone() else { return };
                attempt.phase = Phase::Dumping;
                attempt.liveness.pause();
                let (name, progress_ppm) = (attempt.name.clone(), attempt.done_ppm());
                let progress = Progress { attempt: key.1.get(), progress_ppm, cpu_ns: 0 };
                let Some(job) = attempt.job_mut() else { return };
                job.meter.stop(&job.ranks);
                job.later = Some((on, asked));
                let ranks = job.ranks.clone();
                let pass = gate.pass();
                tokio::spawn(async move {
                    let left = match turn_at_criu(&host, &pass).await {
                        Err(why) => Left::Lost { why },
                        Ok(permit) => {
                            let dumping = spawn_blocking(move || {
                                // Until CRIU is through: its code in a frozen process would not
                                // answer.
                                let Some(inside) = gate.dump() else { return Left::Overtaken };
                                let of = (&*process, &ranks[..]);
                                let left = dump(&host, (&groups, &seats), &name, of, progress);
                                drop((permit, inside));
                                left
                            });
                            dumping.await.unwrap_or_else(|e| Left::Lost { why: explain(&e) })
                        }
                    };
                    // The owner is gone only when the VM is.
                    let _ = tell.send(Message::Left(key, left));
                });
            }
        }
    }

    /// The job is gone from its old places, kept or not.
    pub(crate) fn left(&mut self, key: Key, left: Left) {
        let waits = self.is_waited_for();
        let Some(attempt) = self.attempt(key) else { return };
        match left {
            Left::Overtaken => {
                attempt.phase = Phase::Running;
                let later = attempt.job_mut().and_then(|job| job.later.take());
                if let Some(stop) = attempt.stop.take() {
                    self.stop(stop);
                } else if let Some((on, asked)) = later {
                    // After the thaw, unless that was before.
                    if waits || self.is_frozen() {
                        if let Some(attempt) = self.attempt(key) {
                            attempt.set_later(on, asked);
                        }
                        self.turn_meters();
                    } else {
                        self.move_to(key, on, asked);
                    }
                }
                // Its end, if it came meanwhile, was put off.
                self.process_ended(key);
            }
            Left::Ended(ended) => {
                attempt.phase = Phase::Running;
                match self.came_of(key, ended) {
                    Some(Ok((verified, result))) => self.say_finished(key, verified, result),
                    Some(Err(why)) => self.fail_attempt(key, why),
                    None => {}
                }
            }
            Left::Dumped { took, bytes } => self.goes_on(key, took, bytes, None),
            Left::Lost { why } => self.goes_on(key, Duration::ZERO, 0, Some(why)),
        }
    }

    /// A job whose processes are gone is to go on where it was told to.
    fn goes_on(&mut self, key: Key, dump: Duration, bytes: u64, lost: Option<String>) {
        self.vacate(key);
        let Some(attempt) = self.attempt(key) else { return };
        if let Some(why) = &lost {
            tracing::warn!(why, job = %attempt.name, "it is moved without its progress");
        }
        attempt.phase = Phase::Waiting { until: None };
        attempt.tier = Tier::Foreground;
        (attempt.process, attempt.page) = (None, None);
        let (stop, now) = (attempt.stop.take(), Instant::now());
        let Some(job) = attempt.job_mut() else { return };
        job.ranks.clear();
        job.ledger.lifted += dump;
        let (on, asked) = job.later.take().unwrap_or((Vec::new(), now));
        job.moving = Some(Move { asked, dump, bytes, lost });
        attempt.on = on;
        match stop {
            Some(stop) => self.stop(stop),
            None => self.launch_ready(),
        }
    }
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
        if let Err(error) = groups.hurry(seat.vcpu, seat.slot) {
            tracing::warn!(why = explain(&error), job = %name, "its dump may be slow");
        }
    }
    let stopped = signals::stop(ranks, limit::KILL);
    let on: Vec<_> = seats.iter().map(|seat| (seat.vcpu, seat.slot)).collect();
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
