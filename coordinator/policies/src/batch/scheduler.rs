//! The scheduler of parallel jobs: one queue, passes over it, and decisions.

use dormouse_cloud::Market;
use dormouse_model::{Decision, Job, Notice};
use dormouse_units::{Cpus, Span, TaskId, Time, TypeName, VmId, Window};

use super::config::Config;
use super::explain::{Note, Watch};
use super::processors::Processors;
use super::queue::{Candidate, Ending, Endings, Shortest};
use super::reservation::Reservation;
use super::schedulers::{BatchPolicy, OnPromotion};
use crate::{GivenUp, Hearing, Policy};

mod pass;

/// Wait after a failed launch of the machine before it is asked for again.
const RETRY: Span = Span::from_secs(60);
/// Most starts of a job: a job that always fails would otherwise never let the run end.
pub const MOST_STARTS: u32 = 5;

/// Whether a job waits or runs, and on which processors.
#[derive(Clone, Debug)]
enum State {
    Waiting,
    Background { on: Cpus, since: Time },
    Foreground { on: Cpus, expected_end: Time },
}

#[derive(Clone, Debug)]
struct Known {
    job: Job,
    state: State,
    /// Number of the job's failed attempts.
    failures: u32,
}

/// The VM with all the processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Machine {
    /// The VM was not asked for.
    None,
    /// The VM was asked for but is not ready yet.
    Awaited(VmId),
    /// The VM can run jobs.
    Ready(VmId),
}

/// FCFS, EASY, KEASY, REASY or MEASY, as its [`Config`] says: a pure state machine.
#[derive(Clone, Debug)]
pub struct BatchScheduler {
    config: Config,
    /// The instance type of the machine.
    kind: TypeName,
    machine: Machine,
    next_vm: VmId,
    promotion: Option<OnPromotion>,
    jobs: Window<Known>,
    /// Jobs without a foreground, waiting or in the background, in order of submission.
    queue: Vec<Candidate>,
    /// The waiting jobs of the queue; kept only where there are two tiers.
    shortest: Shortest,
    endings: Endings,
    processors: Processors,
    /// Number of jobs in the background, and whether one left it since it was last filled.
    background: (usize, bool),
    scanned: Option<Scanned>,
    watch: Option<Watch>,
    /// Whether a job was given up that failed too often.
    has_given_up: bool,
}

/// Findings of the last pass. Until a job ends or the shadow time comes, no job that the pass has
/// turned down would fare better: nothing becomes idle, the shadow time stays, and an estimate only
/// reaches further. So a pass after submissions alone looks at the new jobs alone.
#[derive(Clone, Copy, Debug)]
struct Scanned {
    /// Number of candidates of the queue that the pass looked at.
    upto: usize,
    /// The head's reservation as the pass left it.
    left: Reservation,
    pinned: Option<TaskId>,
}

impl BatchScheduler {
    /// A scheduler that leases one VM of the type `kind`, whose vCPUs are its processors.
    #[must_use]
    pub fn new(config: Config, kind: TypeName) -> Self {
        Self {
            config,
            kind,
            machine: Machine::None,
            next_vm: VmId::new(0),
            promotion: config.algorithm.promotion(),
            jobs: Window::default(),
            queue: Vec::new(),
            shortest: Shortest::default(),
            endings: Endings::default(),
            processors: Processors::new(&config),
            background: (0, true),
            scanned: None,
            watch: None,
            has_given_up: false,
        }
    }

    fn launch(&mut self, out: &mut Vec<Decision>) {
        let vm = self.next_vm;
        self.next_vm = vm.next();
        self.machine = Machine::Awaited(vm);
        let (kind, market) = (self.kind.clone(), Market::OnDemand);
        out.push(Decision::Launch { vm, kind, market, bid: None });
    }

    /// Queues a job. A job that doesn't fit the machine is never run: whoever submits it has
    /// checked that.
    fn submitted(&mut self, job: &Job, failures: u32) {
        let candidate = Candidate { id: job.id, processes: job.processes, estimate: job.estimate };
        let fits = (1..=self.config.processors).contains(&job.processes);
        if !fits || self.jobs.get(job.id).is_some() {
            return;
        }
        let known = Known { job: job.clone(), state: State::Waiting, failures };
        self.jobs.insert(job.id, known);
        self.enqueue(candidate);
    }

    /// Puts a waiting job in its place of the queue, by order of submission.
    fn enqueue(&mut self, candidate: Candidate) {
        match self.queue.last() {
            Some(last) if last.id > candidate.id => {
                let at = self.queue.partition_point(|c| c.id < candidate.id);
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

    /// Takes a job off its processors; `None` if it has none.
    fn leaves(&mut self, id: TaskId) -> Option<(Job, u32)> {
        if matches!(self.jobs.get(id)?.state, State::Waiting) {
            return None;
        }
        let known = self.jobs.remove(id)?;
        self.scanned = None;
        match known.state {
            State::Waiting => {}
            State::Background { on, .. } => {
                self.processors.leave_background(&on);
                self.background = (self.background.0 - 1, true);
                if let Ok(at) = self.queue.binary_search_by_key(&id, |c| c.id) {
                    self.queue.remove(at);
                }
            }
            State::Foreground { on, expected_end } => {
                self.processors.leave_foreground(&on);
                let processes = known.job.processes;
                self.endings.remove(Ending { at: expected_end, id, processes });
            }
        }
        Some((known.job, known.failures))
    }

    /// A job failed: it waits again, where it stood in the queue, unless it has failed too often.
    fn failed(&mut self, id: TaskId) {
        let Some((job, failures)) = self.leaves(id) else { return };
        if failures + 1 < MOST_STARTS {
            self.submitted(&job, failures + 1);
        } else {
            self.has_given_up = true;
        }
    }

    /// The machine is gone: all jobs wait again.
    fn machine_lost(&mut self, out: &mut Vec<Decision>) {
        let running =
            |(id, known): (TaskId, &Known)| (!matches!(known.state, State::Waiting)).then_some(id);
        let lost: Vec<_> = self.jobs.iter().filter_map(running).collect();
        for id in lost {
            if let Some((job, failures)) = self.leaves(id) {
                self.submitted(&job, failures);
            }
        }
        self.launch(out);
    }

    /// The machine could not be had: the scheduler asks for it again later.
    fn wait_for_machine(&mut self, now: Time, out: &mut Vec<Decision>) {
        self.machine = Machine::None;
        out.push(Decision::Wake { at: now + RETRY, token: 0 });
    }

    fn hear(&mut self, now: Time, notice: &Notice, out: &mut Vec<Decision>) {
        match *notice {
            Notice::Begin | Notice::HostJoined | Notice::Available { .. } | Notice::Wake { .. }
                if self.machine == Machine::None =>
            {
                self.launch(out);
            }
            Notice::VmReady { vm } if self.machine == Machine::Awaited(vm) => {
                self.machine = Machine::Ready(vm);
            }
            Notice::LaunchRefused { .. } => self.wait_for_machine(now, out),
            Notice::VmLost { vm } if self.machine == Machine::Awaited(vm) => {
                self.wait_for_machine(now, out);
            }
            Notice::VmLost { vm } if self.machine == Machine::Ready(vm) => self.machine_lost(out),
            Notice::Submitted { ref job } => self.submitted(job, 0),
            Notice::TaskFailed { task, .. } => self.failed(task),
            _ => {}
        }
    }
}

impl BatchPolicy for BatchScheduler {
    fn watch(&mut self, job: TaskId) {
        self.watch = Some(Watch::new(job));
    }

    fn notes(&self) -> &[Note] {
        self.watch.as_ref().map_or(&[], Watch::notes)
    }
}

impl Policy for BatchScheduler {
    fn given_up(&self) -> Option<GivenUp> {
        self.has_given_up.then_some(GivenUp::Work)
    }

    fn hearing(&self) -> Hearing {
        Hearing::Instants
    }

    /// Ends of jobs are handled first, whatever the order of the notices.
    fn handle(&mut self, now: Time, heard: &[Notice], out: &mut Vec<Decision>) {
        for notice in heard {
            if let Notice::TaskFinished { task, .. } = *notice {
                self.leaves(task);
            }
        }
        for notice in heard {
            self.hear(now, notice, out);
        }
        if let Machine::Ready(vm) = self.machine {
            self.pass(now, vm, out);
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail by it")]
mod tests;
