//! The conductor of a run of parallel jobs: every event passes through it, in one order.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use dormouse_batch::JobId;
use dormouse_proto::v1;
use dormouse_units::Time;
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

use super::live::BatchPlan;
use super::run::{BatchRun, BatchStep};
use super::{BatchFacts, MachineReport};
use crate::CoordinatorError;
use crate::clock::{Clock, ClockMsg, DilatedClock};
use crate::conductor::{ConductorMsg, LATEST, later};
use crate::journal::{Batch, JournalMsg, Line, Release};
use crate::link::Owed;
use crate::live::Progress;
use crate::session::SessionMsg;
use crate::stage::Last;

use worker::MACHINE;

mod worker;

/// How long the worker may take to clean up after the run.
const CLEAN_UP: Duration = Duration::from_secs(10);
/// How far behind the clock it listens: jobs are kept a little ahead, so that their ends are
/// reported by then, and a decision made late changes what others are due.
const BEHIND: Duration = Duration::from_millis(5);
/// How often the progress is shown, where somebody looks on.
const SHOW_EVERY: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(crate) struct BatchConductor;

#[derive(Debug)]
pub(crate) struct BatchArgs {
    pub(crate) plan: BatchPlan,
    pub(crate) run: BatchRun,
    pub(crate) header: Value,
    pub(crate) journal: ActorRef<JournalMsg>,
    pub(crate) warden: ActorCell,
    pub(crate) progress: Option<watch::Sender<Progress>>,
    pub(crate) failed: UnboundedSender<CoordinatorError>,
}

/// The worker that is the machine.
#[derive(Debug)]
struct Worker {
    name: String,
    incarnation: u64,
    millicores: u32,
    session: ActorRef<SessionMsg>,
    lost: bool,
    /// The machine was ordered and is not gone.
    has_machine: bool,
}

#[derive(Debug)]
pub(crate) struct BatchState {
    plan: BatchPlan,
    run: BatchRun,
    facts: BatchFacts,
    clock: DilatedClock,
    alarm: ActorRef<ClockMsg>,
    armed: Option<Instant>,
    /// Reports in the order in which they will be heard: by when they were due, and by job.
    waiting: BTreeMap<(Time, JobId, u64), MachineReport>,
    arrivals: u64,
    last: Time,
    begun: bool,
    worker: Option<Worker>,
    header: Option<Value>,
    steps: Vec<Line>,
    commands: Vec<Owed>,
    /// The last report that is durable with these steps.
    durable: u64,
    /// When and, if jobs are left, why it ended.
    over: Option<(Time, Option<String>)>,
    closing: bool,
    journal: ActorRef<JournalMsg>,
    warden: ActorCell,
    progress: Option<watch::Sender<Progress>>,
    failed: UnboundedSender<CoordinatorError>,
}

impl Last for BatchState {
    fn sessions(&self) -> Vec<ActorRef<SessionMsg>> {
        self.worker.iter().filter(|w| !w.lost).map(|w| w.session.clone()).collect()
    }
}

impl BatchState {
    pub(crate) fn into_outcome(self) -> (BatchFacts, Time, Option<String>) {
        let (end, cancelled) = self.over.unwrap_or_default();
        (self.facts, end, cancelled)
    }

    /// The machine is there: the clock begins to run.
    fn begin(&mut self) {
        if self.begun {
            return;
        }
        self.begun = true;
        let start = self.clock.now();
        self.clock.run();
        self.take(start, vec![MachineReport::Created]);
    }

    /// A report has come. What should end at one instant is heard of at that, in the order of the
    /// jobs, as in virtual time.
    pub(super) fn put(&mut self, report: MachineReport, due: Option<Time>) {
        let now = Instant::now();
        // What comes before its time waits for it.
        let due = due.unwrap_or_else(|| self.clock.at(now)).min(self.clock.at(now + LATEST));
        let job = match &report {
            MachineReport::Finished { job, .. } => *job,
            _ => JobId::new(0),
        };
        self.arrivals += 1;
        self.waiting.insert((due, job, self.arrivals), report);
    }

    /// Hears of all that was due a moment ago.
    pub(super) fn hear_what_is_due(&mut self) {
        let now = Instant::now();
        let until = self.clock.at(now.checked_sub(BEHIND).unwrap_or(now));
        while let Some(at) = self.first_due().filter(|at| *at <= until) {
            let mut reports = Vec::new();
            while let Some(first) = self.waiting.first_entry().filter(|e| e.key().0 == at) {
                reports.push(first.remove());
            }
            let earliest = self.clock.at(now.checked_sub(LATEST).unwrap_or(now));
            let at = if at < earliest { self.clock.at(now) } else { at };
            self.take(at, reports);
        }
    }

    /// When a report or a submission is due next.
    fn first_due(&self) -> Option<Time> {
        let report = self.waiting.first_key_value().map(|(&(due, ..), _)| due);
        let runs = self.begun && self.over.is_none();
        [report, self.run.next_submission().filter(|_| runs)].into_iter().flatten().min()
    }

    /// Takes in what is of one instant.
    fn take(&mut self, at: Time, reports: Vec<MachineReport>) {
        self.last = self.last.max(at);
        let mut bad = None;
        for report in &reports {
            match report {
                MachineReport::Broken { why } => bad = Some(format!("the machine failed: {why}")),
                MachineReport::Failed { job, why, .. } => {
                    bad = Some(format!("{job} failed: {why}"));
                }
                MachineReport::Destroyed => {
                    if let Some(worker) = &mut self.worker {
                        worker.has_machine = false;
                    }
                }
                _ => {}
            }
        }
        if self.over.is_some() {
            for report in reports {
                let at = self.last;
                self.push(BatchStep { at, report: Some(report), ..BatchStep::default() });
            }
            return;
        }
        match self.run.hear(self.last, reports) {
            Ok((steps, orders)) => {
                for step in steps {
                    self.push(step);
                }
                for order in orders {
                    let command = self.command_of(order);
                    self.command(command);
                }
            }
            Err(refusal) => self.cancel(refusal.to_string()),
        }
        if let Some(why) = bad {
            self.cancel(why);
        }
    }

    fn push(&mut self, step: BatchStep) {
        self.facts.see(&step);
        self.steps.push(Line::Batch(step));
    }

    fn command(&mut self, command: v1::command::Command) {
        let since = self.clock.instant_of(self.last).unwrap_or_else(Instant::now);
        let (command, at_us) = (Some(command), Some(self.last.as_micros()));
        let command = v1::Command { command, at_us, late_us: 0 };
        self.commands.push(Owed { command, since });
    }

    /// Ends the run with jobs left.
    fn cancel(&mut self, why: String) {
        if self.over.is_some() {
            return;
        }
        self.last = self.last.max(self.clock.now());
        let cancelled = Some(why.clone());
        self.push(BatchStep { at: self.last, cancelled, ..BatchStep::default() });
        self.end(Some(why));
    }

    fn end(&mut self, why: Option<String>) {
        self.over = Some((self.last, why));
        self.command(v1::command::Command::DestroyVm(v1::VmRef { vm: MACHINE }));
    }

    /// Hands the steps made since the last time to the journal, and looks at what is next.
    fn commit(&mut self, myself: &ActorRef<ConductorMsg>) {
        if self.begun && self.over.is_none() && self.run.is_over() {
            self.end(None);
        }
        let steps = std::mem::take(&mut self.steps);
        let header = match steps.is_empty() {
            true => None,
            false => self.header.take().map(|header| self.with_live(header)),
        };
        let (commands, durable) = (std::mem::take(&mut self.commands), self.durable);
        self.durable = 0;
        let mut releases = Vec::new();
        if let Some(worker) = self.worker.as_ref().filter(|w| !w.lost)
            && (durable > 0 || !commands.is_empty())
        {
            let session = worker.session.clone();
            releases.push(Release { session, commands, durable });
        }
        let _ =
            self.journal.cast(JournalMsg::Append(Batch { header, steps, releases, since: None }));
        self.arm();
        if self.over.is_some() {
            self.close(myself);
        }
    }

    fn with_live(&self, mut header: Value) -> Value {
        if let Some(map) = header.as_object_mut() {
            map.insert(
                "live".to_owned(),
                json!({
                    "run": self.plan.run,
                    "emulated_us_per_second": self.plan.speedup.emulated_us_per_second(),
                    "core_ppm": self.facts.core,
                    "reserve_ppm": self.plan.reserve,
                    "phase_us": u64::try_from(self.plan.phase.as_micros()).unwrap_or(u64::MAX),
                }),
            );
        }
        header
    }

    /// Sets the alarm for what is due next, or the time limit, if that is sooner.
    fn arm(&mut self) {
        let limit = (self.begun && self.over.is_none()).then_some(self.plan.limit);
        let next = [self.first_due(), limit].into_iter().flatten().min();
        let wanted = next.and_then(|at| self.clock.instant_of(at)).map(|at| at + BEHIND);
        if wanted != self.armed {
            self.armed = wanted;
            let _ = self.alarm.cast(ClockMsg::Arm(wanted));
        }
    }

    fn tick(&mut self) {
        self.armed = None;
        self.hear_what_is_due();
        if self.over.is_none() && self.clock.now() >= self.plan.limit {
            let left = self.run.jobs() - self.run.ended();
            let limit = self.plan.limit;
            self.cancel(format!("the time limit of {limit} was reached; {left} jobs are left"));
        }
    }

    /// The run is over: the worker cleans up, then the conductor ends.
    fn close(&mut self, myself: &ActorRef<ConductorMsg>) {
        if self.worker.as_ref().is_none_or(|w| !w.has_machine) {
            self.show();
            myself.stop(None);
        } else if !self.closing {
            self.closing = true;
            later(CLEAN_UP, myself, ConductorMsg::Close);
        }
    }

    fn progress(&self) -> Progress {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Progress {
            now: self.over.as_ref().map_or_else(|| self.clock.now(), |(at, _)| *at),
            begun: self.begun,
            tasks: count(self.run.jobs()),
            completed: count(self.run.ended()),
            running: count(self.run.running()),
            vms: u32::from(self.worker.as_ref().is_some_and(|w| w.has_machine)),
            workers: u32::from(self.worker.as_ref().is_some_and(|w| !w.lost)),
            workers_wanted: 1,
            over: self.over.is_some(),
            ..Progress::default()
        }
    }

    fn show(&self) {
        if let Some(progress) = &self.progress {
            progress.send_replace(self.progress());
        }
    }
}

impl Actor for BatchConductor {
    type Msg = ConductorMsg;
    type State = BatchState;
    type Arguments = BatchArgs;

    async fn pre_start(
        &self,
        myself: ActorRef<ConductorMsg>,
        args: BatchArgs,
    ) -> Result<BatchState, ActorProcessingErr> {
        let (alarm, _) =
            Actor::spawn_linked(None, Clock, myself.clone(), args.warden.clone()).await?;
        if args.progress.is_some() {
            later(SHOW_EVERY, &myself, ConductorMsg::Show);
        }
        Ok(BatchState {
            clock: DilatedClock::standing(args.plan.speedup, Time::ZERO),
            plan: args.plan,
            run: args.run,
            facts: BatchFacts::default(),
            alarm,
            armed: None,
            waiting: BTreeMap::new(),
            arrivals: 0,
            last: Time::ZERO,
            begun: false,
            worker: None,
            header: Some(args.header),
            steps: Vec::new(),
            commands: Vec::new(),
            durable: 0,
            over: None,
            closing: false,
            journal: args.journal,
            warden: args.warden,
            progress: args.progress,
            failed: args.failed,
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<ConductorMsg>,
        message: ConductorMsg,
        state: &mut BatchState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            ConductorMsg::Hello { hello, ack, connection, reply } => {
                let answer = state.hello(&myself, hello, ack, connection).await;
                let _ = reply.send(answer);
            }
            ConductorMsg::Heard { through, heard, .. } => state.heard(through, heard),
            ConductorMsg::Lost { why, .. } => state.lose(why),
            ConductorMsg::Tick => state.tick(),
            ConductorMsg::StillStuck { .. } | ConductorMsg::SayClock => {}
            // It can't be gone on with, so it ends.
            ConductorMsg::Cancel { why } | ConductorMsg::Pause { why } => state.cancel(why),
            ConductorMsg::Close => {
                tracing::warn!("the worker did not report its machine gone in time");
                if let Some(worker) = &mut state.worker {
                    worker.has_machine = false;
                }
            }
            ConductorMsg::Show => {
                state.show();
                later(SHOW_EVERY, &myself, ConductorMsg::Show);
                return Ok(());
            }
            ConductorMsg::Status(reply) => {
                let _ = reply.send(state.progress());
                return Ok(());
            }
        }
        state.commit(&myself);
        Ok(())
    }
}
