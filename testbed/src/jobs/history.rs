//! What became of the first jobs of a run, for the eye: where they ran, in which tier, and how
//! they left it.

use std::collections::BTreeMap;

use dormouse_policies::batch::Job;
use dormouse_policies::{Decision, Notice, Promotion};
use dormouse_units::{Cpus, Span, TaskId, Tier, Time};

/// So many jobs are drawn at most: more can't be told apart.
pub const MOST_DRAWN: usize = 400;

/// How a spell ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpellEnd {
    /// The job was done.
    Done,
    /// The tiers of its processors were swapped.
    Swapped,
    /// It was killed: what it had done is lost.
    Killed,
    /// It moved on.
    Migrated,
    /// It came to nothing, or its machine was lost: it waits again.
    Failed,
}

/// A job on some processors, in one tier.
#[derive(Clone, Debug)]
pub struct Spell {
    /// Its tier.
    pub tier: Tier,
    /// Its processors.
    pub on: Cpus,
    /// The emulated time at which it got them.
    pub from: Time,
    /// Until when, and why; `None` while it lasts.
    pub until: Option<(Time, SpellEnd)>,
}

/// What became of a job.
#[derive(Clone, Debug)]
pub struct JobHistory {
    /// Its number in the trace.
    pub number: u64,
    /// Its processes.
    pub processes: u32,
    /// What its user said.
    pub estimate: Span,
    /// When it was submitted.
    pub submitted: Time,
    /// Where it was, in order.
    pub spells: Vec<Spell>,
}

/// The first jobs of a run.
#[derive(Clone, Debug, Default)]
pub struct History {
    jobs: BTreeMap<TaskId, JobHistory>,
    /// The largest id of those.
    newest: Option<TaskId>,
    /// When the first job was submitted that is not drawn.
    cut: Option<Time>,
    /// The last that was seen of those that are.
    last: Time,
}

impl History {
    /// Takes in what the scheduler hears.
    pub fn heard(&mut self, now: Time, heard: &[Notice]) {
        for notice in heard {
            match notice {
                Notice::Submitted { job } => self.submitted(now, job),
                Notice::TaskFinished { task, .. } => self.left(now, *task, SpellEnd::Done),
                Notice::TaskFailed { task, .. } => self.left(now, *task, SpellEnd::Failed),
                Notice::VmLost { .. } => self.machine_lost(now),
                _ => {}
            }
        }
    }

    fn submitted(&mut self, now: Time, job: &Job) {
        if self.cut.is_some() {
            return;
        }
        if self.jobs.len() == MOST_DRAWN {
            self.cut = Some(now);
            return;
        }
        let Job { id, number, processes, estimate, .. } = *job;
        let spells = Vec::new();
        let history = JobHistory { number, processes, estimate, submitted: now, spells };
        self.jobs.insert(id, history);
        self.newest = self.newest.max(Some(id));
        self.last = now;
    }

    /// The history of a job, if it is drawn: of a long run almost none is.
    fn drawn(&mut self, id: TaskId) -> Option<&mut JobHistory> {
        if Some(id) > self.newest { None } else { self.jobs.get_mut(&id) }
    }

    fn left(&mut self, now: Time, id: TaskId, why: SpellEnd) {
        let Some(job) = self.drawn(id) else { return };
        if let Some(spell) = job.spells.last_mut() {
            spell.until = Some((now, why));
        }
        self.last = self.last.max(now);
    }

    /// All jobs are on one machine.
    fn machine_lost(&mut self, now: Time) {
        let spells = self.jobs.values_mut().filter_map(|job| job.spells.last_mut());
        for spell in spells.filter(|spell| spell.until.is_none()) {
            spell.until = Some((now, SpellEnd::Failed));
            self.last = self.last.max(now);
        }
    }

    /// Takes in what it decides.
    pub fn decided(&mut self, now: Time, decision: &Decision) {
        let Some(id) = decision.task() else { return };
        let Some(job) = self.drawn(id) else { return };
        let (tier, on) = match decision {
            Decision::Start { on, .. } => (on.tier, on.cpus.clone()),
            Decision::Promote { by, .. } => {
                let Some(old) = job.spells.last().map(|spell| spell.on.clone()) else { return };
                let (why, on) = match by {
                    Promotion::Swap => (SpellEnd::Swapped, old),
                    Promotion::Kill { on } => (SpellEnd::Killed, on.clone()),
                    Promotion::Migrate { on } => (SpellEnd::Migrated, on.clone()),
                };
                self.left(now, id, why);
                (Tier::Foreground, on)
            }
            _ => return,
        };
        if let Some(job) = self.drawn(id) {
            job.spells.push(Spell { tier, on, from: now, until: None });
        }
    }

    /// The jobs in order of submission.
    pub fn jobs(&self) -> impl Iterator<Item = &JobHistory> {
        self.jobs.values()
    }

    /// The window in which they are all there is: from the first submission to the first of a job
    /// that is not among them, else to their end.
    #[must_use]
    pub fn window(&self) -> (Time, Time) {
        let from = self.jobs.values().next().map_or(Time::ZERO, |job| job.submitted);
        (from, self.cut.unwrap_or(self.last))
    }

    /// Whether there are jobs beside these.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.cut.is_some()
    }
}
