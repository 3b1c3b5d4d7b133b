//! Makes steps durable, many with one sync, and runs the actions that depend on them only then.
//!
//! While the disk is full the run is stopped: nothing happens that isn't durable, so that the run continues where it
//! was once there is room.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use dormouse_log::{Chain, HeaderText, LogError, LogWriter};
use dormouse_model::{Event, Step};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tokio::task::JoinError;
use tokio::time::Instant;
use tracing::{Span, debug_span};

use crate::system::world::BlockingThreads;
use crate::time::punctuality::Punctuality;
use crate::{CoordinatorError, NEWS, SPANS};

/// Interval at which a full disk is checked for room again.
const FULL_LOOK: Duration = Duration::from_millis(500);
const FULL_FOR: Duration = Duration::from_secs(600);

/// Largest time by which the log's seal may lag behind the durable log: writing it takes about as long as a sync, and
/// no command waits for it.
const SEAL_WITHIN: Duration = Duration::from_millis(250);

/// An action that must wait until the steps that allow it are durable.
pub(crate) trait OnceDurable: fmt::Debug + Send + Sync {
    /// Runs the action, as its steps are durable now. The action must not block.
    fn on_durable(self: Box<Self>);
}

/// Steps to be written together, with the actions that wait for them.
#[derive(Debug, Default)]
pub(crate) struct JournalBatch {
    /// First line of a new log; `None`: the log has its first line.
    pub(crate) header: Option<HeaderText>,
    pub(crate) steps: Vec<Step>,
    /// Actions to run once the steps are durable, in order.
    pub(crate) then: Vec<Box<dyn OnceDurable>>,
    /// When the first of the steps was handed over; `None`: there are no steps.
    pub(crate) since: Option<Instant>,
}

impl JournalBatch {
    fn append_batch(&mut self, mut later: Self) {
        self.header = self.header.take().or(later.header);
        self.steps.append(&mut later.steps);
        self.then.append(&mut later.then);
        self.since = self.since.or(later.since);
    }

    /// Makes the steps durable; returns the length of the durable log if it has grown.
    fn write(&self, to: &mut LogWriter) -> Result<Option<u64>, LogError> {
        self.header.iter().try_for_each(|header| to.line(header))?;
        self.steps.iter().try_for_each(|step| to.line(step))?;
        // Without a line there may still be what hangs on lines that are durable already.
        if self.header.is_none() && self.steps.is_empty() {
            return Ok(None);
        }
        let bytes = to.sync()?;
        // Before a worker is told anything the seal says that the run has begun: a log in which that is damaged later
        // is not taken for one of a run that never began.
        if self.steps.iter().any(|step| step.event == Event::Begin) {
            to.seal()?;
        }
        Ok(Some(bytes))
    }
}

#[derive(Debug)]
pub(crate) struct Journal;

#[derive(Debug)]
pub(crate) enum JournalMsg {
    Append(JournalBatch),
    /// Answered once all that was appended before is durable.
    Flush(RpcReplyPort<()>),
    /// The writer returns with the result of a write.
    Written {
        writer: Box<LogWriter>,
        batch: JournalBatch,
        outcome: Result<Option<u64>, LogError>,
    },
    /// A disk that was full may have room again.
    LookForRoom,
    /// The seal must be written now.
    Seal,
    /// The writer returns from writing the seal.
    Sealed {
        writer: Box<LogWriter>,
        outcome: Result<(), LogError>,
    },
    /// The writer was lost in a panic: a bug.
    Broken {
        why: String,
    },
}

#[derive(Debug)]
pub(crate) struct JournalArgs {
    pub(crate) writer: LogWriter,
    pub(crate) observer: Option<UnboundedSender<Step>>,
    /// Sends the number of durable bytes of the log.
    pub(crate) durable: watch::Sender<u64>,
    pub(crate) punctuality: Arc<Punctuality>,
    pub(crate) failed: UnboundedSender<CoordinatorError>,
    /// Threads on which the journal writes.
    pub(crate) threads: BlockingThreads,
    /// Tracing span of the run.
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) struct JournalState {
    punctuality: Arc<Punctuality>,
    /// The log's writer; `None` while it writes on another thread.
    writer: Option<Box<LogWriter>>,
    pending: JournalBatch,
    flushes: Vec<RpcReplyPort<()>>,
    observer: Option<UnboundedSender<Step>>,
    durable: watch::Sender<u64>,
    failed: UnboundedSender<CoordinatorError>,
    /// True if nothing can be made durable any more.
    broken: bool,
    /// State of the log's hash chain at the end of what is durable.
    durable_to: Chain,
    /// When the disk became full; `None`: it isn't.
    full_since: Option<Instant>,
    /// True while the journal waits to check again whether the disk has room.
    waits_for_room: bool,
    /// When the seal is written next; once due, it is written before anything else.
    seal: SealState,
    threads: BlockingThreads,
    span: Span,
}

/// Time at which the seal is written next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SealState {
    /// The seal is not written: nothing was written to the log since.
    Kept,
    /// The seal is written after a delay.
    Later,
    /// The seal is written as soon as no write is under way.
    Due,
}

impl JournalState {
    /// Writes all pending steps, unless a write is under way.
    fn write(&mut self, myself: &ActorRef<JournalMsg>) {
        if self.broken || self.waits_for_room {
            return;
        }
        let Some(mut writer) = self.writer.take() else { return };
        let idle = self.is_idle();
        // Whoever has all of it written wants the seal with it.
        let is_last = idle && !self.flushes.is_empty() && self.seal == SealState::Later;
        if is_last || self.seal == SealState::Due {
            self.seal = SealState::Due;
            return self.write_seal(myself, writer);
        }
        if idle {
            self.writer = Some(writer);
            return self.answer_durable();
        }
        let batch = std::mem::take(&mut self.pending);
        let myself = myself.clone();
        let steps = batch.steps.len();
        let span = debug_span!(target: SPANS, parent: &self.span, "write", steps);
        let threads = self.threads.clone();
        let writing = move || {
            let _span = span.entered();
            let outcome = batch.write(&mut writer);
            JournalMsg::Written { writer, batch, outcome }
        };
        tokio::spawn(async move { myself.cast(writer_back(threads.run(writing).await)) });
    }

    /// Returns whether nothing is left to be written.
    fn is_idle(&self) -> bool {
        let JournalBatch { header, steps, then, .. } = &self.pending;
        header.is_none() && steps.is_empty() && then.is_empty()
    }

    /// Answers the callers that wait until everything is durable.
    fn answer_durable(&mut self) {
        for flush in self.flushes.drain(..) {
            let _ = flush.send(());
        }
    }

    fn write_seal(&self, myself: &ActorRef<JournalMsg>, mut writer: Box<LogWriter>) {
        let (myself, threads) = (myself.clone(), self.threads.clone());
        let sealing = move || {
            let outcome = writer.seal();
            JournalMsg::Sealed { writer, outcome }
        };
        tokio::spawn(async move { myself.cast(writer_back(threads.run(sealing).await)) });
    }

    /// Schedules a write of the seal, unless one is scheduled.
    fn seal_later(&mut self, myself: &ActorRef<JournalMsg>) {
        if self.seal == SealState::Kept {
            self.seal = SealState::Later;
            let myself = myself.clone();
            tokio::spawn(async move {
                tokio::time::sleep(SEAL_WITHIN).await;
                let _ = myself.cast(JournalMsg::Seal);
            });
        }
    }

    fn release_batch(&mut self, batch: JournalBatch) {
        batch.then.into_iter().for_each(OnceDurable::on_durable);
        if let Some(observer) = &self.observer {
            for step in batch.steps {
                if observer.send(step).is_err() {
                    self.observer = None;
                    break;
                }
            }
        }
    }

    /// Keeps a batch for which the disk has no room, to write it again later.
    fn wait_for_room(
        &mut self,
        myself: &ActorRef<JournalMsg>,
        mut batch: JournalBatch,
        error: LogError,
    ) {
        let since = *self.full_since.get_or_insert_with(|| {
            tracing::warn!(target: NEWS, "the run is stopped until there is room on the disk: {error}");
            Instant::now()
        });
        if since.elapsed() > FULL_FOR {
            return self.fail_journal(error.into());
        }
        if let Some(writer) = &mut self.writer
            && let Err(error) = writer.take_back(&self.durable_to)
        {
            return self.fail_journal(error.into());
        }
        batch.append_batch(std::mem::take(&mut self.pending));
        self.pending = batch;
        self.waits_for_room = true;
        let myself = myself.clone();
        tokio::spawn(async move {
            tokio::time::sleep(FULL_LOOK).await;
            let _ = myself.cast(JournalMsg::LookForRoom);
        });
    }

    fn fail_journal(&mut self, error: CoordinatorError) {
        self.broken = true;
        let _ = self.failed.send(error);
        self.flushes.clear();
    }
}

/// Makes the message with which the writer returns.
fn writer_back(outcome: Result<JournalMsg, JoinError>) -> JournalMsg {
    outcome.unwrap_or_else(|panic| JournalMsg::Broken { why: panic.to_string() })
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
        let JournalArgs { writer, observer, durable, punctuality, failed, threads, span } = args;
        Ok(JournalState {
            punctuality,
            durable_to: writer.place(),
            full_since: None,
            waits_for_room: false,
            seal: SealState::Kept,
            writer: Some(Box::new(writer)),
            pending: JournalBatch::default(),
            flushes: Vec::new(),
            observer,
            durable,
            failed,
            broken: false,
            threads,
            span,
        })
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
                state.pending.append_batch(JournalBatch { since, ..batch });
            }
            JournalMsg::Flush(reply) if !state.broken => state.flushes.push(reply),
            JournalMsg::Flush(_) => {}
            JournalMsg::Written { writer, batch, outcome } => {
                state.writer = Some(writer);
                if let Some(since) = batch.since {
                    state.punctuality.step_written(since.elapsed());
                }
                match outcome {
                    Ok(grown) => {
                        if let Some(bytes) = grown {
                            state.durable.send_replace(bytes);
                            state.seal_later(&myself);
                        }
                        if let Some(writer) = &state.writer {
                            state.durable_to = writer.place();
                        }
                        if state.full_since.take().is_some() {
                            tracing::info!(target: NEWS, "there is room again: the run continues");
                        }
                        state.release_batch(batch);
                    }
                    Err(error) if error.is_full() => state.wait_for_room(&myself, batch, error),
                    Err(error) => state.fail_journal(error.into()),
                }
            }
            JournalMsg::LookForRoom => state.waits_for_room = false,
            JournalMsg::Seal if state.seal == SealState::Later => state.seal = SealState::Due,
            // It was written before, for somebody who had all of it written.
            JournalMsg::Seal => {}
            JournalMsg::Sealed { writer, outcome } => {
                state.writer = Some(writer);
                state.seal = SealState::Kept;
                match outcome {
                    Ok(()) => {}
                    // The earlier one stays until there is room; the log is durable without it.
                    Err(error) if error.is_full() => {
                        state.seal_later(&myself);
                        if state.is_idle() {
                            state.answer_durable();
                        }
                    }
                    Err(error) => state.fail_journal(error.into()),
                }
            }
            JournalMsg::Broken { why } => {
                state.fail_journal(CoordinatorError::Part { part: "journal's writer", why });
            }
        }
        state.write(&myself);
        Ok(())
    }

    async fn post_stop(
        &self,
        _: ActorRef<JournalMsg>,
        state: &mut JournalState,
    ) -> Result<(), ActorProcessingErr> {
        // A run that is stopped, to be gone on with, is sealed as far as it came.
        if let Some(writer) = state.writer.as_mut().filter(|_| !state.broken)
            && let Err(error) = writer.seal()
        {
            tracing::warn!(%error, "the seal of the log could not be renewed and is an earlier one");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use nix::mount::{MntFlags, MsFlags, mount, umount2};
    use tokio::sync::mpsc;

    use super::*;
    use crate::contents::ContentPool;
    use crate::storage::store::{CheckpointFolder, ForgetTask};

    /// Test action: sends what is in the log, and whether a folder exists, when it runs.
    #[derive(Debug)]
    struct Probe {
        log: PathBuf,
        folder: PathBuf,
        say: UnboundedSender<(String, bool)>,
    }

    impl OnceDurable for Probe {
        fn on_durable(self: Box<Self>) {
            let log = std::fs::read_to_string(&self.log).expect("it is there");
            let _ = self.say.send((log, self.folder.is_dir()));
        }
    }

    fn step(seq: u64) -> Step {
        let event = Event::Tick;
        let (notices, decisions, effects) = (Vec::new(), Vec::new(), Vec::new());
        Step { seq, event, notices, decisions, effects, ..Step::blank() }
    }

    async fn journal(log: &Path) -> (ActorRef<JournalMsg>, watch::Receiver<u64>) {
        let (durable, bytes) = watch::channel(0);
        let args = JournalArgs {
            writer: LogWriter::create(log).expect("room"),
            observer: None,
            durable,
            punctuality: Arc::default(),
            threads: BlockingThreads::System,
            span: Span::none(),
            failed: mpsc::unbounded_channel().0,
        };
        (Actor::spawn(None, Journal, args).await.expect("it starts").0, bytes)
    }

    #[tokio::test]
    async fn checkpoints_are_forgotten_only_once_the_step_that_allows_it_is_durable() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (log, root) = (dir.path().join("log"), dir.path().join("store"));
        let contents = Arc::new(ContentPool::open(&dir.path().join("contents")).expect("room"));
        let store = Arc::new(CheckpointFolder::open(&root, contents).expect("room"));
        let incoming = store.receive_checkpoint(7, (1, 1), 1).expect("room");
        store.finish_checkpoint(7, incoming, &[]).expect("room");
        let (journal, mut bytes) = journal(&log).await;
        let (say, mut said) = mpsc::unbounded_channel();
        let folder = root.join("7");
        let probe = Box::new(Probe { log: log.clone(), folder: folder.clone(), say });
        let forget = Box::new(ForgetTask { store: Arc::clone(&store), task: 7 });
        let then: Vec<Box<dyn OnceDurable>> = vec![probe, forget];
        for (seq, then) in [(0, Vec::new()), (1, then)] {
            let batch = JournalBatch { steps: vec![step(seq)], then, ..JournalBatch::default() };
            journal.cast(JournalMsg::Append(batch)).expect("it lives");
        }
        let (text, is_there) = said.recv().await.expect("it happens");
        assert!(text.lines().count() == 2 && text.contains("\"seq\":1"), "{text}");
        assert!(is_there);
        assert_eq!(*bytes.borrow_and_update(), text.len() as u64);
        while folder.is_dir() {
            tokio::task::yield_now().await;
        }
    }

    /// Returns the number of lines that the seal beside a log covers.
    fn sealed_lines(log: &Path) -> u64 {
        let folder = log.parent().expect("it has one");
        dormouse_log::Seal::read(folder).expect("whole").expect("it is there").log.lines
    }

    /// Test action: sends how many lines the seal covers when it runs.
    #[derive(Debug)]
    struct SealProbe {
        log: PathBuf,
        say: UnboundedSender<u64>,
    }

    impl OnceDurable for SealProbe {
        fn on_durable(self: Box<Self>) {
            let _ = self.say.send(sealed_lines(&self.log));
        }
    }

    #[tokio::test]
    async fn nothing_happens_of_a_run_that_begins_before_the_seal_says_that_it_has_begun() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let log = dir.path().join("log");
        let (journal, _bytes) = journal(&log).await;
        let (say, mut said) = mpsc::unbounded_channel();
        let mut begin = step(1);
        begin.event = Event::Begin;
        let probe = Box::new(SealProbe { log: log.clone(), say });
        let batch = JournalBatch {
            steps: vec![step(0), begin],
            then: vec![probe],
            ..JournalBatch::default()
        };
        journal.cast(JournalMsg::Append(batch)).expect("it lives");
        assert_eq!(said.recv().await, Some(2));
        journal.stop_and_wait(None, None).await.expect("it ends");
    }

    #[tokio::test(start_paused = true)]
    async fn the_seal_follows_what_is_durable_and_nothing_waits_for_it() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let log = dir.path().join("log");
        let (journal, mut bytes) = journal(&log).await;
        let append = |seq| {
            let batch = JournalBatch { steps: vec![step(seq)], ..JournalBatch::default() };
            journal.cast(JournalMsg::Append(batch)).expect("it lives");
        };
        let was = *bytes.borrow_and_update();
        append(0);
        bytes.wait_for(|now| *now > was).await.expect("it is durable");
        assert_eq!(sealed_lines(&log), 0, "that was not waited for");
        while sealed_lines(&log) < 1 {
            tokio::time::sleep(SEAL_WITHIN / 10).await;
        }
        // Whoever has all of it written has the seal, and so has whoever stops it.
        append(1);
        journal.call(JournalMsg::Flush, None).await.expect("it lives");
        assert_eq!(sealed_lines(&log), 2);
        let was = *bytes.borrow_and_update();
        append(2);
        bytes.wait_for(|now| *now > was).await.expect("it is durable");
        journal.stop_and_wait(None, None).await.expect("it ends");
        assert_eq!(sealed_lines(&log), 3);
    }

    /// A separate file system with this much room, mounted until this value is dropped.
    struct Small(PathBuf);

    impl Small {
        fn over(folder: &Path, bytes: u64) -> nix::Result<Self> {
            let (kind, room) = (Some("tmpfs"), format!("size={bytes}"));
            mount(Some("small"), folder, kind, MsFlags::empty(), Some(room.as_str()))?;
            Ok(Self(folder.to_owned()))
        }
    }

    impl Drop for Small {
        fn drop(&mut self) {
            // Where it can't be, the test's folder is left.
            let _ = umount2(&self.0, MntFlags::MNT_DETACH);
        }
    }

    /// Needs root, to mount a file system.
    #[tokio::test]
    async fn on_a_full_disk_nothing_happens_and_nothing_is_lost() {
        if !nix::unistd::geteuid().is_root() {
            assert!(std::env::var("CI").is_err(), "in CI nothing is skipped");
            return println!("skipped: mounts need root");
        }
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (disk, store) = (dir.path().join("disk"), dir.path().join("store"));
        std::fs::create_dir(&disk).expect("room");
        let small = Small::over(&disk, 256 << 10).expect("root may");
        let log = disk.join("log");
        let (journal, mut bytes) = journal(&log).await;
        let append = |steps: std::ops::Range<u64>, then| {
            let batch =
                JournalBatch { steps: steps.map(step).collect(), then, ..JournalBatch::default() };
            journal.cast(JournalMsg::Append(batch)).expect("it lives");
        };
        let (say, mut said) = mpsc::unbounded_channel();
        append(0..1, Vec::new());
        bytes.changed().await.expect("it is durable");
        // Somebody else fills it.
        let other = disk.join("other");
        std::fs::write(&other, vec![0; 300 << 10]).expect_err("it is full");
        let probe =
            || Box::new(Probe { log: log.clone(), folder: store.clone(), say: say.clone() });
        append(1..1_000, vec![probe()]);
        append(1_000..1_001, Vec::new());
        // Three looks for room find none.
        tokio::time::sleep(3 * FULL_LOOK).await;
        assert!(said.try_recv().is_err(), "nothing may happen yet");
        std::fs::remove_file(&other).expect("it is there");
        let (text, _) = said.recv().await.expect("it happens");
        assert!(text.lines().count() >= 1_000, "{}", text.lines().count());
        journal.call(JournalMsg::Flush, None).await.expect("it lives");
        let text = std::fs::read_to_string(&log).expect("it is there");
        let number = |(n, line): (usize, &str)| line.contains(&format!("\"seq\":{n},"));
        assert!(text.lines().enumerate().all(number), "each line is there once, in order");
        assert_eq!(text.lines().count(), 1_001);
        drop(small);
    }
}
