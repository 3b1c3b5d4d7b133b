//! Checks the order of events at one instant: scheduled events from outside come first, and the end of an instant
//! comes only after another event of it.

use dormouse_model::{Event, Step};
use dormouse_units::Time;

use super::Broken;
use crate::invariant::Invariant;

/// The events of the present instant in the durable log.
#[derive(Debug, Default)]
pub(super) struct Instants {
    at: Time,
    /// Whether an event happened since the instant began, or since its last end.
    has_happened: bool,
    /// Whether a timer of the run went off, or the instant ended.
    has_gone_on: bool,
    /// The run was resumed at this instant: jobs and timers of all the time before it come at it, in the order of their
    /// own times.
    is_resumed: bool,
}

impl Instants {
    pub(super) fn log_begins_anew(&mut self) {
        *self = Self::default();
    }

    /// Checks a durable step.
    pub(super) fn see(&mut self, step: &Step) -> Result<(), Broken> {
        if step.at != self.at {
            *self = Self { at: step.at, ..Self::default() };
        }
        let wrong = |what: &str| {
            Err((Invariant::InstantOrder, format!("step {} at {}: {what}", step.seq, step.at)))
        };
        match &step.event {
            // A job that users submit while the run goes is of the time at which it came.
            Event::Submitted { key: None, job, .. } if job.after.is_none() => {
                if self.has_gone_on && !self.is_resumed && job.submitted == step.at {
                    return wrong("a job that was due at this instant comes after a timer of it");
                }
                self.has_happened = true;
            }
            Event::InstantOver => {
                if !self.has_happened {
                    return wrong("an instant is over in which nothing has happened");
                }
                // A refusal of what is decided then, and the room of a VM that ends then, are reported at this instant, too.
                let follows = !step.decisions.is_empty() || !step.effects.is_empty();
                (self.has_happened, self.has_gone_on) = (follows, true);
            }
            Event::Tick => (self.has_happened, self.has_gone_on) = (true, true),
            // What went before is of a coordinator that heard of no more.
            Event::Resumed { .. } => {
                *self =
                    Self { at: step.at, has_happened: true, has_gone_on: false, is_resumed: true };
            }
            _ => self.has_happened = true,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use dormouse_model::Submission;
    use dormouse_units::{Bytes, Span, TaskId, Usage};

    use super::*;

    fn step(at: u64, event: Event) -> Step {
        let mut step = Step::blank();
        step.begin_step(0, Time::from_secs(at), event);
        step
    }

    fn submitted(at: u64) -> Event {
        let job = Submission {
            number: 1,
            submitted: Time::from_secs(at),
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
        Event::Submitted { task: TaskId::new(0), key: None, job: Arc::new(job) }
    }

    #[test]
    fn jobs_come_before_timers_and_an_instant_ends_after_something_of_it() {
        let of = |events: Vec<(u64, Event)>| {
            let mut all = Instants::default();
            events.into_iter().try_for_each(|(at, event)| all.see(&step(at, event))).is_ok()
        };
        assert!(of(vec![(5, submitted(5)), (5, Event::Tick), (5, Event::InstantOver)]));
        assert!(!of(vec![(5, Event::Tick), (5, submitted(5))]));
        assert!(of(vec![(5, Event::Tick), (5, submitted(4))]), "it comes late");
        assert!(of(vec![(4, Event::Tick), (5, submitted(5))]));
        assert!(!of(vec![(4, Event::Tick), (5, Event::InstantOver)]));
        assert!(!of(vec![(5, Event::Tick), (5, Event::InstantOver), (5, Event::InstantOver)]));
    }
}
