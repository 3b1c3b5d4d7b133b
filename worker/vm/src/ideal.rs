//! What processors that are just as fast as they should be make of parallel jobs: how far every
//! process is at any moment, and when a job is through.
//!
//! A processor runs its foreground process whenever that wants to compute and its background
//! process at all other times, at full speed and without any cost of changing over. What a process
//! wants is known: its share of every phase, after which it waits for the others.

mod credits;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use self::credits::{CreditAccounting, time_for_work, work_in_time};
use crate::CreditSpec;
use crate::shares::{self, PPM, RankShares};
use dormouse_units::{Credits as Balance, Speedup};

fn to_nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// How many phases of about this length a job has that takes so long on processors of its own, in
/// real time: at least one.
#[must_use]
pub fn phases_of(runtime: Duration, phase: Duration) -> u32 {
    const MAX_PHASES: u128 = 1_000_000;
    let phases = (runtime.as_nanos() / phase.as_nanos().max(1)).clamp(1, MAX_PHASES);
    u32::try_from(phases).unwrap_or(1)
}

/// The work that a job has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobProgram {
    /// The time that it takes on processors of its own.
    pub runtime: Duration,
    /// Phases, each of which ends at a barrier; at least 1.
    pub phases: u32,
    /// CPU usage of its processes on processors of their own, parts per million.
    pub usage: Vec<u32>,
}

/// A start of a job on some processors. Times are nanoseconds.
#[derive(Clone, Debug)]
struct JobRun {
    program: JobProgram,
    shares: RankShares,
    /// The processor of each process.
    on: Vec<u32>,
    foreground: bool,
    /// The job is kept from running, because it is being moved.
    stands: bool,
    /// Until when it stands still for a checkpoint, on its processors.
    held: Option<u64>,
    /// At which parts of its work, in ppm, it does so by itself, the last first; for how long.
    points: Vec<u32>,
    hold: u64,
    /// What the checkpoint that it stands still for holds, and the one that was kept last.
    taking: Option<u32>,
    kept: Option<u32>,
    /// Phases that have begun.
    begun: u32,
    /// Millionths of phases that each process computes up to the end of this one.
    share: Vec<u64>,
    /// What each process computes up to the end of this phase, and what it has.
    due: Vec<u64>,
    done: Vec<u64>,
    /// What is left of the wait for the network that ends this phase.
    network: u64,
    ended: Option<u64>,
}

impl JobRun {
    fn new(program: JobProgram, on: &[u32], foreground: bool) -> Self {
        let ranks = program.usage.len();
        let mut start = Self {
            shares: RankShares::new(&program.usage),
            on: on.to_vec(),
            foreground,
            stands: false,
            held: None,
            points: Vec::new(),
            hold: 0,
            taking: None,
            kept: None,
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
    fn share_time(&self, share: u64) -> u64 {
        let phases = u128::from(PPM) * u128::from(self.program.phases.max(1));
        let time = self.program.runtime.as_nanos() * u128::from(share) / phases;
        u64::try_from(time).unwrap_or(u64::MAX)
    }

    fn begin_phase(&mut self) {
        self.begun += 1;
        for (sum, share) in self.share.iter_mut().zip(self.shares.next_of_all()) {
            *sum += u64::from(share);
        }
        self.due = self.share.iter().map(|share| self.share_time(*share)).collect();
        self.network = self.share_time(shares::network_part(&self.program.usage).into());
    }

    fn is_running(&self) -> bool {
        !self.stands && self.held.is_none() && self.ended.is_none()
    }

    /// All that its processes compute.
    fn total_work(&self) -> u128 {
        let usage: u128 = self.program.usage.iter().map(|usage| u128::from(*usage)).sum();
        self.program.runtime.as_nanos() * usage / u128::from(PPM)
    }

    /// What they have.
    fn done_of_all(&self) -> u128 {
        self.done.iter().map(|ns| u128::from(*ns)).sum()
    }

    /// What it has computed, as a part of all that it computes.
    fn part_done(&self) -> u32 {
        let part = self.done_of_all() * u128::from(PPM) / self.total_work().max(1);
        u32::try_from(part).unwrap_or(PPM).min(PPM)
    }

    /// What its processes have yet to compute until it stands still by itself.
    fn to_next_point(&self) -> Option<u64> {
        let due = self.total_work() * u128::from(*self.points.last()?);
        let left = due.div_ceil(u128::from(PPM)).saturating_sub(self.done_of_all());
        u64::try_from(left).ok()
    }

    /// The job stands still from now on, for a checkpoint of what it has done.
    fn hold_job(&mut self, now: u64, span: u64, done_ppm: u32) {
        if self.ended.is_none() {
            let from = self.held.unwrap_or(now);
            (self.held, self.taking) = (Some(from.saturating_add(span)), Some(done_ppm));
        }
    }

    /// Stands still where it is to, and goes on where it has done so.
    fn turn_hold(&mut self, now: u64) {
        if self.held.is_some_and(|until| until <= now) {
            self.held = None;
            self.kept = self.taking.take();
        }
        if self.to_next_point() == Some(0)
            && self.is_running()
            && let Some(point) = self.points.pop()
        {
            self.hold_job(now, self.hold, point);
        }
    }

    /// The job goes to where it would be alone once it had done this part of its work, in ppm. One that never would,
    /// as it has a rank without a processor, stays where it is.
    fn come_to(&mut self, done_ppm: u32) {
        let start = Self::new(self.program.clone(), &self.on, true);
        let jobs = BTreeMap::from([((), start)]);
        let mut before = IdealMachine { now: 0, jobs, credits: None };
        let is_there =
            |machine: &IdealMachine<()>| machine.part_done(()).is_none_or(|p| p >= done_ppm);
        let mut after = before.clone();
        while !is_there(&after) {
            if after.now == u64::MAX {
                return;
            }
            before.clone_from(&after);
            after.step_to(u64::MAX);
        }
        // Within a step nothing changes but how much has been done.
        let (mut low, mut high) = (before.now, after.now);
        while low < high {
            let middle = low + (high - low) / 2;
            let mut machine = before.clone();
            machine.advance_to(Duration::from_nanos(middle));
            if is_there(&machine) { high = middle } else { low = middle + 1 }
        }
        before.advance_to(Duration::from_nanos(high));
        if let Some(there) = before.jobs.remove(&()) {
            // What is through is so at the next step.
            let (points, hold) = (std::mem::take(&mut self.points), self.hold);
            *self = Self { foreground: self.foreground, ended: None, points, hold, ..there };
        }
    }

    fn is_at_barrier(&self) -> bool {
        self.done.iter().zip(&self.due).all(|(done, due)| done >= due)
    }

    /// Processes that want to compute: who, where, and for how long.
    fn wanting_processes(&self) -> impl Iterator<Item = (usize, u32, u64)> {
        let runs = self.is_running();
        let all = self.due.iter().zip(&self.done).zip(&self.on).enumerate();
        all.filter(move |(_, ((due, done), _))| runs && due > done)
            .map(|(rank, ((due, done), on))| (rank, *on, due - done))
    }

    /// Goes into the next phase, or ends, where this one is over.
    fn turn_phase(&mut self, now: u64) {
        while self.is_running() && self.is_at_barrier() && self.network == 0 {
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
pub struct IdealMachine<K> {
    now: u64,
    jobs: BTreeMap<K, JobRun>,
    /// `None` where the processors always have full speed.
    credits: Option<CreditAccounting>,
}

impl<K> Default for IdealMachine<K> {
    fn default() -> Self {
        Self { now: 0, jobs: BTreeMap::new(), credits: None }
    }
}

/// What happens to a job of key `K`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MachineChange<K> {
    /// The machine is made: it has the credits of a new one.
    Made,
    /// The job begins, process by process on the processors `on`.
    Start {
        /// The job that it is about.
        key: K,
        /// The work that it has to do.
        program: JobProgram,
        /// The processor of each process.
        on: Vec<u32>,
        /// In which tier.
        foreground: bool,
    },
    /// The job comes to the foreground where it is.
    Promote(K),
    /// The job stands still, and its processors are free.
    Stand(K),
    /// The job goes on in the foreground of other processors, after it stood still.
    GoOn {
        /// The job that it is about.
        key: K,
        /// The processor of each process.
        on: Vec<u32>,
        /// All that it has done is lost.
        anew: bool,
    },
    /// The job has this part of its work done, in ppm, no more and no less.
    HasDone(K, u32),
    /// The job stands still for so long, for a checkpoint, and keeps its processors.
    Hold(K, Duration),
    /// The job stands still by itself when it has done these parts of its work, in ppm, ascending.
    HoldAt(K, Vec<u32>, Duration),
    /// The job stands still by itself no longer.
    Release(K),
    /// The job is killed.
    Kill(K),
}

impl<K: Copy> MachineChange<K> {
    /// The job that it is about, if it is about one.
    #[must_use]
    pub const fn key(&self) -> Option<K> {
        match self {
            Self::Made => None,
            Self::Start { key, .. }
            | Self::GoOn { key, .. }
            | Self::Promote(key)
            | Self::Stand(key)
            | Self::HasDone(key, _)
            | Self::Hold(key, _)
            | Self::HoldAt(key, ..)
            | Self::Release(key)
            | Self::Kill(key) => Some(*key),
        }
    }
}

impl<K: Ord + Copy> IdealMachine<K> {
    /// A burstable machine, whose credits are earned and spent in emulated time while its clock shows real
    /// time; without `spec` its processors always have full speed.
    #[must_use]
    pub fn with_credits(spec: Option<CreditSpec>, speedup: Speedup) -> Self {
        let credits = spec.map(|spec| CreditAccounting::new(spec, speedup));
        Self { credits, ..Self::default() }
    }

    /// The machine's credits, and whether they have run out, so that its processors are at their
    /// baseline until a whole one is earned; `None` if it is not burstable.
    #[must_use]
    pub fn credits(&self) -> Option<(Balance, bool)> {
        let allowance = &self.credits.as_ref()?.allowance;
        Some((allowance.balance_left(), allowance.is_throttled()))
    }

    /// How fast its processors are, in ppm of their full speed.
    #[must_use]
    pub fn speed_ppm(&self) -> u32 {
        u32::try_from(self.current_speed()).unwrap_or(PPM)
    }

    fn current_speed(&self) -> u64 {
        self.credits.as_ref().map_or(PPM.into(), CreditAccounting::processor_speed)
    }

    /// Something happens to a job now. To one that isn't there, only a start can.
    pub fn apply_change(&mut self, change: MachineChange<K>) {
        match change {
            MachineChange::Made => {
                self.credits = self.credits.as_ref().map(|credits| credits.made_at(self.now));
            }
            MachineChange::Start { key, program, on, foreground } => {
                self.jobs.insert(key, JobRun::new(program, &on, foreground));
            }
            MachineChange::Promote(key) => self.with_start(key, |start| start.foreground = true),
            MachineChange::Stand(key) => self.with_start(key, |start| start.stands = true),
            MachineChange::GoOn { key, on, anew } => self.with_start(key, |start| {
                if anew {
                    *start = JobRun::new(start.program.clone(), &start.on, true);
                }
                // Nothing is left of a checkpoint of before, either.
                (start.stands, start.held, start.taking) = (false, None, None);
                (start.foreground, start.on) = (true, on);
            }),
            MachineChange::HasDone(key, ppm) => self.with_start(key, |start| start.come_to(ppm)),
            MachineChange::Release(key) => {
                self.with_start(key, |start| (start.held, start.taking) = (None, None));
            }
            MachineChange::Hold(key, span) => {
                let (now, span) = (self.now, to_nanos(span));
                self.with_start(key, |start| start.hold_job(now, span, start.part_done()));
            }
            MachineChange::HoldAt(key, mut points, span) => {
                points.reverse();
                self.with_start(key, |start| (start.points, start.hold) = (points, to_nanos(span)));
            }
            MachineChange::Kill(key) => {
                self.jobs.remove(&key);
            }
        }
    }

    fn with_start(&mut self, key: K, change: impl FnOnce(&mut JobRun)) {
        if let Some(start) = self.jobs.get_mut(&key) {
            change(start);
        }
    }

    /// Forgets jobs that are gone and through, or would stand for ever. One that only stands still
    /// for its checkpoint is in the way of others until it is through.
    pub fn forget_gone(&mut self, is_gone: impl Fn(K) -> bool) {
        let is_over = |start: &JobRun| start.ended.is_some() || start.stands;
        self.jobs.retain(|key, start| !is_over(start) || !is_gone(*key));
    }

    /// What of its work a job has done, in ppm, if it is there and not through.
    #[must_use]
    pub fn part_done(&self, key: K) -> Option<u32> {
        self.jobs.get(&key).filter(|start| start.ended.is_none()).map(JobRun::part_done)
    }

    /// Whether a checkpoint was kept that was not asked for yet.
    #[must_use]
    pub fn has_kept(&self) -> bool {
        self.jobs.values().any(|start| start.kept.is_some())
    }

    /// What of its work the checkpoints hold that were kept since this was asked, by job, in ppm.
    pub fn take_kept(&mut self) -> Vec<(K, u32)> {
        let kept = self.jobs.iter_mut();
        kept.filter_map(|(key, start)| Some((*key, start.kept.take()?))).collect()
    }

    /// Until when a job stands still for its checkpoint, since the machine was made, if it does.
    #[must_use]
    pub fn held_until(&self, key: K) -> Option<Duration> {
        self.jobs.get(&key)?.held.map(Duration::from_nanos)
    }

    /// The time that the job `key` would still take if nothing were in its way; none if it is through.
    #[must_use]
    pub fn left_alone(&self, key: K) -> Option<Duration> {
        let start = self.jobs.get(&key).filter(|start| start.ended.is_none())?;
        let start = JobRun { stands: false, held: None, foreground: true, ..start.clone() };
        let (jobs, credits) = (BTreeMap::from([(key, start)]), self.credits.clone());
        let mut machine = Self { now: self.now, jobs, credits };
        machine.advance_to_end(key, Duration::from_nanos(u64::MAX));
        machine.ended_at(key).map(|end| end.saturating_sub(self.now()))
    }

    /// The time that has passed since the machine was made.
    #[must_use]
    pub const fn now(&self) -> Duration {
        Duration::from_nanos(self.now)
    }

    /// Lets time pass until `to`, since the machine was made; none if that is over.
    pub fn advance_to(&mut self, to: Duration) {
        let to = u64::try_from(to.as_nanos()).unwrap_or(u64::MAX);
        while self.now < to {
            self.step_to(to);
        }
    }

    /// Lets time pass until the job `key` is through, if nothing else happens on the way.
    ///
    /// It never is where a foreground keeps its processor busy for good, or it stands: `limit`,
    /// since the machine was made, ends the wait.
    pub fn advance_to_end(&mut self, key: K, limit: Duration) {
        let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        while self.now < limit && self.jobs.get(&key).is_some_and(|start| start.ended.is_none()) {
            self.step_to(limit);
        }
    }

    /// Lets time pass until one more job is through, or a checkpoint of one is kept, or until
    /// `limit`, since the machine was made; whether one is.
    pub fn advance_to_an_end(&mut self, limit: Duration) -> bool {
        let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        let before = self.count_through();
        while self.now < limit && self.count_through() == before {
            self.step_to(limit);
        }
        self.count_through() > before
    }

    /// How many of its jobs are through, and how many checkpoints of them were kept and not told.
    fn count_through(&self) -> usize {
        let ended = self.jobs.values().filter(|start| start.ended.is_some()).count();
        ended + self.jobs.values().filter(|start| start.kept.is_some()).count()
    }

    /// What each process of a job has computed, in time of its processor.
    #[must_use]
    pub fn work_done(&self, key: K) -> Vec<Duration> {
        let done = self.jobs.get(&key).map_or(&[][..], |start| &start.done);
        done.iter().map(|ns| Duration::from_nanos(*ns)).collect()
    }

    /// The time at which a job was through, since the machine was made.
    #[must_use]
    pub fn ended_at(&self, key: K) -> Option<Duration> {
        self.jobs.get(&key)?.ended.map(Duration::from_nanos)
    }

    /// Lets time pass up to the next change or `to`.
    fn step_to(&mut self, to: u64) {
        let mut computing = Vec::new();
        // What stands in the foreground for its checkpoint has its processors to itself.
        let held = self.jobs.values().filter(|start| start.held.is_some() && start.foreground);
        let mut busy: BTreeSet<u32> = held.flat_map(|start| start.on.iter().copied()).collect();
        // It uses them for that.
        let dumped = busy.len();
        for tier in [true, false] {
            for (key, start) in self.jobs.iter().filter(|(_, start)| start.foreground == tier) {
                for (rank, on, left) in start.wanting_processes() {
                    if tier || !busy.contains(&on) {
                        computing.push((*key, rank, left));
                    }
                    if tier {
                        busy.insert(on);
                    }
                }
            }
        }
        let (speed, at_work) = (self.current_speed(), computing.len() + dumped);
        let waits = |start: &JobRun| start.is_running() && start.is_at_barrier();
        let least = computing.iter().map(|(.., left)| time_for_work(*left, speed));
        let network = self.jobs.values().filter(|start| waits(start)).map(|start| start.network);
        let held = self.jobs.values().filter_map(|start| start.held);
        let held = held.map(|until| until.saturating_sub(self.now));
        let points = self.jobs.iter().filter(|(_, start)| !start.points.is_empty());
        let points = points.filter_map(|(key, start)| {
            let at_work = computing.iter().filter(|(of, ..)| of == key).count() as u64;
            let left = start.to_next_point().filter(|_| at_work > 0)?.div_ceil(at_work);
            Some(time_for_work(left, speed).max(1))
        });
        let turn = self.credits.as_ref().and_then(|of| of.turn_after(self.now, at_work));
        let span = least
            .chain(network)
            .chain(held)
            .chain(points)
            .chain(turn)
            .chain([to - self.now])
            .min()
            .unwrap_or(0);
        self.now += span;
        for start in self.jobs.values_mut().filter(|start| waits(start)) {
            start.network -= span;
        }
        for (key, rank, _) in computing {
            if let Some(done) = self.jobs.get_mut(&key).and_then(|start| start.done.get_mut(rank)) {
                *done += work_in_time(span, speed);
            }
        }
        if let Some(credits) = &mut self.credits {
            credits.pass_time(self.now, at_work);
        }
        for start in self.jobs.values_mut() {
            start.turn_hold(self.now);
            start.turn_phase(self.now);
        }
    }
}

#[cfg(test)]
mod tests;
