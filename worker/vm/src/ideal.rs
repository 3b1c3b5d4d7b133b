//! A model of parallel jobs on processors of exactly the promised speed: how far every process is at any moment, and
//! when a job ends.
//!
//! A processor runs its foreground process whenever that process wants to compute and its background process at all
//! other times, at full speed and without any cost of switching. How much a process computes is known: its share of
//! every phase, after which it waits for the job's other processes.

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

/// Returns the number of phases of about `phase` in a job that takes `runtime` on processors of its own, in real
/// time: at least one.
#[must_use]
pub fn phases_of(runtime: Duration, phase: Duration) -> u32 {
    const MAX_PHASES: u128 = 1_000_000;
    let phases = (runtime.as_nanos() / phase.as_nanos().max(1)).clamp(1, MAX_PHASES);
    u32::try_from(phases).unwrap_or(1)
}

/// Work of a parallel job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobProgram {
    /// Run time of the job on processors of its own.
    pub runtime: Duration,
    /// Number of phases, each of which ends at a barrier; at least 1.
    pub phases: u32,
    /// CPU usage of the job's processes on processors of their own, in parts per million.
    pub usage: Vec<u32>,
}

/// State of a job started on some processors. Times are in nanoseconds.
#[derive(Clone, Debug)]
struct JobRun {
    program: JobProgram,
    shares: RankShares,
    /// Processor of each process.
    on: Vec<u32>,
    foreground: bool,
    /// True if the job is stopped because it is being moved to other processors.
    stands: bool,
    /// Time in nanoseconds, counted from the machine's creation, until which the job is stopped for a checkpoint, and keeps its
    /// processors; `None`: it isn't stopped for one.
    held: Option<u64>,
    /// Parts of the work, in ppm, at which the job stops for a checkpoint, the last one first; each stop takes `hold`.
    points: Vec<u32>,
    hold: u64,
    /// Part of the job's work, in ppm, that the checkpoint under way holds; `None`: no checkpoint is under way.
    taking: Option<u32>,
    kept: Option<u32>,
    /// Number of phases begun so far.
    begun: u32,
    /// Work that each process has to compute from the job's start to the end of the current phase, in millionths of a phase.
    share: Vec<u64>,
    /// CPU time that each process has to compute from the job's start to the end of the current phase, in nanoseconds.
    due: Vec<u64>,
    done: Vec<u64>,
    /// Rest of the wait for the network at the end of the current phase, in nanoseconds.
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

    /// Converts a part of a phase, in millionths, to time, in nanoseconds.
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

    /// Returns the CPU time that all processes of the job have to compute in total, in nanoseconds.
    fn total_work(&self) -> u128 {
        let usage: u128 = self.program.usage.iter().map(|usage| u128::from(*usage)).sum();
        self.program.runtime.as_nanos() * usage / u128::from(PPM)
    }

    /// Returns the CPU time that all processes of the job have computed so far, in nanoseconds.
    fn done_of_all(&self) -> u128 {
        self.done.iter().map(|ns| u128::from(*ns)).sum()
    }

    /// Returns the part of the work that is done, in ppm.
    fn part_done(&self) -> u32 {
        let part = self.done_of_all() * u128::from(PPM) / self.total_work().max(1);
        u32::try_from(part).unwrap_or(PPM).min(PPM)
    }

    /// Returns the CPU time, in nanoseconds, that the processes together have to compute until the job's next planned stop for a
    /// checkpoint; `None`: no stop is planned.
    fn to_next_point(&self) -> Option<u64> {
        let due = self.total_work() * u128::from(*self.points.last()?);
        let left = due.div_ceil(u128::from(PPM)).saturating_sub(self.done_of_all());
        u64::try_from(left).ok()
    }

    /// Stops the job for a checkpoint of the work done, for `span` from `now` on, in nanoseconds.
    fn hold_job(&mut self, now: u64, span: u64, done_ppm: u32) {
        if self.ended.is_none() {
            let from = self.held.unwrap_or(now);
            (self.held, self.taking) = (Some(from.saturating_add(span)), Some(done_ppm));
        }
    }

    /// Begins and ends the job's stops for checkpoints whose time has come at `now`.
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

    /// Sets the job to the state that it would have alone on the machine with the part `done_ppm` of its work done. A job that
    /// would never get so far, as a rank has no processor, is unchanged.
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

    /// Returns the processes that want to compute: rank, processor, and CPU time still to compute in the phase.
    fn wanting_processes(&self) -> impl Iterator<Item = (usize, u32, u64)> {
        let runs = self.is_running();
        let all = self.due.iter().zip(&self.done).zip(&self.on).enumerate();
        all.filter(move |(_, ((due, done), _))| runs && due > done)
            .map(|(rank, ((due, done), on))| (rank, *on, due - done))
    }

    /// Goes to the next phase if the current one is over, or ends the job.
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

/// A reference machine that runs parallel jobs exactly as the model says; workers compare real jobs with it. Jobs
/// have keys of the caller's choice.
#[derive(Clone, Debug)]
pub struct IdealMachine<K> {
    now: u64,
    jobs: BTreeMap<K, JobRun>,
    /// Credits; `None`: the processors always have full speed.
    credits: Option<CreditAccounting>,
}

impl<K> Default for IdealMachine<K> {
    fn default() -> Self {
        Self { now: 0, jobs: BTreeMap::new(), credits: None }
    }
}

/// A change to a job of key `K`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MachineChange<K> {
    /// The machine is created now, with the credits of a new machine.
    Made,
    /// The job begins on the processors `on`, one for each process.
    Start {
        /// Key of the job.
        key: K,
        /// Work of the job.
        program: JobProgram,
        /// Processor of each process.
        on: Vec<u32>,
        /// True if the job begins in the foreground.
        foreground: bool,
    },
    /// The job is promoted to the foreground of its processors.
    Promote(K),
    /// The job of the given key is stopped and frees its processors.
    Stand(K),
    /// The job continues in the foreground of other processors after it was stopped.
    GoOn {
        /// Key of the job.
        key: K,
        /// Processor of each process.
        on: Vec<u32>,
        /// True if all work of the job is lost, so that it starts from scratch.
        anew: bool,
    },
    /// The given part of the job's work, in ppm, is done: the job's state is set to that.
    HasDone(K, u32),
    /// The job is stopped for the given time for a checkpoint, and keeps its processors.
    Hold(K, Duration),
    /// The job will stop for checkpoints at the given parts of its work (in ppm, ascending), each time for the given duration.
    HoldAt(K, Vec<u32>, Duration),
    /// The job's stop for a checkpoint ends at once, and the checkpoint doesn't count.
    Release(K),
    /// The job is killed.
    Kill(K),
}

impl<K: Copy> MachineChange<K> {
    /// Returns the key of the changed job; `None`: the change is the machine's.
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
    /// Makes a burstable machine, which earns and spends credits in emulated time while its clock shows real time;
    /// without `spec` its processors always have full speed.
    #[must_use]
    pub fn with_credits(spec: Option<CreditSpec>, speedup: Speedup) -> Self {
        let credits = spec.map(|spec| CreditAccounting::new(spec, speedup));
        Self { credits, ..Self::default() }
    }

    /// Returns the machine's credits, and whether they have run out, so that its processors run at the baseline until a whole
    /// credit is earned; `None`: the machine isn't burstable.
    #[must_use]
    pub fn credits(&self) -> Option<(Balance, bool)> {
        let allowance = &self.credits.as_ref()?.allowance;
        Some((allowance.balance_left(), allowance.is_throttled()))
    }

    /// Returns the speed of the machine's processors, in ppm of full speed.
    #[must_use]
    pub fn speed_ppm(&self) -> u32 {
        u32::try_from(self.current_speed()).unwrap_or(PPM)
    }

    fn current_speed(&self) -> u64 {
        self.credits.as_ref().map_or(PPM.into(), CreditAccounting::processor_speed)
    }

    /// Applies a change to a job now. If the job doesn't exist, only a start has an effect.
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

    /// Forgets the jobs whose real processes are gone (`is_gone`) and that are finished in the model or would be stopped for ever.
    /// A job that is only stopped for a checkpoint stays until it is finished, as it occupies its processors.
    pub fn forget_gone(&mut self, is_gone: impl Fn(K) -> bool) {
        let is_over = |start: &JobRun| start.ended.is_some() || start.stands;
        self.jobs.retain(|key, start| !is_over(start) || !is_gone(*key));
    }

    /// Returns the part of a job's work that is done, in ppm; `None`: the job isn't on the machine or is finished.
    #[must_use]
    pub fn part_done(&self, key: K) -> Option<u32> {
        self.jobs.get(&key).filter(|start| start.ended.is_none()).map(JobRun::part_done)
    }

    /// Returns whether a checkpoint was completed that [`IdealMachine::take_kept`] hasn't returned.
    #[must_use]
    pub fn has_kept(&self) -> bool {
        self.jobs.values().any(|start| start.kept.is_some())
    }

    /// Returns the checkpoints that were completed since the last call: the job, and the part of its work in ppm.
    pub fn take_kept(&mut self) -> Vec<(K, u32)> {
        let kept = self.jobs.iter_mut();
        kept.filter_map(|(key, start)| Some((*key, start.kept.take()?))).collect()
    }

    /// Returns the machine time until which a job is stopped for its checkpoint; `None`: the job isn't stopped.
    #[must_use]
    pub fn held_until(&self, key: K) -> Option<Duration> {
        self.jobs.get(&key)?.held.map(Duration::from_nanos)
    }

    /// Returns the time that a job would still take with the machine to itself; zero if it is finished; `None`: it would never
    /// finish, or isn't on the machine.
    #[must_use]
    pub fn left_alone(&self, key: K) -> Option<Duration> {
        let start = self.jobs.get(&key).filter(|start| start.ended.is_none())?;
        let start = JobRun { stands: false, held: None, foreground: true, ..start.clone() };
        let (jobs, credits) = (BTreeMap::from([(key, start)]), self.credits.clone());
        let mut machine = Self { now: self.now, jobs, credits };
        machine.advance_to_end(key, Duration::from_nanos(u64::MAX));
        machine.ended_at(key).map(|end| end.saturating_sub(self.now()))
    }

    /// Returns the time since the machine was created.
    #[must_use]
    pub const fn now(&self) -> Duration {
        Duration::from_nanos(self.now)
    }

    /// Advances the machine's time to `to`, counted from the machine's creation; nothing happens if that is past.
    pub fn advance_to(&mut self, to: Duration) {
        let to = u64::try_from(to.as_nanos()).unwrap_or(u64::MAX);
        while self.now < to {
            self.step_to(to);
        }
    }

    /// Advances the time until a job is finished, if nothing else changes until then.
    ///
    /// If a foreground job keeps its processor busy for good, or the job is stopped, it never finishes; `limit`, counted from the
    /// machine's creation, ends the wait.
    pub fn advance_to_end(&mut self, key: K, limit: Duration) {
        let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        while self.now < limit && self.jobs.get(&key).is_some_and(|start| start.ended.is_none()) {
            self.step_to(limit);
        }
    }

    /// Advances the time until one more job is finished or one more checkpoint completed, but at most to `limit`, counted from the
    /// machine's creation; false at the limit.
    pub fn advance_to_an_end(&mut self, limit: Duration) -> bool {
        let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        let before = self.count_through();
        while self.now < limit && self.count_through() == before {
            self.step_to(limit);
        }
        self.count_through() > before
    }

    /// Returns the number of finished jobs plus that of completed checkpoints that [`IdealMachine::take_kept`] hasn't returned.
    fn count_through(&self) -> usize {
        let ended = self.jobs.values().filter(|start| start.ended.is_some()).count();
        ended + self.jobs.values().filter(|start| start.kept.is_some()).count()
    }

    /// Returns the time that each process of a job has computed on its processor.
    #[must_use]
    pub fn work_done(&self, key: K) -> Vec<Duration> {
        let done = self.jobs.get(&key).map_or(&[][..], |start| &start.done);
        done.iter().map(|ns| Duration::from_nanos(*ns)).collect()
    }

    /// Returns the time at which a job finished, counted from the machine's creation; `None`: it hasn't finished.
    #[must_use]
    pub fn ended_at(&self, key: K) -> Option<Duration> {
        self.jobs.get(&key)?.ended.map(Duration::from_nanos)
    }

    /// Advances the time to the next change of the machine's state, but at most to `to`.
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
