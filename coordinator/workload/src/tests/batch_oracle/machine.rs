//! A machine of two-tier processors and its jobs: the oracle computes all speeds anew at every event.

use dormouse_units::RandomStream;

use super::swf::{Job, SECOND};

/// A whole processor in parts per million.
const ONE: u64 = 1_000_000;

/// Time that a migration costs the job that is moved, in microseconds (section 3 of the paper).
const MIGRATION: u64 = 20 * SECOND;

/// The five schedulers of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheduler {
    Fcfs,
    Easy,
    Keasy,
    Reasy,
    Measy,
}

/// Place of a job; processors are in the order of its processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The job has no processors.
    Waiting,
    /// The job runs in the background of these processors.
    Background(Vec<usize>),
    /// The job runs in the foreground of these processors.
    Foreground(Vec<usize>),
    /// The job is done.
    Gone,
}

/// A job in the system.
#[derive(Clone, Debug)]
pub(crate) struct Present {
    pub(crate) id: usize,
    pub(crate) place: Place,
    /// Time at which the scheduler expects a job in the foreground to end, in microseconds.
    pub(crate) expected_end: u64,
    /// Remaining work of the job, in microseconds times parts per million of a processor.
    left: u128,
    /// Time until which a migration keeps the job from running, in microseconds.
    held_until: u64,
}

/// Outcome of all jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The end of each job in microseconds, by its index in the log.
    pub(crate) ends: Vec<u64>,
    pub(crate) swaps: u64,
    pub(crate) kills: u64,
    pub(crate) migrations: u64,
}

/// The machine, the jobs in the system in order of submission, and the clock.
#[derive(Debug)]
pub(crate) struct Machine<'a> {
    pub(crate) scheduler: Scheduler,
    pub(crate) processors: usize,
    pub(crate) jobs: &'a [Job],
    pub(crate) present: Vec<Present>,
    pub(crate) now: u64,
    pub(crate) outcome: Outcome,
    seed: u64,
}

impl<'a> Machine<'a> {
    /// Runs all jobs to their end.
    pub(crate) fn run(
        scheduler: Scheduler,
        processors: usize,
        jobs: &'a [Job],
        seed: u64,
    ) -> Outcome {
        let outcome = Outcome { ends: vec![0; jobs.len()], ..Outcome::default() };
        let mut of =
            Self { scheduler, processors, jobs, present: Vec::new(), now: 0, outcome, seed };
        let mut next = 0;
        loop {
            let submission = jobs.get(next).map(|job| job.submitted);
            let Some(then) = submission.into_iter().chain(of.next_change()).min() else { break };
            of.advance(then);
            let mut is_news = of.take_off_the_done();
            while jobs.get(next).is_some_and(|job| job.submitted <= of.now) {
                let present = Present {
                    id: next,
                    place: Place::Waiting,
                    expected_end: 0,
                    left: whole(&jobs[next]),
                    held_until: 0,
                };
                of.present.push(present);
                (next, is_news) = (next + 1, true);
            }
            // A job of no run time ends after the pass that starts it, and there is another.
            while is_news {
                of.pass();
                is_news = of.take_off_the_done();
            }
        }
        of.outcome
    }

    /// The job on each processor of a tier, with the number of its process there.
    pub(crate) fn seats(&self, foreground: bool) -> Vec<Option<(usize, usize)>> {
        let mut seats = vec![None; self.processors];
        for (at, present) in self.present.iter().enumerate() {
            match (&present.place, foreground) {
                (Place::Foreground(on), true) | (Place::Background(on), false) => {
                    for (process, &processor) in on.iter().enumerate() {
                        assert_eq!(seats[processor], None, "a processor is given twice");
                        seats[processor] = Some((at, process));
                    }
                }
                _ => {}
            }
        }
        seats
    }

    /// CPU usage on each processor of a tier, in parts per million; `None`: the processor has no job in this tier.
    pub(crate) fn usages(&self, foreground: bool) -> Vec<Option<u64>> {
        let usage = |(at, process): (usize, usize)| {
            let present: &Present = &self.present[at];
            self.jobs[present.id].usage[process]
        };
        self.seats(foreground).into_iter().map(|seat| seat.map(usage)).collect()
    }

    /// Moves a job from the background to the foreground of the processors `on`.
    pub(crate) fn promote(&mut self, at: usize, on: Vec<usize>) {
        let (now, id) = (self.now, self.present[at].id);
        let (stays, outcome) =
            (self.present[at].place == Place::Background(on.clone()), &mut self.outcome);
        let present = &mut self.present[at];
        match self.scheduler {
            _ if stays => outcome.swaps += 1,
            Scheduler::Measy => {
                outcome.migrations += 1;
                present.held_until = now + MIGRATION;
            }
            _ => {
                outcome.kills += 1;
                present.left = whole(&self.jobs[id]);
            }
        }
        present.place = Place::Foreground(on);
    }

    /// Speed of each job in parts per million (section 3.2 of the paper).
    fn rates(&self) -> Vec<u64> {
        let (above, below) = (self.usages(true), self.usages(false));
        let rate = |present: &Present| match &present.place {
            Place::Waiting | Place::Gone => 0,
            Place::Foreground(on) if on.iter().any(|&p| below[p].is_some()) => {
                ONE - self.loss(present.id)
            }
            Place::Foreground(_) => ONE,
            Place::Background(on) => {
                let x = self.utilisation(present.id);
                let of_process = |(n, &p): (usize, &usize)| {
                    let used = above[p]?;
                    Some(x * (ONE - used) / self.jobs[present.id].usage[n])
                };
                // The floor of the least is the least of the floors.
                on.iter().enumerate().filter_map(of_process).fold(ONE, u64::min)
            }
        };
        self.present.iter().map(rate).collect()
    }

    /// Part of a job's speed that it loses to jobs in the background of its processors, in parts per million: from .5
    /// to 4 %.
    fn loss(&self, id: usize) -> u64 {
        let unit = RandomStream::new(self.seed, "loss", id as u64).draw_unit();
        ppm(0.005 + (0.04 - 0.005) * unit)
    }

    /// Part of the foreground's idle cycles that a job in the background uses, in parts per million.
    fn utilisation(&self, id: usize) -> u64 {
        let mut stream = RandomStream::new(self.seed, "utilisation", id as u64);
        if self.jobs[id].processes == 1 {
            return ppm(0.80 + (0.92 - 0.80) * stream.draw_unit());
        }
        loop {
            let radius = libm::sqrt(-2.0 * libm::log(1.0 - stream.draw_unit()));
            let normal = radius * libm::cos(std::f64::consts::TAU * stream.draw_unit());
            let x = 0.43 + 0.14 * normal;
            if (0.198..=0.766).contains(&x) {
                return ppm(x);
            }
        }
    }

    /// The next time at which a job or a migration ends, in microseconds; `None` if there is none.
    fn next_change(&self) -> Option<u64> {
        let change = |(present, rate): (&Present, u64)| {
            if present.held_until > self.now {
                return Some(present.held_until);
            }
            let takes = present.left.div_ceil(u128::from((rate > 0).then_some(rate)?));
            Some(self.now + u64::try_from(takes).expect("no job takes so long"))
        };
        self.present.iter().zip(self.rates()).filter_map(change).min()
    }

    /// Advances the clock to `then`, before which no job or migration ends.
    fn advance(&mut self, then: u64) {
        let (span, rates) = (u128::from(then - self.now), self.rates());
        for (present, rate) in self.present.iter_mut().zip(rates) {
            if present.held_until <= self.now {
                present.left = present.left.saturating_sub(span * u128::from(rate));
            }
        }
        self.now = then;
    }

    /// Removes the jobs that have done all their work; true if there was any.
    fn take_off_the_done(&mut self) -> bool {
        let before = self.present.len();
        for present in &mut self.present {
            if present.place != Place::Waiting && present.left == 0 {
                self.outcome.ends[present.id] = self.now;
                present.place = Place::Gone;
            }
        }
        self.present.retain(|present| present.place != Place::Gone);
        self.present.len() < before
    }
}

fn whole(job: &Job) -> u128 {
    u128::from(job.runtime) * u128::from(ONE)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of one")]
fn ppm(x: f64) -> u64 {
    (x * 1e6).round() as u64
}
