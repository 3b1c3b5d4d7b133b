//! Where jobs ran, in which tier, and how they left it.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_model::{Decision, Job, Notice, Promotion};
use dormouse_units::{Cpus, Span, TaskId, Tier, Time, Window};

/// So many jobs are kept at most for the chart: a page with more is too large to be looked at.
pub const MOST_DRAWN: usize = 2_000;

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
    /// Tier that the job has there.
    pub tier: Tier,
    /// Processors that the job has.
    pub on: Cpus,
    /// The emulated time at which it got them.
    pub from: Time,
    /// Until when, and why; `None` while it lasts.
    pub until: Option<(Time, SpellEnd)>,
}

/// What became of a job.
#[derive(Clone, Debug)]
pub struct JobHistory {
    /// Number of the job in the trace.
    pub number: u64,
    /// Number of processes of the job.
    pub processes: u32,
    /// What its user said.
    pub estimate: Span,
    /// When it was submitted.
    pub submitted: Time,
    /// Whether it is ended at its time limit, with work left.
    pub is_cut: bool,
    /// Where it was, in order.
    pub spells: Vec<Spell>,
}

/// The jobs of a run: all that are in the system, and those that have ended in a window of time, the
/// first of them if they are too many.
#[derive(Clone, Debug)]
pub struct History {
    /// Jobs that are ended at their time limit, until the scheduler hears of them.
    cut_short: BTreeSet<TaskId>,
    /// Jobs in the system.
    current: Window<JobHistory>,
    /// Jobs that have ended.
    ended: BTreeMap<TaskId, JobHistory>,
    /// The window that was asked for.
    wanted: (Time, Time),
    /// When the first was submitted.
    first: Option<Time>,
    /// How many were submitted in the window.
    seen: usize,
    /// The first that is one too many, and when it was submitted.
    cut: Option<(TaskId, Time)>,
    /// The last that was seen of those that are kept.
    last: Time,
}

impl Default for History {
    fn default() -> Self {
        Self::within((Time::ZERO, Time::from_micros(u64::MAX)))
    }
}

impl History {
    /// History of the jobs that are in the system at some time from one time to another.
    #[must_use]
    pub fn within(wanted: (Time, Time)) -> Self {
        Self {
            cut_short: BTreeSet::new(),
            current: Window::default(),
            ended: BTreeMap::new(),
            wanted,
            first: None,
            seen: 0,
            cut: None,
            last: Time::ZERO,
        }
    }

    /// Takes in what the scheduler hears; `done` is shown every job that has ended.
    ///
    /// # Errors
    ///
    /// Those of `done`.
    pub fn heard<E>(
        &mut self,
        now: Time,
        heard: &[Notice],
        mut done: impl FnMut(&JobHistory) -> Result<(), E>,
    ) -> Result<(), E> {
        for notice in heard {
            match notice {
                Notice::Submitted { job } => self.submitted(now, job),
                Notice::TaskFinished { task, .. } => {
                    self.left(now, *task, SpellEnd::Done);
                    if let Some(job) = self.current.remove(*task) {
                        done(&job)?;
                        self.keep(*task, now, job);
                    }
                }
                Notice::TaskFailed { task, .. } => self.left(now, *task, SpellEnd::Failed),
                Notice::VmLost { .. } => self.machine_lost(now),
                _ => {}
            }
        }
        Ok(())
    }

    /// Notes that a job of which the scheduler is yet to hear is ended at its time limit.
    pub fn cuts_short(&mut self, id: TaskId) {
        self.cut_short.insert(id);
    }

    fn submitted(&mut self, now: Time, job: &Job) {
        let Job { id, number, processes, estimate, .. } = *job;
        let spells = Vec::new();
        let is_cut = self.cut_short.remove(&id);
        let history = JobHistory { number, processes, estimate, submitted: now, is_cut, spells };
        self.current.insert(id, history);
        self.first.get_or_insert(now);
        if now > self.wanted.1 {
            return;
        }
        self.seen += 1;
        if self.seen > MOST_DRAWN && self.cut.is_none() {
            self.cut = Some((id, now));
        }
        if self.is_kept(id) {
            self.last = self.last.max(now);
        }
    }

    fn is_kept(&self, id: TaskId) -> bool {
        self.cut.is_none_or(|(first_out, _)| id < first_out)
    }

    fn keep(&mut self, id: TaskId, now: Time, job: JobHistory) {
        if job.submitted > self.wanted.1 || !self.is_kept(id) {
            return;
        }
        if now < self.wanted.0 {
            self.seen -= 1;
        } else {
            self.ended.insert(id, job);
            self.last = self.last.max(now);
        }
    }

    fn left(&mut self, now: Time, id: TaskId, why: SpellEnd) {
        let job = self.current.get_mut(id);
        if let Some(spell) = job.and_then(|job| job.spells.last_mut()) {
            spell.until = Some((now, why));
        }
    }

    /// All jobs are on one machine.
    fn machine_lost(&mut self, now: Time) {
        let spells = self.current.values_mut().filter_map(|job| job.spells.last_mut());
        for spell in spells.filter(|spell| spell.until.is_none()) {
            spell.until = Some((now, SpellEnd::Failed));
        }
    }

    /// Takes in what it decides.
    pub fn decided(&mut self, now: Time, decision: &Decision) {
        let Some(id) = decision.task() else { return };
        let Some(job) = self.current.get_mut(id) else { return };
        let (tier, on) = match decision {
            Decision::Start { on, .. } => (on.tier, on.cpus.clone()),
            Decision::Promote { by, .. } => {
                let Some(old) = job.spells.last_mut() else { return };
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
        job.spells.push(Spell { tier, on, from: now, until: None });
    }

    /// The jobs in order of submission.
    pub fn jobs(&self) -> impl Iterator<Item = &JobHistory> {
        let left = self
            .current
            .iter()
            .filter(|(id, job)| job.submitted <= self.wanted.1 && self.is_kept(*id));
        let ended = self.ended.iter().map(|(id, job)| (*id, job));
        let mut all: Vec<_> = ended.chain(left).collect();
        all.sort_by_key(|(id, _)| *id);
        all.into_iter().map(|(_, job)| job)
    }

    /// The window in which they are all there is: from the first submission, or what was asked for,
    /// to the submission of the first job that is one too many, else to their end.
    #[must_use]
    pub fn window(&self) -> (Time, Time) {
        let (from, until) = self.wanted;
        let until = until.min(self.cut.map_or(self.last, |(_, at)| at));
        (from.max(self.first.unwrap_or(Time::ZERO)), until)
    }

    /// How many jobs the window that was asked for has, if these are not all of them.
    #[must_use]
    pub const fn cut_from(&self) -> Option<usize> {
        if self.cut.is_some() { Some(self.seen) } else { None }
    }
}
