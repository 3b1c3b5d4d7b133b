//! Rules of parallel jobs, each by what breaks it: two jobs in one tier of a processor, a job on
//! the wrong number of processors, a kind of promotion that the scheduler does not have, a decision
//! that can't be carried out, a job submitted before the end of one that it follows, a job that
//! never ended, credits of the machine that can't have been earned or used.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_engine::jobs::JobSimulation;
use dormouse_model::{
    Decision, Effect, Event, Job, JobCapacity, Notice, PromotionMethod, Report, Step, Submission,
};
use dormouse_policies::batch::{Algorithm, Config, OnPromotion};
use dormouse_units::{Attempt, Cpus, Ppm, Seats, Span, TaskId, Tier, Time};

use self::credits::MachineCredits;
use super::RuleViolation;

mod credits;

/// A job in the system, with its places on processors.
#[derive(Debug)]
struct JobInSystem {
    job: Job,
    /// Number of the job's last start; zero before the first.
    attempt: Attempt,
    seats: Option<(Tier, Cpus)>,
    /// Whether the job was ever moved: then it was stopped for a time that this check does not know.
    was_moved: bool,
}

/// Follows the parallel jobs of a run, in steps as their scheduler saw them. Call [`Self::see`] for
/// each step in order, then [`Self::finish`].
#[derive(Debug)]
pub struct JobsChecker {
    promotion: Option<OnPromotion>,
    usable_below: Ppm,
    space: JobCapacity,
    /// Jobs in the background and the foreground of each processor, indexed by tier.
    processors: Vec<[Option<TaskId>; 2]>,
    inside: BTreeMap<TaskId, JobInSystem>,
    /// Jobs that have ended at this instant, whose end the scheduler does not know yet.
    over: BTreeSet<TaskId>,
    /// CPU credits of the machine on which the jobs run.
    credits: MachineCredits,
    /// Number of jobs submitted so far.
    jobs: u64,
    found: Vec<RuleViolation>,
    now: Time,
    seq: u64,
    /// True if the run was ended early by its user.
    is_cut: bool,
}

impl JobsChecker {
    /// A checker for the jobs of this simulation, whose machine may report its credits up to
    /// `lateness` of emulated time late (zero in virtual time).
    #[must_use]
    pub fn new(simulation: &JobSimulation, lateness: Span) -> Self {
        let Config { algorithm, processors, usable_below, .. } = simulation.config;
        Self {
            promotion: algorithm.promotion(),
            // A scheduler program decides by itself what is of use: below a full foreground a job
            // waits.
            usable_below: match algorithm {
                Algorithm::Program => Ppm::new(u32::MAX),
                _ => usable_below,
            },
            space: simulation.job_capacity(),
            processors: vec![[None; 2]; processors as usize],
            inside: BTreeMap::new(),
            over: BTreeSet::new(),
            credits: MachineCredits::new(
                simulation.burstable,
                simulation.checkpoint.is_some(),
                lateness,
            ),
            jobs: 0,
            found: Vec::new(),
            now: Time::ZERO,
            seq: 0,
            is_cut: false,
        }
    }

    /// Number of jobs submitted so far.
    #[must_use]
    pub const fn jobs(&self) -> u64 {
        self.jobs
    }

    fn report_violation(&mut self, what: String) {
        self.found.push(RuleViolation { seq: self.seq, at: self.now, what });
    }

    /// Checks the next step of the run.
    pub fn see(&mut self, step: &Step) {
        self.seq = step.seq;
        if step.at < self.now {
            self.report_violation(format!(
                "the step of {} comes after that of {}",
                step.at, self.now
            ));
        }
        self.now = step.at;
        self.credits.pass(step.at);
        self.is_cut |= matches!(step.event, Event::Cancel { .. });
        match &step.event {
            Event::Machine {
                report: Report::TaskFinished { task, attempt, verified, .. }, ..
            } => {
                if *verified && !step.effects.contains(&Effect::Stale) {
                    self.over.insert(*task);
                }
                self.check_reported_end(*task, *attempt, step.effects.contains(&Effect::Stale));
            }
            Event::Submitted { job, .. } if !step.effects.contains(&Effect::Stale) => {
                if let Err(why) = job.check_fits(self.space) {
                    self.report_violation(format!(
                        "job {} was accepted and can't be run: {why}",
                        job.number
                    ));
                }
                self.check_followed_jobs(job);
            }
            Event::Machine { report: Report::Credits { vm, balance, as_of }, .. } => {
                if !step.effects.contains(&Effect::Stale)
                    && let Some(wrong) = self.credits.said(step.at, *vm, (*balance, *as_of))
                {
                    self.report_violation(format!("{vm}: {wrong}"));
                }
                self.look_at_use();
            }
            Event::InstantOver => self.check_instant(step),
            _ => {}
        }
        for effect in &step.effects {
            if let Effect::VmLaunched { vm, kind, .. } = effect {
                self.credits.launched(step.at, *vm, kind);
            }
        }
    }

    /// Requires that all jobs that a submission follows have ended.
    fn check_followed_jobs(&mut self, job: &Submission) {
        let Some(after) = &job.after else { return };
        let goes_on = |(id, inside): &(&TaskId, &JobInSystem)| {
            after.jobs.contains(&inside.job.number) && !self.over.contains(*id)
        };
        if let Some((_, first)) = self.inside.iter().find(goes_on) {
            let (number, before) = (job.number, first.job.number);
            self.report_violation(format!(
                "job {number} is submitted before job {before}, which it follows, has ended"
            ));
        }
    }

    /// Checks that a reported end belongs to the job's present start, unless the report was
    /// dropped.
    fn check_reported_end(&mut self, id: TaskId, attempt: Attempt, is_dropped: bool) {
        let Some(JobInSystem { attempt: current, .. }) = self.inside.get(&id) else { return };
        if !is_dropped && *current != attempt {
            self.report_violation(format!(
                "{id} is reported finished by an attempt that is over, \
                     and the report was not dropped"
            ));
        }
    }

    /// Checks the notices and decisions of an instant.
    fn check_instant(&mut self, step: &Step) {
        self.over.clear();
        for notice in &step.notices {
            match notice {
                Notice::Submitted { job } => self.add_job(job),
                Notice::TaskFinished { task, .. } => self.remove_job(*task),
                Notice::TaskFailed { task, .. } => self.leave_seats(*task),
                Notice::VmLost { .. } => self.machine_lost(),
                _ => {}
            }
        }
        let mut sent = step.effects.iter().filter_map(|effect| match effect {
            Effect::TaskSent { task, attempt, .. } => Some((*task, *attempt)),
            _ => None,
        });
        for (n, decision) in step.decisions.iter().enumerate() {
            // The scheduler has heard everything of the instant: none of its decisions can have
            // been overtaken.
            match step.effects.iter().find_map(|effect| refusal_reason(effect, n)) {
                Some(why) => {
                    self.report_violation(format!("a decision can't be carried out: {why}"));
                }
                None => self.check_decision(decision, &mut sent),
            }
        }
        if let Some((id, _)) = sent.next() {
            self.report_violation(format!(
                "{id} is sent to a machine without a decision of its scheduler"
            ));
        }
        self.look_at_use();
    }

    fn add_job(&mut self, job: &Job) {
        self.jobs += 1;
        let (attempt, seats, was_moved) = (Attempt::default(), None, false);
        let inside = JobInSystem { job: job.clone(), attempt, seats, was_moved };
        if self.inside.insert(job.id, inside).is_some() {
            self.report_violation(format!("job {} is submitted twice", job.number));
        }
    }

    fn remove_job(&mut self, id: TaskId) {
        match self.inside.get(&id).map(|inside| inside.seats.is_some()) {
            None => self.report_violation(format!("{id} ended but was never submitted")),
            Some(false) => self.report_violation(format!("{id} ended but was never started")),
            Some(true) => {
                self.leave_seats(id);
                self.inside.remove(&id);
            }
        }
    }

    /// Removes a job from its processors.
    fn leave_seats(&mut self, id: TaskId) {
        let seats = self.inside.get_mut(&id).and_then(|inside| inside.seats.take());
        let Some((tier, on)) = seats else { return };
        for &p in &*on {
            if let Some(seats) = self.processors.get_mut(p as usize) {
                seats[tier as usize] = None;
            }
        }
    }

    /// Removes all jobs from their processors, because the machine that they share is lost.
    fn machine_lost(&mut self) {
        self.processors.fill([None; 2]);
        self.inside.values_mut().for_each(|inside| inside.seats = None);
    }

    fn check_decision(
        &mut self,
        decision: &Decision,
        sent: &mut dyn Iterator<Item = (TaskId, Attempt)>,
    ) {
        let Some(id) = decision.task() else { return };
        let Some(seats) = self.inside.get(&id).map(|inside| inside.seats.clone()) else {
            return self.report_violation(format!("a decision names {id}, which does not exist"));
        };
        match (decision, seats) {
            (Decision::Start { .. }, Some(_)) => {
                self.report_violation(format!("{id} is started twice"));
            }
            (Decision::Start { on: Seats { tier, cpus, .. }, .. }, None) => {
                if *tier == Tier::Background && self.promotion.is_none() {
                    self.report_violation(format!(
                        "{id} is put in the background by a one-tier scheduler"
                    ));
                }
                self.check_sent(id, sent.next());
                self.take_seats(id, *tier, cpus);
            }
            (Decision::Promote { .. }, None | Some((Tier::Foreground, _))) => {
                self.report_violation(format!("{id} is promoted but is not in the background"));
            }
            (Decision::Promote { by, .. }, Some((Tier::Background, old))) => {
                self.leave_seats(id);
                self.check_promotion(id, by);
                match by {
                    PromotionMethod::Swap => self.take_seats(id, Tier::Foreground, &old),
                    PromotionMethod::Migrate { on } => {
                        self.take_seats(id, Tier::Foreground, on);
                        if let Some(inside) = self.inside.get_mut(&id) {
                            inside.was_moved = true;
                        }
                    }
                    PromotionMethod::Kill { on } => {
                        self.check_sent(id, sent.next());
                        self.take_seats(id, Tier::Foreground, on);
                    }
                }
            }
            _ => self.report_violation(format!(
                "{id} is given a decision that no scheduler of jobs makes"
            )),
        }
    }

    /// Requires that the next command sent is the next start of job `id`.
    fn check_sent(&mut self, id: TaskId, sent: Option<(TaskId, Attempt)>) {
        let Some(inside) = self.inside.get_mut(&id) else { return };
        inside.attempt = inside.attempt.next();
        if sent != Some((id, inside.attempt)) {
            self.report_violation(format!(
                "{id} is sent with an attempt number that is not the next one"
            ));
        }
    }

    /// Requires that the run's scheduler has the kind of promotion `by`.
    fn check_promotion(&mut self, id: TaskId, by: &PromotionMethod) {
        let allowed = match by {
            PromotionMethod::Swap => self.promotion.is_some(),
            PromotionMethod::Kill { .. } => self.promotion == Some(OnPromotion::Kill),
            PromotionMethod::Migrate { .. } => self.promotion == Some(OnPromotion::Migrate),
        };
        if !allowed {
            self.report_violation(format!("{id} is moved, which its scheduler never does"));
        }
    }

    fn take_seats(&mut self, id: TaskId, tier: Tier, on: &Cpus) {
        let Some(inside) = self.inside.get_mut(&id) else { return };
        inside.seats = Some((tier, on.clone()));
        let processes = inside.job.processes;
        if on.len() != processes as usize {
            self.report_violation(format!(
                "{id} has {processes} processes and {} processors",
                on.len()
            ));
        }
        for &p in &**on {
            let Some(seats) = self.processors.get_mut(p as usize) else {
                self.report_violation(format!(
                    "{id} is placed on processor {p}, which the machine does not have"
                ));
                continue;
            };
            let other = seats[tier as usize].replace(id);
            let foreground = seats[Tier::Foreground as usize];
            if let Some(other) = other {
                self.report_violation(format!(
                    "{id} and {other} are in the same tier of processor {p}"
                ));
            }
            if tier == Tier::Background
                && foreground.is_some_and(|f| self.usage_on(f, p) >= self.usable_below)
            {
                self.report_violation(format!(
                    "{id} is in the background of processor {p}, whose foreground leaves no time"
                ));
            }
        }
    }

    fn usage_on(&self, id: TaskId, p: u32) -> Ppm {
        let Some(JobInSystem { job, seats: Some((_, on)), .. }) = self.inside.get(&id) else {
            return Ppm::ZERO;
        };
        on.iter().position(|&q| q == p).map_or(Ppm::ZERO, |n| job.usage.of_process(n))
    }

    /// All violations. If `ended`, jobs that have not ended are violations too.
    #[must_use]
    pub fn finish(mut self, ended: bool) -> Vec<RuleViolation> {
        let left: Vec<_> = self.inside.values().map(|inside| inside.job.number).take(5).collect();
        if ended && !self.is_cut && !left.is_empty() {
            let numbers: Vec<_> = left.iter().map(u64::to_string).collect();
            let count = self.inside.len();
            self.report_violation(format!(
                "{count} jobs never ended, such as {}",
                numbers.join(", ")
            ));
        }
        self.found
    }
}

/// The reason why the decision at index `place` of its step was not carried out, if this effect gives it; else `None`.
fn refusal_reason(effect: &Effect, place: usize) -> Option<&str> {
    match effect {
        Effect::Moot { index, why } | Effect::Rejected { index, why } if *index == place => {
            Some(why)
        }
        _ => None,
    }
}
