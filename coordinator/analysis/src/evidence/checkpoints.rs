//! Checkpoints that were due in attempts that came to their end, counted from what the coordinator gave
//! along with the start or asked for, against those that were taken, failed, or were said to be missed.

use std::collections::BTreeMap;
use std::time::Duration;

use dormouse_cloud::Market;
use dormouse_model::{Effect, Event, Report, Setup, Step, Submission};
use dormouse_policies::{Begun, CheckpointPlanning};
use dormouse_units::{Attempt, Ppm, Span, Speedup, TaskId, Time, TypeName, VmId};

/// A checkpoint that was due less than this before its task's end, in real time, may have come too late
/// unsaid: it waits for its turn at CRIU, and for the way to the coordinator.
const TOO_LATE: Duration = Duration::from_secs(1);

/// An attempt that came to its end with fewer checkpoints than were due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortOfCheckpoints {
    /// The task or job.
    pub task: TaskId,
    /// How many were due in time.
    pub due: u32,
    /// How many were taken, failed, or were said to be missed.
    pub answered: u32,
}

/// Follows checkpoints from their being due to what became of them.
#[derive(Clone, Debug)]
pub(super) struct DueCheckpoints {
    speedup: Speedup,
    attempts: BTreeMap<(TaskId, Attempt), Known>,
    vms: BTreeMap<VmId, Machine>,
    jobs: BTreeMap<TaskId, std::sync::Arc<Submission>>,
}

#[derive(Clone, Debug)]
struct Machine {
    kind: TypeName,
    market: Market,
    ready: Option<Time>,
}

#[derive(Clone, Debug, Default)]
struct Known {
    /// Checkpoints at points of the work that lie well before its end.
    planned: u32,
    asked: Vec<Time>,
    answered: u32,
    finished: Option<Time>,
}

impl Known {
    /// How many were due well before the end; of those that were asked for beside planned ones it is not
    /// known whether one that was being taken stood for them.
    fn due(&self, end: Time, too_late: Span) -> u32 {
        if self.planned > 0 {
            return self.planned;
        }
        let in_time = self.asked.iter().filter(|asked| end.since(**asked) >= too_late);
        u32::try_from(in_time.count()).unwrap_or(u32::MAX)
    }
}

impl DueCheckpoints {
    pub(super) fn new(speedup: Speedup) -> Self {
        let (attempts, vms, jobs) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { speedup, attempts, vms, jobs }
    }

    pub(super) fn see(&mut self, setup: &Setup, step: &Step) {
        match &step.event {
            Event::Submitted { task, job, .. } => {
                self.jobs.insert(*task, job.clone());
            }
            Event::Machine { report, .. } => {
                let is_stale = step.effects.contains(&Effect::Stale);
                self.report(step.at, report, is_stale);
            }
            _ => {}
        }
        step.effects.iter().for_each(|effect| self.effect(setup, step.at, effect));
    }

    /// One that is kept after the end of its attempt counts as well.
    fn report(&mut self, now: Time, report: &Report, is_stale: bool) {
        let (key, answered) = match *report {
            Report::CheckpointTaken { task, attempt, .. }
            | Report::CheckpointFailed { task, attempt, .. } => ((task, attempt), 1),
            Report::Ledger { task, attempt, own: Some(_), .. } => {
                // The points of its work are where its user's word puts them: it may end before.
                if let Some(known) = self.attempts.get_mut(&(task, attempt)) {
                    known.planned = 0;
                }
                return;
            }
            Report::Ledger { task, attempt, ref ledger, .. } => {
                ((task, attempt), ledger.missed_checkpoints)
            }
            Report::TaskFinished { task, attempt, verified: true, .. } if !is_stale => {
                if let Some(known) = self.attempts.get_mut(&(task, attempt)) {
                    known.finished = Some(now);
                }
                return;
            }
            _ => return,
        };
        if let Some(known) = self.attempts.get_mut(&key) {
            known.answered = known.answered.saturating_add(answered);
        }
    }

    fn effect(&mut self, setup: &Setup, now: Time, effect: &Effect) {
        match effect {
            Effect::VmLaunched { vm, kind, market, .. } => {
                let (kind, market) = (kind.clone(), *market);
                self.vms.insert(*vm, Machine { kind, market, ready: None });
            }
            Effect::VmReady { vm } => {
                if let Some(vm) = self.vms.get_mut(vm) {
                    vm.ready = Some(now);
                }
            }
            Effect::TaskSent { task, attempt, vm, from, .. } => {
                let from = from.map_or(Ppm::ZERO, |(_, done)| done);
                let planned = self.planned(setup, now, *task, *vm, from).unwrap_or(0);
                self.attempts.insert((*task, *attempt), Known { planned, ..Known::default() });
            }
            Effect::CheckpointAsked { task, attempt, .. } => {
                if let Some(known) = self.attempts.get_mut(&(*task, *attempt)) {
                    known.asked.push(now);
                }
            }
            _ => {}
        }
    }

    /// How many points of its work an attempt is told to be checkpointed at, without those near its end.
    fn planned(&self, setup: &Setup, now: Time, task: TaskId, vm: VmId, from: Ppm) -> Option<u32> {
        let vm = self.vms.get(&vm)?;
        let age = vm.ready.map_or(Span::ZERO, |ready| now.since(ready));
        let begun = Begun { kind: &vm.kind, market: vm.market, age, kept: from };
        let (scheme, memory, said, real) = match self.jobs.get(&task) {
            Some(job) => {
                (setup.checkpoint_of_jobs()?, job.memory_of_all(), job.runtime, job.runtime)
            }
            None => {
                let spec = setup.bag.tasks.get(task.get() as usize)?;
                let said = *spec.runtime.get(&vm.kind)?;
                (&setup.checkpoint, spec.memory, said, setup.runtime(task, &vm.kind)?)
            }
        };
        let points = scheme.known_on(&begun, memory, said).points();
        let too_late = self.speedup.emulated(TOO_LATE);
        let is_due = |point: &&Ppm| **point > from && real.part(point.rest()) >= too_late;
        u32::try_from(points.iter().filter(is_due).count()).ok()
    }

    /// The attempts that were short of checkpoints; how many were due and answered for in all.
    pub(super) fn short(&self) -> (Vec<ShortOfCheckpoints>, u32, u32) {
        let too_late = self.speedup.emulated(TOO_LATE);
        let (mut short, mut all_due, mut all_answered) = (Vec::new(), 0, 0);
        for ((task, _), known) in &self.attempts {
            let Some(end) = known.finished else { continue };
            let due = known.due(end, too_late);
            let answered = known.answered.min(due);
            all_due += due;
            all_answered += answered;
            if answered < due {
                short.push(ShortOfCheckpoints { task: *task, due, answered });
            }
        }
        (short, all_due, all_answered)
    }
}
