//! Ends of tasks and jobs that came before their work can have been done.
//!
//! Nothing that a worker measured is believed here. An attempt had the time from the command that sent it,
//! by the coordinator's own log, to the end that the log has, without the time for which its VM was frozen;
//! its work takes at least its run time on that type of VM, at the full speed that no share, no baseline and
//! no background exceeds. Holds for checkpoints and moves come on top and are left out: the bound is from
//! below.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dormouse_model::{Effect, Event, MAX_REPORT_DELAY, Report, Setup, Step};
use dormouse_units::{Attempt, Ppm, Span, Speedup, TaskId, Time, TypeName, VmId};

/// By this part of its work's time an attempt may end before it: twice what a task of a faithful run may
/// miss its promise by unless its experiment says otherwise (`live.worst-error`) …
const MAY_LACK: f64 = 0.1;
/// … and by this much real time, by which a report may come late and so move the beginning.
const SLACK: Duration = MAX_REPORT_DELAY;

/// An attempt that ended before its work can have been done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlyEnd {
    /// The task or job.
    pub task: TaskId,
    /// The VM that it was on.
    pub vm: VmId,
    /// Emulated time that the attempt had.
    pub had: Span,
    /// Emulated time that its work takes at least.
    pub needs: Span,
}

impl std::fmt::Display for EarlyEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { task, vm, had, needs } = self;
        let (had, needs) = (had.as_secs_f64(), needs.as_secs_f64());
        write!(
            f,
            "{task} ended on {vm} after {had:.1} s, before its work of {needs:.1} s can have been done"
        )
    }
}

/// Follows the attempts of a live run from their starts to their ends.
#[derive(Clone, Debug)]
pub(super) struct EarlyEnds {
    speedup: Speedup,
    attempts: BTreeMap<TaskId, Sent>,
    vms: BTreeMap<VmId, Machine>,
    /// Run times of parallel jobs, as they were submitted.
    jobs: BTreeMap<TaskId, Span>,
}

#[derive(Clone, Debug)]
struct Sent {
    attempt: Attempt,
    vm: VmId,
    at: Time,
    /// The time for which its VM had been frozen by then.
    frozen: Span,
    done: Ppm,
}

#[derive(Clone, Debug)]
struct Machine {
    kind: TypeName,
    frozen: Span,
    frozen_since: Option<Time>,
}

impl Machine {
    fn frozen_by(&self, now: Time) -> Span {
        self.frozen + self.frozen_since.map_or(Span::ZERO, |since| now.since(since))
    }
}

impl EarlyEnds {
    /// Nothing seen yet of a live run at this speed-up.
    #[must_use]
    pub(super) fn new(speedup: Speedup) -> Self {
        let (attempts, vms, jobs) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { speedup, attempts, vms, jobs }
    }

    /// Takes in the next step of a run of this setup; the end that came too early in it, if one did.
    pub(super) fn see(&mut self, setup: &Setup, step: &Step) -> Option<EarlyEnd> {
        let early = match &step.event {
            Event::Submitted { task, job, .. } => {
                self.jobs.insert(*task, job.runtime);
                None
            }
            Event::Machine { report, .. } if !step.effects.contains(&Effect::Stale) => {
                self.report(setup, step.at, report)
            }
            _ => None,
        };
        step.effects.iter().for_each(|effect| self.effect(step.at, effect));
        // Once for all: the end of a run ends thousands of VMs in a step.
        let ended = step.effects.iter().filter_map(|effect| match effect {
            Effect::VmEnded { vm, .. } => Some(*vm),
            _ => None,
        });
        let ended: BTreeSet<VmId> = ended.collect();
        if !ended.is_empty() {
            self.attempts.retain(|_, sent| !ended.contains(&sent.vm));
        }
        early
    }

    fn report(&mut self, setup: &Setup, now: Time, report: &Report) -> Option<EarlyEnd> {
        match *report {
            Report::TaskStarted { task, attempt, done, .. } => {
                let sent = self.attempts.get_mut(&task).filter(|sent| sent.attempt == attempt)?;
                // An older checkpoint than it was sent with: what it says to have beyond that it has not.
                sent.done = sent.done.min(done);
                None
            }
            // A program of the user's own ends when it ends, whatever was said of it.
            Report::Ledger { task, own: Some(_), .. } => {
                self.attempts.remove(&task);
                None
            }
            Report::TaskFinished { task, attempt, verified, .. } => {
                let sent = self.attempts.remove(&task).filter(|sent| sent.attempt == attempt)?;
                self.early(setup, now, task, &sent).filter(|_| verified)
            }
            Report::TaskFailed { task, .. } | Report::TaskStopped { task, .. } => {
                self.attempts.remove(&task);
                None
            }
            _ => None,
        }
    }

    fn early(&self, setup: &Setup, now: Time, task: TaskId, sent: &Sent) -> Option<EarlyEnd> {
        let vm = self.vms.get(&sent.vm)?;
        let of_bag = || setup.runtime(task, &vm.kind);
        let runtime = self.jobs.get(&task).copied().or_else(of_bag)?;
        let needs = runtime.part(sent.done.rest());
        let frozen = vm.frozen_by(now).saturating_sub(sent.frozen);
        let had = now.since(sent.at).saturating_sub(frozen);
        let slack = self.speedup.emulated(SLACK).as_secs_f64();
        let is_early = had.as_secs_f64() + slack < needs.as_secs_f64() * (1.0 - MAY_LACK);
        is_early.then_some(EarlyEnd { task, vm: sent.vm, had, needs })
    }

    fn effect(&mut self, now: Time, effect: &Effect) {
        match effect {
            Effect::VmLaunched { vm, kind, .. } => {
                let kind = kind.clone();
                self.vms.insert(*vm, Machine { kind, frozen: Span::ZERO, frozen_since: None });
            }
            Effect::VmHibernated { vm, .. } => {
                if let Some(vm) = self.vms.get_mut(vm) {
                    vm.frozen_since = Some(now);
                }
            }
            Effect::VmResumed { vm, .. } => {
                if let Some(vm) = self.vms.get_mut(vm) {
                    vm.frozen = vm.frozen_by(now);
                    vm.frozen_since = None;
                }
            }
            Effect::TaskSent { task, attempt, vm, from, .. } => {
                let frozen = self.vms.get(vm).map_or(Span::ZERO, |vm| vm.frozen_by(now));
                let done = from.map_or(Ppm::ZERO, |(_, done)| done);
                let sent = Sent { attempt: *attempt, vm: *vm, at: now, frozen, done };
                self.attempts.insert(*task, sent);
            }
            _ => {}
        }
    }
}
