//! A recorded run again, step by step: from its log, or made anew where the log was too long to
//! be kept.

use dormouse_batch::{Decision, Event, Observer, Record, simulate};
use dormouse_coordinator::BatchStep;
use dormouse_units::Time;

use super::log::BatchLog;
use super::{BatchError, Jobs};

/// Plays every step of `log` to `audience`; what goes wrong there ends the play.
pub(crate) fn play(
    log: &BatchLog,
    mut audience: impl FnMut(&BatchStep) -> Result<(), BatchError>,
) -> Result<(), BatchError> {
    if let Some(steps) = &log.steps {
        // Of a live run the log has steps of which the scheduler heard nothing.
        return steps.iter().filter(|step| !step.events.is_empty()).try_for_each(audience);
    }
    let experiment = &log.header.experiment;
    let mut stage = Stage { audience: &mut audience, step: BatchStep::default() };
    simulate(Jobs::open(experiment)?, &experiment.setup(log.header.machine), &mut stage)?;
    stage.end_step()
}

struct Stage<'a, A> {
    audience: &'a mut A,
    step: BatchStep,
}

impl<A: FnMut(&BatchStep) -> Result<(), BatchError>> Stage<'_, A> {
    fn end_step(&mut self) -> Result<(), BatchError> {
        let step = std::mem::take(&mut self.step);
        if step.events.is_empty() { Ok(()) } else { (self.audience)(&step) }
    }
}

impl<A: FnMut(&BatchStep) -> Result<(), BatchError>> Observer for Stage<'_, A> {
    type Error = BatchError;

    fn heard(&mut self, now: Time, events: &[Event]) -> Result<(), BatchError> {
        self.end_step()?;
        self.step.at = now;
        self.step.events.extend_from_slice(events);
        Ok(())
    }

    fn decided(&mut self, _: Time, _: u64, decision: &Decision) -> Result<(), BatchError> {
        self.step.decisions.push(decision.clone());
        Ok(())
    }

    fn ended(&mut self, _: Record) -> Result<(), BatchError> {
        Ok(())
    }
}
