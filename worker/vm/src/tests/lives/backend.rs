//! A backend in memory: it carries out the effects that a VM's attempts request, late, in any order and with any
//! outcome, and checks that nothing happens that never may.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use dormouse_units::{Attempt, TaskId, Tier};

use crate::life::{
    AttemptKind, AttemptLimits, AttemptOutcome, AttemptPhase, AttemptSeat, AttemptStart,
    AttemptTable, BirthOutcome, DepartureOutcome, DumpOutcome, KeptWork, Key, LaunchFailure,
    TierSlot, VmEffect, VmEvent,
};

pub(crate) const VCPUS: u32 = 2;
const KILL: Duration = Duration::from_secs(10);

/// Outcome of a piece of work in this backend.
#[derive(Clone, Copy, Debug)]
pub(crate) enum How {
    Well,
    Badly,
    Worse,
}

/// Work under way, whose end will be an event.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Work {
    Launch {
        key: Key,
        moving: bool,
    },
    Turn(Key),
    /// A dump; `held`: CRIU has taken hold of the process.
    Dump {
        key: Key,
        kill: bool,
        held: bool,
    },
    Leave {
        key: Key,
        held: bool,
    },
    Store {
        key: Key,
        number: u32,
    },
    Death(Key),
    Ended(Key),
    Time(Key),
    Freeze,
    Thaw,
}

/// State of a process in the simulated kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Process {
    Alive,
    /// The process is stopped since its dump.
    Still,
    Exited {
        ok: bool,
    },
    Killed,
}

#[derive(Debug, Default)]
struct Of {
    is_job: bool,
    process: Option<Process>,
    /// The process will be dead as soon as it can be.
    killed: bool,
    seats: Vec<(u32, TierSlot)>,
    permit: bool,
    number: u32,
    stored: BTreeSet<u32>,
    begun: u32,
    ends: u32,
    forgotten: bool,
    /// Number of requested checkpoints of the attempt that neither began nor were dropped.
    wished: u32,
}

/// The backend, with the table of attempts that it serves.
#[derive(Debug)]
pub(crate) struct Backend {
    lives: AttemptTable,
    now: Duration,
    all: BTreeMap<Key, Of>,
    under_way: Vec<Work>,
    queue: VecDeque<VmEvent>,
    shut: bool,
    frozen: bool,
    destroyed: bool,
    removed: bool,
    checkpoints: bool,
}

pub(crate) fn key(n: u32) -> Key {
    (TaskId::new(n), Attempt::new(1))
}

impl Backend {
    pub(crate) fn new(checkpoints: bool) -> Self {
        Self {
            lives: AttemptTable::new(VCPUS, AttemptLimits { kill: KILL, checkpoints }),
            now: Duration::ZERO,
            all: BTreeMap::new(),
            under_way: Vec::new(),
            queue: VecDeque::new(),
            shut: false,
            frozen: false,
            destroyed: false,
            removed: false,
            checkpoints,
        }
    }

    /// Queues a command, which is passed on as soon as a command may come.
    pub(crate) fn command(&mut self, event: VmEvent) {
        if self.destroyed {
            return;
        }
        self.queue.push_back(event);
        self.work_off();
    }

    fn work_off(&mut self) {
        while self.lives.is_ready()
            && !self.destroyed
            && let Some(event) = self.queue.pop_front()
        {
            self.obey(event);
        }
    }

    /// Passes a command on, unless it is impossible in the present state.
    fn obey(&mut self, event: VmEvent) {
        match &event {
            VmEvent::Start(AttemptStart { key, kind, on, tier }) => {
                let (alone, is_job) = (on.len() == 1, *kind == AttemptKind::Job);
                if self.frozen || self.all.contains_key(key) || !(is_job || alone) {
                    return;
                }
                assert!(matches!(tier, Tier::Foreground | Tier::Background));
                self.all.insert(*key, Of { is_job, ..Of::default() });
                self.happen(event);
            }
            VmEvent::Stop { key, keep } => {
                let (key, keep) = (*key, *keep);
                if !self.all.contains_key(&key) {
                    return;
                }
                let was = self.lives.attempt_phase(key);
                self.happen(event);
                let at_once = was == Some(AttemptPhase::Running) && (!keep || self.frozen);
                assert!(!at_once || self.all[&key].killed, "{key:?} is not killed at once");
                let heard = !self.frozen || self.all[&key].ends == 1;
                // CRIU, and the coordinator, answer all the same.
                let is_sent =
                    |work: &Work| matches!(work, Work::Store { key: of, .. } if *of == key);
                let is_awaited = self.under_way.iter().any(is_sent);
                let is_busy =
                    was == Some(AttemptPhase::Dumping) || is_awaited || !self.is_alive(key);
                assert!(heard || is_busy, "nothing is heard of {key:?}");
            }
            VmEvent::Freeze => {
                let was_frozen = self.frozen;
                self.happen(event);
                let at_once = self.under_way.contains(&Work::Freeze) || was_frozen;
                assert!(at_once || self.is_held(), "it does not freeze at once");
            }
            VmEvent::Move { key, on } => {
                // Only jobs are moved.
                if self.all.get(key).is_some_and(|of| of.is_job) && on.len() == 1 {
                    self.happen(event);
                }
            }
            VmEvent::CheckpointDue(key) => {
                let key = *key;
                let is_there = self.all.contains_key(&key);
                let can = is_there
                    && matches!(
                        self.lives.attempt_phase(key),
                        Some(AttemptPhase::Running | AttemptPhase::Dumping)
                    );
                if can && self.checkpoints && !self.lives.is_stopped(key) {
                    self.entry(key).wished += 1;
                    self.happen(event);
                }
            }
            _ => self.happen(event),
        }
    }

    pub(crate) fn destroy(&mut self) {
        if !self.destroyed {
            self.happen(VmEvent::Destroy);
            assert!(self.destroyed, "it is not killed at once");
        }
    }

    pub(crate) fn pass(&mut self, span: Duration) {
        self.now += span;
        if self.lives.next_at().is_some_and(|at| at <= self.now) {
            self.happen(VmEvent::Tick);
        }
        self.work_off();
    }

    fn entry(&mut self, key: Key) -> &mut Of {
        self.all.get_mut(&key).expect("it was started")
    }

    fn is_held(&self) -> bool {
        let held = |work: &Work| {
            matches!(work, Work::Dump { held: true, .. } | Work::Leave { held: true, .. })
        };
        self.under_way.iter().any(held)
    }

    fn happen(&mut self, event: VmEvent) {
        for effect in self.lives.handle_event(self.now, event) {
            // What one effect leads to is done before what was to follow it.
            if let Some(event) = self.carry_out(effect) {
                self.happen(event);
            }
        }
        assert!(!self.frozen || self.lives.next_at().is_none(), "a frozen VM has no time");
    }

    /// Checks that nothing is begun on a VM that is frozen or about to be frozen.
    fn may_begin(&self, effect: &VmEffect) {
        assert!(!self.frozen && !self.shut, "{effect:?} on a frozen VM");
    }

    fn carry_out(&mut self, effect: VmEffect) -> Option<VmEvent> {
        let of_the_end =
            matches!(effect, VmEffect::KillAll | VmEffect::Forget(_) | VmEffect::Remove);
        assert_eq!(self.destroyed && effect != VmEffect::KillAll, of_the_end && self.destroyed);
        match effect.clone() {
            VmEffect::Launch { key, seats, moving } => {
                self.may_begin(&effect);
                self.seat(key, &seats);
                let of = self.entry(key);
                assert!(of.process.is_none() && of.ends == 0, "two lives of {key:?}");
                self.under_way.push(Work::Launch { key, moving });
            }
            VmEffect::Began(key) => {
                assert!(!self.frozen, "{key:?} begins on a frozen VM");
                assert_eq!(self.entry(key).ends, 0);
                self.entry(key).begun += 1;
            }
            VmEffect::WatchUnwanted(key) => assert_eq!(self.entry(key).ends, 1),
            VmEffect::Queue(key) => self.under_way.push(Work::Turn(key)),
            VmEffect::GiveBack(key) => {
                if let Some(of) = self.all.get_mut(&key) {
                    of.permit = false;
                }
            }
            VmEffect::Dump { key, kill } => {
                self.may_begin(&effect);
                let of = self.entry(key);
                assert!(std::mem::take(&mut of.permit), "it was not its turn");
                assert!(of.process.is_some() && !of.killed);
                of.wished = 0;
                self.under_way.push(Work::Dump { key, kill, held: false });
            }
            VmEffect::Leave(key) => {
                self.may_begin(&effect);
                assert!(self.entry(key).process.is_some() && !self.entry(key).killed);
                self.under_way.push(Work::Leave { key, held: false });
            }
            VmEffect::Store(key) => {
                let number = self.entry(key).number;
                self.under_way.push(Work::Store { key, number });
            }
            VmEffect::Continue(key) => {
                assert!(!self.frozen && self.entry(key).ends == 0, "{key:?} goes on");
            }
            VmEffect::Settled { key, stored } => {
                let of = self.entry(key);
                assert_eq!((of.ends, of.stored.contains(&of.number)), (0, stored));
            }
            VmEffect::Missed(key) => {
                let of = self.entry(key);
                of.wished = of.wished.saturating_sub(1);
            }
            VmEffect::LeftPlaces { key, .. } => {
                assert!(!self.is_alive(key));
                self.entry(key).process = None;
            }
            VmEffect::Kill(key) => {
                let of = self.entry(key);
                assert!(of.process.is_some(), "there is nothing to kill");
                (of.killed, of.wished) = (true, 0);
                self.under_way.push(Work::Death(key));
            }
            VmEffect::Vacate { key, seats } => {
                assert!(!self.is_alive(key));
                self.unseat(key, &seats);
            }
            VmEffect::Reap(key) => return (!self.is_alive(key)).then_some(VmEvent::Gone(key)),
            VmEffect::Judge(key) => return self.judge(key),
            VmEffect::AwaitTime(key) => self.under_way.push(Work::Time(key)),
            VmEffect::End { key, seats, end } => self.end(key, &seats, &end),
            VmEffect::Report { key, end } => self.report(key, &end),
            VmEffect::Shut => {
                self.shut = true;
                return (!self.is_held()).then_some(VmEvent::CriuIdle);
            }
            VmEffect::Freeze => {
                assert!(!self.is_held(), "CRIU's code in a frozen task would not answer");
                self.under_way.push(Work::Freeze);
            }
            VmEffect::Thaw => self.under_way.push(Work::Thaw),
            VmEffect::KillAll => {
                self.destroyed = true;
                for of in self.all.values_mut() {
                    of.process = of.process.map(|_| Process::Killed);
                }
            }
            VmEffect::Forget(key) => {
                assert!(!self.is_worked_on(key), "something is still being done to {key:?}");
                assert!(!std::mem::replace(&mut self.entry(key).forgotten, true));
            }
            VmEffect::Remove => assert!(!std::mem::replace(&mut self.removed, true)),
            VmEffect::BeginAnew { key, .. } => self.entry(key).seats.clear(),
            VmEffect::Revoke(_)
            | VmEffect::Release(_)
            | VmEffect::NotKept { .. }
            | VmEffect::MoveDelayed(_)
            | VmEffect::Redirect { .. }
            | VmEffect::PromoteSlots { .. }
            | VmEffect::PromotionRefused { .. }
            | VmEffect::StopAwaiting(_)
            | VmEffect::Unknown(_)
            | VmEffect::IsFrozen => {}
        }
        None
    }

    fn judge(&mut self, key: Key) -> Option<VmEvent> {
        let result = match self.entry(key).process? {
            Process::Exited { ok: true } => Ok(()),
            Process::Exited { ok: false } => Err("its answer is none".to_owned()),
            Process::Killed => Err("it was killed".to_owned()),
            Process::Alive | Process::Still => return None,
        };
        Some(VmEvent::Exited(key, result))
    }

    /// True if a checkpoint of the attempt was requested and the attempt doesn't wait for another attempt's slot.
    fn is_owed_a_checkpoint(&self, key: Key) -> bool {
        self.all[&key].wished > 0
            && !matches!(self.lives.attempt_phase(key), Some(AttemptPhase::Waiting { .. }))
    }

    fn is_alive(&self, key: Key) -> bool {
        matches!(self.all[&key].process, Some(Process::Alive | Process::Still))
    }

    fn is_worked_on(&self, key: Key) -> bool {
        self.under_way.iter().any(|work| match work {
            Work::Launch { key: of, .. }
            | Work::Dump { key: of, .. }
            | Work::Leave { key: of, .. } => *of == key,
            _ => false,
        })
    }

    fn seat(&mut self, key: Key, seats: &[AttemptSeat]) {
        let seats: Vec<_> = seats.iter().map(|seat| (seat.vcpu, seat.slot)).collect();
        let taken = |of: &Of| of.seats.iter().any(|seat| seats.contains(seat));
        assert!(!self.all.values().any(taken), "two in one slot");
        self.entry(key).seats = seats;
    }

    fn unseat(&mut self, key: Key, seats: &[AttemptSeat]) {
        let given: BTreeSet<_> = seats.iter().map(|seat| (seat.vcpu, seat.slot)).collect();
        let of = self.entry(key);
        assert_eq!(given, of.seats.iter().copied().collect(), "the slots of {key:?}");
        of.seats.clear();
    }

    fn report(&mut self, key: Key, end: &AttemptOutcome) {
        let of = self.entry(key);
        of.ends += 1;
        of.wished = 0;
        assert_eq!(of.ends, 1, "{key:?} ends again: {end:?}");
        if let AttemptOutcome::Stopped(KeptWork::Checkpoint(number)) = end {
            assert!(of.stored.contains(number), "the coordinator has no such checkpoint");
        }
    }

    fn end(&mut self, key: Key, seats: &[AttemptSeat], end: &AttemptOutcome) {
        if *end == AttemptOutcome::Silent {
            assert_eq!(self.entry(key).ends, 1);
        } else {
            self.report(key, end);
        }
        assert!(!self.is_alive(key), "{key:?} lives on");
        assert!(!self.is_worked_on(key), "something is still being done to {key:?}");
        if *end == AttemptOutcome::Finished {
            assert_eq!(self.entry(key).process, Some(Process::Exited { ok: true }));
        }
        self.unseat(key, seats);
    }

    /// Brings the picked piece of work under way to its end, or a step nearer.
    pub(crate) fn advance(&mut self, which: usize, how: How) {
        if self.under_way.is_empty() {
            return;
        }
        let place = which % self.under_way.len();
        let open = !self.shut && !self.frozen && !self.destroyed;
        match &mut self.under_way[place] {
            Work::Dump { held, .. } | Work::Leave { held, .. } if !*held && open => {
                *held = true;
                return;
            }
            // Nothing comes to life while its VM is frozen.
            Work::Launch { .. } if self.frozen && !self.destroyed => return,
            _ => {}
        }
        if let Work::Death(key) = self.under_way[place]
            && self.frozen
            && self.is_alive(key)
        {
            // And nobody dies.
            return;
        }
        let event = match self.under_way.remove(place) {
            Work::Launch { key, moving } => {
                Some(VmEvent::Launched(key, self.launched(key, moving, how)))
            }
            Work::Turn(key) => {
                self.entry(key).permit = true;
                Some(VmEvent::Turn(key))
            }
            Work::Dump { key, kill, held } => {
                Some(VmEvent::Dumped(key, self.dumped(key, kill, held, how)))
            }
            Work::Leave { key, held } => Some(VmEvent::Left(key, self.left(key, held, how))),
            Work::Store { key, number } => {
                let ok = matches!(how, How::Well);
                if ok {
                    self.entry(key).stored.insert(number);
                }
                Some(VmEvent::Stored { key, number, ok })
            }
            Work::Death(key) => {
                if self.is_alive(key) {
                    self.entry(key).process = Some(Process::Killed);
                }
                Some(VmEvent::ProcessEnded(key))
            }
            Work::Ended(key) => Some(VmEvent::ProcessEnded(key)),
            Work::Time(key) => Some(VmEvent::TimeHasCome(key)),
            Work::Freeze if !self.destroyed => match how {
                How::Well | How::Badly => {
                    self.frozen = true;
                    Some(VmEvent::Frozen)
                }
                How::Worse => {
                    self.shut = false;
                    Some(VmEvent::NotFrozen)
                }
            },
            Work::Thaw if !self.destroyed => match how {
                How::Well | How::Badly => {
                    (self.frozen, self.shut) = (false, false);
                    Some(VmEvent::Thawed)
                }
                How::Worse => Some(VmEvent::NotThawed),
            },
            Work::Freeze | Work::Thaw => None,
        };
        if let Some(event) = event {
            self.happen(event);
        }
        self.work_off();
    }

    fn launched(
        &mut self,
        key: Key,
        moving: bool,
        how: How,
    ) -> Result<BirthOutcome, LaunchFailure> {
        let destroyed = self.destroyed;
        let of = self.entry(key);
        let why = "it did not come to life".to_owned();
        match how {
            _ if destroyed => Err(why.into()),
            How::Well => {
                of.process = Some(Process::Alive);
                Ok(BirthOutcome::Alive)
            }
            How::Badly => Err(LaunchFailure { why, image: !moving }),
            How::Worse => {
                of.process = Some(Process::Exited { ok: true });
                Ok(BirthOutcome::Over(Ok(())))
            }
        }
    }

    fn dumped(&mut self, key: Key, kill: bool, held: bool, how: How) -> DumpOutcome {
        let of = self.entry(key);
        let ended = !matches!(of.process, Some(Process::Alive));
        let why = "CRIU fails".to_owned();
        if !held {
            return DumpOutcome::Overtaken;
        }
        match how {
            _ if ended => DumpOutcome::Failed { why, damaged: false, ended: true },
            How::Well => {
                of.number += 1;
                of.process = Some(if kill { Process::Killed } else { Process::Still });
                DumpOutcome::Kept { number: of.number }
            }
            How::Badly => DumpOutcome::Failed { why, damaged: false, ended: false },
            How::Worse => DumpOutcome::Failed { why, damaged: true, ended: false },
        }
    }

    fn left(&mut self, key: Key, held: bool, how: How) -> DepartureOutcome {
        let of = self.entry(key);
        match (of.process, how) {
            _ if !held => DepartureOutcome::Overtaken,
            (Some(Process::Exited { ok: true }), _) => DepartureOutcome::Ended(Ok(())),
            (Some(Process::Exited { ok: false }), _) => {
                DepartureOutcome::Ended(Err("it fails".to_owned()))
            }
            (_, how) => {
                of.process = Some(Process::Killed);
                DepartureOutcome::Gone { kept: matches!(how, How::Well) }
            }
        }
    }

    /// Lets a process end by itself.
    pub(crate) fn exit(&mut self, key: Key, ok: bool) {
        let runs = |of: &Of| of.process == Some(Process::Alive) && !of.killed;
        if !self.frozen && !self.destroyed && self.all.get(&key).is_some_and(runs) {
            self.entry(key).process = Some(Process::Exited { ok });
            self.under_way.push(Work::Ended(key));
        }
    }

    pub(crate) fn hang(&mut self, key: Key) {
        if !self.frozen && !self.destroyed && self.lives.is_running(key) {
            self.happen(VmEvent::Hangs(key, "it hangs".to_owned()));
        }
    }

    /// Lets the attempt run again after its stop for a checkpoint.
    pub(crate) fn go_on(&mut self, key: Key) {
        let stands = |of: &Of| of.process == Some(Process::Still);
        let runs = self.lives.is_running(key);
        if runs && !self.frozen && !self.destroyed && self.all.get(&key).is_some_and(stands) {
            self.entry(key).process = Some(Process::Alive);
            self.happen(VmEvent::Resumed(key));
        }
    }

    /// Brings all work under way and all running processes to a good end; then every attempt has ended exactly once,
    /// and nothing is left of the VM.
    pub(crate) fn come_to_rest(&mut self) {
        for round in 0.. {
            assert!(round < 1000, "it does not come to rest: {self:?}");
            let keys: Vec<Key> = self.all.keys().copied().collect();
            self.work_off();
            let thaws = self.under_way.contains(&Work::Thaw) || self.destroyed;
            if self.frozen && !thaws {
                self.command(VmEvent::Thaw);
            } else if !self.under_way.is_empty() {
                self.advance(round, How::Well);
            } else if keys
                .iter()
                .any(|key| self.all[key].process == Some(Process::Still) && !self.all[key].killed)
            {
                keys.iter().for_each(|key| self.go_on(*key));
            } else if let Some(key) = keys.iter().find(|key| self.is_owed_a_checkpoint(**key)) {
                assert!(self.destroyed, "{key:?} is not answered");
                break;
            } else if keys.iter().any(|key| self.all[key].process == Some(Process::Alive))
                && !self.destroyed
            {
                keys.iter().for_each(|key| self.exit(*key, true));
            } else {
                break;
            }
        }
        if !self.destroyed {
            for (key, of) in &self.all {
                assert_eq!((of.ends, self.lives.attempt_phase(*key)), (1, None), "{key:?}: {of:?}");
                assert!(of.seats.is_empty());
            }
            self.destroy();
        }
        assert!(self.removed && self.lives.is_over(), "something is left: {self:?}");
        assert!(!self.all.keys().any(|key| self.is_alive(*key)));
    }
}
