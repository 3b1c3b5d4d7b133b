//! Attempts that are stopped, or killed because they went wrong.

use std::time::Duration;

use super::{
    AttemptOutcome, AttemptPhase, AttemptTable, KeptWork, Key, VmEffect, attempt::AttemptKind,
};

impl AttemptTable {
    pub(super) fn stop_attempt(&mut self, key: Key, keep: bool) {
        let frozen = self.is_frozen();
        let can_keep = self.is_open() && self.limits.checkpoints;
        // It has ended, and that was reported.
        let Some(life) = self.life_mut(key) else {
            return self.push_effect(VmEffect::Unknown(key));
        };
        match life.phase {
            // It will not be heard of before the thaw, which may never come.
            AttemptPhase::Launching if frozen => {
                life.stop = Some(keep);
                self.report_end(key, AttemptOutcome::Stopped(KeptWork::Done));
                self.give_up_launch(key);
            }
            AttemptPhase::Launching | AttemptPhase::Dumping => life.stop = Some(keep),
            AttemptPhase::Dying { .. } if frozen => {
                life.stop.get_or_insert(keep);
                self.is_as_good_as_gone(key);
            }
            AttemptPhase::Dying { .. } | AttemptPhase::Gone => {}
            // Its process is not there yet, or gone before its time: there is nothing to be kept.
            AttemptPhase::Waiting { .. } | AttemptPhase::Early => {
                life.stop = Some(false);
                self.end_attempt(key, AttemptOutcome::Stopped(KeptWork::Begun));
            }
            AttemptPhase::Running => {
                // A job that is stopped is killed: nobody asks for more.
                let keep = keep && can_keep && life.kind == AttemptKind::Task;
                life.stop = Some(keep);
                // One that stands since its checkpoint has done nothing since.
                if keep && !life.is_kept() {
                    self.ask_for_dump(key);
                } else {
                    self.kill_attempt(key);
                }
            }
        }
    }

    /// Kills the process of an attempt, which then leaves its seat.
    ///
    /// On a frozen VM the process isn't seen gone before the thaw, but it never executes another instruction of its
    /// own, since it wakes inside the kernel with the signal pending.
    pub(super) fn kill_attempt(&mut self, key: Key) {
        let Some(life) = self.life_mut(key) else { return };
        life.phase = AttemptPhase::Dying { by: None };
        self.push_effect(VmEffect::Kill(key));
        if self.is_frozen() {
            self.report_end(key, AttemptOutcome::Stopped(KeptWork::Done));
        }
    }

    /// Reports the end of a stopped attempt whose killed process can't end before the VM thaws, which may never happen, so that the
    /// task can continue on another VM.
    pub(super) fn is_as_good_as_gone(&mut self, key: Key) {
        let Some(life) = self.find_life(key) else { return };
        if !matches!(life.phase, AttemptPhase::Dying { .. }) || life.stop.is_none() {
            return;
        }
        let pending = life.pending.filter(|_| life.stop == Some(true));
        match pending.map(|pending| (pending.number, pending.stored)) {
            // The coordinator has yet to say whether it has its checkpoint.
            Some((_, None)) => {}
            Some((number, Some(true))) => {
                self.report_end(key, AttemptOutcome::Stopped(KeptWork::Checkpoint(number)));
            }
            Some((_, Some(false))) | None => {
                self.report_end(key, AttemptOutcome::Stopped(KeptWork::Done));
            }
        }
    }

    /// Reports the end of an attempt whose process still exists but will do nothing more.
    fn report_end(&mut self, key: Key, end: AttemptOutcome) {
        let Some(life) = self.life_mut(key) else { return };
        if !std::mem::replace(&mut life.reported, true) {
            self.push_effect(VmEffect::Report { key, end });
        }
    }

    /// Kills an attempt that hangs. Once its process is gone the attempt has failed, and its task can start on another VM.
    pub(super) fn attempt_hangs(&mut self, now: Duration, key: Key, why: String) {
        let by = Some(now + self.limits.kill);
        let Some(life) = self.life_mut(key) else { return };
        if life.phase == AttemptPhase::Running {
            life.wrong = Some(why);
            self.kill_attempt(key);
            if let Some(life) = self.life_mut(key) {
                life.phase = AttemptPhase::Dying { by };
            }
        }
    }

    /// Gives up an attempt, as failed, whose killed process doesn't die, as when a disk doesn't answer. The attempt's slot stays
    /// occupied.
    pub(super) fn outlives_its_kill(&mut self, key: Key) {
        let after = self.limits.kill.as_millis();
        let Some(life) = self.life_mut(key) else { return };
        life.phase = AttemptPhase::Dying { by: None };
        if let Some(why) = &life.wrong {
            let why = format!("{why}; its process is still there {after} ms after it was killed");
            self.report_end(key, AttemptOutcome::Failed { why, image: false });
        }
    }

    /// Reports the end of a stopped attempt once its process is gone and, if its work is to be kept, the coordinator has stored its
    /// checkpoint.
    pub(super) fn settle_stop(&mut self, key: Key) {
        let Some(life) = self.find_life(key).filter(|life| life.phase == AttemptPhase::Gone) else {
            return;
        };
        let keeps = life.stop == Some(true) && life.wrong.is_none() && !life.reported;
        let stored = life.pending.filter(|_| keeps).map(|it| (it.number, it.stored));
        let end = match (&life.wrong, stored) {
            _ if life.reported => AttemptOutcome::Silent,
            (Some(why), _) => AttemptOutcome::Failed { why: why.clone(), image: false },
            (None, Some((_, None))) => return,
            (None, Some((number, Some(true)))) => {
                AttemptOutcome::Stopped(KeptWork::Checkpoint(number))
            }
            (None, Some((_, Some(false))) | None) => AttemptOutcome::Stopped(KeptWork::Done),
        };
        self.end_attempt(key, end);
    }
}
