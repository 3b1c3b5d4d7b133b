//! What must not be in a batch run: two jobs in one VM, a job on the wrong number of processors,
//! a move that its scheduler does not make, a job that never ended, …

use std::collections::BTreeMap;
use std::fmt;

use dormouse_batch::{Decision, Event, Job, JobId, Move, Promotion, Tier};
use dormouse_coordinator::BatchStep;
use dormouse_units::{Attempt, Ppm, Time};

use super::BatchError;
use super::log::BatchLog;
use super::play::play;

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When.
    pub at: Time,
    /// What.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}: {}", self.at, self.what)
    }
}

/// What was looked at, and what was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// How many steps.
    pub steps: u64,
    /// How many jobs.
    pub jobs: u64,
    /// In order.
    pub violations: Vec<Violation>,
}

/// Looks through every step of a run, which came to its end or, if `ended` is false, was killed.
///
/// # Errors
///
/// The jobs can't be read again.
pub fn check(log: &BatchLog, ended: bool) -> Result<Checked, BatchError> {
    let mut checker = Checker {
        promotion: log.header.experiment.scheduler.name.promotion(),
        usable_below: log.header.experiment.config(log.header.machine).usable_below,
        processors: vec![[None; 2]; log.header.machine as usize],
        jobs: BTreeMap::new(),
        found: Checked::default(),
        now: Time::ZERO,
    };
    play(log, |step| {
        checker.step(step);
        Ok(())
    })?;
    Ok(checker.end(ended))
}

/// A job in the system, and where it sits.
struct Inside {
    job: Job,
    seat: Option<(Tier, Vec<u32>, Attempt)>,
}

struct Checker {
    promotion: Option<Promotion>,
    usable_below: Ppm,
    /// Who is in the two VMs of each processor.
    processors: Vec<[Option<JobId>; 2]>,
    jobs: BTreeMap<JobId, Inside>,
    found: Checked,
    now: Time,
}

impl Checker {
    fn bad(&mut self, what: String) {
        self.found.violations.push(Violation { at: self.now, what });
    }

    fn step(&mut self, step: &BatchStep) {
        if step.at < self.now {
            self.bad(format!("the step of {} comes after that of {}", step.at, self.now));
        }
        self.now = step.at;
        self.found.steps += 1;
        for event in &step.events {
            match event {
                Event::Submitted(job) => self.submitted(job),
                Event::Finished { job, attempt } => self.finished(*job, *attempt),
            }
        }
        for decision in &step.decisions {
            self.decided(decision);
        }
    }

    fn submitted(&mut self, job: &Job) {
        self.found.jobs += 1;
        let inside = Inside { job: job.clone(), seat: None };
        if self.jobs.insert(job.id, inside).is_some() {
            self.bad(format!("job {} is submitted twice", job.number));
        }
    }

    fn finished(&mut self, id: JobId, attempt: Attempt) {
        match self.jobs.get(&id).map(|inside| inside.seat.as_ref().map(|seat| seat.2)) {
            None => self.bad(format!("{id} ended and was not there")),
            Some(None) => self.bad(format!("{id} ended and was never started")),
            // A former life: the scheduler drops it.
            Some(Some(current)) if current != attempt => {}
            Some(Some(_)) => {
                self.stand(id);
                self.jobs.remove(&id);
            }
        }
    }

    fn stand(&mut self, id: JobId) {
        let Some((tier, on, _)) = self.jobs.get_mut(&id).and_then(|inside| inside.seat.take())
        else {
            return;
        };
        for p in on {
            if let Some(vms) = self.processors.get_mut(p as usize) {
                vms[tier as usize] = None;
            }
        }
    }

    fn decided(&mut self, decision: &Decision) {
        let id = decision.job();
        let Some(seat) = self.jobs.get(&id).map(|inside| inside.seat.clone()) else {
            return self.bad(format!("a decision about {id}, which is not there"));
        };
        match (decision, seat) {
            (Decision::Start { .. }, Some(_)) => self.bad(format!("{id} is started twice")),
            (Decision::Start { attempt, tier, on, .. }, None) => {
                if *tier == Tier::Background && self.promotion.is_none() {
                    self.bad(format!("{id} is put in the background by a one-tier scheduler"));
                }
                self.sit(id, *tier, on, *attempt);
            }
            (Decision::Promote { .. }, None | Some((Tier::Foreground, ..))) => {
                self.bad(format!("{id} is promoted and is not in the background"));
            }
            (Decision::Promote { attempt, by, .. }, Some((_, old, before))) => {
                self.stand(id);
                self.promoted(id, by, (*attempt, before));
                match by {
                    Move::Swap => self.sit(id, Tier::Foreground, &old, *attempt),
                    Move::Kill { on } | Move::Migrate { on } => {
                        self.sit(id, Tier::Foreground, on, *attempt);
                    }
                }
            }
        }
    }

    /// Whether this scheduler moves jobs like that, and whether a start has a number of its own.
    fn promoted(&mut self, id: JobId, by: &Move, (now, before): (Attempt, Attempt)) {
        let allowed = match by {
            Move::Swap => self.promotion.is_some(),
            Move::Kill { .. } => self.promotion == Some(Promotion::Kill),
            Move::Migrate { .. } => self.promotion == Some(Promotion::Migrate),
        };
        if !allowed {
            self.bad(format!("{id} is moved in a way that its scheduler does not have"));
        }
        if (now != before) != matches!(by, Move::Kill { .. }) {
            self.bad(format!("{id} goes on under the wrong number of its starts"));
        }
    }

    fn sit(&mut self, id: JobId, tier: Tier, on: &[u32], attempt: Attempt) {
        let Some(inside) = self.jobs.get_mut(&id) else { return };
        inside.seat = Some((tier, on.to_vec(), attempt));
        let processes = inside.job.processes;
        if on.len() != processes as usize {
            self.bad(format!("{id} has {processes} processes and {} processors", on.len()));
        }
        for &p in on {
            let Some(vms) = self.processors.get_mut(p as usize) else {
                self.bad(format!("{id} is on processor {p}, which the machine does not have"));
                continue;
            };
            let other = vms[tier as usize].replace(id);
            let foreground = vms[Tier::Foreground as usize];
            if let Some(other) = other {
                self.bad(format!("{id} and {other} are in one VM of processor {p}"));
            }
            if tier == Tier::Background
                && foreground.is_some_and(|f| self.usage_on(f, p) >= self.usable_below)
            {
                self.bad(format!("{id} is below a foreground that leaves nothing on {p}"));
            }
        }
    }

    fn usage_on(&self, id: JobId, p: u32) -> Ppm {
        let Some(Inside { job, seat: Some((_, on, _)) }) = self.jobs.get(&id) else {
            return Ppm::ZERO;
        };
        on.iter().position(|&q| q == p).map_or(Ppm::ZERO, |n| job.usage.of(n))
    }

    fn end(mut self, ended: bool) -> Checked {
        let left: Vec<_> = self.jobs.values().map(|inside| inside.job.number).take(5).collect();
        if ended && !left.is_empty() {
            let numbers: Vec<_> = left.iter().map(u64::to_string).collect();
            let count = self.jobs.len();
            self.bad(format!("{count} jobs never ended, such as {}", numbers.join(", ")));
        }
        self.found
    }
}
