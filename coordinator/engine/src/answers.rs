//! What schedulers that are programs of their own answered: recorded as a run is made, and taken from
//! the record where it is made again without them.

use std::collections::VecDeque;

use dormouse_model::{Decision, Notice, Step};
use dormouse_units::Time;

/// Most refusals at one instant that a program may answer with decisions. One that answers each with
/// a decision that is refused would be told of them for ever.
const MOST_REFUSALS: u64 = 10_000;
/// Most decisions of programs at one instant: of one that starts and stops a task without end, say.
const MOST_DECISIONS: u64 = 10_000_000;

/// What programs did at the last instant at which one was asked.
#[derive(Clone, Copy, Debug, Default)]
struct AnswerInstant {
    at: Time,
    /// Refusals that they were told of.
    refusals: u64,
    /// Decisions that they made.
    decisions: u64,
}

/// The answers of a run's programs.
#[derive(Debug, Default)]
pub(crate) struct ProgramAnswers {
    /// Number of decisions in each answer of the step under way.
    given: Vec<u32>,
    /// The answers of the step under way, where they are known already.
    known: Option<RecordedAnswers>,
    /// Steps that are to come out again before programs are asked anything new.
    followed: VecDeque<Step>,
    instant: AnswerInstant,
    /// Why the run can't go on.
    failed: Option<String>,
}

/// The answers of a recorded step.
#[derive(Debug)]
struct RecordedAnswers {
    answers: std::vec::IntoIter<u32>,
    decisions: Vec<Decision>,
}

impl RecordedAnswers {
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

impl ProgramAnswers {
    /// Whether programs can't be asked any more.
    pub(crate) const fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Why the run can't go on, as far as it is by what its programs were told or answered.
    pub(crate) fn failure_reason(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Makes these steps come out again, in order, before programs are asked anything new.
    pub(crate) fn follow_steps(&mut self, steps: Vec<Step>) {
        self.followed = steps.into();
    }

    /// Takes the answers of the step that begins from one that was recorded.
    pub(crate) fn take_recorded(&mut self, recorded: &Step) {
        self.known = Some(RecordedAnswers::from_step(recorded));
    }

    /// What is to come out of the step that begins, if steps are followed.
    pub(crate) fn begin_followed(&mut self, step: &Step) -> Option<Step> {
        let followed = self.followed.pop_front()?;
        if (followed.at, &followed.event) != (step.at, &step.event) {
            self.failed = Some(came_out_otherwise(&followed));
        }
        self.take_recorded(&followed);
        Some(followed)
    }

    /// Notes that a step that was followed came out otherwise.
    pub(crate) fn came_out_otherwise(&mut self, followed: &Step) {
        self.failed = Some(came_out_otherwise(followed));
    }

    /// The recorded decisions of the next answer, where this number of them had been made in the step before;
    /// `None`: the program is to be asked.
    pub(crate) fn next_known(&mut self, made: usize) -> Option<&[Decision]> {
        self.known.as_mut().map(|known| known.next(made))
    }

    /// Records an answer of this number of decisions, and fails where a program decides without end at one instant. What
    /// was decided before the run was broken off holds, however much it was.
    pub(crate) fn record_answer(&mut self, now: Time, heard: &[Notice], decided: usize) {
        self.given.push(u32::try_from(decided).unwrap_or(u32::MAX));
        let is_refusal =
            |it: &&Notice| matches!(it, Notice::Rejected { .. } | Notice::LaunchRefused { .. });
        let new = heard.iter().filter(is_refusal).count() as u64;
        if self.instant.at != now {
            self.instant = AnswerInstant { at: now, ..AnswerInstant::default() };
        }
        self.instant.refusals += new;
        self.instant.decisions += decided as u64;
        let why = match self.instant {
            _ if self.known.is_some() || decided == 0 => return,
            AnswerInstant { refusals, .. } if new > 0 && refusals > MOST_REFUSALS => format!(
                "the scheduler was refused more than {MOST_REFUSALS} decisions at {now}, and answered a \
                 refusal with another decision; it has to stop at some time, or to ask for a wake-up"
            ),
            AnswerInstant { decisions, .. } if decisions > MOST_DECISIONS => format!(
                "the scheduler decided more than {MOST_DECISIONS} times at {now}; no time passes as it \
                 goes on so: it has to stop, or to ask for a wake-up"
            ),
            _ => return,
        };
        self.failed.get_or_insert(why);
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

fn came_out_otherwise(step: &Step) -> String {
    format!(
        "step {} of the log comes out otherwise now; use the version of dormouse that wrote it",
        step.seq
    )
}
