//! The conductor of a run of parallel jobs: every event passes through it, in one order.

use std::time::{Duration, Instant};

use dormouse_batch::Refusal;
use dormouse_proto::v1;
use dormouse_units::Time;
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

use super::live::BatchPlan;
use super::run::{BatchRun, BatchStep, Order};
use super::{BatchFacts, MachineReport};
use crate::CoordinatorError;
use crate::clock::{Clock, ClockMsg, DilatedClock};
use crate::conductor::{ConductorMsg, later};
use crate::journal::{Batch, JournalMsg, Line, Release};
use crate::live::Progress;
use crate::session::SessionMsg;
use crate::stage::Last;

use worker::MACHINE;

mod worker;

/// How long the worker may take to clean up after the run.
const CLEAN_UP: Duration = Duration::from_secs(10);
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
    armed: Option<Time>,
    last: Time,
    begun: bool,
    worker: Option<Worker>,
    header: Option<Value>,
    steps: Vec<Line>,
    commands: Vec<v1::Command>,
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
        self.clock.run();
        self.last = self.clock.now();
        self.push(BatchStep {
            at: self.last,
            report: Some(MachineReport::Created),
            ..BatchStep::default()
        });
        self.submit();
    }

    fn submit(&mut self) {
        if self.run.next_submission().is_some_and(|at| at <= self.last) {
            let step = self.run.submit(self.last);
            self.obey(step);
        }
    }

    /// Takes in a report of the machine.
    fn take(&mut self, report: MachineReport) {
        self.last = self.last.max(self.clock.now());
        let bad = match &report {
            MachineReport::Broken { why } => Some(format!("the machine failed: {why}")),
            MachineReport::Failed { job, why, .. } => Some(format!("{job} failed: {why}")),
            MachineReport::Destroyed => {
                if let Some(worker) = &mut self.worker {
                    worker.has_machine = false;
                }
                None
            }
            _ => None,
        };
        if self.over.is_some() {
            let step = BatchStep { at: self.last, report: Some(report), ..BatchStep::default() };
            return self.push(step);
        }
        let step = self.run.hear(self.last, report);
        self.obey(step);
        if let Some(why) = bad {
            self.cancel(why);
        }
    }

    fn obey(&mut self, step: Result<(BatchStep, Vec<Order>), Refusal>) {
        match step {
            Ok((step, orders)) => {
                self.push(step);
                for order in orders {
                    let command = self.command_of(order);
                    self.command(command);
                }
            }
            Err(refusal) => self.cancel(refusal.to_string()),
        }
    }

    fn push(&mut self, step: BatchStep) {
        self.facts.see(&step);
        self.steps.push(Line::Batch(step));
    }

    fn command(&mut self, command: v1::command::Command) {
        self.commands.push(v1::Command { command: Some(command), ..v1::Command::default() });
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
            let (session, decided) = (worker.session.clone(), Instant::now());
            releases.push(Release { session, commands, durable, decided });
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

    /// Sets the alarm for the next submission, or the time limit, if that is sooner.
    fn arm(&mut self) {
        let limit = (self.begun && self.over.is_none()).then_some(self.plan.limit);
        let wanted =
            limit.map(|limit| self.run.next_submission().map_or(limit, |at| at.min(limit)));
        if wanted != self.armed {
            self.armed = wanted;
            let at = wanted.and_then(|at| self.clock.instant_of(at));
            let _ = self.alarm.cast(ClockMsg::Arm(at));
        }
    }

    fn tick(&mut self) {
        self.armed = None;
        if self.over.is_some() {
            return;
        }
        self.last = self.last.max(self.clock.now());
        if self.last >= self.plan.limit {
            let left = self.run.jobs() - self.run.ended();
            let limit = self.plan.limit;
            self.cancel(format!("the time limit of {limit} was reached; {left} jobs are left"));
        } else {
            self.submit();
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
            ConductorMsg::StillStuck { .. } => {}
            ConductorMsg::Cancel { why } => state.cancel(why),
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
