//! Parallel jobs as the steps of a run tell of them, to whoever looks on.

use std::sync::Arc;

use dormouse_model::{Decision, Event, Notice, Step, Submission};
use dormouse_units::{Seats, TaskId, Tier, Time, Window};

use super::record::{Record, Totals};

/// Hears of what happens to parallel jobs, as it happens.
pub trait Observer {
    /// What can go wrong with looking on.
    type Error;

    /// The scheduler hears of these, in this order, before it decides; called once an instant.
    ///
    /// # Errors
    ///
    /// Whatever ends the simulation.
    fn heard(&mut self, _now: Time, _heard: &[Notice]) -> Result<(), Self::Error> {
        Ok(())
    }

    /// A decision was made about the job of this number in the trace.
    ///
    /// # Errors
    ///
    /// Whatever ends the simulation.
    fn decided(
        &mut self,
        _now: Time,
        _number: u64,
        _decision: &Decision,
    ) -> Result<(), Self::Error> {
        Ok(())
    }

    /// A job ended.
    ///
    /// # Errors
    ///
    /// Whatever ends the simulation.
    fn ended(&mut self, record: Record) -> Result<(), Self::Error>;
}

/// A job in the system.
#[derive(Clone, Debug)]
struct Inside {
    submission: Arc<Submission>,
    /// The record so far, once it has processors.
    record: Option<Record>,
}

impl Inside {
    fn decided(&mut self, now: Time, task: TaskId, decision: &Decision) {
        let Self { submission, record } = self;
        match decision {
            Decision::Start { on: Seats { tier, cpus, .. }, .. } => match record {
                None => *record = Some(Record::begun(task, submission, now, *tier, cpus.clone())),
                // Its attempt before failed.
                Some(record) => {
                    record.foreground = (*tier == Tier::Foreground).then_some(now);
                    record.on = cpus.clone();
                }
            },
            Decision::Promote { by, .. } => {
                if let Some(record) = record {
                    record.promoted(now, by);
                }
            }
            _ => {}
        }
    }
}

/// Puts together from steps what became of every job. What is held is the jobs in the system.
#[derive(Clone, Debug, Default)]
pub struct Told {
    inside: Window<Inside>,
    totals: Totals,
}

impl Told {
    /// What it came to so far.
    #[must_use]
    pub const fn totals(&self) -> Totals {
        self.totals
    }

    /// Takes in a step, and tells the observer what is in it.
    ///
    /// # Errors
    ///
    /// The observer's.
    pub fn see<O: Observer>(&mut self, step: &Step, observer: &mut O) -> Result<(), O::Error> {
        match &step.event {
            Event::Submitted { task, job, .. } => {
                // Jobs come one after the other: a log in which they don't is damaged.
                if self.inside.end().is_none_or(|end| *task <= end) {
                    let inside = Inside { submission: job.clone(), record: None };
                    self.inside.insert(*task, inside);
                }
                Ok(())
            }
            Event::InstantOver => self.instant(step, observer),
            _ => Ok(()),
        }
    }

    fn instant<O: Observer>(&mut self, step: &Step, observer: &mut O) -> Result<(), O::Error> {
        let (now, mut came) = (step.at, 0);
        for notice in &step.notices {
            match notice {
                Notice::TaskFinished { task, .. } => {
                    if let Some(record) = self.leave(now, *task) {
                        observer.ended(record)?;
                    }
                }
                Notice::Submitted { .. } => came += 1,
                _ => {}
            }
        }
        self.totals.in_system += came;
        self.totals.most_in_system = self.totals.most_in_system.max(self.totals.in_system);
        observer.heard(now, &step.notices)?;
        for (n, decision) in step.decisions.iter().enumerate() {
            let Some(task) = decision.task() else { continue };
            if step.effects.iter().any(|effect| effect.refuses(n)) {
                continue;
            }
            let inside = self.inside.get_mut(task);
            let number = inside.as_ref().map_or(0, |inside| inside.submission.number);
            observer.decided(now, number, decision)?;
            if let Some(inside) = inside {
                inside.decided(now, task, decision);
            }
        }
        self.totals.end = now;
        Ok(())
    }

    /// A job leaves the system.
    fn leave(&mut self, now: Time, task: TaskId) -> Option<Record> {
        let record = Record { ended: now, ..self.inside.remove(task)?.record? };
        self.totals.in_system = self.totals.in_system.saturating_sub(1);
        self.totals.jobs += 1;
        self.totals.swaps += u64::from(record.swaps);
        self.totals.kills += u64::from(record.kills);
        self.totals.migrations += u64::from(record.migrations);
        self.totals.background_only += u64::from(record.foreground.is_none());
        Some(record)
    }
}
