//! History of a parallel job.

use std::sync::Arc;

use dormouse_model::{Decision, PromotionMethod, Submission};
use dormouse_units::{Cpus, Span, TaskId, Tier, Time};

use super::TaskHistory;

/// Reason for the end of a job's spell on its processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpellEnd {
    /// The job was done.
    Done,
    /// The tiers of the job's processors were swapped, which brought the job to the foreground.
    Swapped,
    /// The job was killed, and its work is lost.
    Killed,
    /// The job moved to other processors.
    Migrated,
    /// The attempt failed or the machine was lost: the job waits again.
    Failed,
}

/// An uninterrupted time (spell) of a job on the same processors, in one tier.
#[derive(Clone, Debug)]
pub struct JobSpell {
    /// Tier of the job in this spell.
    pub tier: Tier,
    /// Processors of the job in this spell.
    pub on: Cpus,
    /// Emulated time at which the job began to run on these processors.
    pub from: Time,
    /// Time at which the job left these processors or changed its tier, and why; `None` while the job is still there.
    pub until: Option<(Time, SpellEnd)>,
}

/// History of a parallel job from its submission to its end, by its scheduler's notices and decisions.
#[derive(Clone, Debug)]
pub struct JobHistory {
    /// Id of the job; ids follow the order of submission.
    pub id: TaskId,
    /// The job as its user submitted it.
    pub job: Arc<Submission>,
    /// Time at which the scheduler learned of the job; `None` before that.
    pub heard: Option<Time>,
    /// The job's spells on processors, in order.
    pub spells: Vec<JobSpell>,
    /// History of the attempts at the job.
    pub task: TaskHistory,
    /// Time at which the scheduler learned of the job's end; `None` before that.
    pub ended: Option<Time>,
}

impl JobHistory {
    /// History of a job that was just submitted, before its scheduler learns of it.
    #[must_use]
    pub fn new(id: TaskId, job: Arc<Submission>) -> Self {
        let (spells, task) = (Vec::new(), TaskHistory::default());
        Self { id, job, heard: None, spells, task, ended: None }
    }

    /// Time at which the job first had processors, in either tier; `None` before that. A restart after a kill does not count.
    #[must_use]
    pub fn started(&self) -> Option<Time> {
        self.spells.first().map(|spell| spell.from)
    }

    /// Time at which the job came to the foreground for the last time; `None` if its last spell was in
    /// the background.
    #[must_use]
    pub fn foreground(&self) -> Option<Time> {
        let last = self.spells.last().filter(|spell| spell.tier == Tier::Foreground);
        last.map(|spell| spell.from)
    }

    /// Processors of the job's last spell; empty before its start.
    #[must_use]
    pub fn on(&self) -> &[u32] {
        self.spells.last().map_or(&[], |spell| &spell.on)
    }

    /// Number of the job's spells on processors that ended for this reason.
    #[must_use]
    pub fn left_by(&self, end: SpellEnd) -> u32 {
        let alike = |spell: &&JobSpell| spell.until.is_some_and(|(_, how)| how == end);
        u32::try_from(self.spells.iter().filter(alike).count()).unwrap_or(u32::MAX)
    }

    /// Time from the job's submission to its end; `None` if it has not ended.
    #[must_use]
    pub fn response(&self) -> Option<Span> {
        Some(self.ended?.since(self.job.submitted))
    }

    /// Bounded slowdown of an ended job: max(1, response / max(run time, 10 s)) (MEASY, section 3.3); `None` if the job has not
    /// ended.
    #[must_use]
    pub fn bounded_slowdown(&self) -> Option<f64> {
        let runtime = self.job.runtime.max(Span::from_secs(10));
        Some((self.response()?.as_secs_f64() / runtime.as_secs_f64()).max(1.0))
    }

    /// Ends the job's present spell on its processors, if there is one.
    pub(super) fn leaves(&mut self, now: Time, why: SpellEnd) {
        if let Some(spell) = self.spells.last_mut() {
            spell.until = Some((now, why));
        }
    }

    /// Ends the job's present spell on its processors because the machine was lost.
    pub(super) fn loses_its_machine(&mut self, now: Time) {
        if self.spells.last().is_some_and(|spell| spell.until.is_none()) {
            self.leaves(now, SpellEnd::Failed);
        }
    }

    /// Adds a decision of the scheduler about the job.
    pub(super) fn decided(&mut self, now: Time, decision: &Decision) {
        let (tier, on) = match decision {
            Decision::Start { on, .. } => (on.tier, on.cpus.clone()),
            Decision::Promote { by, .. } => {
                let Some(old) = self.spells.last_mut() else { return };
                let (why, on) = match by {
                    PromotionMethod::Swap => (SpellEnd::Swapped, old.on.clone()),
                    PromotionMethod::Kill { on } => (SpellEnd::Killed, on.clone()),
                    PromotionMethod::Migrate { on } => (SpellEnd::Migrated, on.clone()),
                };
                old.until = Some((now, why));
                (Tier::Foreground, on)
            }
            _ => return,
        };
        self.spells.push(JobSpell { tier, on, from: now, until: None });
    }
}
