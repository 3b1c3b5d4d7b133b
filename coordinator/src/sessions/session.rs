//! One worker's session: keeps commands until the worker has acknowledged them, over any number of connections, and
//! declares the worker lost when it has been silent for too long.

use std::collections::VecDeque;
use std::time::Duration;

use dormouse_proto::{FalseAck, v1};
use dormouse_units::HostId;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tracing::Span;

use crate::limits::bounds;
use crate::limits::texts;
use crate::limits::unasked::MessageAllowance;
use crate::log::journal::OnceDurable;
use crate::messages::message::{ConductorMsg, SessionMsg, WorkerConnection};
use crate::protocol::link::{ProtocolViolation, QueuedCommand, SessionLink};
use crate::protocol::wire::{self, DecodedReport};
use crate::sessions::greeting::WorkerGreeting;
use crate::sessions::outbound::goodbye_message;
use crate::status::vitals::SessionPulse;

/// Number of heartbeats in the time after which a silent worker is lost. Silence is counted in heartbeats and not by a
/// clock: a coordinator that was starved of CPU time has missed heartbeats too.
pub(crate) const BEATS: u32 = 4;

/// Time that a lost worker's connection may take to have room for the goodbye.
const GOODBYE: Duration = Duration::from_secs(5);

/// Message that only says that the coordinator is there, and acknowledges reports.
const HEARTBEAT: v1::to_worker::Body = v1::to_worker::Body::Heartbeat(v1::Heartbeat {});

/// Commands to a worker that may be sent once their steps are durable.
#[derive(Debug)]
pub(crate) struct DurableRelease {
    pub(crate) session: ActorRef<SessionMsg>,
    pub(crate) commands: Vec<QueuedCommand>,
    /// Number up to which all reports are durable with these steps; zero: unchanged.
    pub(crate) durable: u64,
}

impl OnceDurable for DurableRelease {
    fn on_durable(self: Box<Self>) {
        let Self { session, commands, durable } = *self;
        // A session that has ended needs nothing.
        let _ = session.cast(SessionMsg::Release { commands, durable });
    }
}

#[derive(Debug)]
pub(crate) struct WorkerSession;

#[derive(Debug)]
pub(crate) struct SessionArgs {
    pub(crate) host: HostId,
    pub(crate) link: SessionLink,
    pub(crate) greeting: WorkerGreeting,
    pub(crate) conductor: ActorRef<ConductorMsg>,
    pub(crate) lost_after: Duration,
    /// Publishes the session's state to observers.
    pub(crate) pulse: SessionPulse,
    /// Tracing span of the session.
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) struct SessionState {
    host: HostId,
    link: SessionLink,
    greeting: WorkerGreeting,
    conductor: ActorRef<ConductorMsg>,
    connection: Option<WorkerConnection>,
    /// True while the session waits for room on the connection.
    waiting: bool,
    /// True if an acknowledgement must be sent.
    ack_due: bool,
    /// Number of heartbeats since the worker's last message.
    silent: u32,
    /// Permits of messages that aren't durable, with the number of their last report.
    permits: VecDeque<(u64, OwnedSemaphorePermit)>,
    /// Unsolicited reports that the worker may still send.
    unasked: MessageAllowance,
    lost: bool,
    heart: JoinHandle<()>,
    pulse: SessionPulse,
    /// Tracing span, which ends with the session.
    _span: Span,
}

impl SessionState {
    /// Sends what the connection has room for: unsent commands, or only an acknowledgement.
    fn flush(&mut self, myself: &ActorRef<SessionMsg>) {
        let Some(connection) = &self.connection else { return };
        loop {
            match connection.to_worker.try_reserve() {
                Ok(room) => {
                    let commands =
                        self.link.next_batch(Instant::now()).map(v1::to_worker::Body::Commands);
                    if commands.is_none() && !self.ack_due {
                        return;
                    }
                    let body = commands.unwrap_or(HEARTBEAT);
                    room.send(v1::ToWorker { ack: self.link.next_ack(), body: Some(body) });
                    self.ack_due = false;
                }
                Err(mpsc::error::TrySendError::Full(())) if !self.waiting => break,
                Err(_) => return,
            }
        }
        self.waiting = true;
        let (id, to_worker, myself) = (connection.id, connection.to_worker.clone(), myself.clone());
        tokio::spawn(async move {
            // Whether there is room or nobody any more: the session looks for itself.
            let _ = to_worker.reserve().await;
            let _ = myself.cast(SessionMsg::Writable { connection: id });
        });
    }

    fn is_current(&self, connection: u64) -> bool {
        self.connection.as_ref().is_some_and(|c| c.id == connection)
    }

    fn attach_connection(&mut self, connection: WorkerConnection, ack: u64) {
        self.silent = 0;
        self.pulse.mark_connected();
        self.waiting = false;
        self.permits.clear();
        let is_fresh = self.link.is_fresh_from_log();
        if let Err(nonsense) = self.link.on_connected(ack) {
            self.connection = Some(connection);
            match nonsense {
                // Commands leave once they are durable: what a worker has taken is in the log that they were in.
                ProtocolViolation::Ack(FalseAck { ack, said }) if is_fresh => {
                    let host = self.host;
                    let _ = self.conductor.cast(ConductorMsg::LogWentBack { host, ack, said });
                }
                nonsense => self.give_up(&nonsense.to_string()),
            }
            return;
        }
        let welcome = self.greeting.welcome_now(connection.protocol);
        let body = Some(v1::to_worker::Body::Welcome(welcome));
        // A fresh connection has room for its first message.
        let _ = connection.to_worker.try_send(v1::ToWorker { ack: self.link.next_ack(), body });
        // The former connection, if there was one, ends here.
        self.connection = Some(connection);
        let _ = self.conductor.cast(ConductorMsg::Attached { host: self.host });
    }

    fn receive_message(
        &mut self,
        message: v1::FromWorker,
        permit: OwnedSemaphorePermit,
    ) -> Result<(), ProtocolViolation> {
        self.link.on_acknowledged(message.ack)?;
        let Some(v1::from_worker::Body::Reports(reports)) = message.body else { return Ok(()) };
        let before = self.link.heard_through();
        let new = self.link.take_reports(reports)?;
        let mut heard = Vec::with_capacity(new.len());
        for (number, report) in new {
            if report.report.is_none() && number > 1 {
                let host = self.host;
                tracing::warn!(%host, number, "a report is dropped: this version does not know its kind");
                continue;
            }
            let nonsense = |why| ProtocolViolation::Report { number, why };
            self.unasked.take_report(&report, Instant::now()).map_err(nonsense)?;
            let report = read(report).map_err(nonsense)?;
            if matches!(report, DecodedReport::Ready { .. }) != (number == 1) {
                let why = "the first report, and no other, must be Ready".to_owned();
                return Err(ProtocolViolation::Report { number, why });
            }
            heard.push((number, report));
        }
        let through = self.link.heard_through();
        if through > before {
            self.permits.push_back((through, permit));
            let host = self.host;
            let _ = self.conductor.cast(ConductorMsg::Heard { host, through, heard });
        }
        Ok(())
    }

    /// Gives up a lost worker: tells the conductor once, which dismisses the worker.
    fn give_up(&mut self, why: &str) {
        if !self.lost {
            self.lost = true;
            let why = why.to_owned();
            let _ = self.conductor.cast(ConductorMsg::Lost { host: self.host, why });
        }
    }

    fn send_heartbeat(&mut self) {
        // While its messages wait for us it can't speak: that is no silence of its own.
        if self.permits.is_empty() || self.connection.is_none() {
            self.silent += 1;
        }
        if self.silent == BEATS / 2 {
            tracing::warn!(host = %self.host, "a worker has not been heard from for a while: it may \
                     be gone");
        }
        if self.silent > BEATS {
            let how = if self.connection.is_some() { "silent" } else { "not connected" };
            self.give_up(&format!("it was {how} for too long"));
            return;
        }
        // Whatever else was said: a worker that hears nothing for a little longer than this dials anew.
        if let Some(connection) = &self.connection {
            let body = Some(HEARTBEAT);
            // Where there is no room, the worker has enough to read.
            let _ = connection.to_worker.try_send(v1::ToWorker { ack: self.link.next_ack(), body });
        }
    }
}

/// Decodes and checks a report; the error says what is wrong with it.
pub(crate) fn read(mut report: v1::Report) -> Result<DecodedReport, String> {
    bounds::check_numbers(&report)?;
    texts::bound_texts(&mut report)?;
    wire::decode_report(report)
}

impl Actor for WorkerSession {
    type Msg = SessionMsg;
    type State = SessionState;
    type Arguments = SessionArgs;

    async fn pre_start(
        &self,
        myself: ActorRef<SessionMsg>,
        args: SessionArgs,
    ) -> Result<SessionState, ActorProcessingErr> {
        let period = args.lost_after / BEATS;
        let heart = tokio::spawn(async move {
            loop {
                tokio::time::sleep(period).await;
                if myself.cast(SessionMsg::Beat).is_err() {
                    return;
                }
            }
        });
        Ok(SessionState {
            host: args.host,
            link: args.link,
            greeting: args.greeting,
            conductor: args.conductor,
            connection: None,
            waiting: false,
            ack_due: false,
            silent: 0,
            permits: VecDeque::new(),
            unasked: MessageAllowance::new(Instant::now()),
            lost: false,
            heart,
            pulse: args.pulse,
            _span: args.span,
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<SessionMsg>,
        message: SessionMsg,
        state: &mut SessionState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            SessionMsg::Attach { connection, ack } => {
                state.attach_connection(connection, ack);
                state.flush(&myself);
            }
            SessionMsg::Received { connection, message, permit } => {
                if state.is_current(connection) && !state.lost {
                    state.silent = 0;
                    state.pulse.mark_heard();
                    if let Err(nonsense) = state.receive_message(message, permit) {
                        state.give_up(&nonsense.to_string());
                    }
                }
            }
            SessionMsg::Detached { connection, why } => {
                if state.is_current(connection) {
                    tracing::info!(host = %state.host, why, "its connection has ended");
                    state.connection = None;
                    state.pulse.mark_detached();
                    state.permits.clear();
                }
            }
            SessionMsg::Writable { connection } => {
                if state.is_current(connection) {
                    state.waiting = false;
                    state.flush(&myself);
                }
            }
            SessionMsg::Release { commands, durable } => {
                state.link.push(commands);
                if durable > 0 {
                    state.link.made_durable(durable);
                    state.ack_due = true;
                    while state.permits.front().is_some_and(|(through, _)| *through <= durable) {
                        state.permits.pop_front();
                    }
                }
                state.flush(&myself);
            }
            SessionMsg::Beat => state.send_heartbeat(),
            SessionMsg::Settle(reply) => {
                let _ = reply.send(());
            }
            SessionMsg::IsConnected(reply) => {
                // One that has been silent for too long is lost: its connection is no sign of life.
                let _ = reply.send(state.connection.is_some() && !state.lost);
            }
            SessionMsg::Dismiss { why } => {
                if let Some(WorkerConnection { to_worker, reading, .. }) = state.connection.take() {
                    let goodbye = v1::Goodbye { why, over: false };
                    let message = goodbye_message(state.link.next_ack(), goodbye);
                    // It waits for room by itself, but not for ever: the session is over.
                    tokio::spawn(async move {
                        let _ = tokio::time::timeout(GOODBYE, to_worker.send(message)).await;
                        drop(reading);
                    });
                }
                myself.stop(None);
            }
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        _: ActorRef<SessionMsg>,
        state: &mut SessionState,
    ) -> Result<(), ActorProcessingErr> {
        state.heart.abort();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use dormouse_units::Speedup;
    use ractor::Message;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::status::vitals::CoordinatorVitals;

    /// Test actor that accepts and ignores every message.
    struct Deaf<M>(std::marker::PhantomData<fn(M)>);

    impl<M: Message> Actor for Deaf<M> {
        type Msg = M;
        type State = ();
        type Arguments = ();

        async fn pre_start(&self, _: ActorRef<M>, (): ()) -> Result<(), ActorProcessingErr> {
            Ok(())
        }
    }

    const LOST_AFTER: Duration = Duration::from_secs(6);

    /// Found by the simulator: a session that sent a message just after each heartbeat then stayed silent for two
    /// heartbeats, and its worker, which redials after a third of the time limit, did so again and again.
    #[tokio::test(start_paused = true)]
    async fn a_worker_is_not_left_without_a_word_for_a_third_of_the_time() {
        let (conductor, _) =
            Actor::spawn(None, Deaf(std::marker::PhantomData), ()).await.expect("it starts");
        let args = SessionArgs {
            host: HostId::new(0),
            link: SessionLink::default(),
            greeting: WorkerGreeting::bare_greeting(Speedup::times_real(1)),
            conductor,
            lost_after: LOST_AFTER,
            pulse: CoordinatorVitals::default().begin_session(HostId::new(0), "w"),
            span: Span::none(),
        };
        let (session, _) = Actor::spawn(None, WorkerSession, args).await.expect("it starts");
        let (to_worker, mut said) = mpsc::channel(64);
        let reading = CancellationToken::new().drop_guard();
        let connection = WorkerConnection { id: 1, protocol: 1, to_worker, reading };
        session.cast(SessionMsg::Attach { connection, ack: 0 }).expect("it lives");
        // Something is said just after each beat.
        tokio::time::sleep(Duration::from_millis(10)).await;
        let talker = session.clone();
        let talking = tokio::spawn(async move {
            for durable in 1..=3 {
                let _ = talker.cast(SessionMsg::Release { commands: Vec::new(), durable });
                tokio::time::sleep(LOST_AFTER / BEATS).await;
            }
        });
        let (mut last, mut longest) = (Instant::now(), Duration::ZERO);
        for _ in 0..7 {
            said.recv().await.expect("it lives");
            longest = longest.max(last.elapsed());
            last = Instant::now();
        }
        assert!(longest <= LOST_AFTER / BEATS, "{longest:?}");
        talking.await.expect("no panic");
    }
}
