//! Virtual time: a scheduler over a modelled machine, fed from a stream of submissions.
//!
//! What is held in memory is the jobs in the system and one submission ahead.

use std::collections::BTreeMap;

use dormouse_units::{Ppm, Span, Time};

use crate::algorithm::Config;
use crate::chance::Sharing;
use crate::decision::{Decision, Event, Move, Tier};
use crate::executor::{Executor, Work};
use crate::explain::Note;
use crate::job::{Job, JobId, Placement, Usage};
use crate::machine::Machine;
use crate::scheduler::{Refusal, Scheduler};

/// A job of a trace.
#[derive(Clone, Debug)]
pub struct Submission {
    /// Its number in the trace.
    pub number: u64,
    /// When it is submitted.
    pub submitted: Time,
    /// Its processes.
    pub processes: u32,
    /// How long it runs on processors of its own; the scheduler never sees this.
    pub runtime: Span,
    /// How long its user says that it will run.
    pub estimate: Span,
    /// CPU usage of its processes.
    pub usage: Usage,
}

/// What the scheduler knows of CPU usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageInformation {
    /// The truth.
    Exact,
    /// Nothing of jobs of several processes (section 3.5.1): each of their processes is
    /// taken for this much. A one-process job is known to use its processor.
    Absent(Ppm),
}

/// A simulation.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The scheduler and the size of the machine.
    pub config: Config,
    /// How two VMs share a processor.
    pub sharing: Sharing,
    /// What a migration costs the job that is moved.
    pub migration_cost: Span,
    /// What the scheduler knows of CPU usage.
    pub information: UsageInformation,
    /// For all chance in the model.
    pub seed: u64,
}

impl Setup {
    /// The paper's: 20 s a migration, exact usage, the measured sharing.
    #[must_use]
    pub fn new(config: Config, seed: u64) -> Self {
        Self {
            config,
            sharing: Sharing::default(),
            migration_cost: Span::from_secs(20),
            information: UsageInformation::Exact,
            seed,
        }
    }
}

/// What became of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its position in the order of submission.
    pub id: JobId,
    /// Its number in the trace.
    pub number: u64,
    /// When it was submitted.
    pub submitted: Time,
    /// Its processes.
    pub processes: u32,
    /// How long it runs on processors of its own.
    pub runtime: Span,
    /// How long its user said.
    pub estimate: Span,
    /// When it first had processors, in either tier.
    pub started: Time,
    /// When it came to the foreground, if ever.
    pub foreground: Option<Time>,
    /// When it ended.
    pub ended: Time,
    /// Where it ended.
    pub on: Placement,
    /// Times it swapped tiers where it was.
    pub swaps: u32,
    /// Times it was killed and started again.
    pub kills: u32,
    /// Times it was moved.
    pub migrations: u32,
}

impl Record {
    /// Of a job that is started.
    #[must_use]
    pub fn begun(id: JobId, submission: &Submission, now: Time, tier: Tier, on: Placement) -> Self {
        Self {
            id,
            number: submission.number,
            submitted: submission.submitted,
            processes: submission.processes,
            runtime: submission.runtime,
            estimate: submission.estimate,
            started: now,
            foreground: (tier == Tier::Foreground).then_some(now),
            ended: now,
            on,
            swaps: 0,
            kills: 0,
            migrations: 0,
        }
    }

    /// It comes to the foreground.
    pub fn promoted(&mut self, now: Time, by: &Move) {
        self.foreground = Some(now);
        match by {
            Move::Swap => self.swaps += 1,
            Move::Kill { on } => {
                self.kills += 1;
                self.on = on.clone();
            }
            Move::Migrate { on } => {
                self.migrations += 1;
                self.on = on.clone();
            }
        }
    }

    /// From submission to end.
    #[must_use]
    pub const fn response(&self) -> Span {
        self.ended.since(self.submitted)
    }

    /// max(1, response / max(run time, 10 s)) (section 3.3).
    #[must_use]
    pub fn bounded_slowdown(&self) -> f64 {
        let runtime = self.runtime.max(Span::from_secs(10));
        (self.response().as_secs_f64() / runtime.as_secs_f64()).max(1.0)
    }
}

/// What a simulation came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Jobs that ended.
    pub jobs: u64,
    /// Promotions in place.
    pub swaps: u64,
    /// Promotions by kill and restart.
    pub kills: u64,
    /// Promotions by migration.
    pub migrations: u64,
    /// Jobs that ended without ever having been in the foreground.
    pub background_only: u64,
    /// When the last job ended.
    pub end: Time,
    /// Most jobs in the system at once.
    pub most_in_system: usize,
}

/// Who looks on.
pub trait Observer {
    /// What can go wrong with looking on.
    type Error;

    /// The scheduler hears of these, in this order, before it decides; called once an instant.
    ///
    /// # Errors
    ///
    /// Whatever ends the simulation.
    fn heard(&mut self, _now: Time, _events: &[Event]) -> Result<(), Self::Error> {
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

    /// The job, by its number in the trace, of which to note why it waits.
    fn watched(&self) -> Option<u64> {
        None
    }

    /// All that was noted of it, once, at the end.
    fn noted(&mut self, _notes: &[Note]) {}
}

/// Why a simulation stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimulationError<E> {
    /// The trace could not be read, or whoever looks on ended it.
    #[error(transparent)]
    Outside(E),
    /// Submissions go back in time.
    #[error(
        "job {number} is submitted at {at}, before the job ahead of it ({before}); sort the trace"
    )]
    Unsorted {
        /// The job.
        number: u64,
        /// When it is submitted.
        at: Time,
        /// When the one ahead of it was.
        before: Time,
    },
    /// A job can't be taken.
    #[error("job {number} of the trace is refused: {why}")]
    Refused {
        /// The job.
        number: u64,
        /// Why.
        why: Refusal,
    },
    /// Jobs are left and nothing will ever happen again.
    #[error(
        "{left} jobs are left at {at} and nothing will ever happen again (job {first} is the first)"
    )]
    Stuck {
        /// Jobs left.
        left: usize,
        /// Since when.
        at: Time,
        /// Number of the first of them.
        first: u64,
    },
}

/// A job in the system.
struct Inside {
    submission: Submission,
    slot: usize,
    /// The record so far, once it has processors.
    record: Option<Record>,
}

/// Plays all submissions, in order of submission, to the end on the modelled [`Machine`].
///
/// # Errors
///
/// Whatever the stream or the observer reports, a job that can't be taken, submissions
/// out of order, or a schedule that never ends.
pub fn simulate<E, O: Observer<Error = E>>(
    submissions: impl IntoIterator<Item = Result<Submission, E>>,
    setup: &Setup,
    observer: &mut O,
) -> Result<Totals, SimulationError<E>> {
    let machine = Machine::new(setup.config.processors, setup.sharing, setup.seed);
    simulate_on(machine, submissions, setup, observer)
}

/// The same on `machine`, which shares as it does: the sharing and the seed of `setup` are not
/// used.
///
/// # Errors
///
/// As of [`simulate`].
pub fn simulate_on<E, O: Observer<Error = E>>(
    machine: impl Executor,
    submissions: impl IntoIterator<Item = Result<Submission, E>>,
    setup: &Setup,
    observer: &mut O,
) -> Result<Totals, SimulationError<E>> {
    let mut world = World {
        setup,
        scheduler: Scheduler::new(setup.config),
        machine,
        inside: BTreeMap::new(),
        totals: Totals::default(),
        next_id: 0,
    };
    let watched = observer.watched();
    let mut submissions = submissions.into_iter();
    let mut next = submissions.next().transpose().map_err(SimulationError::Outside)?;
    let (mut events, mut decisions) = (Vec::new(), Vec::new());
    loop {
        let end = world.machine.next_end();
        let now = match (&next, end) {
            (None, None) => break,
            (Some(s), None) => s.submitted,
            (None, Some(end)) => end,
            (Some(s), Some(end)) => s.submitted.min(end),
        };
        while let Some((job, attempt)) = world.machine.take_ended(now) {
            events.push(Event::Finished { job, attempt });
            if let Some(record) = world.leave(now, job) {
                observer.ended(record).map_err(SimulationError::Outside)?;
            }
        }
        while let Some(submission) = next.take_if(|s| s.submitted <= now) {
            next = submissions.next().transpose().map_err(SimulationError::Outside)?;
            if let Some(follower) = &next
                && follower.submitted < submission.submitted
            {
                let (number, at) = (follower.number, follower.submitted);
                return Err(SimulationError::Unsorted { number, at, before: submission.submitted });
            }
            let is_watched = watched == Some(submission.number);
            let job = world.enter(submission);
            if is_watched {
                world.scheduler.watch(job.id);
            }
            events.push(Event::Submitted(job));
        }
        observer.heard(now, &events).map_err(SimulationError::Outside)?;
        if let Err(why) = world.scheduler.handle(now, events.drain(..), &mut decisions) {
            let number = world.number(why.job());
            return Err(SimulationError::Refused { number, why });
        }
        for decision in decisions.drain(..) {
            let number = world.number(decision.job());
            observer.decided(now, number, &decision).map_err(SimulationError::Outside)?;
            world.obey(now, decision);
        }
        world.machine.settle(now);
        world.totals.end = now;
    }
    if let Some(first) = world.inside.values().next() {
        let (left, at) = (world.inside.len(), world.totals.end);
        return Err(SimulationError::Stuck { left, at, first: first.submission.number });
    }
    observer.noted(world.scheduler.notes());
    Ok(world.totals)
}

struct World<'a, M> {
    setup: &'a Setup,
    scheduler: Scheduler,
    machine: M,
    inside: BTreeMap<JobId, Inside>,
    totals: Totals,
    next_id: u32,
}

impl<M: Executor> World<'_, M> {
    /// A job enters the system; what the scheduler is told of it.
    fn enter(&mut self, submission: Submission) -> Job {
        let id = JobId::new(self.next_id);
        self.next_id += 1;
        let usage = match self.setup.information {
            UsageInformation::Absent(taken_for) if submission.processes > 1 => {
                Usage::Uniform(taken_for)
            }
            UsageInformation::Absent(_) | UsageInformation::Exact => submission.usage.clone(),
        };
        let Submission { number, processes, estimate, .. } = submission;
        self.inside.insert(id, Inside { submission, slot: 0, record: None });
        self.totals.most_in_system = self.totals.most_in_system.max(self.inside.len());
        Job { id, number, processes, estimate, usage }
    }

    /// A job leaves the system.
    fn leave(&mut self, now: Time, id: JobId) -> Option<Record> {
        let record = Record { ended: now, ..self.inside.remove(&id)?.record? };
        self.totals.jobs += 1;
        self.totals.swaps += u64::from(record.swaps);
        self.totals.kills += u64::from(record.kills);
        self.totals.migrations += u64::from(record.migrations);
        self.totals.background_only += u64::from(record.foreground.is_none());
        Some(record)
    }

    fn number(&self, id: JobId) -> u64 {
        self.inside.get(&id).map_or(0, |inside| inside.submission.number)
    }

    fn obey(&mut self, now: Time, decision: Decision) {
        let Some(inside) = self.inside.get_mut(&decision.job()) else { return };
        match decision {
            Decision::Start { job, attempt, tier, on, .. } => {
                let submission = &inside.submission;
                inside.record = Some(Record::begun(job, submission, now, tier, on.clone()));
                let usage = submission.usage.clone();
                let work = Work { job, runtime: submission.runtime, usage };
                inside.slot = self.machine.start(now, work, attempt, tier, on);
            }
            Decision::Promote { attempt, by, .. } => {
                let Some(record) = &mut inside.record else { return };
                record.promoted(now, &by);
                self.machine.promote(now, inside.slot, attempt, &by, self.setup.migration_cost);
            }
        }
    }
}
