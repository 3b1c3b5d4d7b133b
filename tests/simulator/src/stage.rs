//! The stage of one run: its clock, its trace, its oracle, and whether its coordinator lives.
//!
//! The disk and the network report events to the stage in order, so that the oracle sees each durable byte before the
//! message that it allows. A killed coordinator is fenced here: the disk and the network ignore what its actors still
//! do.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dormouse_identity::WorkerLife;
use dormouse_proto::v1;
use dormouse_units::{Attempt, CheckpointSeq, TaskId};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::death::Death;
use crate::faults::CrashPoint;
use crate::invariant::{Invariant, Violation};
use crate::log_change::LogChange;
use crate::oracle::Oracle;
use crate::trace::{Lines, Trace};

/// A number of trace lines that no run reaches as long as it makes progress.
const MOST_LINES: u64 = 1_000_000;

/// The stage of one run. Clones share the same stage.
#[derive(Clone, Debug)]
pub struct Stage(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    start: Instant,
    inner: Mutex<Inner>,
    crashed: Notify,
}

#[derive(Debug)]
struct Inner {
    trace: Trace,
    oracle: Oracle,
    /// Number of coordinators that have started or died so far, which identifies the present one.
    generation: u64,
    is_alive: bool,
    /// Planned deaths that have not happened yet, of this coordinator or a later one.
    armed: Vec<Death>,
    /// The death of the last coordinator that was killed, until `take_death` returns it.
    died: Option<Death>,
    violation: Option<Violation>,
    /// Checkpoints that were sent to the coordinator, each by its task, number and attempt.
    uploads: BTreeSet<(TaskId, u32, Attempt)>,
    /// States that were reached and that the log does not show.
    reached: BTreeSet<&'static str>,
}

/// What the disk does with a write of a coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// The whole write is made.
    Whole,
    /// The whole write is made, and then the coordinator dies.
    ThenDie,
    /// A part of the write is made, in parts per million, and then the coordinator dies.
    PartThenDie(u32),
    /// Nothing is written: the coordinator is dead.
    Dead,
}

impl Stage {
    /// The stage of a run that starts now.
    #[must_use]
    pub fn new(trace: Trace, oracle: Oracle) -> Self {
        let inner = Inner {
            trace,
            oracle,
            generation: 0,
            is_alive: false,
            armed: Vec::new(),
            died: None,
            violation: None,
            uploads: BTreeSet::new(),
            reached: BTreeSet::new(),
        };
        let (inner, crashed) = (Mutex::new(inner), Notify::new());
        Self(Arc::new(Shared { start: Instant::now(), inner, crashed }))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Microseconds since the run's start.
    #[must_use]
    pub fn now_us(&self) -> u64 {
        u64::try_from(self.0.start.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// The instant so many milliseconds after the run's start.
    #[must_use]
    pub fn instant(&self, millis: u64) -> Instant {
        self.0.start + std::time::Duration::from_millis(millis)
    }

    /// Adds a line to the trace.
    pub fn note(&self, what: fmt::Arguments<'_>) {
        let now = self.now_us();
        self.inner().trace.line(now, what);
    }

    /// Notes that a coordinator starts; returns its generation.
    #[must_use]
    pub fn coordinator_starts(&self) -> u64 {
        let now = self.now_us();
        let mut inner = self.inner();
        inner.generation += 1;
        inner.is_alive = true;
        let generation = inner.generation;
        inner.oracle.coordinator_starts(now);
        inner.trace.line(now, format_args!("coordinator {generation} starts"));
        generation
    }

    /// Notes that the present coordinator is dead, or has ended: nothing of it has an effect any more.
    pub fn coordinator_ends(&self, how: &str) {
        let now = self.now_us();
        let mut inner = self.inner();
        inner.is_alive = false;
        let generation = inner.generation;
        inner.trace.line(now, format_args!("coordinator {generation} ends: {how}"));
    }

    /// Whether the coordinator of this generation is alive.
    #[must_use]
    pub fn lives(&self, generation: u64) -> bool {
        let inner = self.inner();
        inner.is_alive && inner.generation == generation
    }

    /// Plans a death of the coordinator, or of the next one if there is none now. A death that is due at once has no
    /// effect without a coordinator.
    pub fn arm(&self, death: Death) {
        let mut inner = self.inner();
        match death.point {
            CrashPoint::Now | CrashPoint::AfterMessages(0) if !inner.is_alive => {}
            CrashPoint::Now | CrashPoint::AfterMessages(0) => self.die(&mut inner, death),
            _ => inner.armed.push(death),
        }
    }

    /// Waits until a coordinator has died at the point planned for it.
    pub async fn crashed(&self) {
        self.0.crashed.notified().await;
    }

    /// Takes the death of the coordinator that was killed last; `None` if it was taken before.
    #[must_use]
    pub fn take_death(&self) -> Option<Death> {
        self.inner().died.take()
    }

    fn die(&self, inner: &mut Inner, death: Death) {
        inner.is_alive = false;
        inner.died = Some(death);
        let (generation, name) = (inner.generation, death.name);
        inner.trace.line(self.now_us(), format_args!("coordinator {generation} is killed: {name}"));
        self.0.crashed.notify_one();
    }

    /// Notes that the coordinator of this generation writes to its log or truncates it; returns what the disk does.
    pub(crate) fn writes(&self, generation: u64, what: fmt::Arguments<'_>) -> Write {
        let mut inner = self.inner();
        if !inner.is_alive || inner.generation != generation {
            return Write::Dead;
        }
        inner.trace.line(self.now_us(), format_args!("writes {what}"));
        let write = |death: &Death| match death.point {
            CrashPoint::BeforeWrite => Some(Write::Dead),
            CrashPoint::MidWrite(part) => Some(Write::PartThenDie(part)),
            CrashPoint::AfterWrite => Some(Write::ThenDie),
            _ => None,
        };
        let Some((place, write)) = inner.first_armed(write) else { return Write::Whole };
        let death = inner.armed.remove(place);
        self.die(&mut inner, death);
        write
    }

    /// Notes that the coordinator of this generation changes a file of its store, or its seal; returns what the disk
    /// does.
    pub(crate) fn changes_file(&self, generation: u64, what: fmt::Arguments<'_>) -> Write {
        let mut inner = self.inner();
        if !inner.is_alive || inner.generation != generation {
            return Write::Dead;
        }
        inner.trace.line(self.now_us(), what);
        let is_now = |death: &Death| match death.point {
            CrashPoint::AtFile { more: 0, part: 1_000_000.. } => Some(Write::ThenDie),
            CrashPoint::AtFile { more: 0, part } => Some(Write::PartThenDie(part)),
            _ => None,
        };
        let write = inner.first_armed(is_now);
        for death in &mut inner.armed {
            if let CrashPoint::AtFile { more, .. } = &mut death.point {
                *more = more.saturating_sub(1);
            }
        }
        let Some((place, write)) = write else { return Write::Whole };
        let death = inner.armed.remove(place);
        self.die(&mut inner, death);
        write
    }

    /// Notes that the coordinator of this generation has synced its log, which makes these changes durable. Returns
    /// whether the coordinator learns of it.
    pub(crate) fn synced(&self, generation: u64, changes: &[LogChange]) -> bool {
        let now = self.now_us();
        let mut inner = self.inner();
        let is_heard = inner.is_alive && inner.generation == generation;
        inner.see_durable(now, changes);
        let is_at_sync = |death: &Death| (death.point == CrashPoint::AfterSync).then_some(());
        if is_heard && let Some((place, ())) = inner.first_armed(is_at_sync) {
            let death = inner.armed.remove(place);
            self.die(&mut inner, death);
            return false;
        }
        is_heard
    }

    /// Notes that these changes of the log have become durable without a sync, by a power cut.
    pub(crate) fn survived(&self, changes: &[LogChange]) {
        let now = self.now_us();
        self.inner().see_durable(now, changes);
    }

    /// Notes a message of the coordinator of this generation to a worker. Returns whether it is sent: a dead
    /// coordinator sends nothing.
    pub(crate) fn leaves(&self, generation: u64, to: &WorkerLife, message: &v1::ToWorker) -> bool {
        let now = self.now_us();
        let mut inner = self.inner();
        if !inner.is_alive || inner.generation != generation {
            return false;
        }
        inner.see_durable(now, &[]);
        let what = Told(message);
        inner.trace.line(now, format_args!("{}@{:x} is told {what}", to.worker, to.incarnation));
        if let Err(violation) = inner.oracle.leaves(to, message, now) {
            inner.note(now, violation);
        }
        for death in &mut inner.armed {
            if let CrashPoint::AfterMessages(more) = &mut death.point {
                *more = more.saturating_sub(1);
            }
        }
        let is_last = |death: &Death| (death.point == CrashPoint::AfterMessages(0)).then_some(());
        if let Some((place, ())) = inner.first_armed(is_last) {
            let death = inner.armed.remove(place);
            self.die(&mut inner, death);
        }
        true
    }

    /// Notes that a worker says hello to the coordinator of this generation.
    pub(crate) fn hears(&self, generation: u64, life: &WorkerLife) {
        self.inner().oracle.hears(generation, life);
    }

    /// Notes that a message of a worker's session arrives at the coordinator over this connection.
    pub(crate) fn arrives(&self, life: &WorkerLife, connection: u64, is_hello: bool) {
        let now = self.now_us();
        self.inner().oracle.arrives(life, connection, is_hello, now);
    }

    /// Notes the answer to a user of an open run that a job was accepted under this key.
    pub(crate) fn submission_answered(&self, key: &str, number: u64) {
        let now = self.now_us();
        let mut inner = self.inner();
        inner.trace.line(now, format_args!("'{key}' is answered: job {number}"));
        if let Err(violation) = inner.oracle.submission_answered(key, number) {
            inner.note(now, violation);
        }
    }

    /// Notes the answer to a user of an open run that it is closed.
    pub(crate) fn close_answered(&self) {
        let now = self.now_us();
        let mut inner = self.inner();
        inner.trace.line(now, format_args!("the run is said to be closed"));
        if let Err(violation) = inner.oracle.close_answered() {
            inner.note(now, violation);
        }
    }

    /// Notes that a checkpoint is sent to the coordinator, and counts if it was sent before. Returns the newest
    /// attempt at its task in the log.
    pub(crate) fn sets_out(&self, upload: (TaskId, u32, Attempt)) -> Option<Attempt> {
        let mut inner = self.inner();
        if !inner.uploads.insert(upload) {
            inner.reached.insert("retried-upload");
        }
        inner.oracle.newest_attempt(upload.0)
    }

    /// Notes that a state was reached that the log does not show.
    pub(crate) fn reaches(&self, name: &'static str) {
        self.inner().reached.insert(name);
    }

    /// The states that were reached and that the log does not show.
    #[must_use]
    pub fn reached(&self) -> BTreeSet<&'static str> {
        self.inner().reached.clone()
    }

    /// Notes that the coordinator of this generation says it has stored a checkpoint; `newest` was the newest attempt
    /// at the task when the checkpoint was sent.
    pub(crate) fn has_stored(
        &self,
        generation: u64,
        of: (TaskId, CheckpointSeq, Attempt),
        newest: Option<Attempt>,
    ) {
        let now = self.now_us();
        let mut inner = self.inner();
        if inner.is_alive
            && inner.generation == generation
            && let Err(violation) = inner.oracle.has_stored(of, newest)
        {
            inner.note(now, violation);
        }
    }

    /// Notes a violation; only the first one counts.
    pub fn violated(&self, invariant: Invariant, what: String) {
        let now = self.now_us();
        self.inner().note(now, (invariant, what));
    }

    /// The first violation, if there was one.
    #[must_use]
    pub fn violation(&self) -> Option<Violation> {
        self.inner().violation.clone()
    }

    /// Has the oracle check what the machines have done by now.
    pub fn look(&self) {
        let now = self.now_us();
        let mut inner = self.inner();
        inner.see_durable(now, &[]);
        if inner.trace.lines() > MOST_LINES {
            inner.note(
                now,
                (Invariant::Progress, format!("more than {MOST_LINES} things happened")),
            );
        }
    }

    /// Calls `look` with the oracle, for example to read the durable log.
    pub fn with_oracle<T>(&self, look: impl FnOnce(&mut Oracle) -> T) -> T {
        look(&mut self.inner().oracle)
    }

    /// The digest of the trace, its text if it was kept, and its number of lines. The stage can't be used afterwards.
    #[must_use]
    pub fn finish(&self) -> (String, String, u64) {
        let trace =
            std::mem::replace(&mut self.inner().trace, Trace::new(Lines::Digested, String::new()));
        let lines = trace.lines();
        let (digest, text) = trace.finish();
        (digest, text, lines)
    }
}

impl Inner {
    /// The first planned death for which `what` returns something, by its index.
    fn first_armed<T>(&self, what: impl Fn(&Death) -> Option<T>) -> Option<(usize, T)> {
        self.armed.iter().enumerate().find_map(|(place, death)| Some((place, what(death)?)))
    }

    fn see_durable(&mut self, now: u64, changes: &[LogChange]) {
        for change in changes {
            self.trace.line(now, format_args!("durable: {change}"));
        }
        let Self { oracle, trace, .. } = self;
        let seen = oracle.see(changes, now, |deed| trace.line(now, format_args!("{deed}")));
        if let Err(violation) = seen {
            self.note(now, violation);
        }
    }

    fn note(&mut self, at_us: u64, (invariant, what): (Invariant, String)) {
        self.trace.line(at_us, format_args!("VIOLATION of {invariant}: {what}"));
        if self.violation.is_none() {
            self.violation = Some(Violation { invariant, at_us, what });
        }
    }
}

/// A message to a worker, formatted for the trace.
struct Told<'a>(&'a v1::ToWorker);

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use v1::to_worker::Body;
        write!(f, "ack {}", self.0.ack)?;
        match &self.0.body {
            None => Ok(()),
            Some(Body::Welcome(welcome)) => {
                write!(f, ", welcome as host {} at {}", welcome.host, welcome.now_us)
            }
            Some(Body::Heartbeat(_)) => f.write_str(", heartbeat"),
            Some(Body::Goodbye(goodbye)) => {
                write!(f, ", goodbye ({}): {}", goodbye.over, goodbye.why)
            }
            Some(Body::Commands(commands)) => {
                write!(f, ", commands from {}:", commands.first)?;
                commands.commands.iter().try_for_each(|command| write!(f, " {command:?}"))
            }
        }
    }
}
