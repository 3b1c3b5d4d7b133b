//! What schedulers that are programs of their own answered: recorded as a run is made, and taken from
//! the record where it is made again without them.

use std::collections::VecDeque;

use dormouse_model::{Command, Decision, Notice, Step};
use dormouse_units::{TaskId, Time};

use crate::run::Run;

/// Most refusals at one instant that a program may answer with decisions. One that answers each with
/// a decision that is refused would be told of them for ever.
const MOST_REFUSALS: u64 = 10_000;
/// Most decisions of programs at one instant: of one that starts and stops a task without end, say.
const MOST_DECISIONS: u64 = 10_000_000;

/// What programs did at the last instant at which one was asked.
#[derive(Clone, Copy, Debug, Default)]
struct Instant {
    at: Time,
    /// Refusals that they were told of.
    refusals: u64,
    /// Decisions that they made.
    decisions: u64,
}

/// The answers of a run's programs.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// Number of decisions in each answer of the step under way.
    given: Vec<u32>,
    /// The answers of the step under way, where they are known already.
    known: Option<Known>,
    /// Steps that are to come out again before programs are asked anything new.
    followed: VecDeque<Step>,
    instant: Instant,
    /// Why the run can't go on.
    failed: Option<String>,
}

/// The answers of a recorded step.
#[derive(Debug)]
struct Known {
    answers: std::vec::IntoIter<u32>,
    decisions: Vec<Decision>,
}

impl Known {
    fn from_step(step: &Step) -> Self {
        Self { answers: step.answers.clone().into_iter(), decisions: step.decisions.clone() }
    }

    /// Decisions of the next answer, where this number of them had been made in the step before.
    fn next(&mut self, made: usize) -> &[Decision] {
        let count = self.answers.next().unwrap_or_default() as usize;
        let end = made.saturating_add(count).min(self.decisions.len());
        self.decisions.get(made..end).unwrap_or_default()
    }
}

impl Answers {
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Takes what the step under way has of answers; those without a decision after the last with
    /// one need not be known.
    pub(crate) fn take_given(&mut self, into: &mut Vec<u32>) {
        if self.given.is_empty() && self.known.is_none() {
            return;
        }
        let length = self.given.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        into.extend(self.given.drain(..).take(length));
        self.known = None;
    }
}

impl Run {
    /// The step that the event of a recorded step makes: programs are not asked for their answers,
    /// which are in it. A run without programs decides as in [`Run::handle`].
    pub fn handle_again(&mut self, recorded: &Step) -> (Step, Vec<Command>) {
        self.answers.known = self.has_programs().then(|| Known::from_step(recorded));
        self.handle(recorded.at, recorded.event.clone())
    }

    /// From now on makes these steps again, in order, before its programs are asked anything new:
    /// they are told what they heard and decided. That a step comes out otherwise is a failure.
    pub fn follow(&mut self, steps: Vec<Step>) {
        self.answers.followed = steps.into();
    }

    /// Why the run can't go on: a program that it needs has failed, or a step that it follows came
    /// out otherwise. The last step is not to be kept then, and the run is of no more use.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        let mut programs = self.tenants.iter().filter(|tenant| tenant.is_outside());
        let of_program = || programs.find_map(|program| program.failure());
        self.answers.failed.as_deref().or_else(of_program)
    }

    /// Whether schedulers of this run are programs of their own.
    #[must_use]
    pub fn has_programs(&self) -> bool {
        self.tenants.iter().any(|tenant| tenant.is_outside())
    }

    /// What is to come out of the step that begins, if the run follows one.
    pub(crate) fn begin_followed(&mut self, step: &Step) -> Option<Step> {
        let followed = self.answers.followed.pop_front()?;
        if (followed.at, &followed.event) != (step.at, &step.event) {
            self.answers.failed = Some(came_out_otherwise(&followed));
        }
        self.answers.known = Some(Known::from_step(&followed));
        Some(followed)
    }

    /// Compares the step that is over with the one that it was to be.
    pub(crate) fn end_followed(&mut self, followed: &Step, step: &Step) {
        // What a program says against its former answers is known better.
        if followed != step && self.failure().is_none() {
            self.answers.failed = Some(came_out_otherwise(followed));
        }
    }

    /// Why a program may not decide this: it is about a task, or the machine, of another tenant. The
    /// policies that are part of this program know of no others.
    pub(crate) fn is_anothers(&self, tenant: usize, decision: &Decision) -> Option<String> {
        let (work, asks) = (self.tenants[tenant].work(), &self.tenants[tenant]);
        let is_of_bag = |task: TaskId| (task.get() as usize) < self.setup.bag.tasks.len();
        let has = |task| if is_of_bag(task) { work.has_bag() } else { work.has_jobs() };
        match (decision.task().filter(|task| !has(*task)), decision) {
            _ if !asks.is_outside() => None,
            (Some(task), _) => Some(format!("there is no {task} in this scheduler's work")),
            (None, Decision::Launch { kind, .. })
                if self.setup.is_two_tier(kind) && !work.has_jobs() =>
            {
                Some(format!("{kind} is the machine of another scheduler's jobs"))
            }
            _ => None,
        }
    }

    /// Asks a tenant's policy, where this number of decisions was made in the step before.
    pub(crate) fn ask(
        &mut self,
        now: Time,
        tenant: usize,
        heard: &[Notice],
        made: usize,
        wanted: &mut Vec<Decision>,
    ) {
        let asked = &mut self.tenants[tenant];
        if !asked.is_outside() {
            return asked.tell(now, heard, wanted);
        }
        let is_known = self.answers.known.is_some();
        match &mut self.answers.known {
            Some(known) => {
                wanted.extend_from_slice(known.next(made));
                asked.tell_again(now, heard, wanted);
            }
            None => asked.tell(now, heard, wanted),
        }
        self.answers.given.push(u32::try_from(wanted.len()).unwrap_or(u32::MAX));
        self.count(now, heard, wanted.len(), is_known);
    }

    /// Ends a run whose program decides without end at one instant. What was decided before the run
    /// was broken off holds, however much it was.
    fn count(&mut self, now: Time, heard: &[Notice], decided: usize, is_known: bool) {
        let is_refusal =
            |it: &&Notice| matches!(it, Notice::Rejected { .. } | Notice::LaunchRefused { .. });
        let new = heard.iter().filter(is_refusal).count() as u64;
        let instant = &mut self.answers.instant;
        if instant.at != now {
            *instant = Instant { at: now, ..Instant::default() };
        }
        instant.refusals += new;
        instant.decisions += decided as u64;
        let why = match *instant {
            _ if is_known || decided == 0 => return,
            Instant { refusals, .. } if new > 0 && refusals > MOST_REFUSALS => format!(
                "the scheduler was refused more than {MOST_REFUSALS} decisions at {now}, and answered a \
                 refusal with another decision; it has to stop at some time, or to ask for a wake-up"
            ),
            Instant { decisions, .. } if decisions > MOST_DECISIONS => format!(
                "the scheduler decided more than {MOST_DECISIONS} times at {now}; no time passes as it \
                 goes on so: it has to stop, or to ask for a wake-up"
            ),
            _ => return,
        };
        self.answers.failed.get_or_insert(why);
    }
}

fn came_out_otherwise(step: &Step) -> String {
    format!(
        "step {} of the log comes out otherwise now; use the version of dormouse that wrote it",
        step.seq
    )
}
