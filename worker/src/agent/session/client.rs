//! Keeping the session up: connecting, resending, sending heartbeats, and deciding when to give up.

use std::time::Duration;

use dormouse_identity::Impostor;
use dormouse_proto::v1::{
    Command, Commands, FromWorker, Heartbeat, Hello, Report, Reports, ToWorker, Welcome,
    from_worker, to_worker,
};
use dormouse_proto::{FalseAck, Inbox, Outbox, PROTOCOLS, Protocols};
use tokio::{
    sync::mpsc,
    time::{Instant, MissedTickBehavior, interval, sleep_until, timeout},
};
use tokio_stream::StreamExt as _;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};

use super::complaints::ComplaintPacing;
use super::redial::redial_silent;
use super::transport::{DialError, SessionTransport};
use crate::agent::{NEWS, report::explain_error};

/// Most reports in one message, far below any limit on messages.
const BATCH: usize = 512;
/// Number of messages buffered for the connection.
const IN_FLIGHT: usize = 16;
/// Number of heartbeats in the time after which a silent side counts as lost: twice as many as the coordinator expects,
/// since one slightly late heartbeat would otherwise leave two of the coordinator's counts without any.
const BEATS: u32 = 8;
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
const CONNECT: Duration = Duration::from_secs(5);

/// The coordinator to connect to, and how long to try.
#[derive(Debug)]
pub struct DialTarget<T> {
    /// Transport to the coordinator.
    pub transport: T,
    /// First message of every connection; once there is a certificate, the message has the certificate's incarnation (number of the
    /// session).
    pub hello: Hello,
    /// True if this process was welcomed before; then an impostor at the coordinator's address doesn't end it.
    pub is_known: bool,
    /// Time for which the worker tries to reach the coordinator before its first welcome.
    pub patience: Duration,
    /// Time for which the worker keeps its VMs without a connection; `None`: the time that the coordinator sets.
    pub hold: Option<Duration>,
}

/// Events of a session, in order.
#[derive(Debug)]
pub enum SessionEvent {
    /// A connection was established; also after every reconnect.
    Welcome(Welcome),
    /// Commands, numbered from the given number on.
    Commands(u64, Vec<Command>),
    /// The coordinator sends this worker away.
    Goodbye {
        /// Reason for which the coordinator ends this worker's session.
        why: String,
        /// True if the run is over.
        over: bool,
    },
    /// The coordinator refuses this worker for good.
    Refused {
        /// Reason that the coordinator gave for refusing this worker.
        why: String,
    },
    /// The connection was lost for too long.
    Lost {
        /// Real time since the coordinator's last message.
        after: Duration,
        /// Reason why the last attempt to connect failed.
        why: String,
    },
}

/// Why a connection ended.
enum ConnectionEnd<C> {
    Goodbye {
        why: String,
        over: bool,
    },
    Refused(String),
    Broken(String),
    /// The connection ended because it was silent, and has been replaced by the new one given here.
    Replaced(C),
    Stopped,
}

impl<C> ConnectionEnd<C> {
    /// Interprets the coordinator's answer: a refusal of this worker is final.
    fn from_status(status: &Status) -> Self {
        match status.code() {
            Code::Unauthenticated
            | Code::FailedPrecondition
            | Code::InvalidArgument
            | Code::AlreadyExists => Self::Refused(status.message().to_owned()),
            code => Self::Broken(format!("{code}: {}", status.message())),
        }
    }
}

struct CoordinatorSession<T> {
    dial: DialTarget<T>,
    outbox: Outbox<Report>,
    inbox: Inbox,
    reports: mpsc::UnboundedReceiver<Report>,
    heard: mpsc::UnboundedSender<SessionEvent>,
    /// Time without a message after which the coordinator counts as lost; `None` before the first welcome.
    lost_after: Option<Duration>,
    /// Time for which the worker keeps its VMs without a connection to the coordinator.
    hold: Duration,
    /// Instant of the coordinator's last message.
    last_heard: Instant,
    /// True once the worker has joined and has a certificate for this session.
    joined: bool,
    complaints: ComplaintPacing,
}

/// Keeps a session with the coordinator until the coordinator ends it, the connection is lost for too long, or `stop` is cancelled.
pub async fn keep_session<T: SessionTransport>(
    dial: DialTarget<T>,
    reports: mpsc::UnboundedReceiver<Report>,
    heard: mpsc::UnboundedSender<SessionEvent>,
    stop: CancellationToken,
) {
    let mut session = CoordinatorSession {
        dial,
        outbox: Outbox::default(),
        inbox: Inbox::default(),
        reports,
        heard,
        lost_after: None,
        hold: Duration::ZERO,
        last_heard: Instant::now(),
        joined: false,
        complaints: ComplaintPacing::default(),
    };
    let last_word = tokio::select! {
        biased;
        last_word = session.run(&stop) => last_word,
        () = stop.cancelled() => None,
    };
    if let Some(last_word) = last_word {
        // Nobody listens only where the agent has already ended.
        let _ = session.heard.send(last_word);
    }
}

impl<T: SessionTransport> CoordinatorSession<T> {
    async fn run(&mut self, stop: &CancellationToken) -> Option<SessionEvent> {
        let mut pause = FIRST_PAUSE;
        let mut standing = None;
        loop {
            let before = self.last_heard;
            let parted = match self.begin_session(standing.take()).await {
                Ok((out, stream)) => self.talk_until_end(out, stream, stop).await,
                Err(parted) => parted,
            };
            let why = match parted {
                ConnectionEnd::Goodbye { why, over } => {
                    return Some(SessionEvent::Goodbye { why, over });
                }
                ConnectionEnd::Refused(why) => return Some(SessionEvent::Refused { why }),
                ConnectionEnd::Stopped => return None,
                ConnectionEnd::Replaced(connection) => {
                    tracing::debug!("a link that was silent is replaced");
                    standing = Some(connection);
                    continue;
                }
                ConnectionEnd::Broken(why) => why,
            };
            let patience = match self.lost_after {
                Some(_) => self.hold,
                None => self.dial.patience,
            };
            let silent = self.last_heard.elapsed();
            if silent >= patience {
                return Some(SessionEvent::Lost { after: silent, why });
            }
            self.log_complaint(&why, patience);
            pause = if self.last_heard > before { FIRST_PAUSE } else { pause };
            let give_up = self.last_heard + patience;
            sleep_until((Instant::now() + pause).min(give_up)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn log_complaint(&mut self, why: &str, patience: Duration) {
        if !self.complaints.is_due(Instant::now()) {
            return;
        }
        let left = patience.saturating_sub(self.last_heard.elapsed()).as_secs();
        match self.lost_after {
            None => tracing::warn!(why, "no coordinator answers yet; trying for {left} s more"),
            Some(_) => tracing::warn!(
                why,
                "the connection to the coordinator is broken; the VMs are kept for {left} s more"
            ),
        }
    }

    /// Begins a session over the open connection `standing`; if that is `None`, over a new connection.
    async fn begin_session(
        &mut self,
        standing: Option<T::Connection>,
    ) -> Result<(mpsc::Sender<FromWorker>, T::Inbound), ConnectionEnd<T::Connection>> {
        let limit = self.lost_after.unwrap_or(CONNECT).min(CONNECT);
        let dialled = async {
            if !self.joined {
                let connection = self.dial_coordinator().await?;
                let joined =
                    self.dial.transport.join_run(connection, &self.dial.hello.worker).await;
                self.dial.hello.incarnation =
                    joined.map_err(|status| ConnectionEnd::from_status(&status))?;
                self.joined = true;
            }
            let connection = match standing {
                Some(connection) => connection,
                None => self.dial_coordinator().await?,
            };
            let (out, messages) = mpsc::channel(IN_FLIGHT);
            let hello = from_worker::Body::Hello(self.dial.hello.clone());
            out.try_send(FromWorker { ack: self.inbox.taken(), body: Some(hello) })
                .map_err(|e| ConnectionEnd::Broken(explain_error(&e)))?;
            let inbound = self.dial.transport.begin_session(connection, messages).await;
            Ok((out, inbound.map_err(|status| ConnectionEnd::from_status(&status))?))
        };
        match timeout(limit, dialled).await {
            Ok(result) => result,
            Err(_) => {
                Err(ConnectionEnd::Broken(format!("no answer within {} ms", limit.as_millis())))
            }
        }
    }

    /// Connects to the coordinator, and verifies it.
    async fn dial_coordinator(&self) -> Result<T::Connection, ConnectionEnd<T::Connection>> {
        self.dial.transport.dial_coordinator().await.map_err(|error| match error {
            DialError::Unreachable(why) => ConnectionEnd::Broken(why),
            // Before it was ever welcomed its token is another run's; later somebody has taken the
            // place of its coordinator.
            DialError::Impostor if self.dial.is_known || self.lost_after.is_some() => {
                ConnectionEnd::Broken(Impostor.to_string())
            }
            DialError::Impostor => ConnectionEnd::Refused(format!(
                "{Impostor}; the token is not that of this run: give --secret-file with a copy of the \
                 file `secret` in the run's folder on the coordinator's host"
            )),
        })
    }

    /// Serves one connection from the first message to its end.
    async fn talk_until_end(
        &mut self,
        out: mpsc::Sender<FromWorker>,
        mut stream: T::Inbound,
        stop: &CancellationToken,
    ) -> ConnectionEnd<T::Connection> {
        self.outbox.rewind();
        let mut welcome = false;
        let mut owed = false;
        let mut batch = Vec::new();
        let connected = Instant::now();
        let mut beat = interval(self.silence_limit() / BEATS);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut beat_due = false;
        let mut heard_at = connected;
        let whom = self.dial.transport.clone();
        let another = move |since, after| redial_silent(whom.clone(), since, after);
        let mut redialled = Box::pin(another(heard_at, self.silence_limit()));
        loop {
            // A connection that has just come up has not been silent yet.
            let heard = self.last_heard.max(connected);
            if heard != heard_at {
                heard_at = heard;
                redialled.set(another(heard, self.silence_limit()));
            }
            let silent_at = heard + self.silence_limit();
            let sendable = welcome && (self.outbox.has_news() || owed || beat_due);
            tokio::select! {
                biased;
                () = stop.cancelled() => return ConnectionEnd::Stopped,
                message = stream.next() => {
                    let message = match message {
                        Some(Ok(message)) => message,
                        None => return ConnectionEnd::Broken("it closed the session".to_owned()),
                        Some(Err(status)) => return ConnectionEnd::from_status(&status),
                    };
                    let was = self.silence_limit();
                    match self.take_message(message, &mut welcome) {
                        Ok(news) => owed |= news,
                        Err(parted) => return parted,
                    }
                    if self.silence_limit() != was {
                        beat = interval(self.silence_limit() / BEATS);
                        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
                    }
                }
                place = out.reserve(), if sendable => {
                    let Ok(place) = place else {
                        return ConnectionEnd::Broken("the connection broke".to_owned());
                    };
                    place.send(self.next_message());
                    (owed, beat_due) = (false, false);
                }
                count = self.reports.recv_many(&mut batch, BATCH), if !self.reports.is_closed() => {
                    self.outbox.extend(batch.drain(..count));
                }
                _ = beat.tick() => beat_due = true,
                // What is under way on this one is said again on that one. No more is heard, or
                // acknowledged, here: the hello on that one says how far it came.
                connection = &mut redialled, if welcome => return ConnectionEnd::Replaced(connection),
                () = sleep_until(silent_at) => {
                    return ConnectionEnd::Broken(
                        format!("nothing was heard for {} ms", self.silence_limit().as_millis()),
                    );
                }
            }
        }
    }

    fn silence_limit(&self) -> Duration {
        self.lost_after.unwrap_or(CONNECT)
    }

    /// Returns the next message: reports if there are any, or else a heartbeat; both acknowledge commands.
    fn next_message(&mut self) -> FromWorker {
        let ack = self.inbox.taken();
        let body = if self.outbox.has_news() {
            let (first, reports) = self.outbox.next(BATCH);
            let reports = reports.cloned().collect();
            from_worker::Body::Reports(Reports { first, reports })
        } else {
            from_worker::Body::Heartbeat(Heartbeat {})
        };
        FromWorker { ack, body: Some(body) }
    }

    /// Handles a message; returns whether the message must be acknowledged.
    fn take_message(
        &mut self,
        message: ToWorker,
        welcome: &mut bool,
    ) -> Result<bool, ConnectionEnd<T::Connection>> {
        self.last_heard = Instant::now();
        self.outbox.take_ack(message.ack).map_err(|FalseAck { ack, said }| {
            ConnectionEnd::Broken(format!(
                "it acknowledged report {ack}, but only {said} were ever sent"
            ))
        })?;
        match message.body {
            Some(to_worker::Body::Welcome(said)) => {
                let spoken = Protocols { oldest: said.protocol, newest: said.protocol };
                if let Err(no) = Protocols::settle(PROTOCOLS, spoken) {
                    return Err(ConnectionEnd::Refused(no.to_string()));
                }
                *welcome = true;
                let lost_after = Duration::from_millis(u64::from(said.lost_after_ms.max(100)));
                let hold = Duration::from_millis(said.hold_ms.into()).max(lost_after);
                self.hold = self.dial.hold.unwrap_or(hold);
                let again = self.lost_after.replace(lost_after).is_some();
                if self.complaints.are_over() && again {
                    tracing::info!(target: NEWS, "connected again");
                }
                self.pass_on(SessionEvent::Welcome(said))?;
                Ok(true)
            }
            Some(to_worker::Body::Goodbye(said)) => {
                Err(ConnectionEnd::Goodbye { why: said.why, over: said.over })
            }
            Some(to_worker::Body::Commands(Commands { first, commands })) => {
                if !*welcome {
                    return Err(ConnectionEnd::Broken(
                        "commands came before the welcome".to_owned(),
                    ));
                }
                let number = self.inbox.taken() + 1;
                let news = self
                    .inbox
                    .take(first, commands)
                    .map_err(|gap| ConnectionEnd::Broken(format!("command {gap}")))?;
                if !news.is_empty() {
                    self.pass_on(SessionEvent::Commands(number, news))?;
                }
                Ok(true)
            }
            Some(to_worker::Body::Heartbeat(_)) | None => Ok(false),
        }
    }

    fn pass_on(&self, heard: SessionEvent) -> Result<(), ConnectionEnd<T::Connection>> {
        self.heard.send(heard).map_err(|_| ConnectionEnd::Stopped)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::collections::VecDeque;
    use std::sync::{Arc, Mutex};

    use dormouse_proto::v1::Goodbye;

    use super::*;

    /// A coordinator that sends the next of these lists of messages in each session, whatever it receives.
    #[derive(Clone, Debug)]
    struct Scripted(Arc<Mutex<VecDeque<Vec<ToWorker>>>>);

    impl SessionTransport for Scripted {
        type Connection = ();
        type Inbound = tokio_stream::Iter<std::vec::IntoIter<Result<ToWorker, Status>>>;

        async fn dial_coordinator(&self) -> Result<(), DialError> {
            Ok(())
        }

        async fn join_run(&self, (): (), _: &str) -> Result<u64, Status> {
            Ok(1)
        }

        async fn begin_session(
            &self,
            (): (),
            _: mpsc::Receiver<FromWorker>,
        ) -> Result<Self::Inbound, Status> {
            let script = self.0.lock().unwrap().pop_front();
            let script = script.ok_or_else(|| Status::unavailable("no more of it"))?;
            let script: Vec<_> = script.into_iter().map(Ok).collect();
            Ok(tokio_stream::iter(script))
        }
    }

    fn says(ack: u64, body: to_worker::Body) -> ToWorker {
        ToWorker { ack, body: Some(body) }
    }

    fn welcome() -> to_worker::Body {
        let protocol = PROTOCOLS.newest;
        to_worker::Body::Welcome(Welcome { protocol, lost_after_ms: 1_000, ..Welcome::default() })
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_with_a_false_acknowledgement_or_a_gap_is_begun_anew() {
        let beat = to_worker::Body::Heartbeat(Heartbeat {});
        let gap = to_worker::Body::Commands(Commands { first: 3, commands: vec![] });
        let over = to_worker::Body::Goodbye(Goodbye { why: "enough".to_owned(), over: true });
        let script = Scripted(Arc::new(Mutex::new(
            [
                vec![says(0, welcome()), says(1, beat.clone()), says(0, over.clone())],
                vec![says(0, welcome()), says(0, gap), says(0, over.clone())],
                vec![says(0, welcome()), says(0, beat), says(0, over)],
            ]
            .into(),
        )));
        let dial = DialTarget {
            transport: script.clone(),
            hello: Hello::default(),
            is_known: false,
            patience: CONNECT,
            hold: None,
        };
        let (_reports, to_say) = mpsc::unbounded_channel();
        let (heard, mut hears) = mpsc::unbounded_channel();
        keep_session(dial, to_say, heard, CancellationToken::new()).await;
        let said = std::iter::from_fn(|| hears.try_recv().ok()).collect::<Vec<_>>();
        let [
            SessionEvent::Welcome(_),
            SessionEvent::Welcome(_),
            SessionEvent::Welcome(_),
            SessionEvent::Goodbye { why, over },
        ] = &said[..]
        else {
            panic!("{said:?}")
        };
        assert_eq!((why.as_str(), over), ("enough", &true));
        assert!(script.0.lock().unwrap().is_empty());
    }
}
