//! The two tasks that carry a connection's messages, one per direction, on time and in order.

use std::collections::VecDeque;
use std::sync::Arc;

use dormouse_identity::WorkerLife;
use dormouse_proto::v1;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_stream::StreamExt as _;
use tonic::Status;

use super::{Connection, Messages, Network, Way};
use crate::draw::Draw;

/// The data that both tasks of a connection use.
#[derive(Clone, Debug)]
pub(super) struct Ends {
    pub(super) network: Network,
    pub(super) connection: Arc<Connection>,
    pub(super) life: WorkerLife,
    pub(super) generation: u64,
}

fn broken() -> Status {
    Status::unavailable("the connection broke")
}

/// Messages on the way, each with the earliest instant at which it can arrive.
#[derive(Debug)]
struct UnderWay<T> {
    messages: VecDeque<(Instant, T)>,
    last: Instant,
}

impl<T> UnderWay<T> {
    fn new() -> Self {
        Self { messages: VecDeque::new(), last: Instant::now() }
    }

    fn push(&mut self, arrives: Instant, message: T) {
        self.last = self.last.max(arrives);
        self.messages.push_back((self.last, message));
    }

    /// When the first message can arrive; `None` if there is no message.
    fn due(&self, ends: &Ends, way: Way) -> Option<Instant> {
        let (due, _) = self.messages.front()?;
        let blocked = ends.network.blocked(&ends.life.worker, way);
        Some(blocked.map_or(*due, |until| until.max(*due)))
    }
}

/// Waits for an instant, and then for a random turn among the tasks ready at that instant; for ever if there is none.
async fn at(due: Option<Instant>, order: &mut Draw) {
    match due {
        Some(due) if due <= Instant::now() => {}
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
    order.turns().await;
}

/// Carries the worker's messages to the coordinator.
pub(super) async fn up(
    ends: Ends,
    mut chance: Draw,
    mut messages: mpsc::Receiver<v1::FromWorker>,
    to: mpsc::Sender<Result<v1::FromWorker, Status>>,
) {
    let mut under_way: UnderWay<v1::FromWorker> = UnderWay::new();
    let mut order = chance.clone();
    let mut is_over = false;
    loop {
        let due = under_way.due(&ends, Way::Up);
        if is_over && due.is_none() {
            // The end of the stream travels as its messages do.
            return;
        }
        tokio::select! {
            biased;
            () = ends.connection.broken_for_coordinator() => {
                let _ = to.send(Err(broken())).await;
                drop(to);
                // What is still said goes nowhere, until the worker hears of it.
                while messages.recv().await.is_some() {}
                return;
            }
            () = at(due, &mut order) => {
                let Some((_, message)) = under_way.messages.pop_front() else { continue };
                let is_twice = ends.network.is_doubled(&ends.life.worker, Way::Up)
                    && matches!(message.body, Some(v1::from_worker::Body::Reports(_)));
                ends.note_arrival(&message);
                if is_twice && to.send(Ok(message.clone())).await.is_err() {
                    return;
                }
                if to.send(Ok(message)).await.is_err() {
                    return;
                }
            }
            () = ends.connection.broken_for_worker(), if !is_over => {
                is_over = true;
                match ends.connection.late() {
                    // What it had said by then is in the network.
                    Some(late) => {
                        while let Ok(message) = messages.try_recv() {
                            under_way.push(late, message);
                        }
                        under_way.last = under_way.last.max(late);
                        for (due, _) in &mut under_way.messages {
                            *due = (*due).max(late);
                        }
                    }
                    None => {
                        under_way.messages.clear();
                        // Half open: the coordinator hears nothing until its own end breaks, or it
                        // gives up.
                        tokio::select! {
                            biased;
                            () = ends.connection.broken_for_coordinator() => {}
                            () = to.closed() => return,
                        }
                        let _ = to.send(Err(broken())).await;
                        return;
                    }
                }
            }
            message = messages.recv(), if !is_over => match message {
                Some(message) => {
                    let latency = ends.network.latency(&ends.life.worker, &mut chance);
                    under_way.push(Instant::now() + latency, message);
                }
                None => is_over = true,
            },
        }
    }
}

/// Carries the coordinator's messages to the worker.
pub(super) async fn down(
    ends: Ends,
    mut chance: Draw,
    mut messages: Messages<v1::ToWorker>,
    to: mpsc::Sender<Result<v1::ToWorker, Status>>,
) {
    let mut under_way: UnderWay<Result<v1::ToWorker, Status>> = UnderWay::new();
    let mut order = chance.clone();
    let (mut is_over, mut is_silent) = (false, false);
    loop {
        let due = under_way.due(&ends, Way::Down);
        // A worker that has not heard of the break is left with a connection on which nothing comes.
        if is_over && due.is_none() && !is_silent {
            return;
        }
        tokio::select! {
            biased;
            () = ends.connection.broken_for_worker() => {
                let _ = to.try_send(Err(broken()));
                drop(to);
                if !is_over {
                    ends.drain(messages).await;
                }
                return;
            }
            () = to.closed() => {
                // The worker has closed it, which the coordinator hears of.
                ends.connection.coordinator_hears();
                return;
            }
            () = at(due, &mut order) => {
                let Some((_, message)) = under_way.messages.pop_front() else { continue };
                let is_twice = ends.network.is_doubled(&ends.life.worker, Way::Down)
                    && matches!(&message, Ok(v1::ToWorker { body: Some(v1::to_worker::Body::Commands(_)), .. }));
                if is_twice && to.send(message.clone()).await.is_err() {
                    return;
                }
                if to.send(message).await.is_err() {
                    return;
                }
            }
            () = ends.connection.broken_for_coordinator(), if !is_over => {
                // What has left arrives; what comes then nobody has said.
                (is_over, is_silent) = (true, true);
            }
            message = messages.next(), if !is_over => match message {
                Some(message) => {
                    let left = match &message {
                        Ok(message) => ends.leaves(message),
                        Err(_) => ends.network.0.stage.lives(ends.generation),
                    };
                    if left {
                        let latency = ends.network.latency(&ends.life.worker, &mut chance);
                        under_way.push(Instant::now() + latency, message);
                    }
                }
                None => is_over = true,
            },
        }
    }
}

impl Ends {
    /// Whether a message leaves the coordinator: a dead coordinator sends nothing.
    fn leaves(&self, message: &v1::ToWorker) -> bool {
        self.network.0.stage.leaves(self.generation, &self.life, message)
    }

    /// Takes the coordinator's messages and drops them, until the coordinator notices the break.
    async fn drain(&self, mut messages: Messages<v1::ToWorker>) {
        loop {
            tokio::select! {
                biased;
                () = self.connection.broken_for_coordinator() => return,
                message = messages.next() => match message {
                    Some(Ok(message)) => { self.leaves(&message); }
                    Some(Err(_)) => {}
                    None => return,
                },
            }
        }
    }

    fn note_arrival(&self, message: &v1::FromWorker) {
        use v1::from_worker::Body;
        let WorkerLife { worker, incarnation, .. } = &self.life;
        let is_hello = matches!(message.body, Some(Body::Hello(_)));
        self.network.0.stage.arrives(&self.life, self.connection.number, is_hello);
        let what = match &message.body {
            None => "nothing".to_owned(),
            Some(Body::Hello(_)) => {
                self.network.0.stage.hears(self.generation, &self.life);
                "hello".to_owned()
            }
            Some(Body::Heartbeat(_)) => "heartbeat".to_owned(),
            Some(Body::Reports(reports)) => {
                format!("reports {} and {} more", reports.first, reports.reports.len())
            }
        };
        let ack = message.ack;
        self.network
            .0
            .stage
            .note(format_args!("{worker}@{incarnation:x} is heard: {what}, ack {ack}"));
    }
}
