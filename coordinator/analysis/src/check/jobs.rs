//! The rules of parallel jobs, each by what breaks it: two of them in one seat, a job on the wrong
//! number of processors, a move that its scheduler does not make, a decision that can't be carried
//! out, a job that came before the end of one that it follows, a job that never ended, credits of their
//! machine that nobody can have earned or used, …

use std::collections::{BTreeMap, BTreeSet};

use dormouse_engine::jobs::Simulation;
use dormouse_model::{
    Decision, Effect, Event, Job, Notice, Promotion, Report, Space, Step, Submission,
};
use dormouse_policies::batch::{Algorithm, Config, OnPromotion};
use dormouse_units::{Attempt, Cpus, Ppm, Seats, Span, TaskId, Tier, Time};

use self::credits::MachineCredits;
use super::Violation;

mod credits;

/// A job in the system, and where it sits.
#[derive(Debug)]
struct Inside {
    job: Job,
    /// Number of the job's last start; zero before the first.
    attempt: Attempt,
    seats: Option<(Tier, Cpus)>,
    /// The job stood still for a move, for how long is not followed.
    was_moved: bool,
}

/// Follows the parallel jobs of a run, in steps as their scheduler saw them.
#[derive(Debug)]
pub struct JobsChecker {
    promotion: Option<OnPromotion>,
    usable_below: Ppm,
    space: Space,
    /// Who has the two seats of each processor.
    processors: Vec<[Option<TaskId>; 2]>,
    inside: BTreeMap<TaskId, Inside>,
    /// Jobs that have ended at this instant, of which the scheduler is yet to hear.
    over: BTreeSet<TaskId>,
    /// Those of their machine.
    credits: MachineCredits,
    /// How many were submitted.
    jobs: u64,
    found: Vec<Violation>,
    now: Time,
    seq: u64,
    /// The run was ended before its time.
    is_cut: bool,
}

impl JobsChecker {
    /// Nothing seen yet of these jobs, whose machine may say up to `lateness` of emulated time late
    /// what credits it has: zero in virtual time.
    #[must_use]
    pub fn new(simulation: &Simulation, lateness: Span) -> Self {
        let Config { algorithm, processors, usable_below, .. } = simulation.config;
        Self {
            promotion: algorithm.promotion(),
            // What is of use is for a program to say: a job below a full foreground waits there.
            usable_below: match algorithm {
                Algorithm::Program => Ppm::new(u32::MAX),
                _ => usable_below,
            },
            space: simulation.space(),
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

    /// The number of jobs that were followed.
    #[must_use]
    pub const fn jobs(&self) -> u64 {
        self.jobs
    }

    fn bad(&mut self, what: String) {
        self.found.push(Violation { seq: self.seq, at: self.now, what });
    }

    /// Takes in the next step.
    pub fn see(&mut self, step: &Step) {
        self.seq = step.seq;
        if step.at < self.now {
            self.bad(format!("the step of {} comes after that of {}", step.at, self.now));
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
                self.reported(*task, *attempt, step.effects.contains(&Effect::Stale));
            }
            Event::Submitted { job, .. } if !step.effects.contains(&Effect::Stale) => {
                if let Err(why) = job.fits(self.space) {
                    self.bad(format!("job {} is taken and can't be run: {why}", job.number));
                }
                self.followed(job);
            }
            Event::Machine { report: Report::Credits { vm, balance, as_of }, .. } => {
                if !step.effects.contains(&Effect::Stale)
                    && let Some(wrong) = self.credits.said(step.at, *vm, (*balance, *as_of))
                {
                    self.bad(format!("{vm}: {wrong}"));
                }
                self.look_at_use();
            }
            Event::InstantOver => self.instant(step),
            _ => {}
        }
        for effect in &step.effects {
            if let Effect::VmLaunched { vm, kind, .. } = effect {
                self.credits.launched(step.at, *vm, kind);
            }
        }
    }

    /// The jobs that a job follows have ended before it is submitted.
    fn followed(&mut self, job: &Submission) {
        let Some(after) = &job.after else { return };
        let goes_on = |(id, inside): &(&TaskId, &Inside)| {
            after.jobs.contains(&inside.job.number) && !self.over.contains(*id)
        };
        if let Some((_, first)) = self.inside.iter().find(goes_on) {
            let (number, before) = (job.number, first.job.number);
            self.bad(format!(
                "job {number} is submitted before job {before}, which it follows, has ended"
            ));
        }
    }

    /// Whether a machine's word that a job ended is of the job's present start.
    fn reported(&mut self, id: TaskId, attempt: Attempt, is_dropped: bool) {
        let Some(Inside { attempt: current, .. }) = self.inside.get(&id) else { return };
        if !is_dropped && *current != attempt {
            self.bad(format!("{id} ended in a former life and was heard of"));
        }
    }

    /// What the scheduler heard of an instant, and what it decided.
    fn instant(&mut self, step: &Step) {
        self.over.clear();
        for notice in &step.notices {
            match notice {
                Notice::Submitted { job } => self.submitted(job),
                Notice::TaskFinished { task, .. } => self.finished(*task),
                Notice::TaskFailed { task, .. } => self.stand(*task),
                Notice::VmLost { .. } => self.machine_lost(),
                _ => {}
            }
        }
        let mut sent = step.effects.iter().filter_map(|effect| match effect {
            Effect::TaskSent { task, attempt, .. } => Some((*task, *attempt)),
            _ => None,
        });
        for (n, decision) in step.decisions.iter().enumerate() {
            // It has heard of all there was: none of its decisions can have been overtaken.
            match step.effects.iter().find_map(|effect| refusal(effect, n)) {
                Some(why) => self.bad(format!("a decision can't be carried out: {why}")),
                None => self.decided(decision, &mut sent),
            }
        }
        if let Some((id, _)) = sent.next() {
            self.bad(format!("{id} is sent to a machine and nobody decided that"));
        }
        self.look_at_use();
    }

    fn submitted(&mut self, job: &Job) {
        self.jobs += 1;
        let (attempt, seats, was_moved) = (Attempt::default(), None, false);
        let inside = Inside { job: job.clone(), attempt, seats, was_moved };
        if self.inside.insert(job.id, inside).is_some() {
            self.bad(format!("job {} is submitted twice", job.number));
        }
    }

    fn finished(&mut self, id: TaskId) {
        match self.inside.get(&id).map(|inside| inside.seats.is_some()) {
            None => self.bad(format!("{id} ended and was not there")),
            Some(false) => self.bad(format!("{id} ended and was never started")),
            Some(true) => {
                self.stand(id);
                self.inside.remove(&id);
            }
        }
    }

    /// A job leaves its seats.
    fn stand(&mut self, id: TaskId) {
        let seats = self.inside.get_mut(&id).and_then(|inside| inside.seats.take());
        let Some((tier, on)) = seats else { return };
        for &p in &*on {
            if let Some(seats) = self.processors.get_mut(p as usize) {
                seats[tier as usize] = None;
            }
        }
    }

    /// All jobs are on one machine.
    fn machine_lost(&mut self) {
        self.processors.fill([None; 2]);
        self.inside.values_mut().for_each(|inside| inside.seats = None);
    }

    fn decided(&mut self, decision: &Decision, sent: &mut dyn Iterator<Item = (TaskId, Attempt)>) {
        let Some(id) = decision.task() else { return };
        let Some(seats) = self.inside.get(&id).map(|inside| inside.seats.clone()) else {
            return self.bad(format!("a decision about {id}, which is not there"));
        };
        match (decision, seats) {
            (Decision::Start { .. }, Some(_)) => self.bad(format!("{id} is started twice")),
            (Decision::Start { on: Seats { tier, cpus, .. }, .. }, None) => {
                if *tier == Tier::Background && self.promotion.is_none() {
                    self.bad(format!("{id} is put in the background by a one-tier scheduler"));
                }
                self.sent(id, sent.next());
                self.sit(id, *tier, cpus);
            }
            (Decision::Promote { .. }, None | Some((Tier::Foreground, _))) => {
                self.bad(format!("{id} is promoted and is not in the background"));
            }
            (Decision::Promote { by, .. }, Some((Tier::Background, old))) => {
                self.stand(id);
                self.promoted(id, by);
                match by {
                    Promotion::Swap => self.sit(id, Tier::Foreground, &old),
                    Promotion::Migrate { on } => {
                        self.sit(id, Tier::Foreground, on);
                        if let Some(inside) = self.inside.get_mut(&id) {
                            inside.was_moved = true;
                        }
                    }
                    Promotion::Kill { on } => {
                        self.sent(id, sent.next());
                        self.sit(id, Tier::Foreground, on);
                    }
                }
            }
            _ => self.bad(format!("{id} is treated in a way that no scheduler of jobs has")),
        }
    }

    /// A job is sent to the machine, under a number of its own.
    fn sent(&mut self, id: TaskId, sent: Option<(TaskId, Attempt)>) {
        let Some(inside) = self.inside.get_mut(&id) else { return };
        inside.attempt = inside.attempt.next();
        if sent != Some((id, inside.attempt)) {
            self.bad(format!("{id} is not sent under the next number of its starts"));
        }
    }

    /// Whether this scheduler moves jobs like that.
    fn promoted(&mut self, id: TaskId, by: &Promotion) {
        let allowed = match by {
            Promotion::Swap => self.promotion.is_some(),
            Promotion::Kill { .. } => self.promotion == Some(OnPromotion::Kill),
            Promotion::Migrate { .. } => self.promotion == Some(OnPromotion::Migrate),
        };
        if !allowed {
            self.bad(format!("{id} is moved in a way that its scheduler does not have"));
        }
    }

    fn sit(&mut self, id: TaskId, tier: Tier, on: &Cpus) {
        let Some(inside) = self.inside.get_mut(&id) else { return };
        inside.seats = Some((tier, on.clone()));
        let processes = inside.job.processes;
        if on.len() != processes as usize {
            self.bad(format!("{id} has {processes} processes and {} processors", on.len()));
        }
        for &p in &**on {
            let Some(seats) = self.processors.get_mut(p as usize) else {
                self.bad(format!("{id} is on processor {p}, which the machine does not have"));
                continue;
            };
            let other = seats[tier as usize].replace(id);
            let foreground = seats[Tier::Foreground as usize];
            if let Some(other) = other {
                self.bad(format!("{id} and {other} are in one seat of processor {p}"));
            }
            if tier == Tier::Background
                && foreground.is_some_and(|f| self.usage_on(f, p) >= self.usable_below)
            {
                self.bad(format!("{id} is below a foreground that leaves nothing on {p}"));
            }
        }
    }

    fn usage_on(&self, id: TaskId, p: u32) -> Ppm {
        let Some(Inside { job, seats: Some((_, on)), .. }) = self.inside.get(&id) else {
            return Ppm::ZERO;
        };
        on.iter().position(|&q| q == p).map_or(Ppm::ZERO, |n| job.usage.of_process(n))
    }

    /// What was wrong; where the run came to its end, as `ended` says, so must all jobs have.
    #[must_use]
    pub fn finish(mut self, ended: bool) -> Vec<Violation> {
        let left: Vec<_> = self.inside.values().map(|inside| inside.job.number).take(5).collect();
        if ended && !self.is_cut && !left.is_empty() {
            let numbers: Vec<_> = left.iter().map(u64::to_string).collect();
            let count = self.inside.len();
            self.bad(format!("{count} jobs never ended, such as {}", numbers.join(", ")));
        }
        self.found
    }
}

/// Why the decision at this place of its step was not carried out, if this says so.
fn refusal(effect: &Effect, place: usize) -> Option<&str> {
    match effect {
        Effect::Moot { index, why } | Effect::Rejected { index, why } if *index == place => {
            Some(why)
        }
        _ => None,
    }
}
