//! Answers of schedulers that are separate programs: recorded during a run, and taken from the record when the run is
//! replayed without the programs.

use std::collections::VecDeque;

use dormouse_model::{Decision, Notice, Step};
use dormouse_units::Time;

/// Most decisions of scheduler programs that may be refused at one instant before the run fails. A program that answers each
/// refusal with another refused decision would otherwise continue for ever.
const MOST_REFUSALS: u64 = 10_000;
/// Most decisions that scheduler programs may make at one instant before the run fails, such as a program that starts
/// and stops a task without end.
const MOST_DECISIONS: u64 = 10_000_000;

/// Counts of what scheduler programs did at the latest instant at which one was asked.
#[derive(Clone, Copy, Debug, Default)]
struct AnswerInstant {
    at: Time,
    /// Number of refused decisions that programs learned of at this instant.
    refusals: u64,
    /// Number of decisions that programs made at this instant.
    decisions: u64,
}

/// Answers of schedulers that are separate programs: either the programs are asked, or the answers come from a recorded
/// step.
///
/// Use: `take_recorded` or `begin_followed` when a step begins, `next_known` and `record_answer` for each answer,
/// `take_given` when the step ends.
#[derive(Debug, Default)]
pub(crate) struct ProgramAnswers {
    /// Number of decisions in each answer of the step under way.
    given: Vec<u32>,
    /// Recorded answers of the step under way; `None`: programs are asked.
    known: Option<RecordedAnswers>,
    /// Recorded steps, in order, that must be reproduced before programs are asked for new answers.
    followed: VecDeque<Step>,
    instant: AnswerInstant,
    /// Reason why the run can't continue; `None`: it can.
    failed: Option<String>,
}

/// Answers of a recorded step, with all of its decisions.
#[derive(Debug)]
struct RecordedAnswers {
    answers: std::vec::IntoIter<u32>,
    decisions: Vec<Decision>,
}

impl RecordedAnswers {
    fn from_step(step: &Step) -> Self {
        Self { answers: step.answers.clone().into_iter(), decisions: step.decisions.clone() }
    }

    /// Takes the decisions of the next answer; `made` is the number of decisions of the step before this answer.
    fn next(&mut self, made: usize) -> &[Decision] {
        let count = self.answers.next().unwrap_or_default() as usize;
        let end = made.saturating_add(count).min(self.decisions.len());
        self.decisions.get(made..end).unwrap_or_default()
    }
}

impl ProgramAnswers {
    /// Returns whether the run has failed, so that programs can't be asked any more.
    pub(crate) const fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Returns the reason why the run can't continue because of a program's answers or a recorded step that was not reproduced;
    /// `None`: it can.
    pub(crate) fn failure_reason(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Requires that these recorded steps are reproduced, in order, before programs are asked for new answers.
    pub(crate) fn follow_steps(&mut self, steps: Vec<Step>) {
        self.followed = steps.into();
    }

    /// Takes the answers of the step that begins from a recorded step, so that no program is asked in it.
    pub(crate) fn take_recorded(&mut self, recorded: &Step) {
        self.known = Some(RecordedAnswers::from_step(recorded));
    }

    /// Begins a step and returns the recorded step that it must reproduce; `None`: no steps are being followed.
    pub(crate) fn begin_followed(&mut self, step: &Step) -> Option<Step> {
        let followed = self.followed.pop_front()?;
        if (followed.at, &followed.event) != (step.at, &step.event) {
            self.failed = Some(came_out_otherwise(&followed));
        }
        self.take_recorded(&followed);
        Some(followed)
    }

    /// Records, as the reason why the run can't continue, that a recorded step was not reproduced.
    pub(crate) fn came_out_otherwise(&mut self, followed: &Step) {
        self.failed = Some(came_out_otherwise(followed));
    }

    /// Takes the recorded decisions of the next answer, where `made` decisions were made in the step before it;
    /// `None`: the program must be asked.
    pub(crate) fn next_known(&mut self, made: usize) -> Option<&[Decision]> {
        self.known.as_mut().map(|known| known.next(made))
    }

    /// Records an answer of `decided` decisions, and fails the run if a program decides without end at one instant.
    /// Answers of followed steps never fail it.
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

    /// Moves the decision counts of the answers of this step to `into`, without trailing answers that decided
    /// nothing.
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
