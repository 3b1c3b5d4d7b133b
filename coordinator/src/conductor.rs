//! The conductor owns the run: every event passes through it, in one order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use dormouse_analysis::{Evidence, LiveFacts};
use dormouse_engine::drive::WaitingFollowers;
use dormouse_engine::{Run, TaskRecord};
use dormouse_log::HeaderText;
use dormouse_model::{
    AttemptEnds, Command, Event, LoadReport, MAX_REPORT_DELAY, Notice, Report, Step, Submission,
    VmRequest,
};
use dormouse_units::{HostId, Ppm, Span, TaskId, Time};
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef};
use serde_json::json;
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::debug_span;
use tracing::field::Empty;

use crate::contents::LayOut;
use crate::log::journal::{JournalBatch, JournalMsg};
use crate::messages::message::{ConductorMsg, SessionMsg};
use crate::messages::outside::JobIntake;
use crate::plan::ConductorPlan;
use crate::protocol::announce::list_announcements;
use crate::protocol::link::{DecisionInstant, QueuedCommand};
use crate::protocol::wire::WireEncoder;
use crate::sessions::lives::SessionRegistry;
use crate::sessions::session::DurableRelease;
use crate::status::progress::{PostedProgress, RunProgress};
use crate::status::vitals::CoordinatorVitals;
use crate::storage::store::{CheckpointFolder, ForgetTask, LoggedCheckpoint};
use crate::time::clock::DilatedClock;
use crate::time::outage::{self, MachineTime, ResumedClock};
use crate::{CoordinatorError, SPANS};
use alarm::{ClockMsg, RunAlarm};
pub(crate) use args::{ConductorArgs, RestoredHost};
use check_queue::CheckQueue;
use inbox::ReportInbox;
use outstanding::Outstanding;
use returning::ReturningWorkers;
use roster::{HostStanding, WorkerRoster};

pub(crate) mod alarm;
mod args;
mod check_queue;
mod check_work;
mod desk_calls;
mod door;
mod evidence;
mod explain;
mod hearing;
mod hosts;
mod inbox;
mod interrupt;
mod jobs;
mod late;
mod obey;
pub(crate) mod outstanding;
mod progress;
mod returning;
pub(crate) mod roster;
mod spot_checks;
mod stops;
pub(crate) mod thread;

/// Time that the workers may take to clean up after the run.
const CLEAN_UP: Duration = Duration::from_secs(10);
/// Time by which the conductor runs behind the clock, so that reports of events that were due have arrived by then.
pub(crate) const BEHIND: Duration = Duration::from_millis(25);
/// Time by which the conductor runs behind the clock in a run with parallel jobs only. Workers keep these jobs a little ahead of
/// time, so that their ends are reported by then: late decisions would change the CPU time due to other jobs.
const BEHIND_JOBS: Duration = Duration::from_millis(5);
/// Interval at which the log records the run's clock beside the wall clock.
const SAY_CLOCK_EVERY: Duration = Duration::from_secs(2);
/// Interval at which the progress is shown to observers.
const SHOW_EVERY: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(crate) struct Conductor;

#[derive(Debug)]
pub(crate) struct ConductorState {
    plan: ConductorPlan,
    run: Run,
    facts: LiveFacts,
    clock: DilatedClock,
    alarm: ActorRef<ClockMsg>,
    armed: Option<Instant>,
    last: Time,
    begun: bool,
    loads: WireEncoder,
    /// Parallel jobs without predecessors, in order of submission.
    submissions: Vec<Submission>,
    followers: WaitingFollowers,
    /// Number of all parallel jobs of the workload.
    jobs: usize,
    last_number: u64,
    /// VM requests of customers, in order of time.
    requests: Vec<(Time, VmRequest)>,
    /// Number of the experiment's faults that were injected.
    faults_asked: usize,
    door: JobIntake,
    inbox: ReportInbox,
    outstanding: Outstanding,
    /// Host and number of each report whose account of CPU time is in the log already.
    parted: BTreeSet<(HostId, u64)>,
    roster: WorkerRoster,
    batch: JournalBatch,
    /// The coordinator's own records, against which workers' reports are checked.
    evidence: Evidence,
    ends: AttemptEnds,
    checks: CheckQueue,
    /// Loads that hosts reported before the run began, with the numbers of the reports.
    early_loads: BTreeMap<HostId, (u64, LoadReport)>,
    header: Option<HeaderText>,
    /// Counter that is increased whenever the run turns out not to be stuck.
    unstuck: u64,
    stuck: bool,
    closing: bool,
    /// Workers that a resumed run waits for; `None`: it does not wait.
    returning: Option<ReturningWorkers>,
    /// Reason why the scheduler can't decide any more, after which all reports are ignored; `None`: the scheduler works.
    broken: Option<String>,
    journal: ActorRef<JournalMsg>,
    vitals: CoordinatorVitals,
    /// Tracing span of the run.
    span: tracing::Span,
    store: Arc<CheckpointFolder>,
    warden: ActorCell,
    runtime: Handle,
    lives: Arc<SessionRegistry>,
    board: watch::Sender<PostedProgress>,
    progress: Option<watch::Sender<RunProgress>>,
    failed: UnboundedSender<CoordinatorError>,
}

impl ConductorState {
    /// Returns the run and the measured facts, once the run is over.
    pub(crate) fn into_outcome(self) -> (Run, LiveFacts) {
        let (clock_late_us, journal_late_us) = self.vitals.punctuality().worst_us();
        (self.run, LiveFacts { clock_late_us, journal_late_us, ..self.facts })
    }

    /// Returns the time by which the conductor runs behind the clock.
    fn clock_lag(&self) -> Duration {
        // Where nothing is emulated but the dispatch, nothing has a time of its own.
        let setup = self.run.setup();
        match (self.plan.noop, setup.jobs.is_some() && setup.bag.tasks.is_empty()) {
            (true, _) => Duration::ZERO,
            (false, true) => BEHIND_JOBS,
            (false, false) => BEHIND,
        }
    }

    /// Feeds an event from outside, which happens now, after everything that has happened before.
    fn feed_now(&mut self, event: Event) {
        let now = self.clock.show_now();
        self.hear_until(now, None);
        self.feed_event(now, event);
    }

    /// Logs what the run's clock shows beside the wall clock. This doesn't pass time: the logged step has the time of
    /// the step before.
    fn say_clock(&mut self) {
        // So long a worker keeps its VMs without a coordinator.
        self.say_clock_and_hold(self.plan.hold);
    }

    fn say_clock_and_hold(&mut self, hold: Duration) {
        if !self.begun || self.run.over_at().is_some() || self.returning.is_some() {
            return;
        }
        let hold_real_us = outage::to_micros(hold);
        let MachineTime { unix_us, since_boot } = self.plan.world.machine_time();
        let shows = self.clock.show_now();
        self.feed_event(self.last, Event::Clock { shows, unix_us, hold_real_us, since_boot });
    }

    fn unfinished_tasks(&self) -> String {
        explain::explain_unfinished(&self.run, &self.facts)
    }

    /// Feeds an event that was due at `due`. The resulting commands are sent by [`Self::commit_steps`].
    fn feed_event(&mut self, due: Time, event: Event) {
        if self.broken.is_some() {
            return;
        }
        self.last = self.last.max(due);
        let job = self.job_that_ends(&event);
        let deciding = debug_span!(target: SPANS, parent: &self.span, "decide", seq = Empty, decisions = Empty);
        let (step, commands) = deciding.in_scope(|| self.run.handle_event(self.last, event));
        deciding.record("seq", step.seq).record("decisions", step.decisions.len());
        drop(deciding);
        if let Some(why) = self.run.failure_reason() {
            // Nothing was decided on this event: it is heard again when the run goes on.
            self.broken = Some(why.to_owned());
            return;
        }
        self.facts.see(&step);
        if let Some(early) = self.evidence.see(self.run.setup(), &step) {
            tracing::warn!(%early, "a task is reported finished earlier than is possible");
        }
        self.followers.take_step(&step);
        self.note_checkpoints(&step);
        self.forget_checkpoints(&step);
        let end = self.ends.take_step(&step);
        self.checks.take_step(&step, end.as_ref(), job);
        if let Some(of) = end {
            let handed = self.outstanding.assignments().handed();
            handed.take_end(&of);
            let (contents, keeps) = (Arc::clone(self.store.contents()), handed.hands_on(of.task));
            self.batch.then.push(Box::new(LayOut { contents, of, keeps }));
        }
        self.start_clock();
        let announced = match self.plan.metadata {
            Some(_) => list_announcements(step.at, &step.notices, self.plan.api.is_some(), |vm| {
                Some(self.run.provider().find_vm(vm)?.host)
            }),
            None => Vec::new(),
        };
        let of_instances = self.instance_announcements(&step, &commands);
        let commands = announced.into_iter().chain(of_instances).chain(commands);
        self.outstanding.told(commands, self.last, &self.run);
        self.batch.steps.push(step);
    }

    /// Prepares a command, decided at `at`, for its worker.
    fn queue_command(&self, command: Command, at: Time) -> QueuedCommand {
        let decided = self.clock.instant_of(at).map(DecisionInstant::At);
        let since = decided.unwrap_or_else(|| DecisionInstant::Standing(self.clock.clone()));
        QueuedCommand { command: self.loads.encode_command(command, Some(at)), since }
    }

    /// Notes the checkpoints from which tasks would continue after a resume, so that the store keeps them once the log
    /// is durable.
    fn note_checkpoints(&mut self, step: &Step) {
        let Event::Machine { report, .. } = &step.event else { return };
        let (Report::CheckpointTaken { task, .. }
        | Report::TaskStopped { task, .. }
        | Report::TaskStarted { task, .. }
        | Report::TaskFailed { task, .. }) = *report
        else {
            return;
        };
        if self.store.may_hold(task.get()) {
            let newest = self.run.tasks().get(task).and_then(TaskRecord::kept_checkpoint);
            let newest = newest.map(|(number, _)| number.get());
            let logged =
                LoggedCheckpoint { store: Arc::clone(&self.store), task: task.get(), newest };
            self.batch.then.push(Box::new(logged));
        }
    }

    /// Has the checkpoints of finished tasks deleted once the log is durable; before that, the run might be resumed
    /// from a log in which these tasks aren't finished.
    fn forget_checkpoints(&mut self, step: &Step) {
        for notice in &step.notices {
            let &Notice::TaskFinished { task, .. } = notice else { continue };
            if self.store.may_hold(task.get()) {
                let forget = ForgetTask { store: Arc::clone(&self.store), task: task.get() };
                self.batch.then.push(Box::new(forget));
            }
        }
    }

    /// Hands the steps made since the last call to the journal, and sets the alarm for the next event.
    fn commit_steps(&mut self, myself: &ActorRef<ConductorMsg>) {
        let mut batch = std::mem::take(&mut self.batch);
        if !batch.steps.is_empty() {
            batch.header = self.header.take().map(|header| self.with_live(header));
        }
        let unsent = self.outstanding.take_unsent();
        let idle = unsent.is_empty();
        let owed = |(command, at)| self.queue_command(command, at);
        let owed = |commands: Vec<_>| commands.into_iter().map(owed).collect::<Vec<_>>();
        let unsent = unsent.into_iter().map(|(host, commands)| (host, owed(commands)));
        let mut unsent: BTreeMap<_, _> = unsent.collect();
        for (host, entry) in self.roster.iter_mut() {
            let commands = unsent.remove(&host).unwrap_or_default();
            // What was heard as the scheduler failed is not in the log.
            let is_part = entry.standing == HostStanding::Joined && self.broken.is_none();
            let news = is_part.then(|| entry.numbers.take_acknowledged()).flatten();
            let Some(session) = &entry.session else { continue };
            if news.is_some() || !commands.is_empty() {
                let (session, durable) = (session.clone(), news.unwrap_or_default());
                batch.then.push(Box::new(DurableRelease { session, commands, durable }));
            }
        }
        let _ = self.journal.cast(JournalMsg::Append(batch));
        if self.broken.is_some() {
            return;
        }
        self.post_progress();
        self.arm_alarm();
        if idle {
            self.look_whether_stuck(myself);
        }
        if self.run.over_at().is_some() {
            self.close(myself);
        }
    }

    /// Completes the log's header with what only the live run knows.
    fn with_live(&self, header: HeaderText) -> HeaderText {
        let phase_us = self.loads.parallel.map(|programs| outage::to_micros(programs.phase));
        let live = json!({
            "run": self.plan.run,
            "emulated_us_per_second": self.plan.speedup.emulated_us_per_second(),
            "share_ppm": self.facts.share,
            "reserve_ppm": self.plan.reserve,
            "spot_checks_ppm": self.plan.spot_checks,
            "demand_vcpus": self.plan.demand.busy_vcpus(),
            "phase_us": phase_us,
            "answer_seed": format!("{:016x}", self.plan.answer_seed),
        });
        // It is an object (`LiveRun::check`).
        header.with_key("live", &live).unwrap_or(header)
    }

    /// Sets the alarm for the next thing that is due: a report, a timer of the run, or the time limit.
    fn arm_alarm(&mut self) {
        let limit = (self.begun && self.run.over_at().is_none()).then_some(self.plan.limit);
        let (outside, follower) = self.next_arrivals();
        let own = [self.run.next_wakeup(), outside, follower, self.run.pending_instant()];
        let all = own.into_iter().chain([self.inbox.first_due(), self.next_fault(), limit]);
        let next = all.flatten().min();
        let mut wanted =
            next.and_then(|at| self.clock.instant_of(at)).map(|at| at + self.clock_lag());
        if let Some(since) = self.outstanding.under_way_since(Time::ZERO)
            && next.is_some_and(|at| at >= since)
        {
            // Whatever is still under way is not waited for any longer then: it is older than the earliest
            // that is, and not as old, else the alarm would ring again at the same instant.
            let older = since + Span::from_micros(1);
            let at_last = self.clock.instant_of(older).map(|at| at + MAX_REPORT_DELAY);
            wanted = wanted.max(at_last);
        }
        if wanted != self.armed {
            self.armed = wanted;
            let _ = self.alarm.cast(ClockMsg::Arm(wanted));
        }
    }

    fn alarm_rang(&mut self) {
        if let Some(due) = self.armed.take() {
            self.vitals.punctuality().alarm_rang(due.elapsed());
        }
        self.hear_what_is_due();
        self.ask_for_faults();
        if self.clock.show_now() >= self.plan.limit {
            let limit = self.plan.limit;
            self.cancel_run(|it| {
                format!("the time limit of {limit} was reached; {}", it.unfinished_tasks())
            });
        }
    }

    /// Checks later whether the run is still stuck: it may only seem so while reports are under way.
    fn look_whether_stuck(&mut self, myself: &ActorRef<ConductorMsg>) {
        if !self.is_stuck() {
            self.unstuck += 1;
            self.stuck = false;
        } else if !self.stuck {
            self.stuck = true;
            let since = self.unstuck;
            // Where nobody is there, somebody may come.
            let patience =
                if self.roster.alive_count() > 0 { self.plan.lost_after } else { self.plan.hold };
            send_later(patience, myself, ConductorMsg::StillStuck { since });
        }
    }

    fn still_stuck(&mut self, since: u64) {
        if since == self.unstuck && self.is_stuck() {
            self.cancel_run(|it| {
                format!(
                    "nothing will ever happen again{}; {}",
                    it.run.why_stuck(),
                    it.unfinished_tasks()
                )
            });
        }
    }

    /// Closes a run that is over: the workers clean up, then the conductor ends.
    fn close(&mut self, myself: &ActorRef<ConductorMsg>) {
        if self.outstanding.vms() == 0 {
            if self.spot_checks_go_on(myself) {
                return;
            }
            self.show_progress();
            self.say_own_load();
            myself.stop(None);
        } else if !self.closing {
            self.closing = true;
            send_later(CLEAN_UP, myself, ConductorMsg::Close);
        }
    }
}

impl ConductorState {
    /// Returns the open sessions.
    pub(crate) fn open_sessions(&self) -> Vec<ActorRef<SessionMsg>> {
        let open = self.roster.iter().filter(|(_, entry)| !entry.is_lost());
        open.filter_map(|(_, entry)| entry.session.clone()).collect()
    }
}

/// Sends the conductor a message after a while.
pub(crate) fn send_later(after: Duration, myself: &ActorRef<ConductorMsg>, message: ConductorMsg) {
    let myself = myself.clone();
    tokio::spawn(async move {
        tokio::time::sleep(after).await;
        let _ = myself.cast(message);
    });
}

impl Actor for Conductor {
    type Msg = ConductorMsg;
    type State = ConductorState;
    type Arguments = ConductorArgs;

    async fn pre_start(
        &self,
        myself: ActorRef<ConductorMsg>,
        args: ConductorArgs,
    ) -> Result<ConductorState, ActorProcessingErr> {
        let alarm = Actor::spawn_linked(None, RunAlarm, myself.clone(), args.warden.clone());
        let (alarm, _) = args.runtime.spawn(alarm).await??;
        let speedup = args.plan.speedup;
        let anchor = args.anchor.filter(|_| !jobs::waits_for_machine(&args.run));
        let machine = args.plan.world.machine_time();
        let back = anchor.map(|anchor| anchor.resume_clock(args.last, &machine, speedup));
        let back = back.unwrap_or(ResumedClock::unknown_outage(args.last));
        let clock = DilatedClock::standing_at(speedup, args.last);
        args.vitals.set_clock(clock.clone());
        // A log that ends between the hosts and the beginning: it begins now.
        let restored = !args.hosts.is_empty();
        let goes_on = args.begun && args.run.over_at().is_none();
        let there = args.hosts.iter().filter(|host| host.lost.is_none()).map(|host| host.host);
        let returning = goes_on.then(|| ReturningWorkers::new(there.collect(), back));
        let answer_seed = args.plan.answer_seed;
        let checks = CheckQueue::new(args.plan.spot_checks > Ppm::ZERO);
        let loads = WireEncoder {
            programs: args.plan.programs.clone(),
            handed: Arc::clone(args.outstanding.assignments().handed()),
            cpu_us: args.facts.cpu_us.clone(),
            parallel: args.plan.parallel_programs(args.facts.share),
            speedup,
            answer_seed,
            metadata: args.plan.metadata.clone(),
            desk: args.plan.api.as_ref().map(|api| api.desk.clone()),
            share: args.facts.share,
            wall: args.plan.world.wall.clone(),
        };
        for task in args.store.held_tasks() {
            let kept =
                args.run.tasks().get(TaskId::new(task)).and_then(TaskRecord::kept_checkpoint);
            args.store.has_logged(task, kept.map(|(number, _)| number.get()));
        }
        let mut state = ConductorState {
            plan: args.plan,
            run: args.run,
            facts: args.facts,
            clock,
            alarm,
            armed: None,
            last: args.last,
            begun: restored,
            loads,
            submissions: args.submissions,
            followers: args.followers,
            jobs: args.jobs,
            last_number: args.last_number,
            requests: args.requests,
            faults_asked: args.faults_asked,
            door: args.door,
            inbox: ReportInbox::default(),
            outstanding: args.outstanding,
            parted: args.parted,
            roster: WorkerRoster::default(),
            batch: JournalBatch::default(),
            evidence: args.evidence,
            ends: AttemptEnds::default(),
            checks,
            early_loads: BTreeMap::new(),
            header: args.header,
            unstuck: 0,
            stuck: false,
            closing: false,
            returning,
            broken: None,
            journal: args.journal,
            vitals: args.vitals,
            span: args.span,
            store: args.store,
            warden: args.warden,
            runtime: args.runtime,
            lives: args.lives,
            board: args.board,
            progress: args.progress,
            failed: args.failed,
        };
        if restored && !goes_on && !jobs::waits_for_machine(&state.run) {
            state.clock.run();
        }
        state.restore_hosts(&myself, args.hosts).await;
        state.post_progress();
        if state.progress.is_some() {
            send_later(SHOW_EVERY, &myself, ConductorMsg::Show);
        }
        send_later(SAY_CLOCK_EVERY, &myself, ConductorMsg::SayClock);
        // Nobody may be left to wait for.
        state.go_on_if_all_are_back();
        if (restored && state.returning.is_none()) || state.run.over_at().is_some() {
            if !args.begun && state.run.over_at().is_none() {
                state.feed_now(Event::Begin);
            }
            state.commit_steps(&myself);
            state.break_off().await;
        }
        Ok(state)
    }

    async fn handle(
        &self,
        myself: ActorRef<ConductorMsg>,
        message: ConductorMsg,
        state: &mut ConductorState,
    ) -> Result<(), ActorProcessingErr> {
        let is_asked = matches!(message, ConductorMsg::Show | ConductorMsg::Status(_));
        let mut messages = VecDeque::from([message]);
        while let Some(message) = messages.pop_front() {
            if let Some(message) = state.unless_set_aside(message) {
                state.handle_message(&myself, message).await;
            }
            messages.extend(state.go_on_if_all_are_back());
        }
        if state.returning.is_none() && !is_asked {
            state.commit_steps(&myself);
            state.break_off().await;
        }
        Ok(())
    }
}
