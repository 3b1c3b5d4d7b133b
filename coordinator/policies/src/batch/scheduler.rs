//! The scheduler of parallel jobs: one queue, passes over it, and decisions.

use dormouse_cloud::Market;
use dormouse_model::{Decision, Job, Notice};
use dormouse_units::{Cpus, Span, TaskId, Time, TypeName, VmId, Window};

use super::config::Config;
use super::explain::{Note, WatchedJob};
use super::processors::TwoTierProcessors;
use super::queue::{ExpectedEnding, ExpectedEndings, JobRank, QueuedJob, ShortestFirst};
use super::reservation::HeadReservation;
use super::schedulers::{BatchPolicy, OnPromotion};
use crate::{Delivery, GivenUp, Policy};

mod pass;

/// Time from a failed launch of the machine to the next request for it.
const RETRY: Span = Span::from_secs(60);
/// Greatest number of starts of a job: a job that always fails would otherwise never let the run end.
pub const MOST_STARTS: u32 = 5;

/// Whether a job waits or runs, and on which processors.
#[derive(Clone, Debug)]
enum JobPlacement {
    Waiting,
    Background { on: Cpus, since: Time },
    Foreground { on: Cpus, expected_end: Time },
}

/// A submitted job that has not ended, with its placement.
#[derive(Clone, Debug)]
struct KnownJob {
    job: Job,
    state: JobPlacement,
    /// Number of the job's failed attempts.
    failures: u32,
    /// Place of the job in the queue.
    rank: JobRank,
}

/// State of the VM whose vCPUs are the machine's processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeasedMachine {
    /// The scheduler has not requested the VM.
    None,
    /// The scheduler has requested the VM, which is not ready yet.
    Awaited(VmId),
    /// The VM can run jobs.
    Ready(VmId),
}

/// A scheduler by FCFS, EASY, KEASY, REASY or MEASY, as its [`Config`] says: a pure state machine.
#[derive(Clone, Debug)]
pub struct BatchScheduler {
    config: Config,
    /// The instance type of the machine.
    kind: TypeName,
    machine: LeasedMachine,
    next_vm: VmId,
    promotion: Option<OnPromotion>,
    jobs: Window<KnownJob>,
    /// Jobs without a foreground, waiting or in the background, in the order of their ranks.
    queue: Vec<QueuedJob>,
    /// The waiting jobs of the queue; kept only where there are two tiers.
    shortest: ShortestFirst,
    endings: ExpectedEndings,
    processors: TwoTierProcessors,
    /// Number of jobs in the background, and true if a job has left the background since jobs were last put there.
    background: (usize, bool),
    scanned: Option<ScanResult>,
    watch: Option<WatchedJob>,
    /// True once the scheduler has given up a job that failed too often.
    has_given_up: bool,
}

/// Findings of the last scheduling pass. They hold until a job ends or the shadow time comes: no job that the pass rejected could
/// start before. So a pass after submissions looks at the new jobs alone.
#[derive(Clone, Copy, Debug)]
struct ScanResult {
    /// Number of candidates of the queue that the pass looked at.
    upto: usize,
    /// The reservation of the queue's head as the pass left it.
    left: HeadReservation,
    pinned: Option<TaskId>,
}

impl BatchScheduler {
    /// A scheduler that leases one VM of the type `kind`, whose vCPUs are its processors.
    #[must_use]
    pub fn new(config: Config, kind: TypeName) -> Self {
        Self {
            config,
            kind,
            machine: LeasedMachine::None,
            next_vm: VmId::new(0),
            promotion: config.algorithm.promotion(),
            jobs: Window::default(),
            queue: Vec::new(),
            shortest: ShortestFirst::default(),
            endings: ExpectedEndings::default(),
            processors: TwoTierProcessors::new(&config),
            background: (0, true),
            scanned: None,
            watch: None,
            has_given_up: false,
        }
    }

    fn launch(&mut self, out: &mut Vec<Decision>) {
        let vm = self.next_vm;
        self.next_vm = vm.next();
        self.machine = LeasedMachine::Awaited(vm);
        let (kind, market) = (self.kind.clone(), Market::OnDemand);
        out.push(Decision::Launch { vm, kind, market, bid: None });
    }

    /// Queues a job. A job that doesn't fit the machine never runs; the submitter has checked that it fits.
    fn add_submission(&mut self, job: &Job, failures: u32) {
        let priority = if self.config.algorithm.heeds_priorities() { job.priority } else { 0 };
        let (id, processes, estimate) = (job.id, job.processes, job.estimate);
        let candidate = QueuedJob { id, processes, estimate, priority };
        let fits = (1..=self.config.processors).contains(&job.processes);
        if !fits || self.jobs.get(job.id).is_some() {
            return;
        }
        let rank = candidate.rank();
        let known = KnownJob { job: job.clone(), state: JobPlacement::Waiting, failures, rank };
        self.jobs.insert(job.id, known);
        self.enqueue_job(candidate);
    }

    /// Puts a waiting job in its place of the queue, by its rank.
    fn enqueue_job(&mut self, candidate: QueuedJob) {
        match self.queue.last() {
            Some(last) if last.rank() > candidate.rank() => {
                let at = self.queue.partition_point(|c| c.rank() < candidate.rank());
                self.queue.insert(at, candidate);
                // The candidates that the last pass looked at have moved.
                self.scanned = None;
            }
            _ => self.queue.push(candidate),
        }
        if self.promotion.is_some() {
            self.shortest.add(&candidate);
        }
    }

    /// Frees the processors of a job that no longer runs on them; `None` if the job had none.
    fn free_processors_of(&mut self, id: TaskId) -> Option<(Job, u32)> {
        if matches!(self.jobs.get(id)?.state, JobPlacement::Waiting) {
            return None;
        }
        let known = self.jobs.remove(id)?;
        self.scanned = None;
        match known.state {
            JobPlacement::Waiting => {}
            JobPlacement::Background { on, .. } => {
                self.processors.leave_background(&on);
                self.background = (self.background.0 - 1, true);
                if let Ok(at) = self.queue.binary_search_by_key(&known.rank, QueuedJob::rank) {
                    self.queue.remove(at);
                }
            }
            JobPlacement::Foreground { on, expected_end } => {
                self.processors.leave_foreground(&on);
                let processes = known.job.processes;
                self.endings.remove(ExpectedEnding { at: expected_end, id, processes });
            }
        }
        Some((known.job, known.failures))
    }

    /// Queues a failed job again at its old place, or gives the job up after [`MOST_STARTS`] starts.
    fn on_job_failed(&mut self, id: TaskId) {
        let Some((job, failures)) = self.free_processors_of(id) else { return };
        if failures + 1 < MOST_STARTS {
            self.add_submission(&job, failures + 1);
        } else {
            self.has_given_up = true;
        }
    }

    /// Handles the loss of the machine: all jobs wait again.
    fn machine_lost(&mut self, out: &mut Vec<Decision>) {
        let running = |(id, known): (TaskId, &KnownJob)| {
            (!matches!(known.state, JobPlacement::Waiting)).then_some(id)
        };
        let lost: Vec<_> = self.jobs.iter().filter_map(running).collect();
        for id in lost {
            if let Some((job, failures)) = self.free_processors_of(id) {
                self.add_submission(&job, failures);
            }
        }
        self.launch(out);
    }

    /// Sets an alarm to request the machine again after [`RETRY`], as its launch failed.
    fn wait_for_machine(&mut self, now: Time, out: &mut Vec<Decision>) {
        self.machine = LeasedMachine::None;
        out.push(Decision::Wake { at: now + RETRY, token: 0 });
    }

    fn handle_notice(&mut self, now: Time, notice: &Notice, out: &mut Vec<Decision>) {
        match *notice {
            Notice::Begin | Notice::HostJoined | Notice::Available { .. } | Notice::Wake { .. }
                if self.machine == LeasedMachine::None =>
            {
                self.launch(out);
            }
            Notice::VmReady { vm } if self.machine == LeasedMachine::Awaited(vm) => {
                self.machine = LeasedMachine::Ready(vm);
            }
            Notice::LaunchRefused { .. } => self.wait_for_machine(now, out),
            Notice::VmLost { vm } if self.machine == LeasedMachine::Awaited(vm) => {
                self.wait_for_machine(now, out);
            }
            Notice::VmLost { vm } if self.machine == LeasedMachine::Ready(vm) => {
                self.machine_lost(out);
            }
            Notice::Submitted { ref job } => self.add_submission(job, 0),
            Notice::TaskFailed { task, .. } => self.on_job_failed(task),
            _ => {}
        }
    }
}

impl BatchPolicy for BatchScheduler {
    fn watch(&mut self, job: TaskId) {
        self.watch = Some(WatchedJob::new(job));
    }

    fn notes(&self) -> &[Note] {
        self.watch.as_ref().map_or(&[], WatchedJob::notes)
    }
}

impl Policy for BatchScheduler {
    fn given_up(&self) -> Option<GivenUp> {
        self.has_given_up.then_some(GivenUp::Work)
    }

    fn hearing(&self) -> Delivery {
        Delivery::EndOfInstant
    }

    /// Handles the ends of jobs before all other notices of the instant.
    fn handle(&mut self, now: Time, heard: &[Notice], out: &mut Vec<Decision>) {
        for notice in heard {
            if let Notice::TaskFinished { task, .. } = *notice {
                self.free_processors_of(task);
            }
        }
        for notice in heard {
            self.handle_notice(now, notice, out);
        }
        if let LeasedMachine::Ready(vm) = self.machine {
            self.run_pass(now, vm, out);
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail by it")]
mod tests;
