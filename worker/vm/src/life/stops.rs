//! Attempts that are stopped, or killed because they went wrong.

use std::time::Duration;

use super::{AttemptTable, Effect, End, Kept, Key, Phase, attempt::Kind};

impl AttemptTable {
    pub(super) fn stop(&mut self, key: Key, keep: bool) {
        let frozen = self.is_frozen();
        let can_keep = self.is_open() && self.limits.checkpoints;
        // It has ended, and that was reported.
        let Some(life) = self.life(key) else { return self.push_effect(Effect::Unknown(key)) };
        match life.phase {
            // It will not be heard of before the thaw, which may never come.
            Phase::Launching if frozen => {
                life.stop = Some(keep);
                self.report(key, End::Stopped(Kept::Done));
                self.give_up_launch(key);
            }
            Phase::Launching | Phase::Dumping => life.stop = Some(keep),
            Phase::Dying { .. } if frozen => {
                life.stop.get_or_insert(keep);
                self.is_as_good_as_gone(key);
            }
            Phase::Dying { .. } | Phase::Gone => {}
            // Its process is not there yet, or gone before its time: there is nothing to be kept.
            Phase::Waiting { .. } | Phase::Early => {
                life.stop = Some(false);
                self.end(key, End::Stopped(Kept::Begun));
            }
            Phase::Running => {
                // A job that is stopped is killed: nobody asks for more.
                let keep = keep && can_keep && life.kind == Kind::Task;
                life.stop = Some(keep);
                // One that stands since its checkpoint has done nothing since.
                if keep && !life.is_kept() {
                    self.ask_for_dump(key);
                } else {
                    self.kill(key);
                }
            }
        }
    }

    /// Kills the process of an attempt, which then leaves its seat.
    ///
    /// On a frozen VM it is not seen to be gone before the thaw; it never executes another
    /// instruction of its own, since it wakes inside the kernel, with the signal pending.
    pub(super) fn kill(&mut self, key: Key) {
        let Some(life) = self.life(key) else { return };
        life.phase = Phase::Dying { by: None };
        self.push_effect(Effect::Kill(key));
        if self.is_frozen() {
            self.report(key, End::Stopped(Kept::Done));
        }
    }

    /// Reports the end of one that was killed to be stopped, and does not get to die before a thaw
    /// that may never come: its task can go on elsewhere.
    pub(super) fn is_as_good_as_gone(&mut self, key: Key) {
        let Some(life) = self.seen(key) else { return };
        if !matches!(life.phase, Phase::Dying { .. }) || life.stop.is_none() {
            return;
        }
        let pending = life.pending.filter(|_| life.stop == Some(true));
        match pending.map(|pending| (pending.number, pending.stored)) {
            // The coordinator has yet to say whether it has its checkpoint.
            Some((_, None)) => {}
            Some((number, Some(true))) => self.report(key, End::Stopped(Kept::Checkpoint(number))),
            Some((_, Some(false))) | None => self.report(key, End::Stopped(Kept::Done)),
        }
    }

    /// Reports the end of an attempt of which nothing more can be expected by now.
    fn report(&mut self, key: Key, end: End) {
        let Some(life) = self.life(key) else { return };
        if !std::mem::replace(&mut life.reported, true) {
            self.push_effect(Effect::Report { key, end });
        }
    }

    /// One that hangs is killed. Once it is gone it has failed, and can be started elsewhere.
    pub(super) fn hangs(&mut self, now: Duration, key: Key, why: String) {
        let by = Some(now + self.limits.kill);
        let Some(life) = self.life(key) else { return };
        if life.phase == Phase::Running {
            life.wrong = Some(why);
            self.kill(key);
            if let Some(life) = self.life(key) {
                life.phase = Phase::Dying { by };
            }
        }
    }

    /// One that the kernel does not let die, as with a disk that does not answer, has failed all
    /// the same. Its slot stays occupied.
    pub(super) fn outlives_its_kill(&mut self, key: Key) {
        let after = self.limits.kill.as_millis();
        let Some(life) = self.life(key) else { return };
        life.phase = Phase::Dying { by: None };
        if let Some(why) = &life.wrong {
            let why = format!("{why}; its process is still there {after} ms after it was killed");
            self.report(key, End::Failed { why, image: false });
        }
    }

    /// Reports the end of a stopped attempt once its process is gone and, if it is to be kept,
    /// the coordinator has its checkpoint.
    pub(super) fn settle_stop(&mut self, key: Key) {
        let Some(life) = self.seen(key).filter(|life| life.phase == Phase::Gone) else { return };
        let keeps = life.stop == Some(true) && life.wrong.is_none() && !life.reported;
        let stored = life.pending.filter(|_| keeps).map(|it| (it.number, it.stored));
        let end = match (&life.wrong, stored) {
            _ if life.reported => End::Silent,
            (Some(why), _) => End::Failed { why: why.clone(), image: false },
            (None, Some((_, None))) => return,
            (None, Some((number, Some(true)))) => End::Stopped(Kept::Checkpoint(number)),
            (None, Some((_, Some(false))) | None) => End::Stopped(Kept::Done),
        };
        self.end(key, end);
    }
}
