//! The conductor's dealings with its workers: who joins, who is lost, what they report.

use std::time::Duration;

use dormouse_cloud::ResourceVector;
use dormouse_identity::WorkerLife;
use dormouse_model::{Event, LoadReport, MAX_REPORT_DELAY, Report};
use dormouse_proto::v1;
use dormouse_units::{Bytes, HostId, TaskId};
use ractor::rpc::CallResult;
use ractor::{Actor, ActorRef};
use tokio::time::Instant;
use tracing::debug_span;

use super::inbox::ArrivedReport;
use super::outstanding::Window;
use super::{ConductorMsg, ConductorState, RestoredHost, SAY_CLOCK_EVERY};
use crate::admission::{self, AdmissionRequest, WorkerOffer};
use crate::conductor::roster::{HostStanding, ReportNumbers, RosterLife, host_name};
use crate::limits::unasked::StaleReports;
use crate::log::journal::JournalMsg;
use crate::messages::message::{NoSession, SessionMsg, WorkerConnection};
use crate::protocol::link::{DecisionInstant, QueuedCommand, SessionLink};
use crate::protocol::wire::{DecodedReport, ReportTime};
use crate::sessions::greeting::WorkerGreeting;
use crate::sessions::session::{SessionArgs, WorkerSession};
use crate::{CoordinatorError, NEWS, SPANS};

/// Time that a session may take to answer.
const ANSWER: Duration = Duration::from_secs(1);

/// Explains to a worker that another connected worker has its name.
pub(crate) fn already_there(name: &str, lost_after: f64) -> String {
    format!(
        "a worker of the name {name} is connected; give this one another with --name (one that died \
         without a word is given up after {lost_after} s)"
    )
}

/// Returns whether the worker of a session is connected, so that no other worker may take its name.
async fn is_connected(session: Option<ActorRef<SessionMsg>>) -> bool {
    let Some(session) = session else { return false };
    let asked = session.call(SessionMsg::IsConnected, Some(ANSWER)).await;
    matches!(asked, Ok(CallResult::Success(true)))
}

/// Answers a worker that joins a run that is over. Until the run's end is durable, the worker is told to try again,
/// since a resumed coordinator might not know of the end.
async fn run_is_over(journal: ActorRef<JournalMsg>) -> NoSession {
    match journal.call(JournalMsg::Flush, Some(ANSWER)).await {
        Ok(CallResult::Success(())) => {
            v1::Goodbye { why: "the run is over".to_owned(), over: true }.into()
        }
        _ => NoSession::NotYet("the last step of the run is not in its log yet".to_owned()),
    }
}

impl ConductorState {
    pub(super) async fn worker_connected(
        &mut self,
        myself: &ActorRef<ConductorMsg>,
        hello: v1::Hello,
        ack: u64,
        connection: WorkerConnection,
    ) -> Result<ActorRef<SessionMsg>, NoSession> {
        if let Some(why) = self.roster.unfit_reason(&hello.worker) {
            return Err(NoSession::Refused(why.to_owned()));
        }
        if let Some((_, entry)) = self.roster.find_life(&hello.worker, hello.incarnation) {
            if let HostStanding::Lost { why } = &entry.standing {
                let why = format!("this run continues without it: {why}; start it again");
                return Err(v1::Goodbye { why, over: false }.into());
            }
            if let Some(session) = entry.session.clone() {
                let _ = session.cast(SessionMsg::Attach { connection, ack });
                return Ok(session);
            }
        }
        if self.run.over_at().is_some() {
            return Err(run_is_over(self.journal.clone()).await);
        }
        let needs = self.plan.worker_needs();
        admission::check_capabilities(&hello, &needs).map_err(NoSession::Refused)?;
        let former_lives = self.roster.former_lives(&hello.worker, hello.incarnation);
        for former in &former_lives {
            let Some(entry) = self.roster.get(*former) else { continue };
            let is_same =
                WorkerLife::lineage(entry.incarnation) == WorkerLife::lineage(hello.incarnation);
            if is_connected(entry.session.clone()).await {
                let (name, lost_after) = (&hello.worker, self.plan.lost_after.as_secs_f64());
                let why = already_there(name, lost_after);
                return Err(NoSession::Refused(why));
            }
            // A token proves no name: who has not shown the certificate of the former life waits
            // until that one is given up by itself.
            if !is_same {
                let name = &hello.worker;
                return Err(NoSession::NotYet(format!(
                    "a worker named {name} has joined before and may come back, and this one did \
                     not prove to be the same: it is accepted once the other is given up; or give \
                     it another --name"
                )));
            }
        }
        for former in former_lives {
            self.lose_host(former, "its worker was started anew".to_owned());
        }
        let host = self.roster.next_id();
        let link = SessionLink::new(self.plan.world.limits);
        let session = self
            .open_session(myself, (host, (&hello.worker, hello.incarnation)), link)
            .await
            .ok_or_else(|| v1::Goodbye {
                why: "the coordinator can't open a session for a worker".to_owned(),
                over: true,
            })?;
        let room = WorkerOffer {
            name: hello.worker.clone(),
            millicores: hello.millicores,
            memory: Bytes::new(hello.memory_bytes),
        };
        let cores = f64::from(hello.millicores) / 1000.0;
        tracing::info!(target: NEWS, "worker {} joined as {host}, with {cores} cores", hello.worker);
        let jail_lacks = admission::jail_lacks(&hello);
        let (worker, incarnation) = (hello.worker, hello.incarnation);
        let standing = HostStanding::Measuring;
        let entry = RosterLife {
            worker,
            incarnation,
            room,
            standing,
            session: Some(session.clone()),
            numbers: ReportNumbers::default(),
            stale: StaleReports::default(),
            welcomed: Some(Instant::now()),
            repetition_us: Vec::new(),
            jail_lacks,
        };
        self.insert(host, entry);
        let _ = session.cast(SessionMsg::Attach { connection, ack });
        Ok(session)
    }

    async fn open_session(
        &mut self,
        myself: &ActorRef<ConductorMsg>,
        (host, life): (HostId, (&str, u64)),
        link: SessionLink,
    ) -> Option<ActorRef<SessionMsg>> {
        let (worker, _) = life;
        let args = SessionArgs {
            host,
            link,
            greeting: WorkerGreeting::new(&self.plan, self.clock.clone(), (host, life)),
            conductor: myself.clone(),
            lost_after: self.plan.lost_after,
            pulse: self.vitals.begin_session(host, worker),
            span: debug_span!(target: SPANS, parent: &self.span, "session", %host, worker),
        };
        let started = Actor::spawn_linked(None, WorkerSession, args, self.warden.clone());
        let why = match self.runtime.spawn(started).await {
            Ok(Ok((session, _))) => return Some(session),
            Ok(Err(error)) => error.to_string(),
            Err(panic) => panic.to_string(),
        };
        let _ = self.failed.send(CoordinatorError::Part { part: "session", why });
        None
    }

    /// Adds a session of a worker, which may be lost already.
    fn insert(&mut self, host: HostId, entry: RosterLife) {
        if let Some(session) = entry.session.clone() {
            self.lives.begin_session((&entry.worker, entry.incarnation), host, session);
        }
        self.roster.insert(host, entry);
    }

    pub(super) fn take_reports(
        &mut self,
        host: HostId,
        through: u64,
        heard: Vec<(u64, DecodedReport)>,
    ) {
        // A host given up by the conductor may have had reports under way.
        if self.roster.get(host).is_none_or(RosterLife::is_lost) {
            return;
        }
        let came = Instant::now();
        let now = self.clock.show_at(came);
        let earliest = self.clock.show_at(came.checked_sub(MAX_REPORT_DELAY).unwrap_or(came));
        let latest = self.clock.show_at(came + MAX_REPORT_DELAY);
        let window = Window { earliest, now, latest };
        for (number, heard) in heard {
            let heard = match heard {
                DecodedReport::Unsupported { command, what } => {
                    match self.outstanding.unsupported(host, command, &what) {
                        Some(Ok(report)) => {
                            DecodedReport::Report { report, ledger: None, due: None, began: None }
                        }
                        Some(Err(why)) => return self.lose_host(host, why),
                        None => {
                            tracing::warn!(%host, command, what, "a worker does not know a command");
                            continue;
                        }
                    }
                }
                heard => heard,
            };
            if !matches!(heard, DecodedReport::Ready { .. } | DecodedReport::Load(_))
                && let Some(why) = self.has_no_part(host)
            {
                return self.lose_host(host, why);
            }
            match heard {
                // It has just been made a report.
                DecodedReport::Unsupported { .. } => {}
                DecodedReport::Ready { repetition_us } => self.worker_ready(host, repetition_us),
                DecodedReport::Fault { fault, felt, real_took_us } => {
                    let event = Event::FaultFelt { fault, host, number, real_took_us, felt };
                    self.feed_event(self.last, event);
                }
                DecodedReport::Load(load) => {
                    self.hear_load(host, number, read_load(load));
                }
                DecodedReport::Console { vm, .. } | DecodedReport::PoweredOff { vm }
                    if self.outstanding.host_of(vm) != Some(host) =>
                {
                    return self
                        .lose_host(host, format!("it reports of {vm}, which it does not have"));
                }
                DecodedReport::Console { vm, text } => self.hear_console(vm, text),
                DecodedReport::PoweredOff { vm } => self.hear_power_off(host, vm),
                DecodedReport::Report { report, ledger, .. }
                    if self.checks.is_check_vm(report.vm()) =>
                {
                    self.hear_check(host, &report, ledger.as_ref());
                }
                DecodedReport::Report { mut report, ledger, due: said, began } => {
                    if let Some(other) = self.other_host_of(host, report.vm()) {
                        let vm = report.vm();
                        let why = format!("it reports of {vm}, which is on {other}");
                        return self.lose_host(host, why);
                    }
                    let due = self.outstanding.date(host, &mut report, said, window);
                    self.outstanding.heard(host, &report, began.as_ref(), due);
                    if let Some(entry) = self.roster.get_mut(host) {
                        entry.numbers.mark_waiting(number);
                    }
                    let job = job_that_ends(&report, said);
                    self.inbox.put_report(due, job, ArrivedReport { host, number, report, ledger });
                }
            }
        }
        if let Some(entry) = self.roster.get_mut(host) {
            entry.numbers.received_through(through);
        }
        self.hear_what_is_due();
    }

    /// Explains why a host can't report anything about VMs yet; `None`: it can. Before it is part of the run, such a
    /// report would be a step about an unknown host.
    fn has_no_part(&self, host: HostId) -> Option<String> {
        let is_part = self.roster.get(host)?.standing == HostStanding::Joined;
        (!is_part).then(|| "it reports of machines before it has any".to_owned())
    }

    fn worker_ready(&mut self, host: HostId, repetition_us: Vec<u64>) {
        let wanted = self.plan.to_measure().len();
        if repetition_us.len() != wanted {
            let got = repetition_us.len();
            self.lose_host(host, format!("it measured {got} programs where there are {wanted}"));
            return;
        }
        let Some(entry) = self.roster.get_mut(host) else { return };
        entry.repetition_us.clone_from(&repetition_us);
        entry.standing = HostStanding::Ready { repetition_us };
        if self.begun {
            self.join_late(host);
        } else if self.roster.ready_hosts().count() >= self.plan.workers as usize {
            self.begin_run();
        }
    }

    /// Admits the experiment and begins the run, once all workers are ready.
    fn begin_run(&mut self) {
        let (mut rooms, mut hosts) = (Vec::new(), Vec::new());
        let mut slowest = vec![0; self.plan.to_measure().len()];
        for (host, entry, repetition_us) in self.roster.ready_hosts() {
            rooms.push(entry.room.clone());
            hosts.push(host);
            for (slowest, &us) in slowest.iter_mut().zip(repetition_us) {
                *slowest = us.max(*slowest);
            }
        }
        let request = AdmissionRequest {
            hosts: &rooms,
            speedup: self.plan.speedup,
            demand: &self.plan.demand,
            reserve: self.plan.reserve,
            share: self.plan.share,
            setup: self.run.setup(),
            repetition_us: &self.plan.per_task(&slowest),
            noop: self.plan.noop,
        };
        let admitted = match request.admit_run() {
            Ok(admitted) => admitted,
            Err(refused) => {
                let _ = self.failed.send(refused.into());
                return;
            }
        };
        self.facts.share = admitted.share;
        self.facts.cpu_us.clone_from(&admitted.cpu_us);
        self.loads.cpu_us = admitted.cpu_us;
        self.loads.share = admitted.share;
        self.loads.parallel = self.plan.parallel_programs(admitted.share);
        for (host, offer) in hosts.into_iter().zip(admitted.offers) {
            self.join_host(host, offer);
        }
        self.begun = true;
        // It begins at what the clock shows until then, to the microsecond.
        let start = self.clock.show_now();
        if !super::jobs::waits_for_machine(&self.run) {
            self.clock.run();
        }
        self.feed_event(start, Event::Begin);
        self.hear_early_loads();
        self.say_clock();
    }

    /// Adds a host that has measured to the run, with this offer.
    pub(super) fn join_host(&mut self, host: HostId, offer: ResourceVector) {
        let Some(entry) = self.roster.get_mut(host) else { return };
        entry.standing = HostStanding::Joined;
        let name = host_name(&entry.worker, entry.incarnation);
        // Its Ready is what this event stands for.
        entry.numbers.received_through(1);
        let lacks = entry.jail_lacks;
        self.feed_now(Event::HostJoined { host, name, offer });
        if let Some(lacks) = lacks {
            self.feed_now(Event::JailLacking { host, lacks: lacks.to_owned() });
        }
    }

    pub(super) fn lose_host(&mut self, host: HostId, why: String) {
        if self.roster.get(host).is_none_or(RosterLife::is_lost) {
            return;
        }
        // What it has said before counts.
        let now = self.clock.show_now();
        self.inbox.advance_host(host, now);
        self.hear_until(now, None);
        let Some(entry) = self.roster.get_mut(host) else { return };
        tracing::warn!(%host, worker = entry.worker, why, "a worker is given up");
        self.lives.end_session(&entry.worker, entry.incarnation);
        let standing = HostStanding::Lost { why: why.clone() };
        let joined = std::mem::replace(&mut entry.standing, standing) == HostStanding::Joined;
        if let Some(session) = entry.session.clone() {
            let _ = session.cast(SessionMsg::Dismiss { why: why.clone() });
        }
        self.outstanding.forget(host);
        self.lose_checks(host);
        if let Some(returning) = &mut self.returning {
            returning.forget_host(host);
        }
        match &mut self.returning {
            Some(returning) if joined => returning.is_lost(host, why),
            None if joined => self.feed_now(Event::HostLost { host, why, unheard: false }),
            _ => {}
        }
    }

    /// Removes workers that leave commands unanswered, so that their tasks can run elsewhere, and workers that flood
    /// the log.
    pub(super) fn look_for_answers(&mut self) {
        if self.run.over_at().is_some() {
            return;
        }
        let mut wrong = self.outstanding.look(SAY_CLOCK_EVERY, self.plan.answer_within);
        let flood = |(host, entry): (HostId, &RosterLife)| Some((host, entry.stale.too_many()?));
        wrong.extend(self.roster.iter().filter_map(flood));
        for (host, why) in wrong {
            self.lose_host(host, why);
        }
    }

    /// Restores the hosts of a resumed run, whose workers are expected back.
    pub(super) async fn restore_hosts(
        &mut self,
        myself: &ActorRef<ConductorMsg>,
        hosts: Vec<RestoredHost>,
    ) {
        let mut unsent = self.outstanding.take_unsent();
        for restored in hosts {
            let RestoredHost { host, worker, incarnation, room, lost, heard } = restored;
            let (standing, session) = match lost {
                Some(why) => (HostStanding::Lost { why }, None),
                None => {
                    let owed = |(c, _)| QueuedCommand {
                        command: self.loads.encode_command(c, None),
                        since: DecisionInstant::Standing(self.clock.clone()),
                    };
                    let commands = unsent.remove(&host).unwrap_or_default();
                    let commands = commands.into_iter().map(owed).collect();
                    let link = SessionLink::restored_link(commands, heard, self.plan.world.limits);
                    let life = (&*worker, incarnation);
                    (HostStanding::Joined, self.open_session(myself, (host, life), link).await)
                }
            };
            let entry = RosterLife {
                worker,
                incarnation,
                room,
                standing,
                session,
                numbers: ReportNumbers::default(),
                stale: StaleReports::default(),
                welcomed: None,
                repetition_us: Vec::new(),
                // The log has it already.
                jail_lacks: None,
            };
            self.insert(host, entry);
        }
    }
}

/// Returns the parallel job whose end a report announces ahead of time; `None`: the report announces none.
const fn job_that_ends(report: &Report, said: Option<ReportTime>) -> Option<TaskId> {
    match (report, said) {
        (Report::TaskFinished { task, .. }, Some(ReportTime::Ahead(_))) => Some(*task),
        _ => None,
    }
}

/// Reads a host's load from the wire.
fn read_load(load: v1::HostLoad) -> LoadReport {
    let v1::HostLoad { real_elapsed_us, millicores, real_busy_us, real_ours_us, machine } = load;
    LoadReport {
        elapsed_us: real_elapsed_us,
        millicores,
        busy_us: real_busy_us,
        ours_us: real_ours_us,
        machine,
    }
}
