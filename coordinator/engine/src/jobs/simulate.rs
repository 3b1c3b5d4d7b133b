//! Parallel jobs in virtual time: a batch scheduler over modelled machines, fed from a stream of
//! submissions.
//!
//! What is held in memory is the jobs in the system and one submission ahead.

use std::iter::Peekable;
use std::sync::Arc;

use dormouse_cloud::BurstableTerms;
use dormouse_model::{
    CheckpointConfig, Event, JobCapacity, JobRefusal, MACHINE, Setup, Step, Submission,
    UsageInformation,
};
use dormouse_policies::batch::{Algorithm, BatchPolicy, Config};
use dormouse_units::{Bytes, Span, TaskId, Time};
use dormouse_vm::ProcessorSharing;

use crate::Run;
use crate::drive::{
    BOUNDLESS, MachineWorld, ModelledMachines, PlayError, TwoTierLaw, WaitingFollowers,
    beginning_events, play_following,
};

/// Parameters of a simulation of parallel jobs on one machine. [`simulate_jobs`] runs it.
#[derive(Clone, Debug)]
pub struct JobSimulation {
    /// Scheduler and size of the machine.
    pub config: Config,
    /// Law by which two VMs share a processor.
    pub sharing: ProcessorSharing,
    /// Time for which a migrated job is stopped.
    pub migration_cost: Span,
    /// Precision with which the scheduler knows the jobs' CPU usage.
    pub information: UsageInformation,
    /// Rule of the jobs' checkpoints; `None`: there are none.
    pub checkpoint: Option<CheckpointConfig>,
    /// Memory of each processor for the processes on it; `None`: memory isn't modelled.
    pub memory: Option<Bytes>,
    /// How the machine earns credits; `None`: the machine isn't burstable.
    pub burstable: Option<BurstableTerms>,
    /// Seed of the model's random draws.
    pub seed: u64,
}

impl JobSimulation {
    /// Makes the simulation of the MEASY paper: 20 s per migration, exactly known CPU usage, and the measured law of sharing.
    #[must_use]
    pub fn new(config: Config, seed: u64) -> Self {
        Self {
            config,
            sharing: ProcessorSharing::default(),
            migration_cost: Span::from_secs(20),
            information: UsageInformation::Exact,
            checkpoint: None,
            memory: None,
            burstable: None,
            seed,
        }
    }

    /// Makes the setup of the simulation's run.
    #[must_use]
    pub fn make_setup(&self) -> Setup {
        self.complete_setup(Setup::of_jobs(self.config.processors, self.information, self.seed))
    }

    /// Makes the setup of a run with the bag of another setup and these jobs.
    #[must_use]
    pub fn setup_beside(&self, bag: Setup) -> Setup {
        self.complete_setup(bag.with_jobs(self.config.processors, self.information))
    }

    fn complete_setup(&self, setup: Setup) -> Setup {
        setup
            .checkpointing_jobs(self.checkpoint.clone())
            .with_memory_of_jobs(self.memory, self.process_limit())
            .with_credits_of_jobs(self.burstable)
    }

    /// Returns the most processes that a processor can have.
    fn process_limit(&self) -> u64 {
        if self.config.algorithm.promotion().is_some() { 2 } else { 1 }
    }

    /// Returns the machine's capacity for one job.
    #[must_use]
    pub fn job_capacity(&self) -> JobCapacity {
        self.make_setup().space_of_jobs()
    }

    /// Makes the simulation's scheduler, before any event.
    #[must_use]
    pub fn make_policy(&self) -> Box<dyn BatchPolicy> {
        Algorithm::build(self.config, MACHINE.into())
    }

    /// Makes the simulation's run, before any event.
    #[must_use]
    pub fn run(&self) -> Run {
        Run::new(self.make_setup(), self.make_policy())
    }

    /// Returns the law by which the jobs share the machine's processors.
    #[must_use]
    pub const fn two_tier_law(&self) -> TwoTierLaw {
        let Self { sharing, migration_cost, seed, .. } = *self;
        TwoTierLaw { sharing, migration_cost, seed }
    }
}

/// Reasons why a simulation stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimulationError<E> {
    /// The trace couldn't be read, or the function that is shown the steps ended the simulation.
    #[error(transparent)]
    Outside(E),
    /// A job is submitted earlier than the one before it.
    #[error(
        "job {number} is submitted at {at}, before the job ahead of it ({before}); sort the trace"
    )]
    Unsorted {
        /// Number of the job in the trace.
        number: u64,
        /// Time at which the job is submitted.
        at: Time,
        /// Submission time of the job that precedes it in the trace.
        before: Time,
    },
    /// A job can't run on the machine.
    #[error("job {number} of the trace is refused: {why}")]
    Refused {
        /// Number of the job in the trace.
        number: u64,
        /// Reason for refusing the job.
        why: JobRefusal,
    },
    /// The scheduler failed.
    #[error("{0}")]
    Scheduler(String),
    /// Nothing will happen any more, though jobs are left.
    #[error("{left} jobs are left and nothing will ever happen again")]
    Stuck {
        /// Number of unfinished jobs.
        left: usize,
    },
}

/// Turns a stream of submissions into events, and checks each job: one event for each job, then one that says that all
/// jobs are submitted.
#[derive(Debug)]
pub struct SubmissionEvents<I> {
    jobs: I,
    machine: JobCapacity,
    next: TaskId,
    last: Time,
    is_over: bool,
}

impl<I> SubmissionEvents<I> {
    /// Makes the events of `jobs`, in order of submission, for a machine of this capacity; `first` is the id of the
    /// first job.
    #[must_use]
    pub const fn new(jobs: I, machine: JobCapacity, first: TaskId) -> Self {
        Self { jobs, machine, next: first, last: Time::ZERO, is_over: false }
    }
}

impl<E, I: Iterator<Item = Result<Submission, E>>> SubmissionEvents<Peekable<I>> {
    /// Makes the events of `jobs` as [`SubmissionEvents::new`] does. Jobs that follow other jobs must come first in `jobs`: they
    /// are checked and returned separately, to be submitted once their predecessors have ended.
    ///
    /// # Errors
    ///
    /// A job that follows others can't run on the machine.
    pub fn with_followers(
        jobs: I,
        machine: JobCapacity,
        first: TaskId,
    ) -> Result<(Self, WaitingFollowers), SimulationError<E>> {
        let (mut jobs, mut followers) = (jobs.peekable(), WaitingFollowers::default());
        let is_follower = |job: &Result<Submission, E>| matches!(job, Ok(it) if it.after.is_some());
        while let Some(Ok(job)) = jobs.next_if(is_follower) {
            let number = job.number;
            job.check_fits(machine).map_err(|why| SimulationError::Refused { number, why })?;
            followers.hold_job(job);
        }
        Ok((Self::new(jobs, machine, first), followers))
    }
}

impl<E, I: Iterator<Item = Result<Submission, E>>> Iterator for SubmissionEvents<I> {
    type Item = Result<(Time, Event), SimulationError<E>>;

    fn next(&mut self) -> Option<Self::Item> {
        let job = match self.jobs.next() {
            Some(Ok(job)) => job,
            Some(Err(error)) => return Some(Err(SimulationError::Outside(error))),
            None if self.is_over => return None,
            None => {
                self.is_over = true;
                return Some(Ok((self.last, Event::AllSubmitted)));
            }
        };
        let (number, at, before) = (job.number, job.submitted, self.last);
        if let Err(why) = job.check_fits(self.machine) {
            return Some(Err(SimulationError::Refused { number, why }));
        }
        if at < before {
            return Some(Err(SimulationError::Unsorted { number, at, before }));
        }
        let task = self.next;
        (self.next, self.last) = (task.next(), at);
        Some(Ok((at, Event::Submitted { task, key: None, job: Arc::new(job) })))
    }
}

/// Runs all submissions, in order of submission, to the end on a modelled machine; `see` is shown every step. Returns
/// the run at its end, without a digest of its decisions.
///
/// # Errors
///
/// Whatever the stream or `see` reports, a job that can't run, submissions out of order, or a schedule that never
/// ends.
pub fn simulate_jobs<E>(
    submissions: impl IntoIterator<Item = Result<Submission, E>>,
    simulation: &JobSimulation,
    see: impl FnMut(&Step) -> Result<(), E>,
) -> Result<Run, SimulationError<E>> {
    let mut world = ModelledMachines::new(simulation.two_tier_law());
    play_jobs(simulation.run().without_digest(), &mut world, submissions, simulation, see)
}

/// Runs all submissions as [`simulate_jobs`] does, but on the machines of `world`, which has its own sharing law and
/// its own seed. The returned run has a digest of its decisions.
///
/// # Errors
///
/// See [`simulate_jobs`].
pub fn simulate_on<E>(
    world: &mut impl MachineWorld,
    submissions: impl IntoIterator<Item = Result<Submission, E>>,
    simulation: &JobSimulation,
    see: impl FnMut(&Step) -> Result<(), E>,
) -> Result<Run, SimulationError<E>> {
    play_jobs(simulation.run(), world, submissions, simulation, see)
}

fn play_jobs<E>(
    mut run: Run,
    world: &mut impl MachineWorld,
    submissions: impl IntoIterator<Item = Result<Submission, E>>,
    simulation: &JobSimulation,
    mut see: impl FnMut(&Step) -> Result<(), E>,
) -> Result<Run, SimulationError<E>> {
    let machine = simulation.job_capacity();
    let submissions = submissions.into_iter();
    let (events, followers) =
        SubmissionEvents::with_followers(submissions, machine, run.next_task())?;
    let begin = beginning_events(&[BOUNDLESS]).into_iter().map(Ok);
    let limit = Time::from_micros(u64::MAX);
    let see = |step: &Step| see(step).map_err(SimulationError::Outside);
    match play_following(&mut run, world, begin.chain(events), followers, limit, see) {
        Ok(()) => Ok(run),
        Err(PlayError::Outside(error)) => Err(error),
        Err(PlayError::Scheduler(why)) => Err(SimulationError::Scheduler(why)),
        Err(
            PlayError::Stuck { unfinished: left, .. } | PlayError::Limit { unfinished: left, .. },
        ) => Err(SimulationError::Stuck { left }),
    }
}
