//! State of a serving coordinator itself, for observers.
//!
//! Measurements are written to atomics, without waiting. The one lock is taken when a session begins or ends, and while
//! the list of sessions is read: never where a step or a message passes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use dormouse_units::{HostId, Time};
use tokio::time::Instant;

use crate::time::clock::DilatedClock;
use crate::time::delays::DelayHistogram;
use crate::time::punctuality::Punctuality;

/// Value of a counter of microseconds that stands for "never".
const NEVER: u64 = u64::MAX;

/// State of the coordinator itself: its sessions, its clock, and the delays of its clock and journal. Clones share
/// it. Reading it blocks nobody.
#[derive(Clone, Debug)]
pub struct CoordinatorVitals {
    shared: Arc<SharedVitals>,
}

/// One worker's session, until the worker is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionVitals {
    /// The worker's host in the run.
    pub host: HostId,
    /// The worker's name.
    pub worker: String,
    /// Age of the session's current connection, real time; `None`: the worker isn't connected.
    pub connected: Option<Duration>,
    /// Time since the worker's last message, real time.
    pub silent: Duration,
}

#[derive(Debug)]
struct SharedVitals {
    /// Instant from which the session's times are counted.
    origin: Instant,
    serves: AtomicBool,
    clock: OnceLock<DilatedClock>,
    punctuality: Arc<Punctuality>,
    sessions: Mutex<BTreeMap<HostId, Arc<SessionHealth>>>,
}

/// State of one session.
#[derive(Debug)]
struct SessionHealth {
    worker: String,
    /// Time at which the worker connected, in microseconds since the instant at which the coordinator's vitals were
    /// made.
    connected_us: AtomicU64,
    heard_us: AtomicU64,
}

/// Updates the vitals of one session, which is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct SessionPulse {
    shared: Arc<SharedVitals>,
    host: HostId,
    pulse: Arc<SessionHealth>,
}

/// Marks the coordinator as serving until it is dropped.
#[derive(Debug)]
pub(crate) struct ServingMark {
    shared: Arc<SharedVitals>,
}

impl SharedVitals {
    fn sessions(&self) -> MutexGuard<'_, BTreeMap<HostId, Arc<SessionHealth>>> {
        // Nothing is left half done under this lock.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_micros()).unwrap_or(NEVER - 1)
    }
}

impl Default for CoordinatorVitals {
    fn default() -> Self {
        let shared = SharedVitals {
            origin: Instant::now(),
            serves: AtomicBool::new(false),
            clock: OnceLock::new(),
            punctuality: Arc::default(),
            sessions: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }
}

impl CoordinatorVitals {
    /// Returns whether the coordinator conducts its run.
    #[must_use]
    pub fn is_serving(&self) -> bool {
        self.shared.serves.load(Ordering::Acquire)
    }

    /// Returns the run's clock, in emulated time; `None` before there is one.
    #[must_use]
    pub fn clock_now(&self) -> Option<Time> {
        self.shared.clock.get().map(DilatedClock::show_now)
    }

    /// Returns the sessions of workers that aren't lost, ordered by host.
    #[must_use]
    pub fn session_vitals(&self) -> Vec<SessionVitals> {
        let pulses: Vec<_> = {
            let sessions = self.shared.sessions();
            sessions.iter().map(|(host, pulse)| (*host, Arc::clone(pulse))).collect()
        };
        let now = self.shared.now_us();
        let since = |us: &AtomicU64| {
            let us = us.load(Ordering::Relaxed);
            (us != NEVER).then(|| Duration::from_micros(now.saturating_sub(us)))
        };
        let told = |(host, pulse): (HostId, Arc<SessionHealth>)| SessionVitals {
            host,
            connected: since(&pulse.connected_us),
            silent: since(&pulse.heard_us).unwrap_or_default(),
            worker: pulse.worker.clone(),
        };
        pulses.into_iter().map(told).collect()
    }

    /// Returns the delays until the first step of each write to the log was durable, real time.
    #[must_use]
    pub fn journal_delays(&self) -> DelayHistogram {
        self.shared.punctuality.journal.histogram()
    }

    /// Returns the delays of the alarm, real time.
    #[must_use]
    pub fn clock_lateness(&self) -> DelayHistogram {
        self.shared.punctuality.clock.histogram()
    }

    pub(crate) fn punctuality(&self) -> &Arc<Punctuality> {
        &self.shared.punctuality
    }

    /// Sets the run's clock.
    pub(crate) fn set_clock(&self, clock: DilatedClock) {
        // There is one conductor, and it has one clock.
        let _ = self.shared.clock.set(clock);
    }

    pub(crate) fn begin_serving(&self) -> ServingMark {
        self.shared.serves.store(true, Ordering::Release);
        ServingMark { shared: Arc::clone(&self.shared) }
    }

    /// Adds a session, whose worker isn't connected yet.
    pub(crate) fn begin_session(&self, host: HostId, worker: &str) -> SessionPulse {
        let pulse = Arc::new(SessionHealth {
            worker: worker.to_owned(),
            connected_us: AtomicU64::new(NEVER),
            heard_us: AtomicU64::new(self.shared.now_us()),
        });
        self.shared.sessions().insert(host, Arc::clone(&pulse));
        SessionPulse { shared: Arc::clone(&self.shared), host, pulse }
    }
}

impl SessionPulse {
    /// Records that the worker has connected.
    pub(crate) fn mark_connected(&self) {
        let now = self.shared.now_us();
        self.pulse.connected_us.store(now, Ordering::Relaxed);
        self.pulse.heard_us.store(now, Ordering::Relaxed);
    }

    /// Records a message of the worker.
    pub(crate) fn mark_heard(&self) {
        self.pulse.heard_us.store(self.shared.now_us(), Ordering::Relaxed);
    }

    /// Records that the connection has ended.
    pub(crate) fn mark_detached(&self) {
        self.pulse.connected_us.store(NEVER, Ordering::Relaxed);
    }
}

impl Drop for SessionPulse {
    fn drop(&mut self) {
        self.shared.sessions().remove(&self.host);
    }
}

impl Drop for ServingMark {
    fn drop(&mut self) {
        self.shared.serves.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn later_than(origin: Instant, span: Duration) {
        while origin.elapsed() < span {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn a_session_is_told_of_until_it_ends() {
        let vitals = CoordinatorVitals::default();
        let beside = vitals.clone();
        let (late, early) = (
            vitals.begin_session(HostId::new(7), "w7"),
            vitals.begin_session(HostId::new(2), "w2"),
        );
        late.mark_connected();
        let began = Instant::now();
        later_than(began, Duration::from_millis(2));
        early.mark_heard();
        let [first, second] = &beside.session_vitals()[..] else { panic!("there are two") };
        assert_eq!((first.host, first.worker.as_str()), (HostId::new(2), "w2"));
        assert_eq!(first.connected, None);
        let connected = second.connected.expect("it is connected");
        assert!(connected >= Duration::from_millis(2) && second.silent == connected);
        assert!(first.silent < second.silent, "{first:?} {second:?}");
        late.mark_detached();
        assert_eq!(beside.session_vitals()[1].connected, None);
        drop(early);
        assert_eq!(
            beside.session_vitals().iter().map(|it| it.host).collect::<Vec<_>>(),
            [HostId::new(7)]
        );
    }

    #[test]
    fn it_serves_for_as_long_as_somebody_says_so() {
        let vitals = CoordinatorVitals::default();
        assert!(!vitals.is_serving() && vitals.clock_now().is_none());
        let serving = vitals.begin_serving();
        assert!(vitals.clone().is_serving());
        drop(serving);
        assert!(!vitals.is_serving());
    }
}
