//! The fate of a parallel job.

use std::sync::Arc;

use dormouse_model::{Decision, Promotion, Submission};
use dormouse_units::{Cpus, Span, TaskId, Tier, Time};

use super::TaskHistory;

/// The reason why a job left its processors at the end of a spell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpellEnd {
    /// The job was done.
    Done,
    /// The tiers of its processors were swapped.
    Swapped,
    /// The job was killed: what it had done is lost.
    Killed,
    /// The job moved on.
    Migrated,
    /// The attempt came to nothing, or its machine was lost: the job waits again.
    Failed,
}

/// A job on some processors, in one tier.
#[derive(Clone, Debug)]
pub struct Spell {
    /// Tier that the job has there.
    pub tier: Tier,
    /// Processors that the job has.
    pub on: Cpus,
    /// The emulated time at which it got them.
    pub from: Time,
    /// Until when, and why; `None` while it lasts.
    pub until: Option<(Time, SpellEnd)>,
}

/// A parallel job, from its submission to its end, by what its scheduler heard of it and decided.
#[derive(Clone, Debug)]
pub struct JobHistory {
    /// The job's id; ids follow the order of submission.
    pub id: TaskId,
    /// The job as it was submitted.
    pub job: Arc<Submission>,
    /// The time at which its scheduler heard of it.
    pub heard: Option<Time>,
    /// The spells that it had on processors, in order.
    pub spells: Vec<Spell>,
    /// The attempts at it.
    pub task: TaskHistory,
    /// The time at which its scheduler heard of its end.
    pub ended: Option<Time>,
}

impl JobHistory {
    /// A job that is submitted, and of which its scheduler has yet to hear.
    #[must_use]
    pub fn new(id: TaskId, job: Arc<Submission>) -> Self {
        let (spells, task) = (Vec::new(), TaskHistory::default());
        Self { id, job, heard: None, spells, task, ended: None }
    }

    /// The time at which it first had processors, in either tier; a job that was killed and restarted has not
    /// waited until its restart.
    #[must_use]
    pub fn started(&self) -> Option<Time> {
        self.spells.first().map(|spell| spell.from)
    }

    /// The time at which it came to the foreground where it was last; `None`: it was in the background.
    #[must_use]
    pub fn foreground(&self) -> Option<Time> {
        let last = self.spells.last().filter(|spell| spell.tier == Tier::Foreground);
        last.map(|spell| spell.from)
    }

    /// The processors that it had last; none before its start.
    #[must_use]
    pub fn on(&self) -> &[u32] {
        self.spells.last().map_or(&[], |spell| &spell.on)
    }

    /// The number of its spells that ended like this.
    #[must_use]
    pub fn left_by(&self, end: SpellEnd) -> u32 {
        let alike = |spell: &&Spell| spell.until.is_some_and(|(_, how)| how == end);
        u32::try_from(self.spells.iter().filter(alike).count()).unwrap_or(u32::MAX)
    }

    /// From its submission to its end; `None`: it has not ended.
    #[must_use]
    pub fn response(&self) -> Option<Span> {
        Some(self.ended?.since(self.job.submitted))
    }

    /// Bounded slowdown of a job that ended: max(1, response / max(run time, 10 s)) (MEASY, section 3.3).
    #[must_use]
    pub fn bounded_slowdown(&self) -> Option<f64> {
        let runtime = self.job.runtime.max(Span::from_secs(10));
        Some((self.response()?.as_secs_f64() / runtime.as_secs_f64()).max(1.0))
    }

    /// The job leaves its processors, where it has some.
    pub(super) fn leaves(&mut self, now: Time, why: SpellEnd) {
        if let Some(spell) = self.spells.last_mut() {
            spell.until = Some((now, why));
        }
    }

    /// The job's machine is lost, and what it had computed there.
    pub(super) fn loses_its_machine(&mut self, now: Time) {
        if self.spells.last().is_some_and(|spell| spell.until.is_none()) {
            self.leaves(now, SpellEnd::Failed);
        }
    }

    /// The scheduler decided this about the job.
    pub(super) fn decided(&mut self, now: Time, decision: &Decision) {
        let (tier, on) = match decision {
            Decision::Start { on, .. } => (on.tier, on.cpus.clone()),
            Decision::Promote { by, .. } => {
                let Some(old) = self.spells.last_mut() else { return };
                let (why, on) = match by {
                    Promotion::Swap => (SpellEnd::Swapped, old.on.clone()),
                    Promotion::Kill { on } => (SpellEnd::Killed, on.clone()),
                    Promotion::Migrate { on } => (SpellEnd::Migrated, on.clone()),
                };
                old.until = Some((now, why));
                (Tier::Foreground, on)
            }
            _ => return,
        };
        self.spells.push(Spell { tier, on, from: now, until: None });
    }
}
