//! Bringing attempts to life, and what comes of it.

use std::{sync::Arc, time::Duration};

use dormouse_proto::v1::{Seats, TaskStarted, Tier as WireTier, report};
use dormouse_units::{CheckpointSeq, Ppm, Span, Tier};
use dormouse_vm::life::{Came, Dumped, Event, Key, LaunchError, Phase};
use tokio::{sync::OwnedSemaphorePermit, time::Instant};

use super::{
    agenda::Work,
    attempt::Process,
    owner::{Message, Owner},
};
use crate::worker::{host::vm_id, uplink::Uplink};

/// Time that a birth takes, and a restore, usually.
const BIRTH: Duration = Duration::from_millis(4);
const RESTORE: Duration = Duration::from_millis(30);
/// Time for which a process lives that hangs, or ends too soon, usually.
const DOOMED: Duration = Duration::from_millis(100);
/// Time by which a process ends earlier or later than it should, usually.
const OFF: Duration = Duration::from_millis(2);

impl<U: Uplink> Owner<U> {
    /// Begins a launch.
    pub(super) fn launch(&mut self, key: Key, moving: bool) {
        if moving {
            // It goes on from the checkpoint with which it left, which is here.
            return self.wait_for_birth(key);
        }
        let Some(attempt) = self.seen(key) else { return };
        let Some(from) = attempt.order.from else {
            self.host.images.claim(key);
            return self.begin_birth(key, None);
        };
        let (host, tell) = (Arc::clone(&self.host), self.tell.clone());
        let (gone, revoked) = (self.gone.clone(), attempt.revoked.clone());
        self.host.shared.spawn(async move {
            let brought = tokio::select! {
                biased;
                () = gone.cancelled() => return,
                () = revoked.cancelled() => return,
                brought = host.images.bring(key, from) => brought,
            };
            // The owner is gone only when the VM is.
            let _ = tell.send(Message::Brought(key, brought));
        });
    }

    /// The checkpoint is here, if there is one.
    pub(super) fn brought(&mut self, key: Key, result: Result<(), String>) {
        if !self.is_being_born(key) {
            return;
        }
        match result {
            Err(why) => self.happen(Event::Launched(key, Err(why.into()))),
            Ok(()) => self.wait_for_birth(key),
        }
    }

    /// Queues a restore for CRIU, once the VM runs.
    fn wait_for_birth(&mut self, key: Key) {
        let shut = self.is_shut;
        let Some(attempt) = self.attempt(key) else { return };
        attempt.waits_for_thaw = shut;
        if !shut {
            self.queue_for_criu(key, Message::BirthTurn);
        }
    }

    pub(super) fn take_birth_turn(&mut self, key: Key, permit: OwnedSemaphorePermit) {
        if !self.is_being_born(key) {
            return;
        }
        if self.is_shut {
            // CRIU is others' while the VM is frozen.
            drop(permit);
            return self.wait_for_birth(key);
        }
        self.begin_birth(key, Some(permit));
    }

    /// Goes on with the births that waited for the thaw.
    pub(super) fn births_go_on(&mut self) {
        let waits = self.attempts.iter().filter(|attempt| attempt.waits_for_thaw);
        for key in waits.map(|attempt| attempt.key).collect::<Vec<_>>() {
            self.wait_for_birth(key);
        }
    }

    /// Whether an attempt may still come to life: nobody has revoked its launch, and its VM is there.
    fn is_being_born(&self, key: Key) -> bool {
        let wanted = self.seen(key).is_some_and(|attempt| !attempt.revoked.is_cancelled());
        wanted && !self.gone.is_cancelled() && self.lives.phase(key) == Some(Phase::Launching)
    }

    fn begin_birth(&mut self, key: Key, permit: Option<OwnedSemaphorePermit>) {
        let takes = match &permit {
            Some(_) => self.chance.time(RESTORE) + self.host.slower(),
            None => self.chance.time(BIRTH),
        };
        self.agenda.add(takes, Work::Birth(key, permit));
    }

    /// A birth has come to its end.
    pub(super) fn born(&mut self, key: Key, permit: Option<OwnedSemaphorePermit>) {
        let restores = permit.is_some();
        drop(permit);
        if !self.is_being_born(key) {
            return;
        }
        if self.chance.happens(self.host.plan.rates.birth) {
            let why = "it did not come to life".to_owned();
            return self.happen(Event::Launched(key, Err(why.into())));
        }
        let moving = self.job(key).is_some_and(|job| job.is_moved());
        let image = match restores {
            true => self.host.images.newest(key.0),
            false => None,
        };
        if moving && restores && image.is_none() {
            let why = "no checkpoint of it is sound".to_owned();
            return self.happen(Event::Launched(key, Err(why.into())));
        }
        if image.is_some() && self.chance.happens(self.host.plan.rates.restore) {
            let why = "CRIU can't restore it".to_owned();
            return self.happen(Event::Launched(key, Err(LaunchError { why, image: !moving })));
        }
        let fate = self.fate();
        let from = self.seen(key).and_then(|attempt| attempt.order.from);
        let from = from.map(|from| CheckpointSeq::new(from.checkpoint));
        self.host.shared.process_began(key);
        self.host.witness().began(self.host.whose(), vm_id(self.id), key.0, key.1, from);
        // A job that is moved goes on within its attempt, of which the log says nothing.
        if from.is_some() && !moving {
            self.host.witness().restored(key.0, key.1, image);
        }
        let Some(attempt) = self.attempt(key) else { return };
        (attempt.process, attempt.image) = (Process::Alive, image);
        (attempt.ends_early, attempt.ends_late, attempt.fails) =
            (fate.ends_early, fate.ends_late, fate.fails);
        let is_silent = attempt
            .order
            .program
            .as_ref()
            .is_some_and(|program| program.args.first().is_some_and(|kind| kind == "noop"));
        if is_silent {
            self.host.witness().work_done(key.0, key.1);
            self.host.shared.process_is_gone(key);
            if let Some(attempt) = self.attempt(key) {
                attempt.process = Process::Exited { has_answer: true };
            }
            return self.happen(Event::Launched(key, Ok(Came::Over(Ok(())))));
        }
        match fate.doomed {
            Some((after, true)) => self.agenda.add(after, Work::Hang(key)),
            Some((after, false)) => self.agenda.add(after, Work::Exit(key)),
            None => {}
        }
        self.happen(Event::Launched(key, Ok(Came::Alive)));
    }

    /// Draws the fate of a process that is born.
    fn fate(&mut self) -> Fate {
        let rates = self.host.plan.rates;
        let off = self.chance.time(OFF);
        let (early, late) = match self.chance.below(2) {
            0 => (Some(self.host.speedup.emulated(off)), Duration::ZERO),
            _ => (None, off),
        };
        let hangs = self.chance.happens(rates.hang);
        let fails = self.chance.happens(rates.exit);
        // Half of those that fail do so at their end.
        let soon = hangs || (fails && self.chance.below(2) == 0);
        let doomed = soon.then(|| (self.chance.time(DOOMED), hangs));
        Fate { ends_early: early, ends_late: late, fails, doomed }
    }

    /// Reports an attempt that has come to life.
    pub(super) fn began(&mut self, key: Key) {
        if self.job_lives(key) {
            return;
        }
        let Some(attempt) = self.attempt(key) else { return };
        let done = attempt.image.map_or(Ppm::ZERO, |image| image.done);
        // An older checkpoint than the one that was wanted, or none: there is more to do.
        let is_other = std::mem::replace(&mut attempt.from, done) != done;
        let (asked, is_over) = (attempt.asked, attempt.process != Process::Alive);
        let seats = Some(self.told_seats(key));
        self.say(report::Report::TaskStarted(TaskStarted {
            task: self.task(key),
            done_ppm: done.get(),
            real_took_us: micros(Instant::now().saturating_duration_since(asked)),
            seats,
            real_inputs_us: 0,
        }));
        if is_over {
            return;
        }
        if is_other {
            self.pass();
            self.model.set_done(key.0, key.1, done);
        }
        let progress = self.model.progress(key.0, key.1);
        if progress.is_some_and(|progress| progress.finished.is_some()) {
            // All its time passed before it was born: it catches up.
            let catches_up = self.chance.time(OFF);
            self.agenda.add(catches_up, Work::Exit(key));
        }
        self.say_credits();
    }

    /// The seats of an attempt's processes, in the words of the wire.
    pub(super) fn told_seats(&self, key: Key) -> Seats {
        let vcpus = self.seen(key).map(|attempt| attempt.on.clone()).unwrap_or_default();
        let seat = self.lives.slots().all_of(key).first().copied();
        let tier = match seat.map(|seat| seat.tier) {
            Some(Tier::Background) => WireTier::Background,
            Some(Tier::Foreground) | None => WireTier::Foreground,
        };
        Seats { tier: tier.into(), vcpus }
    }

    /// Gives up the launch of an attempt that is no longer wanted.
    pub(super) fn revoke(&mut self, key: Key) {
        let Some(attempt) = self.seen(key) else { return };
        attempt.revoked.cancel();
        self.agenda.forget(key);
        self.agenda.add(Duration::ZERO, Work::GivenUp(key));
    }

    /// Hears that work on an attempt has been given up.
    pub(super) fn given_up(&mut self, key: Key) {
        let why = "it is not wanted any more".to_owned();
        match self.lives.phase(key) {
            Some(Phase::Launching) => self.happen(Event::Launched(key, Err(why.into()))),
            Some(Phase::Dumping) => {
                let dumped = Dumped::Failed { why, damaged: false, ended: true };
                self.happen(Event::Dumped(key, dumped));
            }
            _ => {}
        }
    }
}

/// The fate of a process.
struct Fate {
    /// The process ends that much work before it should, or so much later.
    ends_early: Option<Span>,
    ends_late: Duration,
    /// The process ends without an answer.
    fails: bool,
    /// The process hangs, or ends, long before its time.
    doomed: Option<(Duration, bool)>,
}

pub(super) fn micros(of: Duration) -> u64 {
    u64::try_from(of.as_micros()).unwrap_or(u64::MAX)
}
