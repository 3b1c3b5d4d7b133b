//! Rules that no scheduler may break, though the engine doesn't enforce them: checked step by step.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_model::{Decision, Effect, Event, Notice, Report, Step, VmEnd};
use dormouse_units::{Credits, Mode, TaskId, VmId};

/// Checker of the rules, with the tasks on VMs and their modes.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    pub(crate) on: BTreeMap<TaskId, (VmId, Mode)>,
    /// True if the scheduler uses burst mode whatever the credits are.
    pub(crate) is_careless: bool,
}

impl Rules {
    /// Checks the next step.
    ///
    /// # Panics
    ///
    /// A decision was refused, a VM was given back with tasks on it or kept after the last task, or a
    /// task bursts without credits.
    pub(crate) fn see(&mut self, step: &Step) {
        if let Event::Machine { report, .. } = &step.event
            && !step.effects.contains(&Effect::Stale)
        {
            match *report {
                Report::TaskFinished { task, .. } | Report::TaskFailed { task, .. } => {
                    self.on.remove(&task);
                }
                Report::Credits { vm, balance: Credits::ZERO, .. } if !self.is_careless => {
                    let bursts = |(on, mode): &(VmId, Mode)| *on == vm && *mode == Mode::Burst;
                    assert!(!self.on.values().any(bursts), "{vm} bursts without credits");
                }
                _ => {}
            }
        }
        for notice in &step.notices {
            if let Notice::TaskStopped { task, .. } = notice {
                self.on.remove(task);
            }
        }
        // What a scheduler starts it may stop within the same step: its last word counts.
        let mut stopped = BTreeSet::new();
        for (place, decision) in step.decisions.iter().enumerate() {
            if step.effects.iter().any(|effect| effect.refuses_decision(place)) {
                continue;
            }
            match decision {
                Decision::Start { task, .. } => {
                    stopped.remove(task);
                }
                Decision::Stop { task, keep: false, .. } => {
                    self.on.remove(task);
                    stopped.insert(*task);
                }
                _ => {}
            }
        }
        let modes: BTreeMap<TaskId, Mode> = step.decisions.iter().filter_map(mode_of).collect();
        for effect in &step.effects {
            match effect {
                Effect::Rejected { why, index } => {
                    panic!("at {}: {why}: {:?}", step.at, step.decisions.get(*index));
                }
                Effect::TaskSent { task, vm, .. } if !stopped.contains(task) => {
                    self.on.insert(*task, (*vm, modes.get(task).copied().unwrap_or_default()));
                }
                Effect::VmEnded { vm, why, .. } => {
                    let thrown_away = self.on.values().any(|(on, _)| on == vm);
                    let is_asked_for = *why == VmEnd::Terminated;
                    assert!(
                        !(thrown_away && is_asked_for),
                        "tasks on {vm} are thrown away: {step:?}"
                    );
                    self.on.retain(|_, (on, _)| on != vm);
                }
                _ => {}
            }
        }
        if step.effects.contains(&Effect::Over { complete: true }) {
            let kept =
                |effect: &Effect| matches!(effect, Effect::VmEnded { why: VmEnd::RunOver, .. });
            assert!(!step.effects.iter().any(kept), "kept after the last task: {step:?}");
        }
    }
}

fn mode_of(decision: &Decision) -> Option<(TaskId, Mode)> {
    match decision {
        Decision::Start { task, mode, .. } => Some((*task, *mode)),
        _ => None,
    }
}
