//! Checks that every job that a user submits to an open run is in the log once, by the time the user has the answer.

use std::collections::BTreeMap;

use dormouse_model::{Effect, Event, Step};

use super::Broken;
use crate::invariant::Invariant;

/// The submitted jobs in the durable log, by their keys, and whether the log says that no more come.
#[derive(Debug, Default)]
pub(super) struct Calls {
    jobs: BTreeMap<String, u64>,
    is_closed: bool,
}

impl Calls {
    pub(super) fn log_begins_anew(&mut self) {
        *self = Self::default();
    }

    pub(super) const fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Checks a durable step.
    pub(super) fn see(&mut self, step: &Step) -> Result<(), Broken> {
        match &step.event {
            Event::Submitted { key: Some(key), job, .. }
                if !step.effects.contains(&Effect::Stale) =>
            {
                let seq = step.seq;
                if self.is_closed {
                    return wrong(format!("'{key}' is submitted at step {seq} to a closed run"));
                }
                if let Some(before) = self.jobs.insert(key.to_string(), job.number) {
                    return wrong(format!(
                        "'{key}' is submitted at step {seq} and was job {before}"
                    ));
                }
            }
            Event::Closed => self.is_closed = true,
            _ => {}
        }
        Ok(())
    }

    /// Checks the answer to a user that a job was accepted under this key, with this number.
    pub(super) fn is_answered(&self, key: &str, number: u64) -> Result<(), Broken> {
        match self.jobs.get(key) {
            Some(known) if *known == number => Ok(()),
            known => wrong(format!("'{key}' is said to be job {number}; the log has {known:?}")),
        }
    }

    /// Checks the answer to a user that the run is closed.
    pub(super) fn close_is_answered(&self) -> Result<(), Broken> {
        match self.is_closed {
            true => Ok(()),
            false => wrong("the run is said to be closed, which its log does not say".to_owned()),
        }
    }
}

fn wrong(why: String) -> Result<(), Broken> {
    Err((Invariant::SubmittedOnce, why))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use dormouse_model::Submission;
    use dormouse_units::{Bytes, Span, TaskId, Time, Usage};

    use super::*;

    fn submitted(key: &str, number: u64) -> Step {
        let job = Submission {
            number,
            submitted: Time::ZERO,
            processes: 1,
            runtime: Span::from_secs(1),
            estimate: Span::from_secs(1),
            usage: Usage::FULL,
            memory: Bytes::ZERO,
            priority: 0,
            after: None,
            is_cut: false,
            fails: false,
        };
        let mut step = Step::blank();
        let event =
            Event::Submitted { task: TaskId::new(0), key: Some(key.into()), job: Arc::new(job) };
        step.begin_step(0, Time::ZERO, event);
        step
    }

    #[test]
    fn a_key_is_one_job_that_is_there_when_it_is_answered() {
        let mut calls = Calls::default();
        assert!(calls.is_answered("a", 4).is_err());
        assert_eq!(calls.see(&submitted("a", 4)), Ok(()));
        assert_eq!(calls.is_answered("a", 4), Ok(()));
        assert!(calls.is_answered("a", 5).is_err());
        assert!(calls.see(&submitted("a", 5)).is_err());
        assert!(calls.close_is_answered().is_err());
        let mut closed = Step::blank();
        closed.begin_step(1, Time::ZERO, Event::Closed);
        assert_eq!(calls.see(&closed), Ok(()));
        assert_eq!(calls.close_is_answered(), Ok(()));
        assert!(calls.see(&submitted("b", 6)).is_err(), "it is closed");
    }
}
