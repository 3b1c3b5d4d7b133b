//! Checkpoints of attempts, which run on or are killed afterwards.

use super::{
    AttemptOutcome, AttemptPhase, AttemptTable, DumpOutcome, Key, VmEffect,
    attempt::PendingCheckpoint,
};

impl AttemptTable {
    pub(super) fn checkpoint_is_due(&mut self, key: Key) {
        let Some(life) = self.life_mut(key) else { return };
        match life.phase {
            AttemptPhase::Early => self.push_effect(VmEffect::Missed(key)),
            AttemptPhase::Dying { .. } | AttemptPhase::Gone => {}
            _ => {
                // One waits already, as while the one before is on its way to a coordinator that does not
                // answer: the two become one, and the task stands still for both.
                if std::mem::replace(&mut life.again, true) {
                    self.push_effect(VmEffect::Missed(key));
                }
                self.ask_again(key);
            }
        }
    }

    /// Queues an attempt for a permit to use CRIU if another checkpoint is wanted and possible now. The attempt runs until it gets
    /// the permit.
    pub(super) fn ask_again(&mut self, key: Key) {
        let is_open = self.is_open();
        let Some(life) = self.life_mut(key) else { return };
        let can = life.phase == AttemptPhase::Running && life.pending.is_none() && !life.asked;
        if is_open && can && std::mem::take(&mut life.again) {
            self.ask_for_dump(key);
        }
    }

    pub(super) fn ask_for_dump(&mut self, key: Key) {
        if let Some(life) = self.life_mut(key).filter(|life| !life.asked) {
            (life.asked, life.again) = (true, false);
            self.push_effect(VmEffect::Queue(key));
        }
    }

    pub(super) fn dump_turn(&mut self, key: Key) {
        let is_open = self.is_open();
        let Some(life) = self.life_mut(key) else {
            return self.push_effect(VmEffect::GiveBack(key));
        };
        let was_asked = std::mem::take(&mut life.asked);
        let is_wanted = was_asked && life.phase == AttemptPhase::Running;
        let kill = life.stop.is_some();
        let goes_elsewhere = matches!(
            life.phase,
            AttemptPhase::Dumping | AttemptPhase::Waiting { .. } | AttemptPhase::Launching
        );
        // Once it is where it goes.
        life.again |= was_asked && goes_elsewhere;
        if is_wanted && is_open {
            life.phase = AttemptPhase::Dumping;
            return self.push_effect(VmEffect::Dump { key, kill });
        }
        // After the thaw.
        life.again |= is_wanted && !kill;
        self.push_effect(VmEffect::GiveBack(key));
        if is_wanted && kill {
            self.kill_attempt(key);
        }
    }

    pub(super) fn dump_ended(&mut self, key: Key, dumped: DumpOutcome) {
        let Some(life) = self.life_mut(key).filter(|life| life.phase == AttemptPhase::Dumping)
        else {
            return;
        };
        life.phase = AttemptPhase::Running;
        let stopping = life.stop.is_some();
        match dumped {
            DumpOutcome::Kept { number } => {
                life.pending = Some(PendingCheckpoint { number, goes_on: false, stored: None });
                self.push_effect(VmEffect::Store(key));
                if stopping {
                    self.kill_attempt(key);
                } else {
                    self.push_effect(VmEffect::Continue(key));
                }
            }
            DumpOutcome::Overtaken => {
                life.again |= !stopping;
                self.push_effect(VmEffect::Release(key));
                if stopping {
                    self.kill_attempt(key);
                }
            }
            DumpOutcome::Failed { why, damaged, ended } => {
                if let Some(keep) = &mut life.stop {
                    *keep = false;
                }
                if damaged {
                    life.wrong = Some(why.clone());
                }
                self.push_effect(VmEffect::NotKept { key, why: (!ended).then_some(why) });
                if damaged || stopping {
                    self.kill_attempt(key);
                } else {
                    self.push_effect(VmEffect::Continue(key));
                }
            }
        }
        // Its end, if it came meanwhile, was put off, and so was its move.
        self.process_ended(key);
        self.perhaps_leave(key);
        self.ask_again(key);
        self.perhaps_let_go();
    }

    /// Records that an attempt runs again after its stop for its checkpoint.
    pub(super) fn goes_on(&mut self, key: Key) {
        if let Some(pending) = self.life_mut(key).and_then(|life| life.pending.as_mut()) {
            pending.goes_on = true;
            self.settle_checkpoint(key);
        }
    }

    pub(super) fn checkpoint_stored(&mut self, key: Key, number: u32, ok: bool) {
        let Some(life) = self.life_mut(key) else { return };
        let Some(pending) = life.pending.as_mut().filter(|p| p.number == number) else { return };
        pending.stored = Some(ok);
        if matches!(life.phase, AttemptPhase::Dying { .. } | AttemptPhase::Gone) {
            self.settle_stop(key);
            if self.is_frozen() {
                self.is_as_good_as_gone(key);
            }
        } else {
            self.settle_checkpoint(key);
        }
    }

    /// Reports a checkpoint once it is stored and its task runs again.
    fn settle_checkpoint(&mut self, key: Key) {
        let Some(life) = self.life_mut(key) else { return };
        if let Some(PendingCheckpoint { goes_on: true, stored: Some(stored), .. }) = life.pending {
            life.pending = None;
            if life.reported {
                // It was stopped while its launch was frozen, and nothing is said of an attempt after its end.
                return;
            }
            self.push_effect(VmEffect::Settled { key, stored });
            self.ask_again(key);
        }
    }

    /// Records that an attempt's work is done. The attempt is finished now, or if its promised time hasn't come, at that time.
    pub(super) fn work_is_done(&mut self, key: Key) {
        let Some(life) = self.life_mut(key) else { return };
        life.phase = AttemptPhase::Early;
        // It came too late for a checkpoint, or two, and stands still for each all the same.
        let late = [std::mem::take(&mut life.asked), std::mem::take(&mut life.again)];
        for _ in late.into_iter().filter(|is_late| *is_late) {
            self.push_effect(VmEffect::Missed(key));
        }
        self.push_effect(VmEffect::AwaitTime(key));
    }

    pub(super) fn time_has_come(&mut self, key: Key) {
        if self.attempt_phase(key) == Some(AttemptPhase::Early) {
            self.end_attempt(key, AttemptOutcome::Finished);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dormouse_units::{Attempt, TaskId, Tier};

    use super::super::{AttemptKind, AttemptLimits, AttemptStart, BirthOutcome, VmEvent};
    use super::*;

    /// A coordinator that had been stopped for 20 s counted "12 of 14" checkpoints, and two were never reported.
    #[test]
    fn of_checkpoints_that_wait_for_one_on_its_way_all_but_the_last_are_said_to_be_missed() {
        let key = (TaskId::new(1), Attempt::default().next());
        let mut lives = AttemptTable::new(
            1,
            AttemptLimits { kill: Duration::from_secs(10), checkpoints: true },
        );
        let mut handle = |event| lives.handle_event(Duration::ZERO, event);
        let missed = |effects: &[VmEffect]| effects.contains(&VmEffect::Missed(key));
        handle(VmEvent::Start(AttemptStart {
            key,
            kind: AttemptKind::Task,
            on: vec![0],
            tier: Tier::Foreground,
        }));
        handle(VmEvent::Launched(key, Ok(BirthOutcome::Alive)));
        assert!(handle(VmEvent::CheckpointDue(key)).contains(&VmEffect::Queue(key)));
        assert!(handle(VmEvent::Turn(key)).contains(&VmEffect::Dump { key, kill: false }));
        handle(VmEvent::Dumped(key, DumpOutcome::Kept { number: 1 }));
        handle(VmEvent::Resumed(key));
        // It is not stored yet.
        assert!(!missed(&handle(VmEvent::CheckpointDue(key))));
        assert!(missed(&handle(VmEvent::CheckpointDue(key))));
        assert!(missed(&handle(VmEvent::CheckpointDue(key))));
        let stored = handle(VmEvent::Stored { key, number: 1, ok: true });
        assert!(stored.contains(&VmEffect::Queue(key)) && !missed(&stored), "{stored:?}");
    }
}
