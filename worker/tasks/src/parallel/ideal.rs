//! What processors that are just as fast as they should be make of parallel jobs: how far every
//! process is at any moment, and when a job is through.
//!
//! A processor runs its foreground process whenever that wants to compute and its background
//! process at all other times, at full speed and without any cost of changing over. What a process
//! wants is known: its share of every phase, after which it waits for the others.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::PPM;
use super::shares::{self, Shares};

/// The run's clock in real time, where so many microseconds of it pass in a second.
#[must_use]
pub fn real(at_us: u64, emulated_us_per_second: u64) -> Duration {
    let ns = u128::from(at_us) * 1_000_000_000 / u128::from(emulated_us_per_second.max(1));
    Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}

/// What a job has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// How long it takes on processors of its own.
    pub runtime: Duration,
    /// Phases, each of which ends at a barrier; at least 1.
    pub phases: u32,
    /// CPU usage of its processes on processors of their own, parts per million.
    pub usage: Vec<u32>,
}

/// A start of a job on some processors. Times are nanoseconds.
#[derive(Clone, Debug)]
struct Start {
    program: Program,
    shares: Shares,
    /// The processor of each process.
    on: Vec<u32>,
    foreground: bool,
    /// It is kept from running, because it is being moved.
    stands: bool,
    /// Phases that have begun.
    begun: u32,
    /// Of each process, the millionths of phases that it computes up to the end of this one.
    share: Vec<u64>,
    /// What each process computes up to the end of this phase, and what it has.
    due: Vec<u64>,
    done: Vec<u64>,
    /// What is left of the wait for the network that ends this phase.
    network: u64,
    ended: Option<u64>,
}

impl Start {
    fn new(program: Program, on: &[u32], foreground: bool) -> Self {
        let ranks = program.usage.len();
        let mut start = Self {
            shares: Shares::new(&program.usage),
            on: on.to_vec(),
            foreground,
            stands: false,
            begun: 0,
            share: vec![0; ranks],
            due: vec![0; ranks],
            done: vec![0; ranks],
            network: 0,
            ended: None,
            program,
        };
        start.begin_phase();
        start
    }

    /// A part of a phase, in millionths, as time.
    fn time(&self, share: u64) -> u64 {
        let phases = u128::from(PPM) * u128::from(self.program.phases.max(1));
        let time = self.program.runtime.as_nanos() * u128::from(share) / phases;
        u64::try_from(time).unwrap_or(u64::MAX)
    }

    fn begin_phase(&mut self) {
        self.begun += 1;
        for (sum, share) in self.share.iter_mut().zip(self.shares.next_of_all()) {
            *sum += u64::from(share);
        }
        self.due = self.share.iter().map(|share| self.time(*share)).collect();
        self.network = self.time(shares::network(&self.program.usage).into());
    }

    fn runs(&self) -> bool {
        !self.stands && self.ended.is_none()
    }

    fn is_at_barrier(&self) -> bool {
        self.done.iter().zip(&self.due).all(|(done, due)| done >= due)
    }

    /// Its processes that want to compute: who, where, and for how long.
    fn wants(&self) -> impl Iterator<Item = (usize, u32, u64)> {
        let runs = self.runs();
        let all = self.due.iter().zip(&self.done).zip(&self.on).enumerate();
        all.filter(move |(_, ((due, done), _))| runs && due > done)
            .map(|(rank, ((due, done), on))| (rank, *on, due - done))
    }

    /// Goes into the next phase, or ends, where this one is over.
    fn turn(&mut self, now: u64) {
        while self.runs() && self.is_at_barrier() && self.network == 0 {
            if self.begun >= self.program.phases {
                self.ended = Some(now);
            } else {
                self.begin_phase();
            }
        }
    }
}

/// A machine of such processors. Jobs are known by keys of whoever uses it.
#[derive(Clone, Debug)]
pub struct Machine<K> {
    now: u64,
    jobs: BTreeMap<K, Start>,
}

impl<K> Default for Machine<K> {
    fn default() -> Self {
        Self { now: 0, jobs: BTreeMap::new() }
    }
}

/// What happens to a job of key `K`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change<K> {
    /// It begins, process by process on the processors `on`.
    Start {
        /// The job that it is about.
        key: K,
        /// What it has to do.
        program: Program,
        /// The processor of each process.
        on: Vec<u32>,
        /// In which tier.
        foreground: bool,
    },
    /// It comes to the foreground where it is.
    Promote(K),
    /// It stands still, and its processors are free.
    Stand(K),
    /// It goes on in the foreground of other processors, after it stood still.
    GoOn {
        /// The job that it is about.
        key: K,
        /// The processor of each process.
        on: Vec<u32>,
        /// All that it has done is lost.
        anew: bool,
    },
    /// It is killed.
    Kill(K),
}

impl<K: Ord + Copy> Machine<K> {
    /// Something happens to a job now. To one that isn't there, only a start can.
    pub fn apply(&mut self, change: Change<K>) {
        match change {
            Change::Start { key, program, on, foreground } => {
                self.jobs.insert(key, Start::new(program, &on, foreground));
            }
            Change::Promote(key) => self.of(key, |start| start.foreground = true),
            Change::Stand(key) => self.of(key, |start| start.stands = true),
            Change::GoOn { key, on, anew } => self.of(key, |start| {
                if anew {
                    *start = Start::new(start.program.clone(), &start.on, true);
                }
                (start.stands, start.foreground, start.on) = (false, true, on);
            }),
            Change::Kill(key) => {
                self.jobs.remove(&key);
            }
        }
    }

    fn of(&mut self, key: K, change: impl FnOnce(&mut Start)) {
        if let Some(start) = self.jobs.get_mut(&key) {
            change(start);
        }
    }

    /// Forgets jobs that are gone and through, or would stand for ever.
    pub fn forget(&mut self, is_gone: impl Fn(K) -> bool) {
        self.jobs.retain(|key, start| start.runs() || !is_gone(*key));
    }

    /// How long the job `key` would still take if nothing were in its way; none if it is through.
    #[must_use]
    pub fn left_alone(&self, key: K) -> Option<Duration> {
        let start = self.jobs.get(&key).filter(|start| start.ended.is_none())?;
        let start = Start { stands: false, foreground: true, ..start.clone() };
        let mut machine = Self { now: self.now, jobs: BTreeMap::from([(key, start)]) };
        machine.advance_to_end(key, Duration::from_nanos(u64::MAX));
        machine.ended(key).map(|end| end.saturating_sub(self.now()))
    }

    /// How much time has passed since the machine was made.
    #[must_use]
    pub const fn now(&self) -> Duration {
        Duration::from_nanos(self.now)
    }

    /// Lets time pass until `to`, since the machine was made; none if that is over.
    pub fn advance(&mut self, to: Duration) {
        let to = u64::try_from(to.as_nanos()).unwrap_or(u64::MAX);
        while self.now < to {
            self.step(to);
        }
    }

    /// Lets time pass until the job `key` is through, if nothing else happens on the way.
    ///
    /// It never is where a foreground keeps its processor busy for good, or it stands: `limit`,
    /// since the machine was made, ends the wait.
    pub fn advance_to_end(&mut self, key: K, limit: Duration) {
        let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        while self.now < limit && self.jobs.get(&key).is_some_and(|start| start.ended.is_none()) {
            self.step(limit);
        }
    }

    /// Lets time pass until one more job is through, or until `limit`, since the machine was made;
    /// whether one is.
    pub fn advance_to_an_end(&mut self, limit: Duration) -> bool {
        let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        let before = self.through();
        while self.now < limit && self.through() == before {
            self.step(limit);
        }
        self.through() > before
    }

    /// How many of its jobs are through.
    fn through(&self) -> usize {
        self.jobs.values().filter(|start| start.ended.is_some()).count()
    }

    /// What each process of a job has computed, in time of its processor.
    #[must_use]
    pub fn done(&self, key: K) -> Vec<Duration> {
        let done = self.jobs.get(&key).map_or(&[][..], |start| &start.done);
        done.iter().map(|ns| Duration::from_nanos(*ns)).collect()
    }

    /// When a job was through, since the machine was made.
    #[must_use]
    pub fn ended(&self, key: K) -> Option<Duration> {
        self.jobs.get(&key)?.ended.map(Duration::from_nanos)
    }

    /// Lets time pass up to the next change or `to`.
    fn step(&mut self, to: u64) {
        let mut computing = Vec::new();
        let mut busy = BTreeSet::new();
        for tier in [true, false] {
            for (key, start) in self.jobs.iter().filter(|(_, start)| start.foreground == tier) {
                for (rank, on, left) in start.wants() {
                    if tier || !busy.contains(&on) {
                        computing.push((*key, rank, left));
                    }
                    if tier {
                        busy.insert(on);
                    }
                }
            }
        }
        let waits = |start: &&mut Start| start.runs() && start.is_at_barrier();
        let least = computing.iter().map(|(.., left)| *left);
        let network = self.jobs.values_mut().filter(waits).map(|start| start.network);
        let span = least.chain(network).chain([to - self.now]).min().unwrap_or(0);
        self.now += span;
        for start in self.jobs.values_mut().filter(waits) {
            start.network -= span;
        }
        for (key, rank, _) in computing {
            if let Some(done) = self.jobs.get_mut(&key).and_then(|start| start.done.get_mut(rank)) {
                *done += span;
            }
        }
        for start in self.jobs.values_mut() {
            start.turn(self.now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(s: u64) -> Duration {
        Duration::from_secs(s)
    }

    fn program(runtime: u64, phases: u32, usage: &[f64]) -> Program {
        let usage = usage.iter().map(|u| (u * 1e6) as u32).collect();
        Program { runtime: secs(runtime), phases, usage }
    }

    /// When the job of key 1 is through.
    fn end(machine: &mut Machine<u32>) -> f64 {
        machine.advance_to_end(1, secs(10_000));
        machine.ended(1).map_or(f64::NAN, |end| end.as_secs_f64())
    }

    fn start(machine: &mut Machine<u32>, key: u32, program: Program, on: &[u32], foreground: bool) {
        machine.apply(Change::Start { key, program, on: on.to_vec(), foreground });
    }

    #[test]
    fn a_job_alone_takes_its_run_time_whatever_its_usage() {
        for usage in [&[1.0][..], &[0.3], &[0.6; 5], &[1.0, 0.4], &[0.1, 0.2]] {
            for tier in [true, false] {
                let mut machine = Machine::default();
                let on = &[0, 1, 2, 3, 4][..usage.len()];
                start(&mut machine, 1, program(10, 7, usage), on, tier);
                assert!((end(&mut machine) - 10.0).abs() < 1e-5, "{usage:?}");
            }
        }
    }

    #[test]
    fn the_background_has_what_the_foreground_leaves() {
        let mut machine = Machine::default();
        start(&mut machine, 2, program(10, 10, &[0.4]), &[0], true);
        start(&mut machine, 1, program(6, 6, &[1.0]), &[0], false);
        // .6 s of each second, of which the last is the end of a phase of the foreground.
        assert!((end(&mut machine) - 10.0).abs() < 1e-5);
        assert!(machine.ended(2).is_some_and(|end| end == secs(10)));
        assert_eq!(machine.done(2), [secs(4)]);
    }

    #[test]
    fn a_busy_foreground_leaves_nothing_until_it_is_gone() {
        let mut machine = Machine::default();
        start(&mut machine, 2, program(100, 1, &[1.0]), &[0], true);
        start(&mut machine, 1, program(4, 2, &[1.0, 1.0]), &[0, 1], false);
        machine.advance(secs(5));
        assert_eq!(machine.done(1), [Duration::ZERO, secs(2)], "the barrier holds the other one");
        machine.apply(Change::Kill(2));
        machine.apply(Change::Promote(1));
        assert!((end(&mut machine) - 9.0).abs() < 1e-5);
    }

    #[test]
    fn what_is_left_of_a_job_does_not_count_its_neighbours() {
        let mut machine = Machine::default();
        start(&mut machine, 2, program(100, 1, &[1.0]), &[0], true);
        start(&mut machine, 1, program(4, 2, &[1.0, 1.0]), &[0, 1], false);
        machine.advance(secs(5));
        assert_eq!(machine.left_alone(1), Some(secs(4)));
        assert_eq!(machine.left_alone(2), Some(secs(95)));
        machine.apply(Change::Stand(1));
        assert_eq!(machine.left_alone(1), Some(secs(4)));
        machine.advance(secs(100));
        assert_eq!(machine.left_alone(2), None);
        machine.forget(|_| true);
        assert_eq!((machine.left_alone(1), machine.ended(2)), (None, None));
    }

    #[test]
    fn time_stops_at_the_first_end_and_again_at_the_next() {
        let mut machine = Machine::default();
        start(&mut machine, 2, program(10, 10, &[0.4]), &[0], true);
        start(&mut machine, 1, program(3, 3, &[1.0]), &[0], false);
        assert!(!machine.advance_to_an_end(secs(4)));
        assert_eq!(machine.now(), secs(4));
        // .6 s of each second.
        assert!(machine.advance_to_an_end(secs(100)));
        assert_eq!((machine.now(), machine.ended(1)), (secs(5), Some(secs(5))));
        assert!(machine.advance_to_an_end(secs(100)));
        assert_eq!((machine.now(), machine.ended(2)), (secs(10), Some(secs(10))));
        assert!(!machine.advance_to_an_end(secs(100)));
    }

    #[test]
    fn a_job_that_is_moved_loses_the_time_that_takes_and_no_work() {
        let mut machine = Machine::default();
        start(&mut machine, 1, program(10, 4, &[1.0]), &[0], false);
        machine.advance(secs(3));
        machine.apply(Change::Stand(1));
        machine.advance(secs(5));
        assert_eq!(machine.done(1), [secs(3)]);
        machine.apply(Change::GoOn { key: 1, on: vec![4], anew: false });
        assert!((end(&mut machine) - 12.0).abs() < 1e-5);
        machine.advance(secs(1));
        assert_eq!(machine.ended(1), Some(secs(12)), "time does not go back");
        machine.apply(Change::Stand(1));
        machine.advance(secs(20));
        machine.apply(Change::GoOn { key: 1, on: vec![2], anew: true });
        assert!((end(&mut machine) - 30.0).abs() < 1e-5);
    }
}
