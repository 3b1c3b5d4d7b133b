//! The processors of the twin of a live run of parallel jobs: those by which the run is judged,
//! exact to the phase, and without any chance.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use dormouse_batch::{Executor, JobId, Move, Placement, Tier, Work};
use dormouse_tasks::ideal::{self, Change, Program};
use dormouse_units::{Attempt, Span, Time};

use super::measured::Moves;
use crate::live::Pace;

/// What a microsecond is rounded by: the machine counts nanoseconds, decisions microseconds.
const HALF: Duration = Duration::from_nanos(500);

/// A machine, and the jobs that are on their way to other processors of it: when they come, and
/// where.
#[derive(Clone, Debug, Default)]
struct Machine {
    ideal: ideal::Machine<JobId>,
    coming: BTreeMap<(Duration, JobId), Placement>,
}

impl Machine {
    /// Lets time pass until one more job is through, or until `limit`; whether one is.
    fn advance_to_an_end(&mut self, limit: Duration) -> bool {
        loop {
            let next = self.coming.first_key_value().map(|(&(at, _), _)| at);
            if self.ideal.advance_to_an_end(next.map_or(limit, |at| at.min(limit))) {
                return true;
            }
            if next.is_none_or(|at| at > limit) {
                return false;
            }
            if let Some(((_, key), on)) = self.coming.pop_first() {
                self.ideal.apply(Change::GoOn { key, on: on.to_vec(), anew: false });
            }
        }
    }

    /// Lets time pass until `to`.
    fn advance(&mut self, to: Duration) {
        while self.advance_to_an_end(to) {}
    }
}

/// A job that runs.
#[derive(Clone, Debug)]
struct Running {
    attempt: Attempt,
    work: Work,
}

/// The next ends: when, of whom, and the machine at that time.
#[derive(Clone, Debug)]
struct Next {
    at: Time,
    ended: Vec<JobId>,
    machine: Machine,
}

/// Processors whose foreground computes whenever it wants to and whose background computes in
/// the rest ([`dormouse_tasks::ideal`]), in emulated time.
#[derive(Debug)]
pub(super) struct TwoTier {
    pace: Pace,
    machine: Machine,
    running: BTreeMap<JobId, Running>,
    /// Those that have ended and were not taken yet.
    ended: Vec<JobId>,
    next: Option<Next>,
    /// How long each migration will take; the experiment says it of others.
    moves: Moves,
}

impl TwoTier {
    /// Idle ones, for jobs with phases as long as this run's, and migrations that take as long.
    pub(super) fn new(pace: Pace, moves: Moves) -> Self {
        let (machine, running) = (Machine::default(), BTreeMap::new());
        Self { pace, machine, running, ended: Vec::new(), next: None, moves }
    }

    fn program(&self, work: &Work, processes: usize) -> Program {
        let of_run = self.pace.program(work.runtime, processes, &work.usage);
        // Of the run's clock, which is rounded less than real time.
        Program { runtime: since_begin(Time::ZERO + work.runtime), ..of_run }
    }

    /// Something happens to a job.
    fn apply(&mut self, now: Time, change: Change<JobId>) {
        self.machine.advance(since_begin(now));
        self.machine.ideal.apply(change);
    }

    fn begin(&mut self, now: Time, work: &Work, tier: Tier, on: &Placement) {
        let program = self.program(work, on.len());
        let (on, foreground) = (on.to_vec(), tier == Tier::Foreground);
        self.apply(now, Change::Start { key: work.job, program, on, foreground });
    }

    /// The next ends, if nothing else happens before.
    fn foreseen(&self) -> Option<Next> {
        let mut machine = self.machine.clone();
        let mut found = machine.advance_to_an_end(Duration::MAX).then(|| {
            let at = rounded(machine.ideal.now());
            Next { at, ended: Vec::new(), machine }
        })?;
        // All others of this microsecond.
        let until = since_begin(found.at) + HALF - Duration::from_nanos(1);
        let mut further = found.machine.clone();
        while further.advance_to_an_end(until) {
            found.machine = further.clone();
        }
        let through = |job: &JobId| found.machine.ideal.ended(*job).is_some();
        // The first is taken from the end.
        found.ended = self.running.keys().rev().copied().filter(through).collect();
        Some(found)
    }
}

impl Executor for TwoTier {
    fn start(
        &mut self,
        now: Time,
        work: Work,
        attempt: Attempt,
        tier: Tier,
        on: Placement,
    ) -> usize {
        let job = work.job;
        self.begin(now, &work, tier, &on);
        self.running.insert(job, Running { attempt, work });
        job.get() as usize
    }

    fn promote(&mut self, now: Time, slot: usize, attempt: Attempt, by: &Move, cost: Span) {
        let Ok(key) = u32::try_from(slot).map(JobId::new) else { return };
        let Some(running) = self.running.get_mut(&key) else { return };
        running.attempt = attempt;
        let work = running.work.clone();
        match by {
            Move::Swap => self.apply(now, Change::Promote(key)),
            Move::Kill { on } => {
                self.apply(now, Change::Kill(key));
                self.begin(now, &work, Tier::Foreground, on);
            }
            Move::Migrate { on } => {
                let own = self.moves.get_mut(&key).and_then(VecDeque::pop_front);
                let cost = own.unwrap_or(cost);
                self.apply(now, Change::Stand(key));
                self.machine.coming.insert((since_begin(now + cost), key), on.clone());
            }
        }
    }

    fn settle(&mut self, now: Time) {
        self.machine.advance(since_begin(now));
        self.next = self.foreseen();
    }

    fn next_end(&mut self) -> Option<Time> {
        self.next.as_ref().map(|next| next.at)
    }

    fn take_ended(&mut self, now: Time) -> Option<(JobId, Attempt)> {
        if let Some(Next { ended, machine, .. }) = self.next.take_if(|next| next.at <= now) {
            (self.ended, self.machine) = (ended, machine);
        }
        let job = self.ended.pop()?;
        self.machine.ideal.apply(Change::Kill(job));
        Some((job, self.running.remove(&job)?.attempt))
    }
}

/// The machine's clock at a time of the run.
const fn since_begin(at: Time) -> Duration {
    Duration::from_micros(at.as_micros())
}

/// The nearest time of the run.
fn rounded(at: Duration) -> Time {
    Time::from_micros(u64::try_from((at + HALF).as_micros()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use dormouse_batch::Usage;
    use dormouse_units::Ppm;

    use super::*;

    /// A second is a second, and a phase as well.
    const PACE: Pace = Pace { emulated_us_per_second: 1_000_000, phase: Duration::from_secs(1) };

    fn start(on: &mut TwoTier, at: u64, job: u32, of: (u64, f64), tier: Tier, place: u32) {
        let usage = Usage::Uniform(Ppm::new((of.1 * 1e6) as u32));
        let work = Work { job: JobId::new(job), runtime: Span::from_secs(of.0), usage };
        on.start(Time::from_secs(at), work, Attempt::new(1), tier, vec![place].into());
    }

    fn promote(on: &mut TwoTier, at: u64, job: u32, attempt: u32, by: &Move) {
        let (slot, cost) = (job as usize, Span::from_secs(5));
        on.promote(Time::from_secs(at), slot, Attempt::new(attempt), by, cost);
    }

    /// All ends that are left: when, of which job, of which start.
    fn ends(on: &mut TwoTier, settled: u64) -> Vec<(f64, u32, u32)> {
        let mut ends = Vec::new();
        on.settle(Time::from_secs(settled));
        while let Some(now) = on.next_end() {
            while let Some((job, attempt)) = on.take_ended(now) {
                ends.push((now.as_secs_f64(), job.get(), attempt.get()));
            }
            on.settle(now);
        }
        ends
    }

    #[test]
    fn jobs_end_when_the_law_says_and_those_of_one_time_in_the_order_of_the_jobs() {
        let mut on = TwoTier::new(PACE, Moves::new());
        // .6 s of each of its seconds are left to the one below it, which then is alone.
        start(&mut on, 0, 3, (10, 0.4), Tier::Foreground, 0);
        start(&mut on, 0, 1, (8, 1.0), Tier::Background, 0);
        start(&mut on, 0, 2, (10, 0.7), Tier::Foreground, 1);
        assert_eq!(ends(&mut on, 0), [(10.0, 2, 1), (10.0, 3, 1), (12.0, 1, 1)]);
        assert_eq!((on.next_end(), on.running.len()), (None, 0));
    }

    #[test]
    fn a_job_comes_to_the_foreground_as_it_is_told() {
        let on = Placement::from(vec![1]);
        // At 4 s, when 2 s of its 8 s are done: these are lost, or 5 s pass.
        let swap = (Move::Swap, 1, 10.0);
        let kill = (Move::Kill { on: on.clone() }, 2, 12.0);
        let migrate = (Move::Migrate { on }, 1, 15.0);
        // Or 3 s, as in the run.
        let own = Moves::from([(JobId::new(1), [Span::from_secs(3)].into())]);
        let as_it_was = (migrate.0.clone(), 1, 13.0, own);
        let all = [swap, kill, migrate].map(|(by, attempt, end)| (by, attempt, end, Moves::new()));
        for (by, attempt, end, moves) in all.into_iter().chain([as_it_was]) {
            let mut on = TwoTier::new(PACE, moves);
            start(&mut on, 0, 0, (2, 1.0), Tier::Foreground, 0);
            start(&mut on, 0, 1, (8, 1.0), Tier::Background, 0);
            on.settle(Time::ZERO);
            assert_eq!(on.next_end(), Some(Time::from_secs(2)));
            // Nobody has taken the end: another decision is made before, and it is foreseen again.
            start(&mut on, 1, 2, (1, 1.0), Tier::Foreground, 2);
            on.settle(Time::from_secs(1));
            for job in [0, 2] {
                let taken = on.take_ended(Time::from_secs(2));
                assert_eq!(taken, Some((JobId::new(job), Attempt::new(1))));
            }
            on.settle(Time::from_secs(2));
            promote(&mut on, 4, 1, attempt, &by);
            assert_eq!(ends(&mut on, 4), [(end, 1, attempt)], "{by:?}");
        }
    }
}
