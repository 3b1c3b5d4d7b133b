//! Where everything of one run meets: its clock, its trace, its oracle, and whether its coordinator lives.
//!
//! The disk and the network tell the stage what happens in its order, so that the oracle sees each
//! durable byte before the message that it allows. A killed coordinator is fenced here: neither disk
//! nor network hears what its actors still say.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dormouse_identity::WorkerLife;
use dormouse_proto::v1;
use dormouse_units::{Attempt, TaskId};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::death::Death;
use crate::faults::CrashPoint;
use crate::invariant::{Invariant, Violation};
use crate::log_change::LogChange;
use crate::oracle::Oracle;
use crate::trace::{Lines, Trace};

/// More things than happen in any run that gets on.
const MOST_LINES: u64 = 1_000_000;

/// The stage of one run. Clones are the same stage.
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
    /// Raised with each coordinator that starts, and with each that dies.
    generation: u64,
    is_alive: bool,
    /// Deaths whose points are yet to come, of this coordinator or a later one.
    armed: Vec<Death>,
    /// The death of the last coordinator that was killed, until it is taken.
    died: Option<Death>,
    violation: Option<Violation>,
    /// Checkpoints that have set out, each by its task, number and attempt.
    uploads: BTreeSet<(TaskId, u32, Attempt)>,
    /// States that were reached and that the log does not tell of.
    reached: BTreeSet<&'static str>,
}

/// What the disk is to do with a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// All of it.
    Whole,
    /// All of it, and then its writer is dead.
    ThenDie,
    /// A part, in parts per million, and then its writer is dead.
    PartThenDie(u32),
    /// Nothing: its writer is dead.
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

    /// A coordinator starts: its generation.
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

    /// The present coordinator is dead, or has ended: nobody hears anything of it any more.
    pub fn coordinator_ends(&self, how: &str) {
        let now = self.now_us();
        let mut inner = self.inner();
        inner.is_alive = false;
        let generation = inner.generation;
        inner.trace.line(now, format_args!("coordinator {generation} ends: {how}"));
    }

    /// Whether the coordinator of this generation lives.
    #[must_use]
    pub fn lives(&self, generation: u64) -> bool {
        let inner = self.inner();
        inner.is_alive && inner.generation == generation
    }

    /// The coordinator is to die at this death's point of its doings, or the next one if none is there. Nobody dies
    /// now who is not there.
    pub fn arm(&self, death: Death) {
        let mut inner = self.inner();
        match death.point {
            CrashPoint::Now | CrashPoint::AfterMessages(0) if !inner.is_alive => {}
            CrashPoint::Now | CrashPoint::AfterMessages(0) => self.die(&mut inner, death),
            _ => inner.armed.push(death),
        }
    }

    /// Waits until a coordinator has come to the point at which it was to die.
    pub async fn crashed(&self) {
        self.0.crashed.notified().await;
    }

    /// The death of the coordinator that was killed last, the first time that this is asked.
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

    /// A coordinator of this generation writes to its log, or cuts it.
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

    /// A coordinator of this generation changes a file other than its log: of its store, or of its seal.
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

    /// A coordinator of this generation has synced its log, by which these changes of it are durable.
    /// Whether it hears that.
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

    /// These changes of the log came to be durable by themselves, at a power cut.
    pub(crate) fn survived(&self, changes: &[LogChange]) {
        let now = self.now_us();
        self.inner().see_durable(now, changes);
    }

    /// A message leaves the coordinator of this generation. Whether it does: one that is dead says nothing.
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

    /// A worker says hello to the coordinator of this generation.
    pub(crate) fn hears(&self, generation: u64, life: &WorkerLife) {
        self.inner().oracle.hears(generation, life);
    }

    /// A message of a worker's life arrives at the coordinator over this connection.
    pub(crate) fn arrives(&self, life: &WorkerLife, connection: u64, is_hello: bool) {
        let now = self.now_us();
        self.inner().oracle.arrives(life, connection, is_hello, now);
    }

    /// A user of an open run hears that a job was taken under this key.
    pub(crate) fn submission_answered(&self, key: &str, number: u64) {
        let now = self.now_us();
        let mut inner = self.inner();
        inner.trace.line(now, format_args!("'{key}' is answered: job {number}"));
        if let Err(violation) = inner.oracle.submission_answered(key, number) {
            inner.note(now, violation);
        }
    }

    /// A user of an open run hears that it is closed.
    pub(crate) fn close_answered(&self) {
        let now = self.now_us();
        let mut inner = self.inner();
        inner.trace.line(now, format_args!("the run is said to be closed"));
        if let Err(violation) = inner.oracle.close_answered() {
            inner.note(now, violation);
        }
    }

    /// A checkpoint of an attempt sets out: the newest attempt at its task that the log has then. Whether the same
    /// checkpoint has set out before is counted.
    pub(crate) fn sets_out(&self, upload: (TaskId, u32, Attempt)) -> Option<Attempt> {
        let mut inner = self.inner();
        if !inner.uploads.insert(upload) {
            inner.reached.insert("retried-upload");
        }
        inner.oracle.newest_attempt(upload.0)
    }

    /// A state was reached that the log does not tell of.
    pub(crate) fn reaches(&self, name: &'static str) {
        self.inner().reached.insert(name);
    }

    /// The states that were reached and that the log does not tell of.
    #[must_use]
    pub fn reached(&self) -> BTreeSet<&'static str> {
        self.inner().reached.clone()
    }

    /// The coordinator of this generation says that it has stored a checkpoint of an attempt, which set out when this was
    /// the newest attempt.
    pub(crate) fn has_stored(
        &self,
        generation: u64,
        of: (TaskId, Attempt),
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

    /// Something is wrong; only what was found first counts.
    pub fn violated(&self, invariant: Invariant, what: String) {
        let now = self.now_us();
        self.inner().note(now, (invariant, what));
    }

    /// The first violation, if there was one.
    #[must_use]
    pub fn violation(&self) -> Option<Violation> {
        self.inner().violation.clone()
    }

    /// Looks at what the machines have done by now.
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

    /// Does something with the oracle, such as to ask what the durable log says.
    pub fn with_oracle<T>(&self, look: impl FnOnce(&mut Oracle) -> T) -> T {
        look(&mut self.inner().oracle)
    }

    /// The digest of the trace, and its text if it was kept. The stage is of no more use.
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
    /// The first armed death of which this is something, by its place.
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

/// A message to a worker, for the trace.
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
