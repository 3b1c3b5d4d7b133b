//! Makes steps durable, many with one sync, and lets their commands go only then.

use std::sync::Arc;
use std::time::Instant;

use dormouse_engine::Step;
use dormouse_log::{LogError, LogWriter};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

use crate::CoordinatorError;
use crate::link::Owed;
use crate::punctuality::Punctuality;
use crate::session::SessionMsg;

/// What a worker may be told once the steps are durable.
#[derive(Debug)]
pub(crate) struct Release {
    pub(crate) session: ActorRef<SessionMsg>,
    pub(crate) commands: Vec<Owed>,
    /// The report up to which all are durable with these steps; zero: that is no news.
    pub(crate) durable: u64,
}

/// Steps to be written together with what hangs on them.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// The first line of a new log.
    pub(crate) header: Option<Value>,
    pub(crate) steps: Vec<Step>,
    pub(crate) releases: Vec<Release>,
    /// When the first of them was handed over.
    pub(crate) since: Option<Instant>,
}

impl Batch {
    fn append(&mut self, mut later: Self) {
        self.header = self.header.take().or(later.header);
        self.steps.append(&mut later.steps);
        self.releases.append(&mut later.releases);
        self.since = self.since.or(later.since);
    }

    /// Makes it durable.
    fn write(&self, to: &mut LogWriter) -> Result<(), LogError> {
        self.header.iter().try_for_each(|header| to.line(header))?;
        self.steps.iter().try_for_each(|step| to.line(step))?;
        // Without a line there may still be releases of what is durable already.
        if self.header.is_none() && self.steps.is_empty() { Ok(()) } else { to.sync() }
    }
}

#[derive(Debug)]
pub(crate) struct Journal;

#[derive(Debug)]
pub(crate) enum JournalMsg {
    Append(Batch),
    /// Answered when all that was appended before is durable.
    Flush(RpcReplyPort<()>),
    /// The writer is back with what it wrote.
    Written {
        writer: LogWriter,
        batch: Batch,
        outcome: Result<(), LogError>,
    },
    /// The writer is lost: a bug.
    Broken {
        why: String,
    },
}

#[derive(Debug)]
pub(crate) struct JournalArgs {
    pub(crate) writer: LogWriter,
    pub(crate) observer: Option<UnboundedSender<Step>>,
    pub(crate) punctuality: Arc<Punctuality>,
    pub(crate) failed: UnboundedSender<CoordinatorError>,
}

#[derive(Debug)]
pub(crate) struct JournalState {
    punctuality: Arc<Punctuality>,
    /// Here unless it writes.
    writer: Option<LogWriter>,
    pending: Batch,
    flushes: Vec<RpcReplyPort<()>>,
    observer: Option<UnboundedSender<Step>>,
    failed: UnboundedSender<CoordinatorError>,
    /// Nothing can be made durable any more.
    broken: bool,
}

impl JournalState {
    /// Writes all that is pending, unless it writes already.
    fn write(&mut self, myself: &ActorRef<JournalMsg>) {
        if self.broken {
            return;
        }
        let Some(mut writer) = self.writer.take() else { return };
        let idle = self.pending.steps.is_empty()
            && self.pending.header.is_none()
            && self.pending.releases.is_empty();
        if idle {
            self.writer = Some(writer);
            for flush in self.flushes.drain(..) {
                let _ = flush.send(());
            }
            return;
        }
        let batch = std::mem::take(&mut self.pending);
        let myself = myself.clone();
        let writing = tokio::task::spawn_blocking(move || {
            let outcome = batch.write(&mut writer);
            JournalMsg::Written { writer, batch, outcome }
        });
        tokio::spawn(async move {
            let message = match writing.await {
                Ok(written) => written,
                Err(panic) => JournalMsg::Broken { why: panic.to_string() },
            };
            let _ = myself.cast(message);
        });
    }

    fn release(&mut self, batch: Batch) {
        for Release { session, commands, durable } in batch.releases {
            // A session that has ended needs nothing.
            let _ = session.cast(SessionMsg::Release { commands, durable });
        }
        if let Some(observer) = &self.observer {
            for step in batch.steps {
                if observer.send(step).is_err() {
                    self.observer = None;
                    break;
                }
            }
        }
    }

    fn fail(&mut self, error: CoordinatorError) {
        self.broken = true;
        let _ = self.failed.send(error);
        self.flushes.clear();
    }
}

impl Actor for Journal {
    type Msg = JournalMsg;
    type State = JournalState;
    type Arguments = JournalArgs;

    async fn pre_start(
        &self,
        _: ActorRef<JournalMsg>,
        args: JournalArgs,
    ) -> Result<JournalState, ActorProcessingErr> {
        let JournalArgs { writer, observer, punctuality, failed } = args;
        let (writer, pending, flushes) = (Some(writer), Batch::default(), Vec::new());
        Ok(JournalState { writer, pending, flushes, observer, punctuality, failed, broken: false })
    }

    async fn handle(
        &self,
        myself: ActorRef<JournalMsg>,
        message: JournalMsg,
        state: &mut JournalState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            JournalMsg::Append(batch) => {
                let since = (!batch.steps.is_empty()).then(Instant::now);
                state.pending.append(Batch { since, ..batch });
            }
            JournalMsg::Flush(reply) if !state.broken => state.flushes.push(reply),
            JournalMsg::Flush(_) => {}
            JournalMsg::Written { writer, batch, outcome } => {
                state.writer = Some(writer);
                if let Some(since) = batch.since {
                    state.punctuality.wrote(since.elapsed());
                }
                match outcome {
                    Ok(()) => state.release(batch),
                    Err(error) => state.fail(error.into()),
                }
            }
            JournalMsg::Broken { why } => {
                state.fail(CoordinatorError::Part { part: "journal's writer", why });
            }
        }
        state.write(&myself);
        Ok(())
    }
}
