//! Explains why a parallel job waited and why it was moved. For this, the run's scheduler gets all
//! steps again while one job is watched.

use std::collections::BTreeMap;

use dormouse_engine::jobs::JobSimulation;
use dormouse_model::{Decision, Effect, Event, Job, Notice, PromotionMethod, StartReason, Step};
use dormouse_policies::batch::{Algorithm, BatchPolicy, Note, Noted};
use dormouse_units::{Seats, TaskId, Tier, Time};

use super::Explanation;
use crate::carried_out;
use crate::jobs::SeenByJobs;

/// Sentences by time and rank: at one instant first events, then decisions, then the scheduler's notes.
type Story = BTreeMap<(Time, u8), Vec<String>>;

/// Collects the story of one parallel job: when it could have run, what it waited for, and why it
/// was moved. Call [`Self::see`] for each step, then [`Self::told`].
#[derive(Debug)]
pub struct JobStory {
    by_jobs: SeenByJobs,
    algorithm: Algorithm,
    scheduler: Box<dyn BatchPolicy>,
    decisions: Vec<Decision>,
    seen: WatchedJob,
    last: Time,
    is_over: bool,
}

impl JobStory {
    /// A story of the job with this number in the trace, in a run of this simulation.
    #[must_use]
    pub fn new(simulation: &JobSimulation, by_jobs: SeenByJobs, number: u64) -> Self {
        let (algorithm, scheduler) = (simulation.config.algorithm, simulation.make_policy());
        let seen = WatchedJob { number, ..WatchedJob::default() };
        let (decisions, last, is_over) = (Vec::new(), Time::ZERO, false);
        Self { by_jobs, algorithm, scheduler, decisions, seen, last, is_over }
    }

    /// Adds what the next step of the run says about the job.
    pub fn see(&mut self, step: &Step) {
        let Self { by_jobs, scheduler, decisions, seen, .. } = self;
        self.last = step.at;
        self.is_over |= step.effects.iter().any(|it| matches!(it, Effect::Over { .. }));
        let step = &*by_jobs.see(step);
        if step.event == Event::InstantOver && !step.notices.is_empty() {
            seen.heard(step, |job| scheduler.watch(job));
            decisions.clear();
            scheduler.handle(step.at, &step.notices, decisions);
            seen.decided(step);
        }
    }

    /// The explanation of the job's story; `None` if the trace has no such job.
    #[must_use]
    pub fn told(self) -> Option<Explanation> {
        let Self { algorithm, scheduler, last, is_over, .. } = self;
        let WatchedJob { number, watched, numbers, told, ended, mut story } = self.seen;
        let (submitted, job) = watched?;
        let name = |id: TaskId| {
            numbers.get(&id).map_or_else(|| id.to_string(), |number| format!("job {number}"))
        };
        for (at, decision) in &told {
            story.entry((*at, 1)).or_default().extend(decided(decision, &name));
        }
        for Note { at, what } in scheduler.notes() {
            story.entry((*at, 2)).or_default().push(noted(*what, job.processes, &name));
        }
        let (processes, estimate) = (job.processes, job.estimate);
        let of =
            format!("job {number} under {algorithm}: {processes} processes, estimated {estimate}");
        let mut text = Explanation { has_hours: true, ..Explanation::about(of) };
        text.say(submitted, "submitted");
        for ((at, _), lines) in story {
            lines.into_iter().for_each(|what| text.say(at, what));
        }
        match (ended, told.first()) {
            (Some(at), Some((started, _))) => {
                let (response, wait) = (at.since(submitted), started.since(submitted));
                text.say(at, format!("ended: response {response}, of which it waited {wait}"));
            }
            _ if is_over => text.say(last, "had not ended when the run was over"),
            _ => text.say(last, "has not ended yet"),
        }
        Some(text)
    }
}

/// What the steps of the run say about the watched job.
#[derive(Debug, Default)]
struct WatchedJob {
    number: u64,
    /// Submission time of the watched job, and the job itself; `None` before its submission.
    watched: Option<(Time, Job)>,
    /// Trace numbers of all jobs: the scheduler's notes may name any of them.
    numbers: BTreeMap<TaskId, u64>,
    /// The scheduler's decisions about the watched job, with their times.
    told: Vec<(Time, Decision)>,
    ended: Option<Time>,
    /// Lines about the job's events other than its start and end, in the order of time.
    story: Story,
}

impl WatchedJob {
    fn is_it(&self, id: TaskId) -> bool {
        self.watched.as_ref().is_some_and(|(_, job)| job.id == id)
    }

    /// Whether the watched job has processors now.
    fn is_running(&self) -> bool {
        !self.told.is_empty() && self.ended.is_none()
    }

    fn heard(&mut self, step: &Step, mut watch: impl FnMut(TaskId)) {
        for notice in &step.notices {
            match notice {
                Notice::Submitted { job } => {
                    self.numbers.insert(job.id, job.number);
                    if job.number == self.number && self.watched.is_none() {
                        self.watched = Some((step.at, job.clone()));
                        watch(job.id);
                    }
                }
                Notice::TaskFinished { task, .. } if self.is_it(*task) => {
                    self.ended = Some(step.at);
                }
                Notice::TaskFailed { task, why, .. } if self.is_it(*task) => {
                    self.say(step.at, format!("came to nothing and waits again: {why}"));
                }
                Notice::VmLost { .. } if self.is_running() => {
                    self.say(step.at, "its machine was lost; it waits again".to_owned());
                }
                _ => {}
            }
        }
    }

    fn decided(&mut self, step: &Step) {
        for decision in carried_out(step) {
            if decision.task().is_some_and(|id| self.is_it(id)) {
                self.told.push((step.at, decision.clone()));
            }
        }
    }

    fn say(&mut self, at: Time, what: String) {
        self.story.entry((at, 0)).or_default().push(what);
    }
}

/// A decision of a batch scheduler about a job, in words; `None` for decisions that are not explained.
fn decided(decision: &Decision, name: &dyn Fn(TaskId) -> String) -> Option<String> {
    let (did, reason) = match decision {
        Decision::Start { on: Seats { tier: Tier::Foreground, .. }, reason, .. } => {
            ("starts in the foreground", reason)
        }
        Decision::Start { on: Seats { tier: Tier::Background, .. }, reason, .. } => {
            ("starts in the background", reason)
        }
        Decision::Promote { by: PromotionMethod::Swap, reason, .. } => {
            ("its foreground is idle: the tiers of its processors swap", reason)
        }
        Decision::Promote { by: PromotionMethod::Kill { .. }, reason, .. } => {
            ("is killed and restarts in the foreground of other processors", reason)
        }
        Decision::Promote { by: PromotionMethod::Migrate { .. }, reason, .. } => {
            ("migrates to the foreground of other processors", reason)
        }
        _ => return None,
    };
    let why = match *reason {
        StartReason::Chosen => {
            "its scheduler is a program of its own, which gave no reason".to_owned()
        }
        StartReason::FirstInLine => "nobody before it lacks a foreground".to_owned(),
        StartReason::EndsBeforeShadow { head, shadow } => {
            format!("it is expected to end before the reservation of {} at {shadow}", name(head))
        }
        StartReason::OnExtra { head, shadow, extra } => {
            format!("{} will leave {extra} processors unused at {shadow}", name(head))
        }
        StartReason::ShortestWaiting => "the shortest waiting job that fits there".to_owned(),
        // These are reasons for tasks of bags.
        StartReason::Planned
        | StartReason::Migrated
        | StartReason::Stolen
        | StartReason::Retried
        | StartReason::Due
        | StartReason::Reused { .. }
        | StartReason::NewVm { .. } => return Some(did.to_owned()),
    };
    Some(format!("{did}: {why}"))
}

fn noted(what: Noted, processes: u32, name: &dyn Fn(TaskId) -> String) -> String {
    match what {
        Noted::Head { idle, shadow } => format!(
            "head of the queue: {idle} of {processes} processors idle, reservation from {shadow}"
        ),
        Noted::TooFewIdle { ahead, idle } => {
            format!("waits behind {ahead}: only {idle} of {processes} processors idle")
        }
        Noted::WouldDelay { ahead, head, shadow, extra } => format!(
            "waits behind {ahead}: would fit, but may run past the reservation of {} at {shadow}, \
             which leaves {extra} processors",
            name(head)
        ),
        Noted::Pinned { ahead } => {
            format!("behind {ahead}: would fit, but not where it may run")
        }
        Noted::NotYet { ahead } => format!("waits behind {ahead}: first come, first served"),
    }
}
