//! Recorded answers of a program, given again in a run whose times differ.

use std::collections::{BTreeMap, VecDeque};

use dormouse_model::{Decision, Notice};
use dormouse_units::{Span, Time};

use crate::{Delivery, Policy};

/// Repeats the recorded answers of a program, each at the notices that it answered. The run that repeats a
/// live run gets the same notices at slightly other times, maybe in another order.
///
/// An answer to several notices is given at the first of them. A notice without a recorded answer gets
/// none.
#[derive(Debug)]
pub struct Following {
    hearing: Delivery,
    answers: BTreeMap<String, VecDeque<RecordedAnswer>>,
}

/// Decisions, and the time at which they were made.
#[derive(Debug)]
struct RecordedAnswer {
    at: Time,
    decisions: Vec<Decision>,
}

impl Following {
    /// Replays answers that were given at these times to these notices, in order.
    pub fn new<'a>(
        hearing: Delivery,
        recorded: impl IntoIterator<Item = (Time, &'a [Notice], &'a [Decision])>,
    ) -> Self {
        let mut answers: BTreeMap<String, VecDeque<RecordedAnswer>> = BTreeMap::new();
        for (at, heard, decisions) in recorded {
            if let (Some(first), false) = (heard.first(), decisions.is_empty()) {
                let decisions = decisions.to_vec();
                answers
                    .entry(notice_key(first))
                    .or_default()
                    .push_back(RecordedAnswer { at, decisions });
            }
        }
        Self { hearing, answers }
    }
}

impl Policy for Following {
    fn hearing(&self) -> Delivery {
        self.hearing
    }

    fn waits_for_price(&self) -> bool {
        true
    }

    fn is_outside(&self) -> bool {
        // The twin must receive every notice that the program received.
        true
    }

    fn handle(&mut self, now: Time, heard: &[Notice], out: &mut Vec<Decision>) {
        for notice in heard {
            let next = self.answers.get_mut(&notice_key(notice)).and_then(VecDeque::pop_front);
            let Some(RecordedAnswer { at, decisions }) = next else { continue };
            out.extend(decisions.into_iter().map(|decision| move_decision(decision, at, now)));
        }
    }
}

/// Text that identifies a notice without its time and details: notices of one kind about the same task and VM compare equal.
fn notice_key(notice: &Notice) -> String {
    match notice {
        Notice::TaskStarted { task, vm, .. } => format!("started {task} {vm}"),
        Notice::TaskStopped { task, vm, .. } => format!("stopped {task} {vm}"),
        Notice::Checkpointed { task, vm, .. } => format!("checkpointed {task} {vm}"),
        Notice::TaskFailed { task, vm, .. } => format!("failed {task} {vm}"),
        Notice::VmPreempting { vm, .. } => format!("preempting {vm}"),
        Notice::LaunchRefused { vm, .. } => format!("refused {vm}"),
        Notice::Credits { vm, .. } => format!("credits {vm}"),
        Notice::Rejected { decision, .. } => {
            format!("rejected {:?} {:?}", decision.task(), decision)
        }
        other => format!("{other:?}"),
    }
}

/// Moves a decision made at `then` to `now`: a wake-up keeps its distance from the decision.
fn move_decision(decision: Decision, then: Time, now: Time) -> Decision {
    match decision {
        Decision::Wake { at, token } => {
            let ahead = at.since(then).max(Span::from_micros(1));
            Decision::Wake { at: now + ahead, token }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use dormouse_units::{Ppm, TaskId, VmId};

    use super::*;

    #[test]
    fn answers_follow_what_happens_and_wake_ups_are_as_far_ahead() {
        let (vm, s) = (VmId::new(0), |s: u64| Time::ZERO + Span::from_secs(s));
        let ended = |task| Notice::TaskFinished { task: TaskId::new(task), vm };
        let started = |done| {
            let (task, done) = (TaskId::new(9), Ppm::new(done));
            Notice::TaskStarted { task, vm, done, since: Time::ZERO }
        };
        let wake = |at, token| Decision::Wake { at: s(at), token };
        let first = ([ended(1)], [wake(15, 1)]);
        let second = ([started(100)], [wake(40, 2)]);
        let mut following = Following::new(
            Delivery::Immediate,
            [(s(10), &first.0[..], &first.1[..]), (s(20), &second.0, &second.1)],
        );
        let mut told = |at, notice| {
            let mut out = Vec::new();
            following.handle(s(at), &[notice], &mut out);
            out
        };
        assert_eq!(told(12, started(200)), [wake(32, 2)]);
        assert_eq!(told(13, ended(2)), []);
        assert_eq!(told(14, ended(1)), [wake(19, 1)]);
        assert_eq!(told(15, ended(1)), []);
    }
}
