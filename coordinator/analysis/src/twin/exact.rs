//! The processors of the twin of a live run of parallel jobs: the same model by which the live run
//! is judged, exact to the phase, and without chance.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use dormouse_engine::drive::{MachineWorld, Reports, credit_spec};
use dormouse_model::{Command, Report, Submission, TaskStart};
use dormouse_units::{
    Attempt, Bytes, CheckpointSeq, Cpus, HostId, Ppm, Seats, Span, Speedup, TaskId, Tier, Time,
    VmId,
};
use dormouse_vm::ideal::{self, JobProgram, MachineChange};

use super::measured::Moves;
use crate::fidelity::RunPace;

/// Half a microsecond, for rounding: the machine's clock counts nanoseconds, the run's times are microseconds.
const HALF: Duration = Duration::from_nanos(500);

/// A machine, with the jobs that are migrating between its processors, ordered by arrival time.
#[derive(Clone, Debug, Default)]
struct MachineWithMoves {
    ideal: ideal::IdealMachine<TaskId>,
    coming: BTreeMap<(Duration, TaskId), Cpus>,
}

impl MachineWithMoves {
    /// Lets time pass until the next job ends, at most until `limit`; returns true if a job has ended.
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
                self.ideal.apply_change(MachineChange::GoOn { key, on: on.to_vec(), anew: false });
            }
        }
    }

    /// Lets time pass until `to`, with all ends of jobs and arrivals in that time.
    fn advance(&mut self, to: Duration) {
        while self.advance_to_an_end(to) {}
    }
}

/// The next ends of jobs: their time, and the machine at that time.
#[derive(Clone, Debug)]
struct NextEnds {
    at: Time,
    machine: MachineWithMoves,
}

/// A modelled machine in emulated time whose foreground computes whenever it wants to and whose
/// background computes in the rest ([`dormouse_vm::ideal`]). This machine stands for the only VM of
/// a run of parallel jobs.
#[derive(Debug)]
pub struct TwoTier {
    pace: RunPace,
    /// Durations of the migrations to come, as far as they are known.
    moves: Moves,
    /// Duration of each migration that `moves` does not list.
    migration_cost: Span,
    /// Time for which a job is stopped for a checkpoint.
    checkpoint_cost: Duration,
    /// Number of the last checkpoint of every submitted job that has not ended.
    checkpoints: BTreeMap<TaskId, CheckpointSeq>,
    /// The VM of the machine for parallel jobs, and its host; `None`: the VM was not launched or has ended.
    vm: Option<(HostId, VmId)>,
    machine: MachineWithMoves,
    /// Current attempt of every job that runs.
    running: BTreeMap<TaskId, Attempt>,
    /// The next ends of jobs if no other event comes first. The outer `None`: they have to be computed again; the inner `None`: no
    /// job will end.
    next: Option<Option<NextEnds>>,
}

impl TwoTier {
    /// An idle machine, for jobs with phases of this pace, and migrations of these durations.
    #[must_use]
    pub fn new(pace: RunPace, moves: Moves, migration_cost: Span) -> Self {
        Self {
            pace,
            moves,
            migration_cost,
            checkpoint_cost: Duration::ZERO,
            checkpoints: BTreeMap::new(),
            vm: None,
            machine: MachineWithMoves::default(),
            running: BTreeMap::new(),
            next: None,
        }
    }

    fn program_of(&self, job: &Submission) -> JobProgram {
        let of_run = self.pace.program(job.runtime, job.processes as usize, &job.usage);
        // By the run's clock, which is rounded less than real time.
        JobProgram { runtime: since_begin(Time::ZERO + job.runtime), ..of_run }
    }

    /// Applies a change to a job at `now`.
    fn apply_change(&mut self, now: Time, change: MachineChange<TaskId>) {
        self.machine.advance(since_begin(now));
        self.machine.ideal.apply_change(change);
        self.next = None;
    }

    /// Whether this attempt of the job runs.
    fn is_running(&self, task: TaskId, attempt: Attempt) -> bool {
        self.running.get(&task) == Some(&attempt)
    }

    fn start_job(&mut self, now: Time, start: TaskStart, out: &mut Reports) {
        let TaskStart { host, task, attempt, .. } = start;
        let Seats { vm, tier, cpus } = start.seats;
        // Programs of other tasks are not known here.
        let Some(job) = start.job else { return };
        let (on, foreground) = (cpus.to_vec(), tier == Tier::Foreground);
        let program = self.program_of(&job);
        self.apply_change(now, MachineChange::Start { key: task, program, on, foreground });
        let done = start.from.map_or(Ppm::ZERO, |(_, done)| done);
        if done > Ppm::ZERO {
            self.apply_change(now, MachineChange::HasDone(task, done.get()));
        }
        let cost = Duration::from_micros(start.checkpoint_cost.as_micros());
        let points: Vec<u32> = start.checkpoints.iter().map(|due| due.get()).collect();
        if !points.is_empty() {
            self.apply_change(now, MachineChange::HoldAt(task, points, cost));
        }
        self.checkpoint_cost = cost;
        self.running.insert(task, attempt);
        let real_took_us = 0;
        out.push_back((
            host,
            Report::TaskStarted { vm, task, attempt, done, real_took_us, real_inputs_us: 0 },
        ));
    }

    fn stop_job(&mut self, now: Time, task: TaskId) {
        self.running.remove(&task);
        self.machine.coming.retain(|(_, key), _| *key != task);
        self.apply_change(now, MachineChange::Kill(task));
    }

    fn migrate_job(&mut self, now: Time, task: TaskId, on: Cpus) {
        let own = self.moves.get_mut(&task).and_then(VecDeque::pop_front);
        let takes = own.unwrap_or(self.migration_cost);
        self.apply_change(now, MachineChange::Stand(task));
        self.machine.coming.insert((since_begin(now + takes), task), on);
    }

    /// Drops the VM with everything on it.
    fn drop_vm(&mut self) {
        self.running.clear();
        (self.machine, self.next) = (MachineWithMoves::default(), None);
    }

    /// Computes the next ends of jobs if no other event comes first; `None` if no job will end.
    fn foresee_ends(&self) -> Option<NextEnds> {
        let mut machine = self.machine.clone();
        if machine.ideal.has_kept() {
            return Some(NextEnds { at: nearest_time(machine.ideal.now()), machine });
        }
        if !machine.advance_to_an_end(Duration::MAX) {
            return None;
        }
        let at = nearest_time(machine.ideal.now());
        // All other ends of this microsecond.
        let until = since_begin(at) + HALF - Duration::from_nanos(1);
        let mut further = machine.clone();
        while further.advance_to_an_end(until) {
            machine = further.clone();
        }
        Some(NextEnds { at, machine })
    }
}

impl MachineWorld for TwoTier {
    fn execute_command(&mut self, now: Time, command: Command, out: &mut Reports) {
        match command {
            Command::CreateVm { host, vm, burstable, .. } => {
                self.vm = Some((host, vm));
                // A second of its clock is one of emulated time.
                let ideal =
                    ideal::IdealMachine::with_credits(burstable.map(credit_spec), Speedup::ONE);
                self.machine = MachineWithMoves { ideal, ..MachineWithMoves::default() };
                self.apply_change(now, MachineChange::Made);
                out.push_back((host, Report::VmCreated { vm }));
            }
            Command::DestroyVm { host, vm } => {
                self.drop_vm();
                out.push_back((host, Report::VmDestroyed { vm }));
            }
            Command::StartTask(start) => self.start_job(now, start, out),
            Command::StopTask { host, vm, task, attempt, .. } => {
                if self.is_running(task, attempt) {
                    self.stop_job(now, task);
                    let (kept, real_cpu_us) = (None, 0);
                    let stopped = Report::TaskStopped { vm, task, attempt, kept, real_cpu_us };
                    out.push_back((host, stopped));
                }
            }
            Command::PromoteTask { host, vm, task, attempt } => {
                if self.is_running(task, attempt) {
                    self.apply_change(now, MachineChange::Promote(task));
                    let promoted = Report::TaskPromoted { vm, task, attempt, real_took_us: 0 };
                    out.push_back((host, promoted));
                }
            }
            Command::MoveTask { task, attempt, on, .. } => {
                if self.is_running(task, attempt) {
                    self.migrate_job(now, task, on);
                }
            }
            Command::CheckpointNow { task, attempt, .. } => {
                let ideal = &self.machine.ideal;
                // A checkpoint that is already being taken will do.
                if self.is_running(task, attempt) && ideal.held_until(task).is_none() {
                    self.apply_change(now, MachineChange::Hold(task, self.checkpoint_cost));
                }
            }
            // Machines of parallel jobs have no CPU modes, are never taken away, and are not in the
            // background.
            Command::FreezeVm { .. }
            | Command::ThawVm { .. }
            | Command::SetMode { .. }
            | Command::Announce { .. }
            | Command::Fault { .. }
            | Command::SetSupply { .. } => {}
        }
    }

    fn next_at(&mut self) -> Option<Time> {
        if self.next.is_none() {
            self.next = Some(self.foresee_ends());
        }
        self.next.as_ref()?.as_ref().map(|next| next.at)
    }

    /// Reports the ends and checkpoints that are due by `now`. Ends within one microsecond are
    /// reported in the order of the jobs.
    fn step_machines(&mut self, now: Time, out: &mut Reports) {
        let next = self.next.take().flatten();
        let Some((next, (host, vm))) = next.filter(|next| next.at <= now).zip(self.vm) else {
            return;
        };
        self.machine = next.machine;
        let ideal = &mut self.machine.ideal;
        for (task, done) in ideal.take_kept() {
            let Some(&attempt) = self.running.get(&task) else { continue };
            let checkpoint = self.checkpoints.entry(task).or_default();
            *checkpoint = checkpoint.next();
            let taken = Report::CheckpointTaken {
                vm,
                task,
                attempt,
                checkpoint: *checkpoint,
                done: Ppm::new(done),
                bytes: Bytes::ZERO,
                real_held_us: 0,
                real_dump_us: 0,
                real_owed_us: 0,
                held_at: None,
                real_criu_us: 0,
            };
            out.push_back((host, taken));
        }
        self.running.retain(|&task, &mut attempt| {
            if ideal.ended_at(task).is_none() {
                return true;
            }
            ideal.apply_change(MachineChange::Kill(task));
            let (verified, real_cpu_us) = (true, 0);
            let finished = Report::TaskFinished {
                vm,
                task,
                attempt,
                verified,
                reported: false,
                program_failed: false,
                result: None,
                real_cpu_us,
            };
            out.push_back((host, finished));
            false
        });
    }

    fn host_lost(&mut self, _: HostId) {
        self.drop_vm();
    }

    fn is_idle(&self) -> bool {
        self.running.is_empty()
    }
}

/// The machine's clock at a time of the run.
const fn since_begin(at: Time) -> Duration {
    Duration::from_micros(at.as_micros())
}

/// The time of the run that is nearest to the machine's clock.
fn nearest_time(at: Duration) -> Time {
    Time::from_micros(u64::try_from((at + HALF).as_micros()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use dormouse_units::{Mode, Usage};

    use super::*;

    /// A pace at which an emulated second takes a real second, and a phase one second.
    const PACE: RunPace = RunPace { speedup: Speedup::ONE, phase: Duration::from_secs(1) };

    const HOST: HostId = HostId::new(0);
    const VM: VmId = VmId::new(0);

    /// A machine on which a migration takes 5 s, unless `moves` gives another duration.
    fn machine(moves: Moves) -> TwoTier {
        let (mut on, mut out) = (TwoTier::new(PACE, moves, Span::from_secs(5)), Reports::new());
        let create = Command::CreateVm {
            host: HOST,
            vm: VM,
            kind: "processors".into(),
            market: dormouse_cloud::Market::OnDemand,
            vcpus: 4,
            memory: Bytes::ZERO,
            burstable: None,
            two_tier: true,
        };
        on.execute_command(Time::ZERO, create, &mut out);
        assert_eq!(out, [(HOST, Report::VmCreated { vm: VM })]);
        on
    }

    fn obey(on: &mut TwoTier, at: u64, command: Command) {
        on.execute_command(Time::from_secs(at), command, &mut Reports::new());
    }

    /// A command to start the attempt `job.1` of the job `job.0`, which runs for `of.0` seconds and
    /// uses the fraction `of.1` of its processor.
    fn start(job: (u32, u32), of: (u64, f64), tier: Tier, cpu: u32) -> Command {
        let (task, attempt) = (TaskId::new(job.0), Attempt::new(job.1));
        let runtime = Span::from_secs(of.0);
        let submission = Submission {
            number: job.0.into(),
            submitted: Time::ZERO,
            processes: 1,
            runtime,
            estimate: runtime,
            usage: Usage::Uniform(Ppm::new((of.1 * 1e6) as u32)),
            memory: Bytes::ZERO,
            priority: 0,
            after: None,
            is_cut: false,
            fails: false,
        };
        Command::StartTask(TaskStart {
            host: HOST,
            seats: Seats { vm: VM, tier, cpus: [cpu].into() },
            task,
            attempt,
            memory: Bytes::ZERO,
            runtime,
            from: None,
            from_attempt: Attempt::default(),
            checkpoints: Vec::new(),
            checkpoint_cost: Span::ZERO,
            mode: Mode::Burst,
            job: Some(Arc::new(submission)),
        })
    }

    /// All remaining ends of jobs until second `until`: time in seconds, id of the job, and number of its start.
    fn ends(on: &mut TwoTier, until: u64) -> Vec<(f64, u32, u32)> {
        let mut ends = Vec::new();
        while let Some(now) = on.next_at().filter(|at| *at <= Time::from_secs(until)) {
            let mut out = Reports::new();
            on.step_machines(now, &mut out);
            ends.extend(out.into_iter().map(|(_, report)| match report {
                Report::TaskFinished { task, attempt, .. } => {
                    (now.as_secs_f64(), task.get(), attempt.get())
                }
                other => panic!("{other:?}"),
            }));
        }
        ends
    }

    #[test]
    fn jobs_end_when_the_law_says_and_those_of_one_time_in_the_order_of_the_jobs() {
        let mut on = machine(Moves::new());
        // .6 s of each of its seconds are left to the one below it, which then is alone.
        obey(&mut on, 0, start((3, 1), (10, 0.4), Tier::Foreground, 0));
        obey(&mut on, 0, start((1, 1), (8, 1.0), Tier::Background, 0));
        obey(&mut on, 0, start((2, 1), (10, 0.7), Tier::Foreground, 1));
        assert_eq!(ends(&mut on, 100), [(10.0, 2, 1), (10.0, 3, 1), (12.0, 1, 1)]);
        assert_eq!((on.next_at(), on.is_idle()), (None, true));
    }

    #[test]
    fn a_job_comes_to_the_foreground_as_it_is_told() {
        let (host, vm, task, attempt) = (HOST, VM, TaskId::new(1), Attempt::new(1));
        // At 4 s, when 2 s of its 8 s are done: these are lost, or 5 s pass.
        let swap = vec![Command::PromoteTask { host, vm, task, attempt }];
        let kill = vec![
            Command::StopTask { host, vm, task, attempt, keep: false },
            start((1, 2), (8, 1.0), Tier::Foreground, 1),
        ];
        let migrate = vec![Command::MoveTask { host, vm, task, attempt, on: [1].into() }];
        // Or 3 s, as in the run.
        let own = Moves::from([(task, [Span::from_secs(3)].into())]);
        for (commands, attempt, end, moves) in [
            (swap, 1, 10.0, Moves::new()),
            (kill, 2, 12.0, Moves::new()),
            (migrate.clone(), 1, 15.0, Moves::new()),
            (migrate, 1, 13.0, own),
        ] {
            let mut on = machine(moves);
            obey(&mut on, 0, start((0, 1), (2, 1.0), Tier::Foreground, 0));
            obey(&mut on, 0, start((1, 1), (8, 1.0), Tier::Background, 0));
            assert_eq!(on.next_at(), Some(Time::from_secs(2)));
            // The end has not come: a job is started before, and it is foreseen again.
            obey(&mut on, 1, start((2, 1), (1, 1.0), Tier::Foreground, 2));
            assert_eq!(ends(&mut on, 2), [(2.0, 0, 1), (2.0, 2, 1)]);
            let told = format!("{commands:?}");
            commands.into_iter().for_each(|command| obey(&mut on, 4, command));
            assert_eq!(ends(&mut on, 100), [(end, 1, attempt)], "{told}");
        }
    }

    #[test]
    fn a_former_life_is_not_heard_of_and_a_machine_that_is_gone_has_no_jobs() {
        let mut on = machine(Moves::new());
        let (host, vm, task) = (HOST, VM, TaskId::new(0));
        obey(&mut on, 0, start((0, 2), (2, 1.0), Tier::Background, 0));
        let former = Attempt::new(1);
        obey(&mut on, 1, Command::StopTask { host, vm, task, attempt: former, keep: false });
        assert_eq!(on.next_at(), Some(Time::from_secs(2)));
        obey(&mut on, 1, Command::DestroyVm { host, vm });
        assert_eq!((on.next_at(), on.is_idle()), (None, true));
    }
}
