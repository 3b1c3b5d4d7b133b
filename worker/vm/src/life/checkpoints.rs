//! Checkpoints of tasks that go on, or are killed with them.

use super::{AttemptTable, Dumped, Effect, End, Key, Phase, attempt::Pending};

impl AttemptTable {
    pub(super) fn checkpoint_is_due(&mut self, key: Key) {
        let Some(life) = self.life(key) else { return };
        match life.phase {
            Phase::Early => self.push_effect(Effect::Missed(key)),
            Phase::Dying { .. } | Phase::Gone => {}
            _ => {
                // One waits already, as while the one before is on its way to a coordinator that does not
                // answer: the two become one, and the task stands still for both.
                if std::mem::replace(&mut life.again, true) {
                    self.push_effect(Effect::Missed(key));
                }
                self.ask_again(key);
            }
        }
    }

    /// Queues for CRIU if another checkpoint is wanted and there can be one now. The task runs on
    /// until its turn.
    pub(super) fn ask_again(&mut self, key: Key) {
        let is_open = self.is_open();
        let Some(life) = self.life(key) else { return };
        let can = life.phase == Phase::Running && life.pending.is_none() && !life.asked;
        if is_open && can && std::mem::take(&mut life.again) {
            self.ask_for_dump(key);
        }
    }

    pub(super) fn ask_for_dump(&mut self, key: Key) {
        if let Some(life) = self.life(key).filter(|life| !life.asked) {
            (life.asked, life.again) = (true, false);
            self.push_effect(Effect::Queue(key));
        }
    }

    pub(super) fn turn(&mut self, key: Key) {
        let is_open = self.is_open();
        let Some(life) = self.life(key) else { return self.push_effect(Effect::GiveBack(key)) };
        let was_asked = std::mem::take(&mut life.asked);
        let is_wanted = was_asked && life.phase == Phase::Running;
        let kill = life.stop.is_some();
        let goes_elsewhere =
            matches!(life.phase, Phase::Dumping | Phase::Waiting { .. } | Phase::Launching);
        // Once it is where it goes.
        life.again |= was_asked && goes_elsewhere;
        if is_wanted && is_open {
            life.phase = Phase::Dumping;
            return self.push_effect(Effect::Dump { key, kill });
        }
        // After the thaw.
        life.again |= is_wanted && !kill;
        self.push_effect(Effect::GiveBack(key));
        if is_wanted && kill {
            self.kill(key);
        }
    }

    pub(super) fn dumped(&mut self, key: Key, dumped: Dumped) {
        let Some(life) = self.life(key).filter(|life| life.phase == Phase::Dumping) else {
            return;
        };
        life.phase = Phase::Running;
        let stopping = life.stop.is_some();
        match dumped {
            Dumped::Kept { number } => {
                life.pending = Some(Pending { number, goes_on: false, stored: None });
                self.push_effect(Effect::Store(key));
                if stopping {
                    self.kill(key);
                } else {
                    self.push_effect(Effect::Continue(key));
                }
            }
            Dumped::Overtaken => {
                life.again |= !stopping;
                self.push_effect(Effect::Release(key));
                if stopping {
                    self.kill(key);
                }
            }
            Dumped::Failed { why, damaged, ended } => {
                if let Some(keep) = &mut life.stop {
                    *keep = false;
                }
                if damaged {
                    life.wrong = Some(why.clone());
                }
                self.push_effect(Effect::NotKept { key, why: (!ended).then_some(why) });
                if damaged || stopping {
                    self.kill(key);
                } else {
                    self.push_effect(Effect::Continue(key));
                }
            }
        }
        // Its end, if it came meanwhile, was put off, and so was its move.
        self.process_ended(key);
        self.perhaps_leave(key);
        self.ask_again(key);
        self.perhaps_let_go();
    }

    /// The attempt goes on, having stood still for its checkpoint.
    pub(super) fn goes_on(&mut self, key: Key) {
        if let Some(pending) = self.life(key).and_then(|life| life.pending.as_mut()) {
            pending.goes_on = true;
            self.settle_checkpoint(key);
        }
    }

    pub(super) fn stored(&mut self, key: Key, number: u32, ok: bool) {
        let Some(life) = self.life(key) else { return };
        let Some(pending) = life.pending.as_mut().filter(|p| p.number == number) else { return };
        pending.stored = Some(ok);
        if matches!(life.phase, Phase::Dying { .. } | Phase::Gone) {
            self.settle_stop(key);
            if self.is_frozen() {
                self.is_as_good_as_gone(key);
            }
        } else {
            self.settle_checkpoint(key);
        }
    }

    /// Reports a checkpoint that is stored and whose task runs again.
    fn settle_checkpoint(&mut self, key: Key) {
        let Some(life) = self.life(key) else { return };
        if let Some(Pending { goes_on: true, stored: Some(stored), .. }) = life.pending {
            life.pending = None;
            if life.reported {
                // It was stopped while its launch was frozen, and nothing is said of an attempt after its end.
                return;
            }
            self.push_effect(Effect::Settled { key, stored });
            self.ask_again(key);
        }
    }

    /// The attempt's work is done: it has finished, or will have when its time has come.
    pub(super) fn work_is_done(&mut self, key: Key) {
        let Some(life) = self.life(key) else { return };
        life.phase = Phase::Early;
        // It came too late for a checkpoint, or two, and stands still for each all the same.
        let late = [std::mem::take(&mut life.asked), std::mem::take(&mut life.again)];
        for _ in late.into_iter().filter(|is_late| *is_late) {
            self.push_effect(Effect::Missed(key));
        }
        self.push_effect(Effect::AwaitTime(key));
    }

    pub(super) fn time_has_come(&mut self, key: Key) {
        if self.phase(key) == Some(Phase::Early) {
            self.end(key, End::Finished);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dormouse_units::{Attempt, TaskId, Tier};

    use super::super::{Came, Event, Kind, Limits, Start};
    use super::*;

    /// A coordinator that stood still for 20 s had "12 of 14" checkpoints, and nothing was said of two.
    #[test]
    fn of_checkpoints_that_wait_for_one_on_its_way_all_but_the_last_are_said_to_be_missed() {
        let key = (TaskId::new(1), Attempt::default().next());
        let mut lives =
            AttemptTable::new(1, Limits { kill: Duration::from_secs(10), checkpoints: true });
        let mut handle = |event| lives.handle(Duration::ZERO, event);
        let missed = |effects: &[Effect]| effects.contains(&Effect::Missed(key));
        handle(Event::Start(Start { key, kind: Kind::Task, on: vec![0], tier: Tier::Foreground }));
        handle(Event::Launched(key, Ok(Came::Alive)));
        assert!(handle(Event::CheckpointDue(key)).contains(&Effect::Queue(key)));
        assert!(handle(Event::Turn(key)).contains(&Effect::Dump { key, kill: false }));
        handle(Event::Dumped(key, Dumped::Kept { number: 1 }));
        handle(Event::GoesOn(key));
        // It is not stored yet.
        assert!(!missed(&handle(Event::CheckpointDue(key))));
        assert!(missed(&handle(Event::CheckpointDue(key))));
        assert!(missed(&handle(Event::CheckpointDue(key))));
        let stored = handle(Event::Stored { key, number: 1, ok: true });
        assert!(stored.contains(&Effect::Queue(key)) && !missed(&stored), "{stored:?}");
    }
}
